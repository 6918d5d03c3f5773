# Coordinators on real sidecars of every backend: one of each rank, whose calls enter together, and one of all ranks.
for backend <- ["fake", "gloo"] do
  defmodule Module.concat(RankBridge.GroupCoordinator.RanksTest, Macro.camelize(backend)) do
    use ExUnit.Case, async: true

    alias RankBridge.{AtOnce, Error, Gang, GroupCoordinator, Tensor}
    alias RankBridge.Test.LiveRanks

    @backend backend
    @moduletag timeout: 120_000
    @patient 50_000
    # Of what waits for somebody who does not come: on a busy machine, all else that it does takes a while, too.
    @soon 2_000

    setup_all do
      ranks = LiveRanks.start(4, @backend)
      on_exit(fn -> LiveRanks.stop(ranks) end)
      %{ranks: ranks}
    end

    setup %{ranks: ranks, test: test} do
      gang = start_supervised!({Gang, endpoints_file: ranks.file, timeout: @patient})
      name = "#{:erlang.phash2(test)}"
      runtime = [gang: gang, timeout: @patient]

      coordinators =
        AtOnce.map([0, 1, 2], fn rank ->
          opts = [group_name: name, __runtime__: runtime]

          {:ok, coordinator} =
            GroupCoordinator.new([[2, 0], [1]], rank, @backend, false, [], opts)

          coordinator
        end)

      {:ok, all} =
        GroupCoordinator.new([[2, 0], [1]], nil, nil, true, group_name: name, __runtime__: runtime)

      %{gang: gang, name: name, its: coordinators, all: all, runtime: runtime}
    end

    # What each rank's call gives; all go at once.
    defp each(coordinators, fun) do
      for result <- AtOnce.map(coordinators, &fun.(&1, &1.rank)) do
        assert {:ok, value} = result
        value
      end
    end

    defp values(gang, refs), do: for(ref <- refs, do: value(gang, ref))
    defp value(_gang, nil), do: nil
    defp value(gang, list) when is_list(list), do: values(gang, list)
    defp value(gang, ref), do: gang |> RankBridge.get!(ref) |> Tensor.to_list()

    test "whoever comes first makes the groups; the others join, alone or together", context do
      %{its: coordinators, all: all, name: name, runtime: runtime, gang: gang} = context
      assert Enum.map(all.groups, & &1.name) == ["#{name}/0", "#{name}/1"]
      assert Enum.map(coordinators, & &1.groups) == List.duplicate(all.groups, 3)
      assert GroupCoordinator.local_rank(hd(coordinators)) == {:ok, 0}

      again = fn ranks, local, backend, opts ->
        GroupCoordinator.new(ranks, local, backend, true, [], [{:__runtime__, runtime} | opts])
      end

      assert {:error, %Error{reason: :group_exists}} = again.([[0, 1]], 0, nil, group_name: name)
      assert {:error, %Error{reason: :invalid_argument}} = again.([[0, 1]], 2, nil, [])
      assert {:error, %Error{reason: :invalid_argument}} = again.([[0], [0]], 0, nil, [])
      assert {:error, %Error{reason: :invalid_argument}} = again.([[0]], 0, "other", [])
      assert {:error, %Error{reason: :rank_out_of_range}} = again.([[0]], 9, nil, [])
      assert {:ok, one} = again.([[0, 1]], 1, nil, [])
      assert {:ok, two} = again.([[0, 1]], 0, nil, [])
      assert one.groups == two.groups

      assert GroupCoordinator.destroy(one) == {:ok, nil}
      assert GroupCoordinator.destroy(two) == {:ok, nil}

      assert {:error, %Error{reason: :unknown_group}} =
               GroupCoordinator.barrier(two, __runtime__: [timeout: @patient])

      assert {:error, %Error{reason: :invalid_argument}} =
               GroupCoordinator.new([[0]], 0, nil, false, [])

      assert {:ok, _size} = Gang.size(gang)
    end

    test "collectives on tensors", %{gang: gang, its: coordinators, all: all} do
      pair = [[[1.0, 2.0]], [[3.0, 4.0]], [[5.0, 6.0]]]
      mine = fn rank -> Enum.at(pair, rank) end
      both = [[6.0, 8.0]]

      for method <- [:all_reduce, :_all_reduce_out_place] do
        results = each(coordinators, &apply(GroupCoordinator, method, [&1, mine.(&2)]))
        assert values(gang, results) == [both, [[3.0, 4.0]], both]
      end

      side_by_side = [[5.0, 6.0, 1.0, 2.0]]
      stacked = [[5.0, 6.0], [1.0, 2.0]]

      for {args, expected} <- [
            {[], side_by_side},
            {[0], stacked},
            {[dim: 0], stacked},
            {[-1], side_by_side}
          ] do
        results = each(coordinators, &GroupCoordinator.all_gather(&1, mine.(&2), args))
        assert values(gang, results) == [expected, [[3.0, 4.0]], expected]
      end

      results = each(coordinators, &GroupCoordinator._all_gather_out_place(&1, mine.(&2), 0))
      assert values(gang, results) == [stacked, [[3.0, 4.0]], stacked]

      # In group order, rank 2 is the first.
      for {name, args} <- [
            reduce_scatter: [[]],
            reduce_scatter: [[1]],
            _reduce_scatter_out_place: [1]
          ] do
        results = each(coordinators, &apply(GroupCoordinator, name, [&1, mine.(&2) | args]))
        assert values(gang, results) == [[[8.0]], [[3.0, 4.0]], [[6.0]]]
      end

      results = each(coordinators, &GroupCoordinator.gather(&1, mine.(&2), dst: 1, dim: 0))
      assert values(gang, results) == [stacked, [[3.0, 4.0]], nil]

      refs = for rank <- 0..2, do: RankBridge.put_rank!(gang, rank, mine.(rank))
      results = each(coordinators, &GroupCoordinator.broadcast(&1, Enum.at(refs, &2), [0]))
      assert Enum.map(results, & &1.id) == Enum.map(refs, & &1.id)
      assert values(gang, refs) == [[[5.0, 6.0]], [[3.0, 4.0]], [[5.0, 6.0]]]

      assert {:ok, results} = GroupCoordinator.all_gather(all, pair ++ [nil], [0])
      assert values(gang, results) == [stacked, [[3.0, 4.0]], stacked, nil]
      assert {:ok, results} = GroupCoordinator.gather(all, pair ++ [nil], dst: 1, dim: 0)
      assert values(gang, results) == [stacked, [[3.0, 4.0]], nil, nil]
    end

    test "parts of different sizes, and experts' tokens", %{
      gang: gang,
      its: coordinators,
      all: all
    } do
      rows = fn rank -> for row <- 0..div(rank, 2), do: [1.0 * rank + row] end
      joined = rows.(2) ++ rows.(0)

      results = each(coordinators, &GroupCoordinator.all_gatherv(&1, rows.(&2), sizes: [2, 1]))
      assert values(gang, Enum.take_every(results, 2)) == [joined, joined]

      refs = for rank <- 0..2, do: RankBridge.put_rank!(gang, rank, rows.(rank))

      results =
        each(
          coordinators,
          &GroupCoordinator.all_gatherv(&1, List.duplicate(Enum.at(refs, &2), 2), [0, [2, 1]])
        )

      assert values(gang, hd(results)) == [joined, joined]

      results =
        each(coordinators, fn coordinator, rank ->
          GroupCoordinator.reduce_scatterv(coordinator, [[1.0], [2.0], [3.0 + rank]],
            dim: 0,
            sizes: [2, 1]
          )
        end)

      assert values(gang, [hd(results), List.last(results)]) == [[[8.0]], [[2.0], [4.0]]]

      results =
        each(coordinators, &GroupCoordinator.dispatch(&1, rows.(&2), rows.(&2), sizes: [2, 1]))

      assert {hidden, logits} = hd(results)
      assert values(gang, [hidden, logits]) == [joined, joined]

      extra =
        each(coordinators, fn coordinator, rank ->
          tensors = [Enum.at(refs, rank)]

          GroupCoordinator.dispatch(coordinator, rows.(rank), rows.(rank), [false, tensors],
            sizes: [2, 1]
          )
        end)

      assert {_hidden, _logits, [more]} = hd(extra)
      assert value(gang, more) == joined

      results =
        each(
          coordinators,
          &GroupCoordinator.combine(&1, [[1.0], [2.0], [3.0 + &2]], sizes: [2, 1])
        )

      assert value(gang, hd(results)) == [[8.0]]

      # All ranks' own, by rank of the gang.
      inputs = for(rank <- 0..2, do: rows.(rank)) ++ [nil]
      assert {:ok, results} = GroupCoordinator.all_gatherv(all, inputs, sizes: [1, 1, 2, nil])
      assert values(gang, Enum.take_every(results, 2)) == [joined, joined]
    end

    test "values, and maps of tensors", %{gang: gang, its: coordinators, all: all} do
      for value <- [2, 2.0, nil, "None", true, {1, [nil, :nan]}, %{1 => "one"}] do
        results =
          each(coordinators, &GroupCoordinator.broadcast_object(&1, [if(&2 != 0, do: value)]))

        assert results === [value, value, value]
      end

      results =
        each([hd(coordinators), List.last(coordinators)], fn coordinator, rank ->
          GroupCoordinator.broadcast_object_list(coordinator, [rank, "x"], src: 1)
        end)

      assert results === [[0, "x"], [0, "x"]]

      ref = RankBridge.put_rank!(gang, 2, [7])
      pair = [hd(coordinators), List.last(coordinators)]
      dict = %{"t" => ref, "n" => 3}

      results =
        each(
          pair,
          &GroupCoordinator.broadcast_tensor_dict(&1, tensor_dict: if(&2 == 2, do: dict))
        )

      assert [%{"t" => there, "n" => 3}, %{"n" => 3}] = results
      assert there.rank == 0 and value(gang, there) == [7]

      assert GroupCoordinator.barrier(all) == {:ok, nil}

      assert each(coordinators, fn coordinator, _rank -> GroupCoordinator.barrier(coordinator) end) ==
               [nil, nil, nil]

      assert GroupCoordinator.broadcast_object(all, [["a", "b", "c", nil]]) ==
               {:ok, ["c", "b", "c", nil]}
    end

    test "from one to another", %{gang: gang, its: coordinators, all: all} do
      [zero, one, two] = coordinators

      [nil, ref] =
        each([two, zero], fn coordinator, rank ->
          if rank == 2,
            do: GroupCoordinator.send(coordinator, [1.5, 2.5], []),
            else: GroupCoordinator.recv(coordinator, [2], "torch.float32", [])
        end)

      assert ref.rank == 0 and value(gang, ref) == [1.5, 2.5]

      assert [nil, nil] =
               each([two, zero], fn coordinator, rank ->
                 if rank == 2,
                   do: GroupCoordinator.send_object(coordinator, nil, 1),
                   else: GroupCoordinator.recv_object(coordinator, 0)
               end)

      assert [nil, %{"n" => 1, "t" => there}] =
               each([two, zero], fn coordinator, rank ->
                 if rank == 2,
                   do:
                     GroupCoordinator.send_tensor_dict(
                       coordinator,
                       %{"n" => 1, "t" => RankBridge.put_rank!(gang, 2, [9])},
                       [1]
                     ),
                   else: GroupCoordinator.recv_tensor_dict(coordinator, src: 0)
               end)

      assert value(gang, there) == [9]

      assert {:ok, sending} = GroupCoordinator.isend(two, ref_of(gang, 2, [4]), dst: 1)
      assert {:ok, receiving} = GroupCoordinator.irecv(zero, 1, :int64, [])
      assert {:ok, {ref, 0}} = RankBridge.Operations.wait(gang, receiving)
      assert value(gang, ref) == [4]
      assert RankBridge.Operations.wait(gang, sending) == {:ok, nil}
      assert {:ok, sending} = GroupCoordinator.isend_object(zero, [1], 0)
      assert {:ok, receiving} = GroupCoordinator.irecv_object(two, 1)
      assert {:ok, {[1], 1}} = RankBridge.Operations.wait(gang, receiving)
      assert RankBridge.Operations.wait(gang, sending) == {:ok, nil}
      assert GroupCoordinator.recv_tensor_dict(one, []) == {:ok, nil}

      refs = [ref_of(gang, 0, [10]), nil, ref_of(gang, 2, [12]), nil]
      assert {:ok, [%{}, nil, %{}, nil]} = GroupCoordinator.isend(all, refs, [])
      assert {:ok, [from_two, nil, from_zero, nil]} = GroupCoordinator.recv(all, 1, :int64, [])
      assert values(gang, [from_two, from_zero]) == [[12], [10]]
    end

    defp ref_of(gang, rank, list), do: RankBridge.put_rank!(gang, rank, list)

    test "queues are made by one member, and known to all", %{
      gang: gang,
      its: coordinators,
      all: all
    } do
      pair = [hd(coordinators), List.last(coordinators)]

      assert [queue, queue] =
               each(pair, fn coordinator, _rank ->
                 GroupCoordinator.create_mq_broadcaster(coordinator, [1])
               end)

      assert RankBridge.Queues.broadcast_through(gang, queue, "hello") == {:ok, ["hello"]}

      # Rank 0 is rank_in_group 1: it reads what the other writes.
      assert [{nil, [read, nil]}, {read, []}] =
               each(pair, fn coordinator, _rank ->
                 GroupCoordinator.create_single_reader_mq_broadcasters(coordinator, [1])
               end)

      assert RankBridge.Queues.enqueue(gang, read, 1) == :ok
      assert RankBridge.Queues.dequeue(gang, read) == {:ok, 1}
      assert {:ok, [queue, _alone, queue, nil]} = GroupCoordinator.create_mq_broadcaster(all, [])
      assert RankBridge.Queues.broadcast_through(gang, queue, 5) == {:ok, [5]}

      # A reader who comes alone waits for the writer, and a writer who does leaves no queue behind.
      for coordinator <- pair do
        assert {:error, %Error{reason: :peer_missing, operation: "create_mq_broadcaster"}} =
                 GroupCoordinator.create_mq_broadcaster(coordinator,
                   writer_rank: 0,
                   __runtime__: [timeout: @soon]
                 )
      end
    end

    test "what all members record is replayed", %{gang: gang, its: coordinators, all: all} do
      pair = [hd(coordinators), List.last(coordinators)]
      refs = %{0 => ref_of(gang, 0, [1.0]), 2 => ref_of(gang, 2, [2.0])}

      record = fn coordinator, rank ->
        fn -> GroupCoordinator.all_reduce(coordinator, refs[rank]) end
      end

      recorded = each(pair, &GroupCoordinator.graph_capture(&1, [record.(&1, &2)]))
      assert [{graph, sum}, {graph, _other}] = recorded
      assert value(gang, sum) == [3.0]
      assert {:ok, [[^sum, _other]]} = sorted(RankBridge.Graphs.replay(gang, graph), sum)

      given_up =
        AtOnce.map(pair, fn coordinator ->
          GroupCoordinator.graph_capture(coordinator, [
            fn ->
              if coordinator.rank == 2,
                do: {:error, Error.refusal(:cancelled, "enough")},
                else: {:ok, 1}
            end
          ])
        end)

      assert [{:error, %Error{reason: :aborted}}, {:error, %Error{reason: :cancelled}}] = given_up

      inputs = [refs[0], ref_of(gang, 1, [5.0]), refs[2], nil]

      assert {:ok, {[graph, nil, graph, nil], [sum, _alone, _other, nil]}} =
               GroupCoordinator.graph_capture(all, [
                 fn -> GroupCoordinator.all_reduce(all, inputs) end
               ])

      assert value(gang, sum) == [3.0]
      assert {:ok, _replayed} = RankBridge.Graphs.replay(gang, graph)

      assert {:ok, {nil, 1}} =
               GroupCoordinator.graph_capture(Enum.at(coordinators, 1), [fn -> {:ok, 1} end])
    end

    defp sorted({:ok, [refs]}, first), do: {:ok, [Enum.sort_by(refs, &(&1 != first))]}

    test "buffers are made for a model", %{gang: gang, its: coordinators} do
      model = [
        %{shape: [2, 3], dtype: :float32},
        %{shape: [4], dtype: "torch.float32"},
        %{shape: {2}, dtype: :int64}
      ]

      results =
        each(coordinators, fn coordinator, _rank ->
          GroupCoordinator.prepare_communication_buffer_for_model(coordinator, model)
        end)

      assert [%{float32: buffer, int64: other} | _others] = results
      assert value(gang, buffer) == List.duplicate(0.0, 6)
      assert {other.rank, other.shape} == {0, [2]}
    end

    test "who is late is named in time, and the next collective is right", %{
      gang: gang,
      its: coordinators
    } do
      [zero, _one, two] = coordinators

      assert {:error, %Error{reason: :peer_missing, indefinite: false} = error} =
               GroupCoordinator.all_reduce(zero, [100.0], __runtime__: [timeout: @soon])

      assert [2] = for(%{state: :missing, rank: rank} <- error.ranks, do: rank)
      results = each([zero, two], &GroupCoordinator.all_reduce(&1, [1.0 + &2]))
      assert values(gang, results) == [[4.0], [4.0]]
      # What was brought for calls is gone; what they gave is there.
      assert gang |> RankBridge.list!() |> Enum.map(& &1.id) |> Enum.sort() ==
               results |> Enum.map(& &1.id) |> Enum.sort()
    end

    test "the error of all ranks has each one's outcome", %{all: all} do
      inputs = [[1.0], [2.0], [1.0, 2.0], nil]

      assert {:error, %Error{reason: :mismatch} = error} =
               GroupCoordinator.all_reduce(all, inputs)

      assert [{0, %Error{}}, {1, :ok}, {2, %Error{}}] = error.outcomes
    end
  end
end
