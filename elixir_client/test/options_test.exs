defmodule RankBridge.OptionsTest do
  @moduledoc "Options that a function does not have: the error names the function, and what was likely meant."

  use ExUnit.Case, async: true

  alias RankBridge.{Error, Gang}
  alias RankBridge.Test.WatchedRanks

  setup do
    ranks = start_supervised!({WatchedRanks, 2})
    gang = start_supervised!({Gang, WatchedRanks.gang(ranks)})
    :ok = RankBridge.await_ready(gang, 60_000)
    %{gang: gang}
  end

  test "a wrong option is refused by the name of what was called", %{gang: gang} do
    ref = %RankBridge.Ref{
      rank: 0,
      id: "x",
      session_id: "",
      dtype: :float32,
      shape: [1],
      device: "cpu"
    }

    refs = [ref, %{ref | rank: 1}]

    for {result, message} <- [
          {RankBridge.broadcast(gang, refs, src: 1),
           "`broadcast` has no option :src; did you mean :src_rank_in_group?"},
          {RankBridge.all_reduce(gang, refs, grup: "world"),
           "`all_reduce` has no option :grup; did you mean :group?"},
          {RankBridge.barrier(gang, timeut: 1),
           "`barrier` has no option :timeut; did you mean :timeout?"},
          {RankBridge.all_gather(gang, refs, xyzzy: 1), "`all_gather` has no option :xyzzy"},
          {RankBridge.get(gang, ref, rnak: 1), "`get` has no option :rnak"},
          {RankBridge.new_group(gang, "g", [0, 1], operation: "x"),
           "`new_group` has no option :operation; did you mean :operation_id?"}
        ] do
      assert {:error, %Error{reason: :invalid_argument, indefinite: false} = error} = result
      assert error.message == message
    end
  end
end
