defmodule RankBridge.LivePendingTest do
  @moduledoc "What ranks have not answered yet, as another controller sees it, on real sidecars."

  use ExUnit.Case, async: true

  import RankBridge.Test.Soon

  alias RankBridge.{Error, Gang, Operations, Pending, Ranks}
  alias RankBridge.Test.{LiveRanks, OsProcess}

  defp gang(ranks) do
    opts = [endpoints_file: ranks.file, timeout: 20_000]
    gang = start_supervised!({Gang, opts}, id: make_ref())
    assert RankBridge.barrier!(gang) == :ok
    gang
  end

  @tag sampled: RankBridge.Test.Sampled.part(__ENV__)
  test "who has come and who is missing is listed until all have" do
    ranks = LiveRanks.start(3, "fake")
    on_exit(fn -> LiveRanks.stop(ranks) end)
    {driver, watcher} = {gang(ranks), gang(ranks)}
    submit = &Operations.submit_rank!(driver, &1, :barrier, nil, operation_id: "one")
    submit.(0)
    submit.(2)

    admissions = fn ->
      for %Pending{admissions: admissions} <- RankBridge.pending!(watcher),
          it <- admissions do
        arrived = for {rank, _after_us} <- it.arrived, do: rank
        {it.operation, it.operation_id, it.group, arrived, it.missing}
      end
    end

    assert_soon([{"barrier", "one", "world", [0, 2], [1]}], admissions)

    assert [[%{phase: :admission, group: "world"} = it], [], [%{operation_id: "one"}]] =
             for(pending <- RankBridge.pending!(watcher), do: pending.operations)

    assert it.waited_us > 0 and it.remaining_us > 0
    submit.(1)
    assert RankBridge.await!(driver, "one") == nil
    assert admissions.() == []
  end

  @tag sampled: RankBridge.Test.Sampled.part(__ENV__)
  test "a rank that does not answer has an error, and the others answer" do
    ranks = LiveRanks.start(2, "gloo", ["--heartbeat-interval", "60"])
    on_exit(fn -> LiveRanks.stop(ranks) end)
    {:ok, view} = Gang.View.fetch(gang(ranks))
    last = List.last(ranks.pids)
    OsProcess.stop(last)
    # As long as the other one may take on a machine that is busy.
    {:ok, pending} = Ranks.pending(view, timeout: 5_000)
    OsProcess.signal(last, "CONT")

    assert [
             %Pending{rank: 0, error: nil},
             %Pending{rank: 1, operations: [], error: %Error{reason: :deadline_exceeded}}
           ] = pending
  end
end
