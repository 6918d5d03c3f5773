defmodule RankBridge.Gang.StoppedRanksTest do
  @moduledoc "A rank that is stopped, but does not end: real processes on Gloo."

  use ExUnit.Case, async: true

  alias RankBridge.Gang
  alias RankBridge.Gang.Event
  alias RankBridge.Test.{OsProcess, Telemetry}

  @soon 60_000
  @events [[:rank_bridge, :rank, :lost], [:rank_bridge, :rank, :replaced]] ++
            for(last <- [:start, :stop, :exception], do: [:rank_bridge, :gang, :recover, last]) ++
            for(last <- [:start, :stop, :exception], do: [:rank_bridge, :gang, :form, last])

  defp pids(gang), do: for(status <- RankBridge.status!(gang), do: status.pid)

  @tag sampled: RankBridge.Test.Sampled.part(__ENV__)
  test "a rank that says nothing is lost, ended, and replaced", %{test: name} do
    Gang.subscribe(name)
    # Three seconds without a sign of life.
    arguments = ["--heartbeat-interval", "0.5", "--heartbeat-misses", "6"]
    opts = [name: name, size: 2, command: OsProcess.rankbridge(), arguments: arguments]
    gang = start_supervised!({Gang, opts})
    assert_receive {:rank_bridge, ^name, %Event{kind: :formed, generation: 1}}, @soon
    refs = RankBridge.put!(name, [[1.0], [2.0]])
    [first, stopped] = pids(name)
    seen = Telemetry.watch(@events, name)

    OsProcess.stop(stopped)
    assert_receive {:rank_bridge, ^name, %Event{kind: :rank_lost, rank: 1} = lost}, @soon
    assert lost.generation == 1
    assert_receive {:rank_bridge, ^name, %Event{kind: :formed} = formed}, @soon
    assert RankBridge.await_ready(name, @soon) == :ok
    assert Process.whereis(name) == gang
    assert [^first, new] = pids(name)
    assert new != stopped
    OsProcess.await_gone([stopped])
    new_ref = RankBridge.put_rank!(name, 1, [3.0])
    sums = RankBridge.all_reduce!(name, [hd(refs), new_ref])
    assert [4.0] = name |> RankBridge.get!(hd(sums)) |> RankBridge.Tensor.to_list()

    seen = Telemetry.seen(seen)
    generation = formed.generation
    assert [%{rank: 1, how: how}] = of(seen, [:rank_bridge, :rank, :lost])
    assert how == lost.reason
    assert [%{rank: 1, generation: ^generation}] = of(seen, [:rank_bridge, :rank, :replaced])
    assert [%{ranks: [1], policy: :replace}] = of(seen, [:rank_bridge, :gang, :recover, :start])
    assert [recovered] = of(seen, [:rank_bridge, :gang, :recover, :stop])
    assert %{result: :ok, generation: ^generation, world_size: 2, ranks: [1]} = recovered
    # It may have tried more than once.
    assert %{result: :ok, generation: ^generation} =
             seen |> of([:rank_bridge, :gang, :form, :stop]) |> List.last()
  end

  defp of(seen, event), do: for({^event, _measurements, metadata} <- seen, do: metadata)
end
