defmodule RankBridge.Protobuf.Wire do
  @moduledoc false
  # Varints and the splitting of bytes into fields.

  import Bitwise

  alias RankBridge.Protobuf.DecodeError

  @group 3
  @end_group 4
  # As deep as Google's own parsers go.
  @deepest 100

  @typedoc "What is read of a field before its type is known: the varint, or the bytes."
  @type raw :: non_neg_integer() | binary()

  @doc "Deepest nesting of messages and groups that is read; the outermost message is at 0."
  @spec deepest() :: pos_integer()
  def deepest, do: @deepest

  @doc "A whole number from 0 to 2^64 - 1 in groups of seven bits."
  @spec varint(non_neg_integer()) :: byte() | binary()
  def varint(value) when value < 0x80, do: value
  def varint(value) when value < 0x4000, do: <<1::1, value::7, value >>> 7>>
  def varint(value), do: <<1::1, value::7, IO.iodata_to_binary([varint(value >>> 7)])::binary>>

  @doc "Takes a varint off the front."
  @spec take_varint(binary()) :: {non_neg_integer(), binary()}
  def take_varint(<<0::1, value::7, rest::binary>>), do: {value, rest}

  def take_varint(<<1::1, low::7, 0::1, high::7, rest::binary>>),
    do: {high <<< 7 ||| low, rest}

  def take_varint(binary), do: take_varint(binary, 0, 0)

  defp take_varint(<<0::1, value::7, rest::binary>>, gathered, shift) when shift < 63,
    do: {value <<< shift ||| gathered, rest}

  defp take_varint(<<1::1, value::7, rest::binary>>, gathered, shift) when shift < 63,
    do: take_varint(rest, value <<< shift ||| gathered, shift + 7)

  defp take_varint(<<value, rest::binary>>, gathered, 63) when value < 2,
    do: {value <<< 63 ||| gathered, rest}

  defp take_varint(<<>>, _gathered, _shift),
    do: raise(DecodeError, "the input ends inside a varint")

  defp take_varint(_binary, _gathered, _shift),
    do: raise(DecodeError, "a varint of more than 64 bits")

  @doc """
  Takes one field off the front: its number, wire type and raw value.

  `depth` is that of the message that holds the field.
  """
  @spec take_field(binary(), integer()) :: {pos_integer(), 0..5, raw(), binary()}
  def take_field(binary, depth) do
    {number, wire_type, rest} = take_tag(binary)
    {raw, rest} = take_raw(wire_type, number, rest, depth)
    {number, wire_type, raw, rest}
  end

  defp take_tag(binary) do
    {tag, rest} = take_varint(binary)
    if tag >= 0x1_0000_0000, do: raise(DecodeError, "a tag of more than 32 bits")
    if tag >>> 3 == 0, do: raise(DecodeError, "a field of number 0")
    {tag >>> 3, tag &&& 7, rest}
  end

  defp take_raw(0, _number, binary, _depth), do: take_varint(binary)
  defp take_raw(1, _number, <<raw::binary-size(8), rest::binary>>, _depth), do: {raw, rest}
  defp take_raw(5, _number, <<raw::binary-size(4), rest::binary>>, _depth), do: {raw, rest}

  defp take_raw(2, number, binary, _depth) do
    {length, rest} = take_varint(binary)

    case rest do
      <<raw::binary-size(length), rest::binary>> -> {raw, rest}
      _short -> raise DecodeError, ends_inside(number)
    end
  end

  defp take_raw(@group, number, binary, depth) do
    rest = skip_group(binary, number, depth + 1)
    size = byte_size(binary) - byte_size(rest)
    {binary_part(binary, 0, size), rest}
  end

  defp take_raw(wire_type, number, _binary, _depth) when wire_type in [1, 5],
    do: raise(DecodeError, ends_inside(number))

  defp take_raw(@end_group, number, _binary, _depth),
    do: raise(DecodeError, "the end of group #{number} without its start")

  defp take_raw(wire_type, number, _binary, _depth),
    do: raise(DecodeError, "wire type #{wire_type} in field #{number}")

  defp skip_group(_binary, number, depth) when depth > @deepest,
    do: raise(DecodeError, "group #{number} is nested more than #{@deepest} deep")

  defp skip_group(binary, number, depth) do
    case take_tag(binary) do
      {^number, @end_group, rest} ->
        rest

      {inner, wire_type, rest} ->
        {_raw, rest} = take_raw(wire_type, inner, rest, depth)
        skip_group(rest, number, depth)
    end
  end

  defp ends_inside(number), do: "the input ends inside field #{number}"
end
