# What other systems call their operations, and what is made of several, between real sidecars on every backend.
for backend <- ["fake", "gloo"] do
  defmodule Module.concat(RankBridge.CompositionsTest, Macro.camelize(backend)) do
    use ExUnit.Case, async: true

    alias RankBridge.{Error, Gang, Group, Id, Ref, Tensor}
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
      %{gang: gang, tokens: RankBridge.put!(gang, for(rank <- 0..2, do: rows(rank, 2)))}
    end

    # As many rows as the rank and one more.
    defp rows(rank, width),
      do: for(row <- 0..rank, do: List.duplicate(100.0 * rank + row, width))

    defp joined(width), do: Enum.flat_map(0..2, &rows(&1, width))
    defp values(gang, refs), do: gang |> RankBridge.get!(refs) |> Enum.map(&Tensor.to_list/1)

    test "vLLM's v-variants take one input or several", %{gang: gang, tokens: tokens} do
      opts = [sizes: [1, 2, 3]]
      all = List.duplicate(joined(2), 3)
      assert values(gang, RankBridge.Compat.all_gatherv!(gang, tokens, opts)) == all
      wide = RankBridge.put!(gang, for(rank <- 0..2, do: rows(rank, 3)))
      assert [two, three] = RankBridge.Compat.all_gatherv!(gang, [tokens, wide], opts)
      assert {values(gang, two), values(gang, three)} == {all, List.duplicate(joined(3), 3)}

      alike = RankBridge.put!(gang, for(rank <- 0..2, do: [[rank]]))

      assert values(gang, RankBridge.Compat.all_gatherv!(gang, alike)) ==
               List.duplicate([[0], [1], [2]], 3)

      assert values(gang, RankBridge.Compat.all_gatherv!(gang, alike, dim: 1)) ==
               List.duplicate([[0, 1, 2]], 3)

      whole = RankBridge.put!(gang, List.duplicate(joined(2), 3))
      parts = RankBridge.Compat.reduce_scatterv!(gang, whole, dim: 0, sizes: [1, 2, 3])
      assert values(gang, parts) == for(rank <- 0..2, do: times(3, rows(rank, 2)))
      even = RankBridge.put!(gang, List.duplicate([[1, 2, 3]], 3))
      assert values(gang, RankBridge.Compat.reduce_scatterv!(gang, even)) == [[[3]], [[6]], [[9]]]

      for wrong <- [[], [[]], [tokens, []]] do
        assert {:error, %Error{reason: :invalid_argument, indefinite: false}} =
                 RankBridge.Compat.all_gatherv(gang, wrong, opts)
      end
    end

    defp times(factor, rows), do: for(row <- rows, do: for(it <- row, do: factor * it))

    test "vLLM's operations out of place", %{gang: gang} do
      refs = RankBridge.put!(gang, List.duplicate([[1, 2, 3], [4, 5, 6], [7, 8, 9]], 3))
      inputs = values(gang, refs)
      [whole | _others] = inputs
      sum = times(3, whole)
      assert values(gang, RankBridge.Compat._all_reduce_out_place!(gang, refs)) == [sum, sum, sum]

      assert values(gang, RankBridge.Compat._all_gather_out_place!(gang, refs, 0)) ==
               List.duplicate(whole ++ whole ++ whole, 3)

      assert values(gang, RankBridge.Compat._reduce_scatter_out_place!(gang, refs, 0)) ==
               Enum.map(sum, &[&1])

      assert values(gang, RankBridge.Compat._reduce_scatter_out_place!(gang, refs, -1)) ==
               for(column <- 0..2, do: for(row <- sum, do: [Enum.at(row, column)]))

      assert values(gang, refs) == inputs
    end

    test "tokens go to the experts and back", %{gang: gang, tokens: tokens} do
      logits = RankBridge.put!(gang, for(rank <- 0..2, do: rows(rank, 3)))
      opts = [sizes: [1, 2, 3]]
      assert {hidden, gathered_logits} = RankBridge.Compat.dispatch!(gang, tokens, logits, opts)
      assert values(gang, hidden) == List.duplicate(joined(2), 3)
      assert values(gang, gathered_logits) == List.duplicate(joined(3), 3)

      assert {_hidden, _logits, [extra, again]} =
               RankBridge.Compat.dispatch!(
                 gang,
                 tokens,
                 logits,
                 [extra_tensors: [tokens, logits]] ++ opts
               )

      assert values(gang, extra) == values(gang, hidden)
      assert values(gang, again) == values(gang, gathered_logits)

      assert values(gang, RankBridge.Compat.combine!(gang, hidden, opts)) ==
               for(rank <- 0..2, do: times(3, rows(rank, 2)))

      # Without sizes all have equally many.
      alike = RankBridge.put!(gang, for(rank <- 0..2, do: [[rank]]))
      assert {hidden, hidden_too} = RankBridge.Compat.dispatch!(gang, alike, alike)
      assert values(gang, hidden) == List.duplicate([[0], [1], [2]], 3)
      assert values(gang, RankBridge.Compat.combine!(gang, hidden_too)) == [[[0]], [[3]], [[6]]]

      assert {:error, %Error{reason: reason, indefinite: false}} =
               RankBridge.Compat.dispatch(gang, tokens, logits, sizes: [1, 2, 2])

      assert reason in [:invalid_argument, :mismatch]
    end

    test "buffers are as large as the largest parameter of each dtype", %{gang: gang} do
      parameters = [
        %{name: "w", shape: [4, 2], dtype: :float32},
        %{name: "b", shape: [2], dtype: :float32},
        %{name: "steps", shape: [], dtype: :int64},
        %{name: "none", shape: [0, 3], dtype: :int8}
      ]

      buffers_of_ranks =
        RankBridge.Compat.prepare_communication_buffer_for_model!(gang, parameters)

      for {buffers, rank} <- Enum.with_index(buffers_of_ranks) do
        specs = for {dtype, ref} <- buffers, do: {dtype, {ref.rank, ref.dtype, ref.shape}}

        assert Map.new(specs) == %{
                 float32: {rank, :float32, [8]},
                 int64: {rank, :int64, [1]},
                 int8: {rank, :int8, [0]}
               }
      end

      before = RankBridge.list!(gang)

      too_large = [
        %{name: "w", shape: [2], dtype: :int8},
        %{name: "x", shape: [2 ** 50], dtype: :float64}
      ]

      assert {:error, %Error{indefinite: false}} =
               RankBridge.Compat.prepare_communication_buffer_for_model(gang, too_large)

      for wrong <- [
            [],
            nil,
            [%{shape: [1], dtype: :int8}],
            [%{name: 1, shape: [1], dtype: :int9}]
          ] do
        assert {:error, %Error{reason: reason, indefinite: false}} =
                 RankBridge.Compat.prepare_communication_buffer_for_model(gang, wrong)

        assert reason in [:invalid_argument, :unsupported_dtype]
      end

      assert RankBridge.list!(gang) == before
    end

    test "a group is destroyed by itself or its name", %{gang: gang} do
      for group <- [
            &RankBridge.new_group!(gang, &1, [2, 1]),
            &RankBridge.new_group!(gang, &1, [2, 1]).name
          ] do
        name = "pair-" <> Id.uuid()
        assert %Group{name: ^name} = RankBridge.Compat.destroy!(gang, group.(name))
        assert {:error, %Error{reason: :unknown_group}} = RankBridge.barrier(gang, group: name)
      end
    end

    test "optimus-dl's names", %{gang: gang, tokens: tokens} do
      alike = RankBridge.put!(gang, for(rank <- 0..2, do: [rank]))
      lists = RankBridge.Compat.all_gather_to_list!(gang, alike)
      assert Enum.map(lists, &values(gang, &1)) == List.duplicate([[0], [1], [2]], 3)
      lists = RankBridge.Compat.all_gather_to_list!(gang, tokens, ragged: true)
      assert Enum.map(lists, &values(gang, &1)) == List.duplicate(Enum.map(0..2, &rows(&1, 2)), 3)

      assert RankBridge.Compat.all_gather_objects!(gang, [nil, 1, "b"]) ==
               List.duplicate([nil, 1, "b"], 3)

      assert RankBridge.Compat.broadcast_objects!(gang, [nil, 1], 2) ==
               List.duplicate([nil, 1], 3)

      assert {:error, %Error{reason: :rank_out_of_range}} =
               RankBridge.Compat.broadcast_objects(gang, [1], 3)

      world = RankBridge.Grouping.group!(gang, "world")
      assert Enum.map(0..2, &Group.master?(world, &1)) == [true, false, false]
      assert Enum.map(0..2, &Group.local_master?(world, &1)) == [true, false, false]
      assert Enum.map(0..2, &RankBridge.Compat.default_device!(gang, &1)) == ["cpu", "cpu", "cpu"]

      assert {:error, %Error{reason: :rank_out_of_range}} =
               RankBridge.Compat.default_device(gang, 3)
    end

    test "averages are over the group, in place, and given as they were taken", %{gang: gang} do
      name = "pair-" <> Id.uuid()
      RankBridge.new_group!(gang, name, [2, 0])
      put = fn -> RankBridge.put!(gang, [[1.0, 2.0], [3.0, 6.0]], group: name) end

      refs = put.()

      assert Enum.map(RankBridge.Averaging.average!(gang, refs, group: name), & &1.id) ==
               Enum.map(refs, & &1.id)

      assert values(gang, refs) == [[2.0, 4.0], [2.0, 4.0]]

      by_name = %{"w" => put.(), nil => put.()}
      averaged = RankBridge.Compat.average_models!(gang, by_name, group: name)

      for {key, refs} <- by_name,
          do: assert(Enum.map(averaged[key], & &1.id) == Enum.map(refs, & &1.id))

      assert values(gang, by_name[nil]) == [[2.0, 4.0], [2.0, 4.0]]

      [second, first] = [put.(), put.()]
      by_member = for {w, b} <- Enum.zip(first, second), do: %{w: w, b: b}
      averaged = RankBridge.Compat.average_gradients!(gang, by_member, group: name)
      assert for(%{w: w, b: b} <- averaged, do: {w.rank, b.rank}) == [{2, 2}, {0, 0}]
      assert Enum.map(averaged, & &1.w.id) == Enum.map(first, & &1.id)
      assert values(gang, first ++ second) == List.duplicate([2.0, 4.0], 4)

      # Tied weights are averaged once.
      tied = put.()
      averaged = RankBridge.Averaging.average!(gang, %{"in" => tied, "out" => tied}, group: name)

      assert {averaged["in"], values(gang, averaged["out"])} ==
               {averaged["out"], [[2.0, 4.0], [2.0, 4.0]]}

      assert RankBridge.Averaging.average!(gang, %{}, group: name) == %{}
      assert RankBridge.Averaging.average!(gang, [%{}, %{}], group: name) == [%{}, %{}]

      [a, b] = put.()

      assert {:error, %Error{reason: :invalid_argument, indefinite: false} = error} =
               RankBridge.Averaging.average(gang, [%{w: a}, %{v: b}], group: name)

      assert {error.expected, error.got} == {"[:w]", "[:v]"}

      for wrong <- [[], [%{w: a}, b], %{w: [a]}] do
        assert {:error, %Error{reason: :invalid_argument, indefinite: false}} =
                 RankBridge.Averaging.average(gang, wrong, group: name)
      end

      # An average of integers is not exact.
      integers = RankBridge.put!(gang, [[1], [2]], group: name)

      assert {:error, %Error{reason: :unsupported_dtype, indefinite: false}} =
               RankBridge.Averaging.average(gang, %{w: put.(), i: integers}, group: name)

      assert values(gang, [a, b]) == [[1.0, 2.0], [3.0, 6.0]]
      RankBridge.destroy_group!(gang, name)
    end

    test "OLMo-core's values and flags", %{gang: gang} do
      assert RankBridge.Compat.synchronize_value!(gang, 2 ** 40 + 1) ===
               List.duplicate(2 ** 40 + 1, 3)

      assert RankBridge.Compat.synchronize_value!(gang, 0.1, src_rank_in_group: 2) === [
               0.1,
               0.1,
               0.1
             ]

      assert RankBridge.Compat.synchronize_flag!(gang, true) == [true, true, true]

      assert {:error, %Error{reason: :invalid_argument}} =
               RankBridge.Compat.synchronize_flag(gang, 1)

      assert {:ok, true} = RankBridge.Compat.backend_supports_cpu(gang)
      assert {:ok, false} = RankBridge.Compat.backend_supports_cuda(gang)

      assert {:error, %Error{reason: :unknown_group}} =
               RankBridge.Compat.backend_supports_cpu(gang, group: "none")
    end

    test "so many ranks at a time, in rounds", %{gang: gang} do
      test = self()

      turn = fn rank ->
        send(test, {:turn, rank, self()})

        receive do
          :go -> {:ok, 10 * rank}
        end
      end

      for {n, rounds} <- [
            {1, [[0], [1], [2]]},
            {2, [[0, 2], [1]]},
            {3, [[0, 1, 2]]},
            {9, [[0, 1, 2]]},
            {nil, [[0], [1], [2]]}
          ] do
        running = Task.async(fn -> RankBridge.Compat.do_n_at_a_time(gang, n, turn) end)

        # Those of one round have their turns at once; those of the next begin when they have ended.
        for round <- rounds do
          turns =
            for rank <- round do
              assert_receive {:turn, ^rank, pid}, 60_000
              pid
            end

          refute_received {:turn, _rank, _pid}
          Enum.each(turns, &send(&1, :go))
        end

        assert Task.await(running, 60_000) == {:ok, [0, 10, 20]}
      end
    end

    test "a turn that fails strands nobody", %{gang: gang} do
      test = self()
      failure = %Error{reason: :internal, message: "on purpose", rank: 0}

      turns = fn fun ->
        fn rank ->
          send(test, {:turn, rank})
          fun.(rank)
        end
      end

      failing = turns.(fn rank -> if rank == 0, do: {:error, failure}, else: {:ok, rank} end)

      assert {:error, %Error{message: "on purpose"} = error} =
               RankBridge.Compat.do_n_at_a_time(gang, 1, failing)

      assert [{0, %Error{}}, {1, :ok}, {2, :ok}] = error.outcomes
      for rank <- 0..2, do: assert_received({:turn, ^rank})

      raising = turns.(fn rank -> if rank == 1, do: raise("oh"), else: {:ok, rank} end)

      assert_raise RuntimeError, "oh", fn ->
        RankBridge.Compat.do_n_at_a_time(gang, 2, raising)
      end

      for rank <- 0..2, do: assert_received({:turn, ^rank})

      odd = turns.(fn rank -> rank end)
      assert_raise ArgumentError, fn -> RankBridge.Compat.do_n_at_a_time(gang, 3, odd) end
      assert RankBridge.barrier!(gang) == :ok

      for {n, opts} <- [
            {0, []},
            {-1, []},
            {1.5, []},
            {1, [groups: "world"]},
            {1, [group: "none"]}
          ] do
        assert {:error, %Error{indefinite: false}} =
                 RankBridge.Compat.do_n_at_a_time(gang, n, raising, opts)
      end
    end

    test "a group that is gone ends the rounds", %{gang: gang} do
      name = "pair-" <> Id.uuid()
      RankBridge.new_group!(gang, name, [0, 1])

      turn = fn rank ->
        RankBridge.destroy_group!(gang, name)
        {:ok, rank}
      end

      assert {:error, %Error{reason: :unknown_group}} =
               RankBridge.Compat.do_n_at_a_time(gang, 1, turn, group: name)
    end

    test "what is given is on the members' ranks", %{gang: gang, tokens: tokens} do
      assert [%Ref{rank: 0}, %Ref{rank: 1}, %Ref{rank: 2}] =
               RankBridge.Compat.all_gatherv!(gang, tokens, sizes: [1, 2, 3])
    end
  end
end
