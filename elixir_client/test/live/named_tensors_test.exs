defmodule RankBridge.LiveNamedTensorsTest do
  @moduledoc "Tensors that the ranks' processes show under names: test/support/functions/named.py, on real ranks."

  use ExUnit.Case, async: true

  alias RankBridge.{Error, Gang, Tensor}
  alias RankBridge.NamedTensors.{Comparison, Difference, NamedTensor, Summary}
  alias RankBridge.Test.LiveRanks

  @app Path.expand("../support/functions/named.py", __DIR__)

  setup_all do
    ranks = LiveRanks.start(3, "gloo", ["--load", @app])
    on_exit(fn -> LiveRanks.stop(ranks) end)
    gang = start_supervised!({Gang, endpoints_file: ranks.file})
    # Rank 2 has been spoilt from the start.
    RankBridge.call!(gang, :spoil, [2])
    %{gang: gang}
  end

  test "names are found by a pattern, with what each member has", %{gang: gang} do
    weight = %NamedTensor{dtype: :float32, shape: [2, 3], device: "cpu", writable: false}

    assert RankBridge.named(gang, "model.*eight") ==
             {:ok, %{"model.weight" => [weight, weight, weight]}}

    assert {:ok, %{"unlike.mine" => [mine, nil, nil], "unlike.shape" => [nil, one, two]}} =
             RankBridge.named(gang, "unlike.*")

    assert mine == %NamedTensor{dtype: :int64, shape: [3], device: "cpu", writable: false}
    assert {one.shape, two.shape, two.writable} == {[1], [2], true}

    # In the group's order.
    group = RankBridge.new_group!(gang, "named", [2, 0])
    assert RankBridge.named!(gang, "*mine", group: group) == %{"unlike.mine" => [nil, mine]}
    assert RankBridge.named!(gang, "nothing.*") == %{}
    assert map_size(RankBridge.named!(gang, "*")) == 6
  end

  test "a summary counts what is no number", %{gang: gang} do
    assert %{"extra.odd" => [odd, odd, odd]} = RankBridge.summary!(gang, "extra.odd")

    assert %Summary{dtype: :float32, shape: [4], min: -2.0, max: 1.0, mean: -0.5} = odd
    assert {odd.nans, odd.infs} == {1, 1}
    assert_in_delta odd.norm, :math.sqrt(5), 1.0e-9
    assert odd.hash =~ ~r/^[0-9a-f]{32}$/
  end

  test "a copy is a ref like any other", %{gang: gang} do
    assert %{"model.bias" => refs} = RankBridge.take!(gang, "model.bias")
    assert Enum.map(refs, & &1.rank) == [0, 1, 2]
    sums = RankBridge.all_reduce!(gang, refs)

    for {one, sum} <-
          Enum.zip(
            Tensor.to_list(RankBridge.get!(gang, hd(refs))),
            Tensor.to_list(RankBridge.get!(gang, hd(sums)))
          ),
        do: assert_in_delta(sum, 3 * one, 1.0e-6)

    RankBridge.release!(gang, refs ++ sums)
  end

  test "the replica that differs is found, with where and by how much", %{gang: gang} do
    before = RankBridge.list!(gang)
    assert {:ok, [pattern, weight]} = RankBridge.compare(gang, "[em]*")

    assert %Comparison{name: "model.weight", reference: 0, differing: differing} = weight
    assert %{2 => %Difference{elements: 1, first: 5, most: most}} = differing
    assert map_size(differing) == 1
    assert_in_delta most, 0.5, 1.0e-6

    # The name is no pattern where its tensor is taken.
    assert pattern == %Comparison{
             name: "extra.a[*]?",
             reference: 0,
             differing: %{2 => %Difference{elements: 1, first: 1, most: 1.0}}
           }

    # What was copied is free again, and nothing is said of those who are alike.
    assert RankBridge.list!(gang) == before
    group = RankBridge.new_group!(gang, "alike", [0, 1])
    assert RankBridge.compare(gang, "[em]*", group: group) == {:ok, []}
  end

  test "ranks that have no such tensor, or one of another shape, differ in nothing that can be counted",
       %{gang: gang} do
    assert {:ok, [mine, shape]} = RankBridge.compare(gang, "unlike.*")

    assert mine == %Comparison{
             name: "unlike.mine",
             reference: 0,
             differing: %{1 => nil, 2 => nil}
           }

    assert shape == %Comparison{
             name: "unlike.shape",
             reference: 1,
             differing: %{0 => nil, 2 => nil}
           }
  end

  test "what is wrong is refused before a rank is asked, or by its name", %{gang: gang} do
    for function <- [:named, :summary, :take, :compare] do
      assert {:error, %Error{reason: :invalid_argument, indefinite: false} = error} =
               apply(RankBridge, function, [gang, :model])

      assert error.got == ":model"

      assert {:error, %Error{reason: :invalid_argument} = error} =
               apply(RankBridge, function, [gang, "*", [grup: "world"]])

      assert error.message =~ "did you mean :group?"

      assert {:error, %Error{reason: :unknown_group, message: message}} =
               apply(RankBridge, function, [gang, "*", [group: "nobody"]])

      assert message =~ "'nobody'"
    end
  end
end
