defmodule RankBridge.LiveDoctorTest do
  @moduledoc "Verdicts on gangs that run: what is wrong, from the answers of their ranks."

  use ExUnit.Case, async: true

  import RankBridge.Test.Soon

  alias RankBridge.{Doctor, Error, Gang, Operations, Verdict}
  alias RankBridge.Test.{LiveRanks, OsProcess}
  alias RankBridge.Test.Telemetry, as: Watch

  @patience 0.3

  setup_all do
    # A stopped rank is not to be lost.
    ranks = LiveRanks.start(3, "gloo", ["--heartbeat-interval", "60"])
    on_exit(fn -> LiveRanks.stop(ranks) end)
    %{ranks: ranks}
  end

  setup %{ranks: ranks} do
    gang = start_supervised!({Gang, endpoints_file: ranks.file, timeout: 20_000})
    assert RankBridge.barrier!(gang) == :ok
    %{gang: gang}
  end

  # The verdict, once it is of this kind, and so many wait.
  defp found(gang, kind, waiting) do
    assert_soon({kind, waiting}, fn ->
      verdict = Doctor.diagnose!(gang, patience: @patience)
      {verdict.kind, length(verdict.waits)}
    end)

    Doctor.diagnose!(gang, patience: @patience)
  end

  @tag sampled: RankBridge.Test.Sampled.part(__ENV__)
  test "a rank that nobody calls is named, and an event says so; then the gang is healthy",
       context do
    %{gang: gang, ranks: %{pids: pids}} = context
    line = __ENV__.line + 4

    waiting =
      for rank <- 0..1,
          do: Operations.submit_rank!(gang, rank, :barrier, nil, operation_id: "all")

    assert %Verdict{call: "barrier world", world_size: 3} = found(gang, :never_called, 2)
    id = Watch.watch([[:rank_bridge, :gang, :verdict]], gang)
    {:ok, verdict} = Doctor.diagnose(gang, patience: @patience)
    assert [{_name, %{duration: duration}, told}] = Watch.seen(id)
    assert {told.kind, told.ranks, told.verdict} == {:never_called, [2], verdict}
    # Two looks, 0.2 s apart.
    assert System.convert_time_unit(duration, :native, :millisecond) >= 200

    assert [%Verdict.Culprit{rank: 2, condition: :idle, stack: []} = culprit] = verdict.culprits
    assert culprit.pid == Enum.at(pids, 2)
    assert "#{verdict}" =~ "NEVER_CALLED: rank 2 has not called barrier world, is idle"
    refute Verdict.healthy?(verdict)
    assert Enum.sort(for(it <- verdict.waits, do: it.rank)) == [0, 1]

    for %Verdict.Wait{} = it <- verdict.waits do
      assert {it.call, it.waits_for} == {"barrier world", [2]}
      assert it.waited_us >= @patience * 1_000_000
      assert it.site == "doctor_test.exs:#{line}"
    end

    last = Operations.submit_rank!(gang, 2, :barrier, nil, operation_id: "all")
    for it <- [last | waiting], do: assert(RankBridge.await!(gang, it) == nil)
    assert Verdict.healthy?(Doctor.diagnose!(gang))
  end

  test "members that disagreed are shown with both sides", %{gang: gang} do
    refs = RankBridge.put!(gang, [[1.0], [1.0, 2.0], [1.0]])
    assert {:error, %Error{reason: :mismatch}} = RankBridge.all_reduce(gang, refs)
    verdict = Doctor.diagnose!(gang)
    assert {verdict.kind, for(it <- verdict.culprits, do: it.rank)} == {:mismatch_shape, [1]}

    assert [{[0, 2], "all_reduce dtype=float32 shape=[1] op=sum"}, {[1], other}] =
             for(%Verdict.Side{} = it <- verdict.sides, do: {it.ranks, it.what})

    assert other == "all_reduce dtype=float32 shape=[2] op=sum"
    RankBridge.release!(gang, refs)
  end

  test "wrong options are refused", %{gang: gang} do
    for {opts, named} <- [
          {[patience: 0.0], ":patience is wrong"},
          {[patience: 5_000_000], ":patience is wrong"},
          {[patience: "1"], ":patience is wrong"},
          {[patients: 1], "did you mean :patience"}
        ] do
      assert {:error, %Error{reason: :invalid_argument, operation: "diagnose"} = error} =
               Doctor.diagnose(gang, opts)

      assert error.message =~ named
    end
  end

  @tag sampled: RankBridge.Test.Sampled.part(__ENV__)
  test "a rank that does not answer holds up no verdict; if none answers, that is an error",
       context do
    %{gang: gang, ranks: %{pids: [first | others] = pids}} = context
    pair = RankBridge.new_group!(gang, "pair", [1, 2])
    opts = [group: pair, operation_id: "both"]
    waits = Operations.submit_rank!(gang, 1, :barrier, nil, opts)
    assert %Verdict{} = found(gang, :never_called, 1)

    # The lowest rank that answers is asked for the verdict.
    OsProcess.stop(first)
    verdict = Doctor.diagnose(gang, patience: @patience, timeout: 5_000)
    for pid <- others, do: OsProcess.stop(pid)
    nobody = Doctor.diagnose(gang, timeout: 200)
    for pid <- pids, do: OsProcess.signal(pid, "CONT")

    assert {:ok, %Verdict{call: "barrier pair", culprits: [%{rank: 2, condition: :idle}]}} =
             verdict

    assert {:error, %Error{reason: :deadline_exceeded, operation: "diagnose"} = error} = nobody
    assert [{0, %Error{}}, {1, %Error{}}, {2, %Error{}}] = error.outcomes

    other = Operations.submit_rank!(gang, 2, :barrier, nil, opts)
    for it <- [waits, other], do: assert(RankBridge.await!(gang, it) == nil)
    RankBridge.destroy_group!(gang, pair.name)
  end
end
