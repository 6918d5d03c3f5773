defmodule RankBridge.TensorTest do
  use ExUnit.Case, async: true

  alias RankBridge.{Dtype, Error, Tensor}
  alias RankBridge.Tensor.Elements
  alias RankBridge.Test.{PlainForm, Vectors}

  doctest RankBridge.Tensor
  doctest RankBridge.Dtype

  defmodule Foreign do
    defstruct [:type, :shape, :bytes]
    def to_binary(%__MODULE__{bytes: bytes}), do: bytes
  end

  for line <- Vectors.lines("dtypes.jsonl"), line["values"] do
    test "#{line["dtype"]} rounds and travels as in torch" do
      line = unquote(Macro.escape(line))
      dtype = String.to_existing_atom(line["dtype"])
      values = Enum.map(line["values"], &number/1)
      bytes = Base.decode64!(line["b64"])

      for {value, index} <- Enum.with_index(values) do
        size = Dtype.size(dtype)
        expected = binary_part(bytes, index * size, size)
        [reference] = Elements.decode(expected, dtype)

        # A NaN has many codes; any of them will do.
        unless reference == :nan do
          assert {value, Elements.encode([value], dtype)} == {value, expected}
        end
      end

      encoded = values |> Elements.encode(dtype) |> Elements.decode(dtype)
      assert encoded == Elements.decode(bytes, dtype)
    end
  end

  for line <- Vectors.lines("dtypes.jsonl") do
    kind = if line["values"], do: "numbers", else: "every byte"

    test "#{line["dtype"]} is read as in torch (#{kind})" do
      line = unquote(Macro.escape(line))
      dtype = String.to_existing_atom(line["dtype"])
      elements = Elements.decode(Base.decode64!(line["b64"]), dtype)
      assert Enum.map(elements, &plain/1) == line["decoded"]
    end
  end

  test "every dtype has a name on the wire, and the wire no others" do
    names = Enum.map(Dtype.all(), &Dtype.to_proto/1)
    known = Map.keys(RankBridge.Proto.V1.Dtype.mapping()) -- [:DTYPE_UNSPECIFIED]
    assert Enum.sort(names) == Enum.sort(known)

    for dtype <- Dtype.all(),
        do: assert(dtype |> Dtype.to_proto() |> Dtype.from_proto() == {:ok, dtype})

    assert Dtype.from_proto(:DTYPE_UNSPECIFIED) == :error
    assert Dtype.from_proto(999) == :error
  end

  test "lists of any nesting come back" do
    for list <- [[[1, 2, 3], [4, 5, 6]], [[[1]], [[2]]], [], [[], []], 7, [[[], []]]] do
      tensor = Tensor.from_list(list, :int32)
      assert Tensor.to_list(tensor) == list
      assert IO.iodata_length(tensor.data) == Tensor.byte_size(:int32, tensor.shape)
    end
  end

  test "the default dtype is torch's" do
    for {list, dtype} <- [
          {[1, 2], :int64},
          {[1, 2.0], :float32},
          {[true], :bool},
          {[{1.0, 2.0}, 3.0], :complex64},
          {[:nan], :float32},
          {[], :float32}
        ] do
      assert {list, Tensor.from_list(list).dtype} == {list, dtype}
    end
  end

  test "what a dtype cannot hold is refused, and so are ragged lists" do
    for {list, dtype} <- [
          {[128], :int8},
          {[-1], :uint64},
          {[1.0], :int32},
          {[2], :bool},
          {["1"], :float32},
          {[:inf], :bfloat16},
          {[[1, 2], [3]], :int32},
          {[1, [2]], :int32},
          {[1], :float128}
        ] do
      assert_raise ArgumentError, fn -> Tensor.from_list(list, dtype) end
    end
  end

  test "data that does not fit dtype and shape is refused with both sizes" do
    assert {:error, %Error{reason: :invalid_argument, expected: "8 bytes", got: "7 bytes"}} =
             Tensor.new(:float32, [2], <<0::56>>)

    assert {:error, %Error{reason: :unsupported_dtype}} = Tensor.new(:float33, [2], "")
    assert {:error, %Error{reason: :invalid_argument}} = Tensor.new(:int8, [-1], "")
    assert {:error, %Error{reason: :invalid_argument}} = Tensor.new(:int8, [1], [300])
    assert_raise Error, fn -> Tensor.new!(:int8, [2], "x") end
  end

  test "iodata is as good as a binary" do
    assert {:ok, tensor} = Tensor.new(:uint8, [3], ["a", [?b], "c"])
    assert Tensor.to_list(tensor) == [97, 98, 99]
  end

  test "the tensor of another library is taken by its type, shape and bytes" do
    foreign = %Foreign{type: {:bf, 16}, shape: {1, 2}, bytes: <<0x3F80::little-16, 0::16>>}
    assert {:ok, tensor} = Tensor.coerce(foreign)

    assert {tensor.dtype, tensor.shape, Tensor.to_list(tensor)} ==
             {:bfloat16, [1, 2], [[1.0, 0.0]]}

    assert {:error, %Error{reason: :unsupported_dtype}} =
             Tensor.coerce(%{foreign | type: {:f, 4}})

    assert {:error, %Error{reason: :invalid_argument}} = Tensor.coerce(%URI{})
    assert {:error, %Error{reason: :invalid_argument}} = Tensor.coerce("abc")
    assert {:error, %Error{reason: :invalid_argument}} = Tensor.coerce([[1], 2])
  end

  test "inspecting shows dtype and shape, not the elements" do
    assert inspect(Tensor.from_list([[1.0, 2.0]])) == "#RankBridge.Tensor<float32[1, 2]>"
  end

  defp number([real, imaginary]), do: {number(real), number(imaginary)}

  defp number(%{"f64" => _hex} = plain) do
    %{start: value} = PlainForm.from_plain(RankBridge.Proto.V1.Arange, %{"start" => plain})
    value
  end

  defp number(other), do: other

  defp plain({real, imaginary}), do: [plain(real), plain(imaginary)]
  defp plain(value) when is_boolean(value) or is_integer(value), do: value
  defp plain(value), do: PlainForm.float_to_plain(value)
end
