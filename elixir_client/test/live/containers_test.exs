defmodule RankBridge.ContainersTest do
  @moduledoc "Containers of tensors to real ranks and back. Those of Nx by a stand-in for it: test/stand_ins/nx.ex."

  # With the stand-in, there is an Nx for everybody.
  use ExUnit.Case, async: false

  alias RankBridge.{Error, Gang, Ref, Tensor}
  alias RankBridge.Test.{LiveRanks, StandIns}

  @moduletag timeout: 120_000

  defmodule Layer do
    defstruct [:w, :b]
  end

  setup_all do
    ranks = LiveRanks.start(2, "fake", ["--max-refs", "40"])
    on_exit(fn -> LiveRanks.stop(ranks) end)
    %{ranks: ranks}
  end

  setup %{ranks: ranks},
    do: %{gang: start_supervised!({Gang, endpoints_file: ranks.file, timeout: 60_000})}

  defp lists(%Tensor{} = tensor), do: Tensor.to_list(tensor)

  test "the shape stays, with refs in place of tensors and back", %{gang: gang} do
    large = Tensor.new!(:uint8, [1_500_000], :binary.copy(<<7>>, 1_500_000))
    params = %{"layer" => %{w: [[1.0, 2.0]], b: large}, out: {%Layer{w: [3], b: true}, []}}

    assert %{"layer" => %{w: w, b: b}, out: {%Layer{w: %Ref{}, b: %Ref{}}, []}} =
             on_rank = RankBridge.put_container!(gang, params, rank: 1)

    assert {w.rank, w.dtype, w.shape} == {1, :float32, [1, 2]}
    assert {b.rank, b.shape} == {1, [1_500_000]}

    assert {:ok, %{"layer" => layer, out: {%Layer{} = out, []}}} =
             RankBridge.get_container(gang, on_rank)

    assert layer.b == large
    assert {lists(layer.w), lists(out.w), lists(out.b)} == {[[1.0, 2.0]], [3], true}
  end

  test "every member has its own, and all come back at once", %{gang: gang} do
    params = for n <- 1..12, into: %{}, do: {"p#{n}", Tensor.from_list([n, n])}
    assert [first, second] = placed = RankBridge.put_container!(gang, params)
    assert for(on <- [first, second], {_name, ref} <- on, uniq: true, do: ref.rank) == [0, 1]
    assert RankBridge.get_container!(gang, placed) == [params, params]

    {:ok, [sums, _same]} =
      RankBridge.all_reduce(gang, [first["p3"], second["p3"]])
      |> then(fn {:ok, refs} -> {:ok, RankBridge.get_container!(gang, refs)} end)

    assert lists(sums) == [6, 6]
    assert RankBridge.put_container!(gang, %{}) == [%{}, %{}]
    assert RankBridge.put_container!(gang, %{}, rank: 0) == %{}
    assert %Ref{rank: 1} = RankBridge.put_container!(gang, [1, 2], rank: 1)
  end

  test "the leaf that is wrong is named, and nothing is brought", %{gang: gang} do
    params = %{"layer" => %{b: [1.0], w: "a text"}}

    assert {:error, %Error{reason: :invalid_argument, operation: "put_container"} = error} =
             RankBridge.put_container(gang, params)

    assert error.message =~ ~s(["layer"].w: not a tensor: "a text")
    assert RankBridge.list!(gang) == []

    ragged = {[1], %Layer{w: [[1], [2, 3]], b: 1}}
    assert {:error, %Error{message: message}} = RankBridge.put_container(gang, ragged, rank: 0)
    assert message =~ "{1}.w: a ragged list"

    refs = RankBridge.put_container!(gang, %{w: [1], b: [2]}, rank: 0)
    assert {:error, %Error{} = error} = RankBridge.get_container(gang, %{refs | b: nil})
    assert {error.reason, error.operation} == {:invalid_argument, "get_container"}
    assert error.message =~ ".b: not a ref: nil"

    # A rank's own refusal is named, too.
    RankBridge.release!(gang, refs.b)
    assert {:error, %Error{reason: :released_ref} = error} = RankBridge.get_container(gang, refs)
    assert error.message =~ ".b: "
  end

  test "all are brought, or none is left", %{gang: gang} do
    # More than a session may have.
    many = for n <- 1..60, into: %{}, do: {n, [n]}

    assert {:error, %Error{reason: :resource_exhausted} = error} =
             RankBridge.put_container(gang, many, rank: 0)

    assert error.message =~ ~r/^\[\d+\]: /
    assert RankBridge.list!(gang) == []
  end

  test "wrong options are refused", %{gang: gang} do
    assert {:error, %Error{reason: :rank_out_of_range}} =
             RankBridge.put_container(gang, [1], rank: 7)

    assert {:error, %Error{reason: :invalid_argument}} =
             RankBridge.put_container(gang, [1], to: 0)

    assert {:error, %Error{reason: :invalid_argument}} = RankBridge.get_container(gang, [], to: 0)
  end

  describe "with the stand-in for Nx" do
    setup do
      StandIns.load(["nx", "nx_structs"])
      %{model: RankBridge.ContainersTest.Model, lazy: RankBridge.ContainersTest.Lazy}
    end

    defp nx(numbers),
      do: apply(Nx, :from_binary, [for(n <- numbers, into: <<>>, do: <<n::little-64>>), {:s, 64}])

    test "its tensors are leaves, and its containers say what is in them", context do
      %{gang: gang, model: model} = context
      inner = {nx([1, 2]), %{b: nx([3])}}
      params = struct!(model, w: nx([4, 5, 6]), inner: inner, name: "kept", steps: 9)
      on_rank = RankBridge.put_container!(gang, params, rank: 0)
      # What is no container, and is not kept, has its default.
      assert %{__struct__: ^model, name: "kept", steps: 0, w: %Ref{dtype: :int64}} = on_rank
      assert %{inner: {%Ref{shape: [2]}, %{b: %Ref{}}}} = on_rank
      fetched = RankBridge.get_container!(gang, on_rank)
      assert lists(fetched.w) == [4, 5, 6]
      assert Tensor.to_nx(elem(fetched.inner, 0)) == nx([1, 2])

      wrong = struct!(model, w: nx([1]), inner: {nx([1]), %{b: self()}})
      assert {:error, %Error{message: message}} = RankBridge.put_container(gang, %{"m" => wrong})
      assert message =~ ~s(["m"].inner{1}.b: not a tensor)
    end

    test "a lazy container's tensors are built once", %{gang: gang, lazy: lazy} do
      placed = RankBridge.put_container!(gang, %{lazy: struct!(lazy, seed: 42)})
      assert [%{lazy: %{value: %Ref{rank: 0}}}, %{lazy: %{value: %Ref{rank: 1}}}] = placed
      assert_received :built
      refute_received :built
      assert [%{lazy: %{value: tensor}}, _other] = RankBridge.get_container!(gang, placed)
      assert lists(tensor) == [42]
    end
  end
end
