defmodule RankBridge.GlooGangTest do
  @moduledoc "What a controller sees of real ranks that miss a call, or die."

  use ExUnit.Case, async: true

  import RankBridge.Test.Soon

  alias RankBridge.{Error, Gang, Id, RankStatus, Tensor}
  alias RankBridge.Test.{Admissions, LiveRanks}

  setup do
    # A rank that was killed stays away, however long the test takes to look.
    ranks = LiveRanks.start(3, "gloo", ["--on-rank-exit", "leave"])
    on_exit(fn -> LiveRanks.stop(ranks) end)
    gang = start_supervised!({Gang, endpoints_file: ranks.file, timeout: 20_000})
    %{gang: gang, ranks: ranks}
  end

  @tag sampled: RankBridge.Test.Sampled.part(__ENV__)
  test "a member that does not call is named by those who did, and the group stays healthy", %{
    gang: gang
  } do
    id = Id.uuid()
    first = RankBridge.Operations.submit_rank!(gang, 0, :barrier, nil, operation_id: id)
    # Whoever came after the end of the shorter timeout would be missing, too.
    assert_soon([0], fn -> Admissions.arrived(gang, id) end)
    opts = [operation_id: id, timeout: 1_000]
    last = RankBridge.Operations.call_rank(gang, 2, :barrier, nil, opts)

    for result <- [last, RankBridge.await(gang, first)] do
      assert {:error, %Error{reason: :peer_missing, indefinite: false} = error} = result
      assert [1] = for(%{state: :missing, rank: rank} <- error.ranks, do: rank)
    end

    assert RankBridge.barrier!(gang) == :ok
  end

  @tag sampled: RankBridge.Test.Sampled.part(__ENV__)
  test "a rank that is killed is told to whoever waits for it, at once and not at the timeout",
       context do
    %{gang: gang, ranks: ranks} = context
    refs = RankBridge.put!(gang, [[1.0], [2.0], [3.0]])

    waiting =
      for rank <- [0, 1] do
        Task.async(fn ->
          RankBridge.Operations.call_rank(gang, rank, :barrier, nil, timeout: 20_000)
        end)
      end

    pending = fn ->
      gang |> RankBridge.status!() |> Enum.take(2) |> Enum.all?(&(&1.pending_operations == 1))
    end

    assert_soon(true, pending)
    {_output, 0} = System.cmd("kill", ["-9", "#{Enum.at(ranks.pids, 2)}"])
    started = System.monotonic_time(:millisecond)

    for result <- Task.await_many(waiting, 30_000) do
      assert {:error, %Error{reason: :peer_lost} = error} = result
      assert Enum.any?(error.ranks, &(&1.rank == 2 and &1.state == :lost))
    end

    assert System.monotonic_time(:millisecond) - started < 10_000
    # What stays on the survivors stays there.
    assert gang |> RankBridge.get!(hd(refs)) |> Tensor.to_list() == [1.0]
    assert {:error, %Error{} = error} = RankBridge.all_reduce(gang, refs, calls: :ranks)
    assert [{0, %Error{}}, {1, %Error{}}, {2, %Error{reason: :unavailable}}] = error.outcomes
    # The first rank, which is asked for all, knows of it.
    assert {:error, %Error{reason: :stale_generation} = error} = RankBridge.barrier(gang)
    assert [{0, _}, {1, _}, {2, %Error{reason: :stale_generation}}] = error.outcomes

    assert [%RankStatus{error: nil}, %RankStatus{error: nil}, %RankStatus{error: %Error{}}] =
             RankBridge.status!(gang)
  end
end
