# Recording collectives and running them again, on real sidecars of every backend.
for backend <- ["fake", "gloo"] do
  defmodule Module.concat(RankBridge.GraphsTest, Macro.camelize(backend)) do
    use ExUnit.Case, async: true

    alias RankBridge.{AtOnce, Calls, Error, Gang, Graph, Id, Operation, Tensor}
    alias RankBridge.Gang.View
    alias RankBridge.Proto.V1
    alias RankBridge.Test.LiveRanks

    @backend backend
    @moduletag timeout: 120_000

    setup_all do
      ranks = LiveRanks.start(3, @backend)
      on_exit(fn -> LiveRanks.stop(ranks) end)
      %{ranks: ranks}
    end

    setup %{ranks: ranks} do
      gang = start_supervised!({Gang, endpoints_file: ranks.file, timeout: 60_000})
      %{gang: gang, refs: RankBridge.put!(gang, for(rank <- 0..2, do: [1.0 * rank, 2.0]))}
    end

    defp values(gang, refs), do: gang |> RankBridge.get!(refs) |> Enum.map(&Tensor.to_list/1)
    defp name, do: "graph-" <> Id.uuid()

    # Every tensor becomes the sum of all.
    defp change(gang, refs), do: RankBridge.all_reduce!(gang, refs, in_place: true)

    test "a replay reads what is there now, and fills what was given", %{gang: gang, refs: refs} do
      name = name()

      {graph, [maxima, gathered]} =
        RankBridge.Graphs.graph_capture!(gang, name, fn ->
          maxima = RankBridge.all_reduce!(gang, refs, op: :max)
          RankBridge.barrier!(gang)
          {:ok, [maxima, RankBridge.gather!(gang, refs, dst_rank_in_group: 1)]}
        end)

      assert %Graph{name: ^name, group: "world", ranks: [0, 1, 2]} = graph
      assert graph.operations == [:all_reduce, :barrier, :gather]
      assert {:ok, graph.session_id} == Gang.session_id(gang)
      assert values(gang, maxima) == List.duplicate([2.0, 2.0], 3)

      before = RankBridge.list!(gang)
      change(gang, refs)
      assert RankBridge.Graphs.replay!(gang, graph) == [maxima, nil, gathered]
      assert RankBridge.list!(gang) == before
      assert values(gang, maxima) == List.duplicate([3.0, 6.0], 3)
      assert [nil, %{rank: 1} = whole, nil] = gathered
      assert values(gang, [whole]) == [[3.0, 6.0, 3.0, 6.0, 3.0, 6.0]]

      # By its name, submitted, and by its members' own calls.
      assert RankBridge.Graphs.replay!(gang, name) == [maxima, nil, gathered]
      operation = RankBridge.submit!(gang, :replay, graph)
      assert %Operation{name: :replay, ranks: [0, 1, 2]} = operation
      for _time <- 1..2, do: assert(RankBridge.await!(gang, operation) == [maxima, nil, gathered])
      id = Id.uuid()

      parts =
        AtOnce.map(
          [0, 1, 2],
          &RankBridge.Operations.call_rank!(gang, &1, :replay, name, operation_id: id)
        )

      assert Enum.zip_with(parts, & &1) == [maxima, [nil, nil, nil], gathered]
    end

    test "what is done in place is done again", %{gang: gang, refs: refs} do
      {graph, _given} =
        RankBridge.Graphs.graph_capture!(gang, nil, fn ->
          RankBridge.all_reduce(gang, refs, in_place: true)
        end)

      assert values(gang, refs) == List.duplicate([3.0, 6.0], 3)
      assert [replayed] = RankBridge.Graphs.replay!(gang, graph)
      assert values(gang, refs) == List.duplicate([9.0, 18.0], 3)
      assert Enum.map(replayed, & &1.id) == Enum.map(refs, & &1.id)

      # With an id it runs once, however often it is called.
      id = Id.uuid()
      for _time <- 1..2, do: RankBridge.Graphs.replay!(gang, graph, operation_id: id)
      assert values(gang, refs) == List.duplicate([27.0, 54.0], 3)
    end

    test "what failed, what others do, and what is done elsewhere is not recorded", context do
      %{gang: gang, refs: refs, ranks: ranks} = context
      group = RankBridge.new_group!(gang, "pair-" <> Id.uuid(), [2, 0])
      other = start_supervised!({Gang, endpoints_file: ranks.file, timeout: 60_000}, id: :other)
      others = RankBridge.put!(other, [[1], [2], [3]])
      wrong = List.replace_at(refs, 2, RankBridge.put_rank!(gang, 2, [1.0]))

      {graph, sums} =
        RankBridge.Graphs.graph_capture!(gang, nil, fn ->
          {:error, %Error{reason: :mismatch}} = RankBridge.all_reduce(gang, wrong)
          RankBridge.all_reduce!(other, others)
          RankBridge.barrier!(gang, group: group)
          RankBridge.all_gather_object!(gang, [1, 2, 3])
          RankBridge.all_reduce(gang, refs)
        end)

      assert graph.operations == [:all_reduce]
      assert RankBridge.Graphs.replay!(gang, graph) == [sums]
      RankBridge.destroy_group!(gang, group.name)
    end

    test "groups are recorded apart, and a graph is run in its own", %{gang: gang, refs: refs} do
      [r0, _r1, r2] = refs
      group = RankBridge.new_group!(gang, "pair-" <> Id.uuid(), [2, 0])

      {of_world, {of_pair, pair}} =
        RankBridge.Graphs.graph_capture!(gang, nil, fn ->
          RankBridge.barrier!(gang)
          opts = [group: group]

          RankBridge.Graphs.graph_capture(
            gang,
            nil,
            fn -> RankBridge.all_gather(gang, [r2, r0], opts) end,
            opts
          )
        end)

      assert {of_world.operations, of_world.group} == {[:barrier], "world"}
      assert {of_pair.operations, of_pair.group} == {[:all_gather], group.name}
      assert of_pair.ranks == [2, 0]
      change(gang, refs)
      assert RankBridge.Graphs.replay!(gang, of_pair) == [pair]
      assert values(gang, pair) == List.duplicate([3.0, 6.0, 3.0, 6.0], 2)
      assert RankBridge.Graphs.replay!(gang, of_pair.name, group: group) == [pair]
      assert RankBridge.await!(gang, RankBridge.submit!(gang, :replay, of_pair)) == [pair]

      assert {:error, %Error{indefinite: false}} =
               RankBridge.Graphs.replay(gang, of_pair, group: "world", timeout: 2_000)

      assert RankBridge.Graphs.replay!(gang, of_world) == [nil]
      assert RankBridge.Graphs.release_graph!(gang, of_pair).ranks == [2, 0]
      RankBridge.destroy_group!(gang, group.name)
    end

    test "what ends a recorded function comes of it, and nothing is kept", context do
      %{gang: gang, refs: refs} = context
      name = name()
      error = Error.refusal(:cancelled, "no longer")

      assert RankBridge.Graphs.graph_capture(gang, name, fn -> {:error, error} end) ==
               {:error, error}

      assert_raise RuntimeError, "lost", fn ->
        RankBridge.Graphs.graph_capture(gang, name, fn ->
          RankBridge.all_reduce!(gang, refs)
          raise "lost"
        end)
      end

      assert catch_throw(RankBridge.Graphs.graph_capture(gang, name, fn -> throw(:ball) end)) ==
               :ball

      assert catch_exit(RankBridge.Graphs.graph_capture(gang, name, fn -> exit(:left) end)) ==
               :left

      assert_raise ArgumentError, fn ->
        RankBridge.Graphs.graph_capture(gang, name, fn -> :what end)
      end

      assert {:error, %Error{reason: :unknown_graph}} =
               RankBridge.Graphs.replay(gang, name, timeout: 2_000)

      assert {:error, %Error{reason: :unknown_graph}} = RankBridge.Graphs.end_capture(gang)

      assert {%Graph{name: ^name}, 5} =
               RankBridge.Graphs.graph_capture!(gang, name, fn -> {:ok, 5} end)
    end

    test "recording begins on all members or on none", %{gang: gang} do
      [name, other] = [name(), name()]
      group = RankBridge.new_group!(gang, "pair-" <> Id.uuid(), [2, 0])
      graph = RankBridge.Graphs.begin_capture!(gang, name, group: group)
      assert {graph.name, graph.ranks, graph.operations} == {name, [2, 0], []}

      assert {:error, %Error{reason: :invalid_argument, indefinite: false}} =
               RankBridge.Graphs.begin_capture(gang, other, group: group)

      # Rank 1 knows nothing of it, and would record.
      assert {:error, %Error{reason: :name_exists} = error} =
               RankBridge.Graphs.begin_capture(gang, name)

      assert for({rank, :ok} <- error.outcomes, do: rank) == [1]
      RankBridge.barrier!(gang, group: group)
      assert RankBridge.Graphs.end_capture!(gang, group: group).operations == [:barrier]
      assert %Graph{ranks: [0, 1, 2]} = RankBridge.Graphs.begin_capture!(gang, other)
      assert %Graph{name: ^other, operations: []} = RankBridge.Graphs.end_capture!(gang)
      assert RankBridge.Graphs.release_graph!(gang, name).ranks == [0, 2]
      RankBridge.destroy_group!(gang, group.name)
    end

    test "a recording that has ended somewhere is kept nowhere", %{gang: gang} do
      name = name()
      graph = RankBridge.Graphs.begin_capture!(gang, name)
      {:ok, view} = View.fetch(gang)

      call = %Calls{
        rpc: V1.GraphService.end_capture(),
        operation: "end_capture",
        deadline: 60_000
      }

      header = %V1.Call{group: "world", session_id: graph.session_id}
      assert {:ok, _graph} = Calls.one(view, 1, %V1.EndCaptureRequest{call: header}, call)
      assert {:error, %Error{reason: :unknown_graph}} = RankBridge.Graphs.end_capture(gang)
      assert RankBridge.Graphs.release_graph!(gang, name).ranks == [1]
    end

    test "a graph that is released is forgotten, and its refs stay", %{gang: gang, refs: refs} do
      {graph, sums} =
        RankBridge.Graphs.graph_capture!(gang, nil, fn -> RankBridge.all_reduce(gang, refs) end)

      assert RankBridge.Graphs.release_graph!(gang, graph) == graph

      for call <- [
            fn -> RankBridge.Graphs.release_graph(gang, graph) end,
            fn -> RankBridge.Graphs.release_graph(gang, graph.name) end,
            fn -> RankBridge.Graphs.replay(gang, graph, timeout: 2_000) end
          ] do
        assert {:error, %Error{reason: :unknown_graph, indefinite: false}} = call.()
      end

      assert values(gang, sums) == List.duplicate([3.0, 6.0], 3)
    end

    test "without a ref that it needs nothing of a graph is done", %{gang: gang, refs: refs} do
      {graph, [sums, _others]} =
        RankBridge.Graphs.graph_capture!(gang, nil, fn ->
          {:ok, [RankBridge.all_reduce!(gang, refs), RankBridge.all_gather!(gang, refs)]}
        end)

      [_sums, others] = RankBridge.Graphs.replay!(gang, graph)
      RankBridge.release!(gang, Enum.at(others, 2))
      change(gang, refs)

      assert {:error, %Error{reason: :released_ref, indefinite: false} = error} =
               RankBridge.Graphs.replay(gang, graph, timeout: 2_000)

      assert 2 in for(it <- error.ranks, do: it.rank)
      assert values(gang, sums) == List.duplicate([3.0, 6.0], 3)
      assert RankBridge.barrier!(gang) == :ok
    end

    test "gangs without a session have their graphs in common", %{ranks: ranks} do
      opts = [endpoints_file: ranks.file, session: false, timeout: 60_000]
      [one, two] = for id <- [:one, :two], do: start_supervised!({Gang, opts}, id: id)
      name = name()
      refs = RankBridge.put!(one, [[1], [2], [3]])

      {graph, sums} =
        RankBridge.Graphs.graph_capture!(one, name, fn -> RankBridge.all_reduce(two, refs) end)

      assert graph.session_id == ""
      assert RankBridge.Graphs.replay!(two, name) == [sums]
      assert RankBridge.Graphs.release_graph!(two, name) == graph
      RankBridge.release!(one, refs ++ sums)
    end

    test "a graph outlives its generation", %{gang: gang, refs: refs} do
      {graph, sums} =
        RankBridge.Graphs.graph_capture!(gang, nil, fn -> RankBridge.all_reduce(gang, refs) end)

      RankBridge.form!(gang, timeout: 60_000)
      change(gang, refs)
      assert RankBridge.Graphs.replay!(gang, graph) == [sums]
      assert values(gang, sums) == List.duplicate([9.0, 18.0], 3)
    end
  end
end
