defmodule RankBridge.HalfMadeTest do
  @moduledoc "Queues and recordings of which some members have theirs: nothing is left of them."

  use ExUnit.Case, async: true

  alias RankBridge.{Error, Gang, Graph, Queue}
  alias RankBridge.Test.ScriptedRanks

  doctest RankBridge.Graph
  doctest RankBridge.Queue

  setup do
    ranks = start_supervised!(ScriptedRanks)
    %{ranks: ranks, gang: start_supervised!({Gang, ScriptedRanks.gang(ranks)})}
  end

  defp has(ranks), do: for(rank <- 0..3, do: ScriptedRanks.has(ranks, rank))
  defp asked(ranks, method), do: for(rank <- 0..3, do: ScriptedRanks.asked(ranks, method, rank))

  test "a queue that is not made on all members is ended where it may be", context do
    %{ranks: ranks, gang: gang} = context
    ScriptedRanks.fail(ranks, :new_queue, "q", :ERROR_CODE_PEER_MISSING, rank: 2)
    ScriptedRanks.fail(ranks, :new_queue, "q", :ERROR_CODE_ABORTED, rank: 3, indefinite: true)

    assert {:error, %Error{reason: :aborted, indefinite: true}} =
             RankBridge.Queues.new_queue(gang, "q")

    assert has(ranks) == [[], [], [], []]
    assert asked(ranks, :shut_down_queue) == [["q"], ["q"], [], ["q"]]
  end

  test "a queue is ended as far as it is there, but not where nobody can be asked", context do
    %{ranks: ranks, gang: gang} = context
    assert %Queue{ranks: [0, 1, 2, 3]} = queue = RankBridge.Queues.new_queue!(gang, "q")
    assert RankBridge.Queues.shut_down_queue!(gang, queue, rank_in_group: 1) == :ok
    ScriptedRanks.lose(ranks, 3)

    assert {:error, %Error{reason: :unavailable, rank: 3} = error} =
             RankBridge.Queues.shut_down_queue(gang, queue)

    assert Enum.map(error.outcomes, &elem(&1, 0)) == [0, 2, 3]
    assert has(ranks) == [[], [], [], ["q"]]
  end

  test "a recording that does not begin on all members is dropped where it may be", context do
    %{ranks: ranks, gang: gang} = context
    ScriptedRanks.fail(ranks, :begin_capture, "g", :ERROR_CODE_NAME_EXISTS, rank: 0)

    ScriptedRanks.fail(ranks, :begin_capture, "g", :ERROR_CODE_INTERNAL, rank: 1, indefinite: true)

    assert {:error, %Error{reason: :name_exists}} =
             RankBridge.Graphs.graph_capture(gang, "g", fn -> flunk("it does not record") end)

    assert has(ranks) == [[], [], [], []]
    assert asked(ranks, :end_capture) == [[], ["world"], ["world"], ["world"]]
    assert asked(ranks, :release_graph) == [[], [], ["g"], ["g"]]
  end

  test "a recording that does not end on all members is kept nowhere", context do
    %{ranks: ranks, gang: gang} = context
    ScriptedRanks.fail(ranks, :end_capture, "world", :ERROR_CODE_RESOURCE_EXHAUSTED, rank: 1)

    assert {:error, %Error{reason: :resource_exhausted}} =
             RankBridge.Graphs.graph_capture(gang, "g", fn -> {:ok, nil} end)

    assert asked(ranks, :release_graph) == [["g"], [], ["g"], ["g"]]
  end

  test "what a recorded function cannot say is said of the end, too", %{ranks: ranks, gang: gang} do
    ScriptedRanks.fail(ranks, :end_capture, "world", :ERROR_CODE_INTERNAL, rank: 2)

    assert catch_throw(RankBridge.Graphs.graph_capture(gang, "g", fn -> throw(:ball) end)) ==
             :ball

    assert asked(ranks, :end_capture) == List.duplicate(["world"], 4)
    assert asked(ranks, :release_graph) == [["g"], ["g"], [], ["g"]]
  end

  test "a graph is released wherever it is, and a rank that cannot be asked is told", context do
    %{ranks: ranks, gang: gang} = context
    RankBridge.Graphs.begin_capture!(gang, "g")
    graph = RankBridge.Graphs.end_capture!(gang)
    assert %Graph{name: "g", ranks: [0, 1, 2, 3]} = graph
    assert RankBridge.Graphs.release_graph!(gang, %{graph | ranks: [3]}).ranks == [3]
    assert RankBridge.Graphs.release_graph!(gang, graph).ranks == [0, 1, 2]

    assert {:error, %Error{reason: :unknown_graph} = error} =
             RankBridge.Graphs.release_graph(gang, "g")

    assert length(error.outcomes) == 4

    # Who cannot be asked may have it.
    ScriptedRanks.lose(ranks, 2)

    assert {:error, %Error{reason: :unavailable, rank: 2}} =
             RankBridge.Graphs.release_graph(gang, "g")
  end
end
