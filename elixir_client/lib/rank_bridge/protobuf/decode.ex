defmodule RankBridge.Protobuf.Decode do
  @moduledoc false
  # Bytes to fields. Called by generated modules.

  import Bitwise

  alias RankBridge.Protobuf.{DecodeError, Encode, Wire}

  # Bytes of a text that is copied rather than kept as a part of the message that it came in.
  @small 1_024

  @doc """
  A message from its bytes, merged into `held` when there was one already, as the format wants it.

  `depth` is that of the message around it: -1 for the outermost.
  """
  @spec message(module(), struct() | nil, binary(), integer()) :: struct()
  def message(module, held, raw, depth) do
    if depth >= Wire.deepest() do
      raise DecodeError, "messages are nested more than #{Wire.deepest()} deep"
    end

    start = if held, do: module.__flip__(held), else: module.__struct__()
    fields(raw, module, start, depth + 1)
  end

  defp fields(<<>>, module, message, _depth), do: module.__flip__(message)

  defp fields(binary, module, message, depth) do
    {number, wire_type, raw, rest} = Wire.take_field(binary, depth)
    fields(rest, module, module.__put__(message, number, wire_type, raw, depth), depth)
  end

  @doc "What a oneof holds if it holds this field, else nil."
  @spec held({atom(), term()} | nil, atom()) :: term()
  def held({field, value}, field), do: value
  def held(_other, _field), do: nil

  @doc "Adds the elements of a packed list, in reverse, to the front of a list."
  @spec packed(Encode.type(), binary(), list()) :: list()
  def packed(_type, <<>>, gathered), do: gathered

  def packed(type, binary, gathered) do
    {raw, rest} = take_element(type, binary)
    packed(type, rest, [value(type, raw) | gathered])
  end

  defp take_element(type, binary) when type in [:double, :fixed64, :sfixed64],
    do: take_bytes(8, binary)

  defp take_element(type, binary) when type in [:float, :fixed32, :sfixed32],
    do: take_bytes(4, binary)

  defp take_element(_type, binary), do: Wire.take_varint(binary)

  defp take_bytes(size, binary) do
    case binary do
      <<raw::binary-size(size), rest::binary>> -> {raw, rest}
      _short -> raise DecodeError, "the input ends inside a packed list"
    end
  end

  @doc "The value of one element. Varints that are too large for their type lose their upper bits."
  @spec value(Encode.type(), Wire.raw()) :: term()
  def value(:string, raw) do
    unless String.valid?(raw), do: raise(DecodeError, "text that is not UTF-8")

    # What is kept of a response, as the id of a ref, does not keep all of it.
    if byte_size(raw) <= @small and :binary.referenced_byte_size(raw) > 4 * byte_size(raw),
      do: :binary.copy(raw),
      else: raw
  end

  def value(:bytes, raw), do: raw
  def value(:bool, raw), do: raw != 0
  def value(:uint64, raw), do: raw
  def value(:uint32, raw), do: raw &&& 0xFFFF_FFFF
  def value(:int64, raw), do: signed64(raw)
  def value(:int32, raw), do: signed32(raw)
  def value(:sint64, raw), do: zigzag(raw)
  def value(:sint32, raw), do: zigzag(raw &&& 0xFFFF_FFFF)
  def value({:enum, module}, raw), do: module.key(signed32(raw))
  def value(:fixed64, <<value::little-64>>), do: value
  def value(:fixed32, <<value::little-32>>), do: value
  def value(:sfixed64, <<value::little-signed-64>>), do: value
  def value(:sfixed32, <<value::little-signed-32>>), do: value
  def value(:double, <<value::little-float-64>>), do: value
  def value(:double, <<0::48, 0xF0, 0x7F>>), do: :infinity
  def value(:double, <<0::48, 0xF0, 0xFF>>), do: :negative_infinity
  def value(:double, <<_nan::64>>), do: :nan
  def value(:float, <<value::little-float-32>>), do: value
  def value(:float, <<0::16, 0x80, 0x7F>>), do: :infinity
  def value(:float, <<0::16, 0x80, 0xFF>>), do: :negative_infinity
  def value(:float, <<_nan::32>>), do: :nan

  defp signed64(raw) when raw >= 0x8000_0000_0000_0000, do: raw - 0x1_0000_0000_0000_0000
  defp signed64(raw), do: raw

  defp signed32(raw) do
    case raw &&& 0xFFFF_FFFF do
      low when low >= 0x8000_0000 -> low - 0x1_0000_0000
      low -> low
    end
  end

  defp zigzag(raw), do: bxor(raw >>> 1, -(raw &&& 1))
end
