# Gathers of every layout, scans, and several collectives as one, between real sidecars on every backend.
for backend <- ["fake", "gloo"] do
  defmodule Module.concat(RankBridge.GathersTest, Macro.camelize(backend)) do
    use ExUnit.Case, async: true

    alias RankBridge.{AtOnce, Error, Gang, Id, Ref, Tensor}
    alias RankBridge.Test.{Functions, LiveRanks}

    @backend backend
    @moduletag timeout: 120_000

    setup_all do
      ranks = LiveRanks.start(3, @backend)
      on_exit(fn -> LiveRanks.stop(ranks) end)
      %{ranks: ranks}
    end

    setup %{ranks: ranks} do
      gang = start_supervised!({Gang, endpoints_file: ranks.file, timeout: 60_000})

      %{
        gang: gang,
        refs: RankBridge.put!(gang, for(rank <- 0..2, do: [[rank, 10 + rank]])),
        ragged: RankBridge.put!(gang, for(rank <- 0..2, do: rows(rank)))
      }
    end

    # As many rows as the rank.
    defp rows(rank),
      do: Tensor.new!(:int64, [rank, 2], :binary.copy(<<rank::little-64, 7::little-64>>, rank))

    # As lists, whatever is inside what.
    defp values(_gang, nothing) when nothing in [nil, :ok], do: nil
    defp values(gang, %Ref{} = ref), do: gang |> RankBridge.get!(ref) |> Tensor.to_list()
    defp values(gang, list), do: Enum.map(list, &values(gang, &1))

    test "every layout puts the members' tensors together", %{gang: gang, refs: refs} do
      inputs = for rank <- 0..2, do: [[rank, 10 + rank]]

      for {opts, expected} <- [
            {[], [[0, 10, 1, 11, 2, 12]]},
            {[layout: :concatenated], [[0, 10, 1, 11, 2, 12]]},
            {[dim: 0], [[0, 10], [1, 11], [2, 12]]},
            {[layout: :stacked], inputs},
            {[layout: :stacked, dim: 2], [[[0, 1, 2], [10, 11, 12]]]},
            {[layout: :stacked, dim: -1], [[[0, 1, 2], [10, 11, 12]]]},
            {[layout: :list], inputs}
          ] do
        assert values(gang, RankBridge.all_gather!(gang, refs, opts)) ==
                 List.duplicate(expected, 3)

        assert values(gang, RankBridge.gather!(gang, refs, [dst_rank_in_group: 1] ++ opts)) ==
                 [nil, expected, nil]
      end
    end

    test "a list is of refs on each member's own rank", %{gang: gang, refs: refs} do
      for {lists, rank} <-
            gang |> RankBridge.all_gather!(refs, layout: :list) |> Enum.with_index(),
          ref <- lists,
          do: assert({ref.rank, ref.dtype, ref.shape} == {rank, :int64, [1, 2]})
    end

    test "ragged tensors are gathered without saying their sizes", %{gang: gang, ragged: ragged} do
      rows = [[1, 7], [2, 7], [2, 7]]

      assert values(gang, RankBridge.gather!(gang, ragged, ragged: true, dim: 0)) == [
               rows,
               nil,
               nil
             ]

      assert values(gang, RankBridge.all_gather!(gang, ragged, ragged: true, dim: 0)) == [
               rows,
               rows,
               rows
             ]

      lists = [[], [[1, 7]], [[2, 7], [2, 7]]]
      gathered = values(gang, RankBridge.all_gather!(gang, ragged, ragged: true, layout: :list))
      assert gathered == List.duplicate(lists, 3)
    end

    test "a list may be of tensors that have nothing in common but their dtype", %{gang: gang} do
      refs = [
        RankBridge.put_rank!(gang, 0, 5),
        RankBridge.put_rank!(gang, 1, [[1], [2]]),
        RankBridge.put_rank!(gang, 2, [])
      ]

      refs = List.replace_at(refs, 2, RankBridge.create!(gang, :int64, [0, 4], rank: 2))
      gathered = RankBridge.all_gather!(gang, refs, ragged: true, layout: :list)

      for list <- gathered do
        assert Enum.map(list, & &1.shape) == [[], [2, 1], [0, 4]]
        assert Enum.map(list, & &1.dtype) == [:int64, :int64, :int64]
      end
    end

    test "what a layout does not allow is refused", %{gang: gang, refs: refs, ragged: ragged} do
      for {refs, opts, reasons} <- [
            {ragged, [dim: 0], [:mismatch]},
            {ragged, [dim: 1, ragged: true], [:mismatch, :invalid_argument]},
            {ragged, [layout: :stacked, ragged: true], [:mismatch, :invalid_argument]},
            {refs, [dim: 0, ragged: true, sizes: [1, 1, 1]], [:invalid_argument]},
            {refs, [layout: :stacked, dim: 3], [:invalid_argument]}
          ] do
        assert {:error, %Error{indefinite: false} = error} =
                 RankBridge.all_gather(gang, refs, opts)

        assert {opts, error.reason in reasons} == {opts, true}
      end

      assert RankBridge.barrier!(gang) == :ok
    end

    test "a scan gives every member what came before it", %{gang: gang, refs: refs} do
      case RankBridge.scan(gang, refs) do
        {:ok, sums} ->
          assert values(gang, sums) == [[[0, 10]], [[1, 21]], [[3, 33]]]
          before = RankBridge.scan!(gang, refs, exclusive: true)
          assert values(gang, before) == [[[0, 0]], [[0, 10]], [[1, 21]]]

          assert values(gang, RankBridge.scan!(gang, refs, op: :min)) ==
                   List.duplicate([[0, 10]], 3)

          assert {:error, %Error{indefinite: false}} = RankBridge.scan(gang, refs, op: :avg)

        {:error, error} ->
          assert {error.reason, error.indefinite, error.operation} ==
                   {:unsupported_operation, false, "scan"}
      end

      gathered = for status <- RankBridge.status!(gang), do: :scan in status.abilities.collectives
      assert gathered == List.duplicate(match?({:ok, _sums}, RankBridge.scan(gang, refs)), 3)
    end

    test "several collectives go as one, and each gives what it gives alone", context do
      %{gang: gang, refs: refs, ragged: ragged} = context
      sizes = [[0, 0, 0], [0, 1, 0], [1, 0, 1]]

      calls = [
        {:all_reduce, refs, op: :max},
        {:barrier, nil},
        {:gather, refs, dst_rank_in_group: 2},
        {:all_gather, refs, layout: :list},
        {:all_to_all, ragged, sizes: sizes},
        {:reduce_scatter, RankBridge.create!(gang, :int64, [3], init: {:full, 1}), []},
        {:broadcast, refs, src_rank_in_group: 1}
      ]

      alone =
        for {name, input, opts} <- Enum.map(calls, &with_opts/1) do
          arguments = if input, do: [gang, input, opts], else: [gang, opts]
          values(gang, Functions.call(:"#{name}!", arguments))
        end

      assert for(it <- RankBridge.Coalesced.coalesce!(gang, calls), do: values(gang, it)) == alone

      operation = RankBridge.submit!(gang, :coalesce, calls)
      assert for(it <- RankBridge.await!(gang, operation), do: values(gang, it)) == alone
    end

    defp with_opts({name, input}), do: {name, input, []}
    defp with_opts({name, input, opts}), do: {name, input, opts}

    test "no call sees what another did in place", %{gang: gang, refs: refs} do
      calls = [{:all_reduce, refs, in_place: true}, {:all_gather, refs, dim: 0}]
      assert [sums, gathered] = RankBridge.Coalesced.coalesce!(gang, calls)
      assert Enum.map(sums, & &1.id) == Enum.map(refs, & &1.id)
      assert values(gang, refs) == List.duplicate([[3, 33]], 3)
      assert values(gang, gathered) == List.duplicate([[0, 10], [1, 11], [2, 12]], 3)
    end

    test "either all of several calls are done, or none", %{gang: gang, refs: refs} do
      [first | others] = refs
      wrong = [RankBridge.put_rank!(gang, 0, [1, 2, 3]) | others]
      calls = [{:all_reduce, refs, in_place: true}, {:all_reduce, wrong}]
      before = values(gang, refs)

      assert {:error, %Error{reason: :mismatch, indefinite: false, operation: "coalesce"}} =
               RankBridge.Coalesced.coalesce(gang, calls)

      RankBridge.release!(gang, first)

      assert {:error, %Error{reason: :released_ref, indefinite: false}} =
               RankBridge.Coalesced.coalesce(gang, Enum.reverse(calls), timeout: 2_000)

      assert values(gang, others) == tl(before)
      assert RankBridge.barrier!(gang) == :ok
    end

    test "each rank may call for its own part", %{gang: gang, refs: refs} do
      id = Id.uuid()

      gathered =
        AtOnce.map(Enum.with_index(refs), fn {ref, rank} ->
          calls = [{:all_reduce, ref}, {:gather, ref, layout: :list}]
          RankBridge.Operations.call_rank!(gang, rank, :coalesce, calls, operation_id: id)
        end)

      assert [[%Ref{rank: 0}, [_r0, _r1, _r2]], [%Ref{rank: 1}, nil], [%Ref{rank: 2}, nil]] =
               gathered
    end
  end
end
