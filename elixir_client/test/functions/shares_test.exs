defmodule RankBridge.Functions.SharesTest do
  @moduledoc "How the arguments of a function are given, and which of them each member gets."

  use ExUnit.Case, async: true

  alias RankBridge.{Error, Ref}
  alias RankBridge.Functions.Shares

  defp ref(rank), do: %Ref{id: "r#{rank}", rank: rank, dtype: :float32, shape: [2]}

  test "a list has values by their place, and then those with names" do
    for {input, share} <- [
          {[], []},
          {%{}, []},
          {[1, nil], [{"", 1}, {"", nil}]},
          {[1, lr: 2, n: 3], [{"", 1}, {"lr", 2}, {"n", 3}]},
          {[lr: 2], [{"lr", 2}]},
          {%{:a => 1, "b" => 2}, [{"a", 1}, {"b", 2}]},
          {{[1], %{"b" => 2}}, [{"", 1}, {"b", 2}]},
          # These pairs are values.
          {[bytes: "abc"], [{"", {:bytes, "abc"}}]},
          {[{nil, 1}, {true, 2}, {:nan, 3}], [{"", {nil, 1}}, {"", {true, 2}}, {"", {:nan, 3}}]},
          {[{"a", 1}], [{"", {"a", 1}}]},
          {%{bytes: "abc"}, [{"bytes", "abc"}]}
        ] do
      assert {input, Shares.of(input, :of_gang, [0, 1])} == {input, {:ok, {:alike, share}}}
    end
  end

  test "each member gets its own ref, and its own of what is marked" do
    refs = [ref(2), ref(0)]
    input = [refs, 7, x: RankBridge.each(["a", "b"])]

    assert Shares.of(input, :of_gang, [2, 0]) ==
             {:ok,
              {:each,
               [
                 [{"", ref(2)}, {"", 7}, {"x", "a"}],
                 [{"", ref(0)}, {"", 7}, {"x", "b"}]
               ]}}

    # In another order, or of others, they are a list like any other.
    for members <- [[0, 2], [0, 2, 3], [2]],
        do: assert({:ok, {:alike, [{"", ^refs}]}} = Shares.of([refs], :of_gang, members))

    assert {:ok, {:alike, [{"", [_one]}]}} = Shares.of([[ref(1)]], :of_rank, [1])
  end

  test "a range can be shared out" do
    assert {:ok, {:each, [[{"", 5}], [{"", 6}]]}} =
             Shares.of([RankBridge.each(5..6)], :of_gang, [0, 1])
  end

  test "what is not one for each member is refused, with how many there are" do
    assert {:error, %Error{reason: :invalid_argument, expected: "2", got: "3"}} =
             Shares.of([RankBridge.each([1, 2, 3])], :of_gang, [0, 1])
  end
end
