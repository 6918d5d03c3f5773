defmodule RankBridge.ValueTest do
  use ExUnit.Case, async: true

  alias RankBridge.{Error, Ref, Tensor, Value}
  alias RankBridge.Proto.V1

  doctest RankBridge.Value

  @big 2 ** 63

  defp there_and_back(term) do
    {:ok, value} = Value.to_proto(term)
    decoded = V1.Value.decode(V1.Value.encode(value))
    Value.from_proto(decoded)
  end

  test "terms of every kind come back as they were" do
    for term <- [
          nil,
          true,
          false,
          0,
          -1,
          @big - 1,
          -@big,
          @big,
          -@big - 1,
          2 ** 64,
          2 ** 64 - 1,
          -(2 ** 200),
          2 ** 127,
          -(2 ** 127),
          -(2 ** 127) - 1,
          1.5,
          2.0,
          :nan,
          :infinity,
          :negative_infinity,
          "",
          "text",
          "世界",
          <<0xFF, 0>>,
          {:bytes, "ascii"},
          [],
          {},
          %{},
          [1, [2, {3, "x"}]],
          {nil},
          %{1 => "int", 1.0 => "float", "1" => "text", [1] => %{}, nil => {:bytes, ""}},
          %Ref{id: "r", rank: 3, session_id: "s", dtype: :bfloat16, shape: [2, 0], device: "cpu"},
          Tensor.from_list([[1.0, :nan]])
        ] do
      assert {term, there_and_back(term)} === {term, {:ok, term}}
    end
  end

  test "-0.0 keeps its sign" do
    assert {:ok, zero} = there_and_back(-0.0)
    assert <<zero::float>> == <<-0.0::float>>
  end

  test "large integers take as few bytes as two's complement allows, and small ones are no large ones" do
    for {integer, kind} <- [
          {@big, {:big_int, <<0::56, 0x80, 0>>}},
          {-@big - 1, {:big_int, <<0xFF::8, -1::48, 0x7F, 0xFF>>}},
          {2 ** 71 - 1, {:big_int, <<-1::64, 0x7F>>}},
          {-(2 ** 71), {:big_int, <<0::64, 0x80>>}},
          {@big - 1, {:int, @big - 1}}
        ] do
      assert {:ok, %V1.Value{kind: ^kind}} = Value.to_proto(integer)
    end
  end

  test "what cannot come back as it was is refused" do
    deep = Enum.reduce(1..40, [], fn _, inner -> [inner] end)

    for term <- [:atom, {:a, 1}, self(), &is_nil/1, [1 | 2], %URI{}, <<1::3>>, deep] do
      assert {:error, %Error{reason: :invalid_argument}} = Value.to_proto(term)
    end
  end

  test "30 containers inside each other travel" do
    deep = Enum.reduce(1..29, [], fn _, inner -> [inner] end)
    assert there_and_back(deep) == {:ok, deep}
    assert {:error, %Error{}} = Value.to_proto([deep])
  end

  test "values that say nothing, or contradict themselves, are refused" do
    one = %V1.Value{kind: {:int, 1}}
    entry = %V1.MapEntry{key: one, value: one}
    spec = %V1.TensorSpec{dtype: :DTYPE_INT8, shape: [2]}

    for value <- [
          nil,
          %V1.Value{},
          %V1.Value{kind: {:list, %V1.ListValue{items: [%V1.Value{}]}}},
          %V1.Value{kind: {:big_int, ""}},
          %V1.Value{kind: {:map, %V1.MapValue{entries: [entry, entry]}}},
          %V1.Value{kind: {:map, %V1.MapValue{entries: [%V1.MapEntry{value: one}]}}},
          %V1.Value{kind: {:tensor, %V1.Tensor{data: ""}}},
          %V1.Value{kind: {:tensor, %V1.Tensor{spec: spec, data: "x"}}},
          %V1.Value{kind: {:tensor, %V1.Tensor{spec: %{spec | dtype: 99}, data: "xy"}}}
        ] do
      assert {:error, %Error{reason: :protocol}} = Value.from_proto(value)
    end
  end

  test "inspecting a ref is short and says where it lives" do
    ref = %Ref{id: "r7", rank: 3, dtype: :float32, shape: [2, 3]}
    assert inspect(ref) == "#RankBridge.Ref<r7 at rank 3, float32[2, 3]>"
  end
end
