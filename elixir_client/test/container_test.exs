defmodule RankBridge.ContainerTest do
  use ExUnit.Case, async: true

  alias RankBridge.{Container, Error, Ref, Tensor}

  defmodule Layer do
    defstruct [:w, :b]
  end

  test "maps, tuples, structs and lists of others are containers; numbers and lists of them are leaves" do
    tensor = Tensor.from_list([1])
    ref = %Ref{id: "r", rank: 0}

    container = %{
      "layers" => [%Layer{w: tensor, b: [1.0, 2.0]}, %{w: [[1], [2]], b: ref}],
      :scale => {1, {true, :nan}},
      {0, "odd"} => [],
      Head => 2.5
    }

    leaves = Container.leaves(container)

    assert Map.new(leaves) == %{
             ~s(["layers"][0].w) => tensor,
             ~s(["layers"][0].b) => [1.0, 2.0],
             ~s(["layers"][1].w) => [[1], [2]],
             ~s(["layers"][1].b) => ref,
             ".scale{0}" => 1,
             ".scale{1}{0}" => true,
             ".scale{1}{1}" => :nan,
             ".Head" => 2.5
           }

    paths = for {path, _leaf} <- leaves, do: path
    filled = Container.fill(container, paths)
    assert %{"layers" => [%Layer{w: w, b: _}, %{b: b}], {0, "odd"} => []} = filled

    assert {w, b, filled.scale} ==
             {~s(["layers"][0].w), ~s(["layers"][1].b),
              {".scale{0}", {".scale{1}{0}", ".scale{1}{1}"}}}
  end

  test "a leaf alone is a container, of which there is no path" do
    assert Container.leaves([1, 2]) == [{"", [1, 2]}]
    assert Container.fill([1, 2], [:ref]) == :ref
    assert Container.leaves(%{}) == []
    error = Error.refusal(:invalid_argument, "not a tensor")
    assert Container.at(error, "") == error
    assert Container.at(error, ".w").message == ".w: not a tensor"
  end
end
