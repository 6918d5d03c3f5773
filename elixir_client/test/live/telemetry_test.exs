defmodule RankBridge.LiveTelemetryTest do
  @moduledoc "What one sees by `:telemetry` of calls on real sidecars."

  use ExUnit.Case, async: true

  alias RankBridge.{Error, Gang}
  alias RankBridge.Test.{LiveRanks, Telemetry}

  @call for last <- [:start, :stop, :exception], do: [:rank_bridge, :call, last]
  @rank for last <- [:start, :stop, :exception], do: [:rank_bridge, :rank, :call, last]

  setup_all do
    ranks = LiveRanks.start(4, "fake")
    on_exit(fn -> LiveRanks.stop(ranks) end)
    %{ranks: ranks}
  end

  setup %{ranks: ranks, test: test} do
    start_supervised!(
      {Gang, name: test, endpoints_file: ranks.file, timeout: 60_000, calls: :ranks}
    )

    %{gang: test, refs: RankBridge.put!(test, for(rank <- 0..3, do: [1.0 * rank]))}
  end

  defp spans(gang, fun) do
    id = Telemetry.watch(@call ++ @rank, gang)
    given = fun.()
    {given, Enum.group_by(Telemetry.seen(id), &elem(&1, 0), &Tuple.delete_at(&1, 0))}
  end

  test "a collective is one span, and one of each rank's within it", %{gang: gang, refs: refs} do
    {{:ok, _sums}, seen} =
      spans(gang, fn -> RankBridge.all_reduce(gang, refs, group: "world") end)

    assert [{began, start}] = seen[[:rank_bridge, :call, :start]]
    assert %{gang: ^gang, operation: :all_reduce, group: "world"} = start
    assert [{ended, stop}] = seen[[:rank_bridge, :call, :stop]]
    assert stop == Map.merge(start, %{result: :ok, error: nil})
    assert ended.monotonic_time - began.monotonic_time == ended.duration

    starts =
      for {_measurements, metadata} <- seen[[:rank_bridge, :rank, :call, :start]], do: metadata

    assert Enum.map(starts, & &1.rank) == [0, 1, 2, 3]
    assert [_one] = Enum.uniq_by(starts, & &1.operation_id)

    for metadata <- starts do
      assert %{gang: ^gang, operation: "all_reduce", group: "world"} = metadata
      assert metadata.rpc == "/rankbridge.v1.GangService/Execute"
      assert metadata.call_span_context == start.telemetry_span_context
    end

    stops = seen[[:rank_bridge, :rank, :call, :stop]]

    assert Enum.map(stops, &elem(&1, 1)) ==
             Enum.map(starts, &Map.merge(&1, %{result: :ok, error: nil}))

    for {it, _metadata} <- stops, do: assert(it.duration > 0 and it.duration <= ended.duration)
    assert map_size(seen) == 4
  end

  test "a collective that fails is seen as it is told", %{gang: gang, refs: refs} do
    [first | others] = refs
    wide = RankBridge.put_rank!(gang, 0, [1.0, 2.0])
    assert first.rank == 0

    {{:error, error}, seen} = spans(gang, fn -> RankBridge.all_reduce(gang, [wide | others]) end)

    assert error.reason == :mismatch
    assert [{_measurements, stop}] = seen[[:rank_bridge, :call, :stop]]
    assert %{result: :error, error: ^error, group: nil} = stop

    stops =
      for {_measurements, metadata} <- seen[[:rank_bridge, :rank, :call, :stop]], do: metadata

    assert for(it <- stops, do: {it.rank, it.error}) == error.outcomes
    assert Enum.uniq(for it <- stops, do: it.result) == [:error]
  end

  test "tensors that are brought and fetched are seen, too", %{gang: gang, refs: [ref | _]} do
    {%{}, seen} = spans(gang, fn -> RankBridge.get!(gang, ref) end)

    assert [{_measurements, %{rank: 0, result: :ok} = got}] =
             seen[[:rank_bridge, :rank, :call, :stop]]

    assert got.rpc == "/rankbridge.v1.RefService/GetTensor"
    assert [{_measurements, %{operation: :get}}] = seen[[:rank_bridge, :call, :stop]]

    {_put, seen} = spans(gang, fn -> RankBridge.put!(gang, List.duplicate([1.0], 4)) end)

    puts =
      for {_measurements, metadata} <- seen[[:rank_bridge, :rank, :call, :stop]], do: metadata

    assert Enum.sort(for it <- puts, do: {it.rank, it.operation}) ==
             for(r <- 0..3, do: {r, "put"})

    assert [{_measurements, %{operation: :put}}] = seen[[:rank_bridge, :call, :stop]]

    RankBridge.release!(gang, ref)

    {:raised, seen} =
      spans(gang, fn ->
        assert_raise Error, ~r/released_ref/, fn -> RankBridge.get!(gang, ref) end
        :raised
      end)

    # A function with a ! is the one without.
    assert [{_measurements, %{error: %Error{reason: :released_ref}}}] =
             seen[[:rank_bridge, :rank, :call, :stop]]

    assert [{_measurements, %{result: :error}}] = seen[[:rank_bridge, :call, :stop]]
  end

  test "what is refused has no RPCs", %{gang: gang, refs: refs} do
    {{:error, error}, seen} = spans(gang, fn -> RankBridge.all_reduce(gang, refs, oop: 1) end)
    assert error.reason == :invalid_argument
    assert Map.keys(seen) == [[:rank_bridge, :call, :start], [:rank_bridge, :call, :stop]]
  end

  test "what a program's own function does are spans of their own", %{gang: gang, refs: refs} do
    {{:ok, _graph}, seen} =
      spans(gang, fn ->
        RankBridge.Graphs.graph_capture(gang, nil, fn -> RankBridge.all_reduce(gang, refs) end)
      end)

    stops =
      for {_measurements, metadata} <- seen[[:rank_bridge, :call, :stop]], do: metadata.operation

    assert stops == [:all_reduce, :graph_capture]

    contexts =
      for {_measurements, metadata} <- seen[[:rank_bridge, :rank, :call, :start]],
          do: {metadata.operation, metadata.call_span_context}

    [{_, capture}, {_, reduce}] = seen[[:rank_bridge, :call, :start]]

    assert Enum.uniq(contexts) == [
             {"begin_capture", capture.telemetry_span_context},
             {"all_reduce", reduce.telemetry_span_context},
             {"end_capture", capture.telemetry_span_context}
           ]
  end

  test "what is raised is seen, and goes on unchanged", %{gang: gang} do
    {:over, seen} =
      spans(gang, fn ->
        catch_throw(RankBridge.Graphs.graph_capture(gang, nil, fn -> throw(:over) end))
      end)

    assert [{%{duration: _}, %{kind: :throw, reason: :over, stacktrace: [_ | _]} = metadata}] =
             seen[[:rank_bridge, :call, :exception]]

    assert metadata.operation == :graph_capture
    refute is_map_key(seen, [:rank_bridge, :call, :stop])
  end

  test "handlers run in the process of the caller", %{gang: gang} do
    id = Telemetry.watch(@call ++ @rank, gang)
    RankBridge.barrier!(gang)
    me = self()
    assert_received {:seen, [:rank_bridge, :call, :start], _measurements, _metadata, ^me}
    assert_received {:seen, [:rank_bridge, :rank, :call, :stop], _measurements, _metadata, ^me}
    _others = Telemetry.seen(id)
  end
end
