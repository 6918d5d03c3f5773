defmodule RankBridge.SnakeBridge.WireTest do
  @moduledoc "SnakeBridge's maps become terms, and terms its maps, and nothing is lost on the way."

  use ExUnit.Case, async: true

  alias RankBridge.SnakeBridge.Wire

  doctest RankBridge.SnakeBridge.Wire

  defp tag(name, fields), do: Map.merge(%{"__type__" => name, "__schema__" => 1}, fields)

  # Wire, and the term that it stands for.
  defp pairs do
    [
      {nil, nil},
      {true, true},
      {2, 2},
      {2.0, 2.0},
      {-0.5, -0.5},
      {1_180_591_620_717_411_303_424, 1_180_591_620_717_411_303_424},
      {"None", "None"},
      {"ä", "ä"},
      {[1, [nil]], [1, [nil]]},
      {%{"a" => %{}}, %{"a" => %{}}},
      {tag("atom", %{"value" => "ok"}), :ok},
      {tag("tuple", %{"elements" => [1, tag("tuple", %{"elements" => []})]}), {1, {}}},
      {tag("set", %{"elements" => [1, 2]}), MapSet.new([1, 2])},
      {tag("frozenset", %{"elements" => ["a"]}), {:frozenset, MapSet.new(["a"])}},
      {tag("bytes", %{"data" => "/wA="}), <<255, 0>>},
      {tag("bytes", %{"data" => "aGk="}), {:bytes, "hi"}},
      {tag("special_float", %{"value" => "infinity"}), :infinity},
      {tag("special_float", %{"value" => "neg_infinity"}), :negative_infinity},
      {tag("special_float", %{"value" => "nan"}), :nan},
      {tag("complex", %{"real" => 1.0, "imag" => tag("special_float", %{"value" => "nan"})}),
       {:complex, 1.0, :nan}},
      {tag("datetime", %{"value" => "2026-01-02T03:04:05Z"}), ~U[2026-01-02 03:04:05Z]},
      {tag("date", %{"value" => "2026-01-02"}), ~D[2026-01-02]},
      {tag("time", %{"value" => "03:04:05"}), ~T[03:04:05]},
      {tag("dict", %{"pairs" => [[1, "one"]]}), %{1 => "one"}},
      {tag("dict", %{"pairs" => [[nil, tag("tuple", %{"elements" => [2]})]]}), %{nil => {2}}}
    ]
  end

  test "each kind is read and written" do
    for {wire, term} <- pairs() do
      assert Wire.decode(wire) === {:ok, term}
      assert Wire.encode(term) === wire
    end
  end

  test "what is in each other comes back as it was, kept or not" do
    :rand.seed(:exsss, {1, 2, 3})

    for _round <- 1..500 do
      term = random(4)
      wire = Wire.encode(term)
      assert Wire.decode(wire, atoms: :all) === {:ok, term}
      assert {:ok, kept} = Wire.decode(wire, keep: true)
      assert Wire.encode(kept) === wire
    end
  end

  defp random(0) do
    {_wire, term} = Enum.random(pairs())
    term
  end

  defp random(depth) do
    items = fn -> for _item <- 1..:rand.uniform(3), do: random(depth - 1) end

    case :rand.uniform(6) do
      1 -> items.()
      2 -> List.to_tuple(["t" | items.()])
      3 -> Map.new(items.(), &{"#{:rand.uniform(9)}", &1})
      4 -> Map.new(items.(), &{{:rand.uniform(9)}, &1})
      5 -> MapSet.new(items.())
      6 -> random(0)
    end
  end

  test "atoms are made of the allowlist alone" do
    wire = tag("atom", %{"value" => "no_atom_of_this_program"})
    assert Wire.decode(wire) == {:ok, "no_atom_of_this_program"}
    assert Wire.decode(tag("atom", %{"value" => "error"})) == {:ok, :error}
    assert Wire.decode(tag("atom", %{"value" => "sum"}), atoms: ["sum"]) == {:ok, :sum}
    assert Wire.plain(wire) == "no_atom_of_this_program"
    assert Wire.plain(:sum) == :sum
  end

  test "what ranks have no value for stays as it is, and can be a value of a rank" do
    for {%{"__type__" => name} = wire, _term} <- pairs(),
        name in ~w(atom set frozenset complex datetime date time) do
      assert Wire.decode(%{"in" => [wire]}, keep: true) == {:ok, %{"in" => [wire]}}
      assert {:ok, _value} = RankBridge.Value.to_proto(wire)
    end

    for {%{"__type__" => name} = wire, term} <- pairs(),
        name in ~w(tuple bytes special_float dict) do
      assert Wire.decode(wire, keep: true) === {:ok, term}
    end
  end

  test "keys that are atoms are texts, as SnakeBridge writes them" do
    assert Wire.encode(%{a: 1}) == %{"a" => 1}
    assert Wire.encode(%{true => 1}) == tag("dict", %{"pairs" => [[true, 1]]})
    assert Wire.encode(:neg_infinity) == tag("special_float", %{"value" => "neg_infinity"})
  end

  test "numbers of tensors have their complex ones as pairs" do
    wire = [[tag("complex", %{"real" => 1.0, "imag" => 2.0}), 3]]
    assert Wire.numbers(wire) == [[{1.0, 2.0}, 3]]
  end

  test "refs are what they stand for" do
    ref = Wire.ref("rankbridge-1", "s", {"torch", "torch", "Tensor"})

    assert ref == %{
             "__type__" => "ref",
             "__schema__" => 1,
             "id" => "rankbridge-1",
             "session_id" => "s",
             "python_module" => "torch",
             "library" => "torch",
             "type_name" => "Tensor",
             "__type_name__" => "Tensor"
           }

    assert Wire.ref?(ref) and Wire.id(ref) == "rankbridge-1"

    assert Wire.decode([ref], ref: fn %{"id" => id} -> {:ok, {:named, id}} end) ==
             {:ok, [{:named, "rankbridge-1"}]}

    assert Wire.decode([ref], ref: fn _ref -> {:error, :gone} end) == {:error, :gone}
    assert Wire.encode({1, self()}, fn pid when is_pid(pid) -> ref end)["elements"] == [1, ref]
    struct = %SnakeBridge.Ref{id: "rankbridge-2"}
    assert Wire.ref?(struct) and Wire.id(struct) == "rankbridge-2"
    refute Wire.ref?(%{"id" => "rankbridge-3"})
    assert_raise ArgumentError, fn -> Wire.encode(self()) end
  end

  test "what is malformed, or of another schema, is told" do
    for wire <- [
          tag("tuple", %{}),
          tag("tuple", %{"elements" => 1}),
          tag("bytes", %{"data" => "no base64"}),
          tag("special_float", %{"value" => "big"}),
          tag("dict", %{"pairs" => [[1]]}),
          tag("date", %{"value" => "yesterday"}),
          tag("datetime", %{"value" => "yesterday"}),
          tag("atom", %{}),
          %{tag("tuple", %{"elements" => []}) | "__schema__" => 2},
          tag("callback", %{"ref_id" => "f"}),
          tag("unheard_of", %{}),
          [self()]
        ] do
      assert {:error, text} = Wire.decode(wire)
      assert is_binary(text)
    end
  end
end
