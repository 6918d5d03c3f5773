defmodule RankBridge.LiveRecordTest do
  @moduledoc "What ranks have done, and where their threads are, as another controller sees it, on real sidecars."

  use ExUnit.Case, async: true

  import RankBridge.Test.Soon

  alias RankBridge.{Error, Gang, Operations, Ranks, RecordedOperation, ThreadStack}
  alias RankBridge.Test.{LiveRanks, OsProcess}

  setup_all do
    # A stopped rank is not to be lost.
    ranks = LiveRanks.start(2, "gloo", ["--heartbeat-interval", "60"])
    on_exit(fn -> LiveRanks.stop(ranks) end)
    %{ranks: ranks}
  end

  setup %{ranks: ranks} do
    opts = [endpoints_file: ranks.file, timeout: 20_000]
    gang = start_supervised!({Gang, opts})
    assert RankBridge.barrier!(gang) == :ok
    %{gang: gang}
  end

  defp last(gang), do: for([it] <- RankBridge.record!(gang, limit: 1), do: it)

  test "an operation is recorded with its contract, its line, its times and its end", context do
    %{gang: gang} = context
    [generation, _same] = for(it <- RankBridge.status!(gang), do: it.generation)
    before = System.os_time(:microsecond)
    refs = RankBridge.put!(gang, [[1.0, 2.0], [3.0, 4.0]])
    id = RankBridge.Id.uuid()
    line = __ENV__.line + 1
    sums = RankBridge.all_reduce!(gang, refs, operation_id: id)
    assert length(sums) == 2

    for %RecordedOperation{} = it <- last(gang) do
      assert {it.operation, it.group, it.operation_id} == {"all_reduce", "world", id}
      assert it.contract == "all_reduce dtype=float32 shape=[2] op=sum"
      assert it.site == "test/live/record_test.exs:#{line}"
      assert {it.function, it.indefinite} == {"", false}
      assert it.generation == generation
      assert {it.phase, it.code, it.message} == {:data, nil, ""}
      assert it.called_us in (before - 1_000_000)..(System.os_time(:microsecond) + 1_000_000)
      assert 0 <= it.announced_us and it.announced_us <= it.entered_us
      assert it.entered_us <= it.done_us and is_integer(it.done_us)
    end

    refs = RankBridge.put!(gang, [[1.0], [2.0, 3.0]])
    assert {:error, %Error{reason: :mismatch}} = RankBridge.all_reduce(gang, refs)
    assert [:mismatch, :mismatch] = for(it <- last(gang), do: it.code)
    assert [nil, nil] = for(it <- last(gang), do: it.entered_us)
    assert Enum.all?(last(gang), &(&1.message =~ "MISMATCH"))
  end

  test "what waits is in the record without an end", %{gang: gang} do
    waits = Operations.submit_rank!(gang, 0, :barrier, nil, operation_id: "waits")

    assert_soon({"waits", :admission, nil, nil, nil}, fn ->
      it = hd(last(gang))
      {it.operation_id, it.phase, it.entered_us, it.done_us, it.code}
    end)

    others = Operations.submit_rank!(gang, 1, :barrier, nil, operation_id: "waits")
    for it <- [waits, others], do: assert(RankBridge.await!(gang, it) == nil)
  end

  test "a record can be of one group; wrong options are refused", %{gang: gang} do
    one = RankBridge.new_group!(gang, "one", [1])
    assert RankBridge.barrier!(gang, group: one) == :ok
    assert RankBridge.barrier!(gang) == :ok
    assert [[], [%{operation: "barrier", group: "one"}]] = RankBridge.record!(gang, group: one)

    assert [[], [%{caller: :controller, number: 0}]] =
             RankBridge.record!(gang, group: one, caller: :controller)

    assert [[], []] = RankBridge.record!(gang, caller: :script)
    RankBridge.destroy_group!(gang, one.name)

    for {opts, named} <- [
          {[limit: -1], ":limit is wrong"},
          {[group: 1], ":group is wrong"},
          {[caller: :nobody], ":caller is wrong"},
          {[limits: 1], "did you mean :limit"}
        ] do
      assert {:error, %Error{reason: :invalid_argument, operation: "record"} = error} =
               RankBridge.record(gang, opts)

      assert error.message =~ named
    end
  end

  test "stacks are of all threads, the main one first", %{gang: gang} do
    stacks = RankBridge.stacks!(gang)
    assert length(stacks) == 2

    for threads <- stacks do
      assert [%ThreadStack{name: "MainThread"} | _others] = threads
      assert Enum.all?(threads, &match?([_innermost | _callers], &1.frames))
      frames = for it <- threads, frame <- it.frames, do: frame
      assert Enum.any?(frames, &(&1.function =~ "Lane" and &1.file =~ ".py" and &1.line > 0))
      assert Enum.uniq_by(threads, & &1.native_id) == threads
    end
  end

  @tag sampled: RankBridge.Test.Sampled.part(__ENV__)
  test "a rank that does not answer is an error, and the others' records can be had", context do
    {:ok, view} = Gang.View.fetch(context.gang)
    last = List.last(context.ranks.pids)
    OsProcess.stop(last)
    # As long as the other one may take on a machine that is busy.
    record = Ranks.each_record(view, timeout: 5_000)
    stacks = Ranks.stacks(view, timeout: 5_000)
    OsProcess.signal(last, "CONT")
    assert {:ok, [{0, {:ok, [_ | _]}}, {1, {:error, %Error{} = error}}]} = record
    assert {error.reason, error.operation, error.rank} == {:deadline_exceeded, "record", 1}

    assert {:error, %Error{outcomes: [{0, :ok}, {1, %Error{reason: :deadline_exceeded}}]}} =
             stacks
  end
end
