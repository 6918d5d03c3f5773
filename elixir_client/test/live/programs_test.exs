# Programs of the ranks' own, and pipelines of collectives, between real sidecars on every backend.
for backend <- ["fake", "gloo"] do
  defmodule Module.concat(RankBridge.ProgramsTest, Macro.camelize(backend)) do
    use ExUnit.Case, async: true

    alias RankBridge.{Error, Gang, Id, Pipeline, Ref, Tensor}
    alias RankBridge.Test.LiveRanks

    @backend backend
    @moduletag timeout: 120_000

    # Timeout, in milliseconds, of calls that not all members make.
    @missing 1_000

    setup_all do
      ranks = LiveRanks.start(3, @backend)
      on_exit(fn -> LiveRanks.stop(ranks) end)
      %{ranks: ranks}
    end

    setup %{ranks: ranks} do
      %{gang: start_supervised!({Gang, endpoints_file: ranks.file, timeout: 60_000})}
    end

    defp listed(tensors), do: Enum.map(tensors, &Tensor.to_list/1)

    # Every rank's sum of all, by what a program on it would call.
    defp sum(gang, rank, opts \\ []) do
      with {:ok, mine} <- RankBridge.put_rank(gang, rank, [1.0 * rank]),
           {:ok, sum} <- RankBridge.Operations.call_rank(gang, rank, :all_reduce, mine, opts),
           {:ok, tensor} <- RankBridge.get(gang, sum),
           {:ok, 2} <- RankBridge.release(gang, [mine, sum]),
           do: {:ok, Tensor.to_list(tensor)}
    end

    test "a program runs as it would on the ranks", %{gang: gang} do
      assert RankBridge.run(gang, &sum(gang, &1)) == {:ok, [[3.0], [3.0], [3.0]]}

      # One after the other, without and with ids of their own, and begun by some of them.
      results =
        RankBridge.run!(gang, fn rank ->
          for _time <- 1..5, do: {:ok, [3.0]} = sum(gang, rank)
          nil = RankBridge.Operations.call_rank!(gang, rank, :barrier, nil)
          value = if rank == 1, do: 2

          operation =
            RankBridge.Operations.submit_rank!(gang, rank, :broadcast_object, value,
              src_rank_in_group: 1
            )

          RankBridge.Operations.wait!(gang, operation)
        end)

      assert results == [2, 2, 2]
      assert RankBridge.list!(gang) == []
    end

    test "on some of the ranks, and one program within another", %{gang: gang} do
      group = RankBridge.new_group!(gang, "pair-" <> Id.uuid(), [2, 0])
      opts = [group: group]

      assert RankBridge.run(gang, &{&1, sum(gang, &1, opts)}, opts) ==
               {:ok, [{2, {:ok, [2.0]}}, {0, {:ok, [2.0]}}]}

      alone = RankBridge.new_group!(gang, "one-" <> Id.uuid(), [1])
      caller = self()
      assert [pid] = RankBridge.run!(gang, fn 1 -> self() end, group: alone)
      assert pid != caller

      results =
        RankBridge.run!(gang, fn rank ->
          inner = if rank == 1, do: RankBridge.run!(gang, &sum(gang, &1, opts), opts)
          {inner, sum(gang, rank)}
        end)

      all = {:ok, [3.0]}
      assert results == [{nil, all}, {[[2.0], [2.0]], all}, {nil, all}]
      assert {:error, %Error{reason: :unknown_group}} = RankBridge.run(gang, & &1, group: "none")
    end

    test "who stops is missed by the others, and they end", %{gang: gang} do
      test = self()

      program = fn rank ->
        if rank == 1, do: raise("on purpose")
        result = RankBridge.Operations.call_rank(gang, rank, :barrier, nil, timeout: @missing)
        send(test, {:ended, rank, result})
        result
      end

      assert_raise RuntimeError, "on purpose", fn -> RankBridge.run(gang, program) end

      for rank <- [0, 2] do
        assert_received {:ended, ^rank, {:error, %Error{reason: :peer_missing} = error}}
        assert 1 in for(%{state: :missing, rank: rank} <- error.ranks, do: rank)
      end

      # Where they raise what they miss, the cause is told all the same.
      assert_raise RuntimeError, "on purpose", fn ->
        RankBridge.run(gang, fn rank ->
          with {:error, error} <- program.(rank), do: raise(error)
        end)
      end

      # What one rank refuses is what the others fail with.
      assert {:error, %Error{reason: :unknown_ref, indefinite: false} = error} =
               RankBridge.run(gang, fn rank ->
                 ref = RankBridge.create!(gang, :int8, [1], rank: rank)
                 ref = if rank == 1, do: %{ref | id: "no-such-ref"}, else: ref
                 RankBridge.Operations.call_rank(gang, rank, :all_reduce, ref)
               end)

      assert [unknown_ref: 0, unknown_ref: 1, unknown_ref: 2] =
               for({rank, error} <- error.outcomes, do: {error.reason, rank})

      for {rank, %Error{} = outcome} <- error.outcomes, rank != 1 do
        assert [%{rank: 1, state: :failed}] = outcome.ranks
      end

      assert RankBridge.barrier!(gang) == :ok
    end

    test "who is late for what has failed is told so, and takes no other call for it", %{
      gang: gang
    } do
      test = self()
      # Without ids, rank 1's first barrier would meet the others' second.
      program = fn rank ->
        if rank == 1 do
          send(test, {:waits, self()})

          receive do
            :go -> :ok
          end
        end

        first = RankBridge.Operations.call_rank(gang, rank, :barrier, nil, timeout: @missing)
        if rank != 1, do: send(test, :missed)
        {first, RankBridge.Operations.call_rank(gang, rank, :barrier, nil)}
      end

      run = Task.async(fn -> RankBridge.run!(gang, program) end)
      assert_receive {:waits, late}, 60_000
      for _rank <- [0, 2], do: assert_receive(:missed, 60_000)
      send(late, :go)

      for {first, second} <- Task.await(run, 90_000) do
        assert {:error, %Error{reason: :peer_missing}} = first
        assert second == {:ok, nil}
      end
    end

    test "what a pipeline makes on the way is gone when it has ended", %{gang: gang} do
      pipeline =
        gang
        |> Pipeline.new()
        |> Pipeline.put([[1.0], [2.0], [3.0]])
        |> Pipeline.all_reduce(op: :max)
        |> Pipeline.barrier()
        |> Pipeline.broadcast(src_rank_in_group: 2)
        |> Pipeline.all_gather()

      assert RankBridge.list!(gang) == []
      assert {:ok, tensors} = Pipeline.get(pipeline)
      assert listed(tensors) == List.duplicate([3.0, 3.0, 3.0], 3)
      assert RankBridge.list!(gang) == []
      assert Pipeline.run(pipeline) == :ok
      assert RankBridge.list!(gang) == []

      refs = Pipeline.refs!(pipeline)
      assert RankBridge.list!(gang) == refs
      assert gang |> RankBridge.get!(refs) |> listed() == List.duplicate([3.0, 3.0, 3.0], 3)
    end

    test "the refs that it is given stay, and change where they are to", %{gang: gang} do
      refs = RankBridge.put!(gang, [[1], [2], [3]])

      squares =
        gang
        |> Pipeline.of(refs)
        |> Pipeline.all_gather()
        |> Pipeline.reduce_scatter(op: :product)

      assert squares |> Pipeline.get!() |> listed() == [[1], [8], [27]]
      assert RankBridge.list!(gang) == refs

      averaged = gang |> Pipeline.of(refs) |> Pipeline.all_reduce(in_place: true)
      assert Pipeline.run(averaged) == :ok
      assert Enum.map(RankBridge.list!(gang), & &1.id) == Enum.map(refs, & &1.id)
      assert gang |> RankBridge.get!(refs) |> listed() == [[6], [6], [6]]
    end

    test "members that get nothing, and those that get several, are fetched as they are", %{
      gang: gang
    } do
      created = gang |> Pipeline.new() |> Pipeline.create(:int32, [1], init: {:full, 2})

      assert [nil, tensor, nil] =
               created |> Pipeline.reduce(dst_rank_in_group: 1) |> Pipeline.get!()

      assert Tensor.to_list(tensor) == [6]

      lists = created |> Pipeline.all_gather(layout: :list) |> Pipeline.get!()
      assert Enum.map(lists, &listed/1) == List.duplicate([[2], [2], [2]], 3)
      assert RankBridge.list!(gang) == []
    end

    test "an error in the middle ends it, and leaves nothing behind", %{gang: gang} do
      begun =
        gang
        |> Pipeline.new()
        |> Pipeline.put([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
        |> Pipeline.all_reduce()

      test = self()
      reached = &Pipeline.tap(&1, fn _refs -> send(test, :reached) end)

      # Refused by every rank, by one, by nobody here.
      for {reason, failing} <- [
            invalid_argument: Pipeline.all_to_all(begun, dim: 7),
            invalid_argument: Pipeline.reduce_scatter(begun, sizes: [1, 1, 1]),
            rank_out_of_range: Pipeline.broadcast(begun, src_rank_in_group: 3),
            unknown_ref:
              Pipeline.then(begun, fn [a, b, c] -> [a, %{b | id: "none"}, c] end)
              |> Pipeline.all_reduce(timeout: @missing),
            unknown_group: Pipeline.barrier(begun, group: "none")
          ] do
        assert {:error, %Error{reason: ^reason}} = failing |> reached.() |> Pipeline.get()
        refute_received :reached
        assert RankBridge.list!(gang) == []
      end

      assert_raise RuntimeError, "on purpose", fn ->
        begun |> Pipeline.then(fn _refs -> raise "on purpose" end) |> Pipeline.run()
      end

      assert RankBridge.list!(gang) == []

      # What a function has released already does not keep the rest.
      early = Pipeline.tap(begun, fn [first | _others] -> RankBridge.release!(gang, first) end)
      assert Pipeline.run(early) == :ok
      assert RankBridge.list!(gang) == []

      # A function's own refs stay, or go with the others.
      sums = fn refs -> RankBridge.all_reduce(gang, refs, op: :max) end

      assert begun |> Pipeline.then(sums, release: true) |> Pipeline.get!() |> listed() ==
               List.duplicate([9.0, 12.0], 3)

      assert RankBridge.list!(gang) == []

      assert begun |> Pipeline.then(sums) |> Pipeline.get!() |> listed() ==
               List.duplicate([9.0, 12.0], 3)

      assert [%Ref{rank: 0}, %Ref{rank: 1}, %Ref{rank: 2}] = RankBridge.list!(gang)
    end

    test "each rank's part, within a program", %{gang: gang} do
      part = fn rank ->
        gang
        |> Pipeline.new(rank: rank)
        |> Pipeline.put([1.0 * rank, 1.0])
        |> Pipeline.all_reduce()
        |> Pipeline.barrier()
        |> Pipeline.all_gather(layout: :stacked)
      end

      stacked = List.duplicate([3.0, 3.0], 3)
      results = RankBridge.run!(gang, &Pipeline.get(part.(&1)))
      assert listed(results) == List.duplicate(stacked, 3)
      assert RankBridge.list!(gang) == []
      refs = RankBridge.run!(gang, &Pipeline.refs(part.(&1)))
      assert RankBridge.list!(gang) == refs

      given =
        RankBridge.run!(gang, fn rank ->
          gang
          |> Pipeline.of(Enum.at(refs, rank))
          |> Pipeline.gather(dst_rank_in_group: 2)
          |> Pipeline.get()
        end)

      assert [nil, nil, %Tensor{shape: [3, 6]}] = given
      assert RankBridge.list!(gang) == refs

      # One fails: all get an error, and keep nothing.
      assert {:error, %Error{reason: :invalid_argument}} =
               RankBridge.run(gang, fn rank ->
                 opts = [dim: if(rank == 1, do: 9, else: 0), timeout: @missing]
                 rank |> part.() |> Pipeline.all_gather(opts) |> Pipeline.refs()
               end)

      assert RankBridge.list!(gang) == refs
    end

    test "of a group's members alone", %{gang: gang} do
      group = RankBridge.new_group!(gang, "pair-" <> Id.uuid(), [2, 1])

      pipeline =
        gang
        |> Pipeline.new(group: group, timeout: 30_000)
        |> Pipeline.put([[1], [2]])
        |> Pipeline.all_gather()

      assert pipeline |> Pipeline.get!() |> listed() == [[1, 2], [1, 2]]
      assert [%Ref{rank: 2}, %Ref{rank: 1}] = Pipeline.refs!(pipeline)

      results =
        RankBridge.run!(
          gang,
          fn rank ->
            gang
            |> Pipeline.new(rank: rank, group: group.name)
            |> Pipeline.create(:int8, [1], init: {:full, rank})
            |> Pipeline.all_reduce()
            |> Pipeline.get()
          end,
          group: group
        )

      assert listed(results) == [[3], [3]]
    end
  end
end
