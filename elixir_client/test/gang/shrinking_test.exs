defmodule RankBridge.Gang.ShrinkingTest do
  @moduledoc "A gang that goes on without the ranks that it has lost, down to the last: real processes on Gloo."

  use ExUnit.Case, async: true

  alias RankBridge.{Error, Gang, Tensor}
  alias RankBridge.Gang.{Event, Lost}
  alias RankBridge.Test.OsProcess

  @name __MODULE__.Gang
  @soon 60_000

  defp pid(rank), do: Enum.at(RankBridge.status!(@name), rank).pid

  defp sums(refs) do
    sums = RankBridge.all_reduce!(@name, refs)
    @name |> RankBridge.get!(sums) |> Enum.map(&Tensor.to_list/1)
  end

  defp groups, do: for(group <- RankBridge.Grouping.groups!(@name), do: {group.name, group.ranks})

  # Gives what the callback was told, once the gang is ready without it.
  defp lose(rank) do
    OsProcess.kill(pid(rank))
    assert_receive {:rank_bridge, @name, %Event{kind: :rank_lost, rank: ^rank}}, @soon
    assert_receive {:lost, %Lost{policy: :shrink} = lost}, @soon
    assert_receive {:rank_bridge, @name, %Event{kind: :formed} = formed}, @soon
    assert formed.generation == lost.generation
    assert RankBridge.await_ready(@name, @soon) == :ok
    assert Gang.size(@name) == {:ok, formed.world_size}
    lost
  end

  @tag sampled: RankBridge.Test.Sampled.part(__ENV__)
  test "the others keep what they hold, under their new numbers, down to one; then the gang ends" do
    test = self()
    Gang.subscribe(@name)

    opts =
      [name: @name, size: 3, on_rank_lost: :shrink, command: OsProcess.rankbridge()] ++
        [groups: [{"ends", [0, 2]}, {"first", [0]}, {"last", [2, 1]}], max_restarts: 10] ++
        [arguments: ["--heartbeat-interval", "2"]] ++
        [handle_rank_lost: fn @name, lost -> send(test, {:lost, lost}) && :ok end]

    gang = start_supervised!({Gang, opts}, restart: :temporary)
    monitor = Process.monitor(gang)
    assert_receive {:rank_bridge, @name, %Event{kind: :formed, world_size: 3}}, @soon
    refs = RankBridge.put!(@name, [[1.0], [10.0], [100.0]])

    lost = lose(0)
    assert %Lost{ranks: [0], moved: %{1 => 0, 2 => 1}, how: %{0 => how}} = lost
    assert is_binary(how)
    kept = Lost.kept(lost, refs)
    assert Enum.map(kept, & &1.rank) == [0, 1]
    assert sums(kept) == [[110.0], [110.0]]
    assert groups() == [{"ends", [1]}, {"last", [1, 0]}, {"world", [0, 1]}]

    assert {:error, %Error{reason: :rank_out_of_range}} = RankBridge.get(@name, Enum.at(refs, 2))

    # Once more, by the numbers that they have now.
    lost = lose(1)
    assert %Lost{ranks: [1], moved: %{0 => 0}} = lost
    assert [%{rank: 0}] = kept = Lost.kept(lost, kept)
    assert sums(kept) == [[10.0]]
    assert groups() == [{"last", [0]}, {"world", [0]}]

    agent = OsProcess.parent(pid(0))
    OsProcess.kill(pid(0))
    assert_receive {:DOWN, ^monitor, :process, ^gang, {:shutdown, %Error{}}}, @soon
    refute_received {:lost, _lost}
    OsProcess.await_gone([agent])
  end
end
