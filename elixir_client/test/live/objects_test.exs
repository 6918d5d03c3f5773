# Values and maps of tensors between real sidecars, on every backend.
for backend <- ["fake", "gloo"] do
  defmodule Module.concat(RankBridge.ObjectsTest, Macro.camelize(backend)) do
    use ExUnit.Case, async: true

    alias RankBridge.{AtOnce, Error, Gang, Id, Tensor}
    alias RankBridge.Test.LiveRanks

    @backend backend
    @moduletag timeout: 120_000

    setup_all do
      ranks = LiveRanks.start(3, @backend)
      on_exit(fn -> LiveRanks.stop(ranks) end)
      %{ranks: ranks}
    end

    setup %{ranks: ranks} do
      %{gang: start_supervised!({Gang, endpoints_file: ranks.file, timeout: 60_000})}
    end

    defp list(gang, ref), do: gang |> RankBridge.get!(ref) |> Tensor.to_list()

    # One value of every kind, and containers of all of them.
    defp values do
      plain =
        [nil, true, false, 0, -1, 2 ** 63 - 1, -(2 ** 63), 2 ** 63, -(2 ** 200), 1.5, -0.0] ++
          [:nan, :infinity, :negative_infinity, "", "世界", <<0xFF, 0>>, {:bytes, "ascii"}] ++
          [[], {}, %{}, ~c"abc", Tensor.from_list([[1, 2], [3, 4]]), Tensor.from_list([])]

      nested = [
        {nil, [%{"a" => {1, [2.0]}}]},
        %{1 => "int", 1.5 => nil, nil => %{}, [1] => {}, {2} => [], {:bytes, "x"} => <<255>>}
      ]

      [plain, List.to_tuple(plain), :binary.copy("x", 3_000_000) | plain ++ nested]
    end

    defp same?(left, right), do: {left, signs(left)} === {right, signs(right)}
    defp signs(term) when is_float(term), do: <<term::float>>
    defp signs(list) when is_list(list), do: Enum.map(list, &signs/1)
    defp signs(tuple) when is_tuple(tuple), do: tuple |> Tuple.to_list() |> signs()
    defp signs(_other), do: nil

    test "the source's value comes to all as it was", %{gang: gang} do
      for {value, number} <- Enum.with_index(values()) do
        source = rem(number, 3)
        results = RankBridge.broadcast_object!(gang, value, src_rank_in_group: source)
        assert length(results) == 3
        for it <- results, do: assert(same?(it, value), inspect({it, value}, printable_limit: 80))
      end
    end

    test "lists are broadcast as lists", %{gang: gang} do
      assert RankBridge.Objects.broadcast_object_list!(gang, [1, nil]) ==
               List.duplicate([1, nil], 3)

      assert RankBridge.Objects.broadcast_object_list!(gang, []) == [[], [], []]
    end

    test "a ref in a value is the handle that it was", %{gang: gang} do
      ref = RankBridge.put_rank!(gang, 1, [1.0, 2.0])

      assert RankBridge.broadcast_object!(gang, %{"ref" => ref}) ==
               List.duplicate(%{"ref" => ref}, 3)
    end

    test "each member gets its own of the source's values", %{gang: gang} do
      values = [nil, %{"a" => 1}, <<255>>]
      assert RankBridge.scatter_object!(gang, values, src_rank_in_group: 2) == values
    end

    test "the destination gets everybody's value, the others nil", %{gang: gang} do
      values = [{1}, nil, "c"]

      assert RankBridge.gather_object!(gang, values, dst_rank_in_group: 1) == [nil, values, nil]
      assert RankBridge.all_gather_object!(gang, values) == [values, values, values]

      assert RankBridge.all_gather_object!(gang, [nil, nil, nil]) ==
               List.duplicate([nil, nil, nil], 3)
    end

    test "in a group, values are in the order of its members", %{gang: gang} do
      name = "pair-" <> Id.uuid()
      RankBridge.new_group!(gang, name, [2, 0])

      assert RankBridge.all_gather_object!(gang, ["two", "zero"], group: name) ==
               List.duplicate(["two", "zero"], 2)

      ref = RankBridge.put_rank!(gang, 2, [7])
      dict = %{"t" => ref}
      opts = [group: name, metadata_group: RankBridge.Grouping.group!(gang, name)]

      assert [%{"t" => %{rank: 2}}, %{"t" => copy}] =
               RankBridge.Objects.broadcast_tensor_dict!(gang, dict, opts)

      assert {copy.rank, list(gang, copy)} == {0, [7]}

      opts = [group: name, metadata_group: "world"]

      assert {:error, %Error{reason: :invalid_argument, indefinite: false} = error} =
               RankBridge.Objects.broadcast_tensor_dict(gang, dict, opts)

      assert {error.expected, error.got} == {"ranks [2, 0]", "ranks [0, 1, 2]"}
      RankBridge.destroy_group!(gang, name)
    end

    test "numbers are reduced in their own kind", %{gang: gang} do
      for {numbers, opts, expected} <- [
            {[1, 2, 4], [], 7},
            {[1, -2, 4], [op: :min], -2},
            {[2 ** 53, 1, 1], [], 2 ** 53 + 2},
            {[2 ** 62, 2 ** 62, 2 ** 70], [], 2 ** 63 + 2 ** 70},
            {[1, 2, 4], [op: :avg], 7 / 3},
            {[6, 3, 1], [op: :bxor], 4},
            {[0.1, 0.2, 0.3], [op: :max], 0.3},
            {[1.0e300, 1.0, 2.0], [], 1.0e300},
            {[1.0, :infinity, 2.0], [], :infinity},
            {[true, false, true], [op: :band], false},
            {[true, false, true], [op: :bxor], false},
            {[false, false, true], [op: :bor], true}
          ] do
        assert RankBridge.all_reduce_value!(gang, numbers, opts) === [
                 expected,
                 expected,
                 expected
               ]
      end
    end

    test "a reduction that a kind does not have is refused", %{gang: gang} do
      for {numbers, op} <- [{[true, true, true], :avg}, {[1.0, 2.0, 3.0], :band}] do
        assert {:error, %Error{indefinite: false, operation: "all_reduce_value"}} =
                 RankBridge.all_reduce_value(gang, numbers, op: op)
      end

      assert RankBridge.barrier!(gang) == :ok
    end

    test "a map of tensors comes to all, with tensors of their own", %{gang: gang} do
      weight = RankBridge.put_rank!(gang, 1, [[1.5, 2.5]])
      empty = RankBridge.create!(gang, :bool, [0, 3], rank: 1)
      dict = %{"weight" => weight, "step" => 7, "more" => %{3 => empty, nil => {:bytes, "x"}}}

      results = RankBridge.Objects.broadcast_tensor_dict!(gang, dict, src_rank_in_group: 1)

      for {results, rank} <- Enum.with_index(results) do
        assert %{"weight" => own, "step" => 7, "more" => %{3 => own_empty, nil => {:bytes, "x"}}} =
                 results

        assert {own.rank, own.dtype, list(gang, own)} == {rank, :float32, [[1.5, 2.5]]}
        assert {own_empty.rank, own_empty.dtype, own_empty.shape} == {rank, :bool, [0, 3]}
        assert map_size(results) == 3
      end

      assert RankBridge.Objects.broadcast_tensor_dict!(gang, %{}) == [%{}, %{}, %{}]
    end

    test "one rank's parts of a call make it whole", %{gang: gang} do
      opts = [operation_id: Id.uuid(), src_rank_in_group: 2]

      results =
        AtOnce.map([{0, nil}, {1, "not looked at"}, {2, {nil, 5}}], fn {rank, value} ->
          RankBridge.Operations.call_rank!(gang, rank, :broadcast_object, value, opts)
        end)

      assert results == [{nil, 5}, {nil, 5}, {nil, 5}]
    end

    test "who is not the source brings nothing", %{gang: gang} do
      ref = RankBridge.put_rank!(gang, 1, [7])

      for {operation, input, check} <- [
            {:scatter_object, ["a", nil, {3}], &(&1 == ["a", nil, {3}])},
            {:broadcast_tensor_dict, %{"t" => ref},
             &match?([_, %{"t" => _}, %{"t" => %{rank: 2}}], &1)}
          ] do
        opts = [operation_id: Id.uuid(), src_rank_in_group: 1]

        results =
          AtOnce.map([0, 1, 2], fn rank ->
            RankBridge.Operations.call_rank!(
              gang,
              rank,
              operation,
              if(rank == 1, do: input),
              opts
            )
          end)

        assert {operation, check.(results)} == {operation, true}

        # The source must have something.
        results =
          AtOnce.map([0, 1, 2], fn rank ->
            opts = [
              operation_id: opts[:operation_id] <> "2",
              src_rank_in_group: 1,
              timeout: 1_000
            ]

            RankBridge.Operations.call_rank(gang, rank, operation, nil, opts)
          end)

        assert [{:error, _}, {:error, %Error{reason: :invalid_argument, rank: 1}}, {:error, _}] =
                 results
      end
    end

    test "values are submitted, and asked for as often as one likes", %{gang: gang} do
      operation = RankBridge.submit!(gang, :all_gather_object, [nil, 1, "b"])
      expected = List.duplicate([nil, 1, "b"], 3)
      assert RankBridge.Operations.wait!(gang, operation) == expected
      assert RankBridge.await!(gang, operation) == expected
      assert RankBridge.Operations.is_complete!(gang, operation)
      empty = RankBridge.submit!(gang, :broadcast_object, nil)
      assert RankBridge.await!(gang, empty) == [nil, nil, nil]
    end

    test "containers inside each other travel as deep as values go, and no deeper", %{gang: gang} do
      deep = Enum.reduce(1..29, %{}, fn number, inner -> %{number => inner} end)
      assert RankBridge.broadcast_object!(gang, deep) == [deep, deep, deep]
      operation = RankBridge.submit!(gang, :all_gather_object, [deep, deep, deep])
      lists = List.duplicate([deep, deep, deep], 3)
      assert RankBridge.Operations.wait!(gang, operation) == lists

      assert for(
               %{result: {:ok, results}} <- RankBridge.Operations.poll!(gang, operation),
               do: results
             ) ==
               lists

      assert {:error, %Error{reason: :invalid_argument}} =
               RankBridge.broadcast_object(gang, [deep])

      assert RankBridge.barrier!(gang) == :ok
    end

    test "members that want another source are told so", %{gang: gang} do
      id = Id.uuid()

      results =
        AtOnce.map([0, 1, 2], fn rank ->
          opts = [operation_id: id, src_rank_in_group: div(rank, 2)]
          RankBridge.Operations.call_rank(gang, rank, :broadcast_object, rank, opts)
        end)

      for result <- results,
          do: assert({:error, %Error{reason: :mismatch, indefinite: false}} = result)

      assert RankBridge.barrier!(gang) == :ok
    end
  end
end
