defmodule RankBridge.Protobuf.Encode do
  @moduledoc false
  # Fields to bytes. Called by generated modules, with a tag (field number and wire type), a type and a value.

  import Bitwise

  alias RankBridge.Protobuf
  alias RankBridge.Protobuf.{EncodeError, Wire}

  @typedoc "A field type as generated modules name it."
  @type type :: atom() | {:enum, module()} | {:message, module()}

  @typedoc "Field number times 8, plus wire type."
  @type tag :: pos_integer()

  @int32 -0x8000_0000..0x7FFF_FFFF
  @int64 -0x8000_0000_0000_0000..0x7FFF_FFFF_FFFF_FFFF
  @uint32 0..0xFFFF_FFFF
  @uint64 0..0xFFFF_FFFF_FFFF_FFFF

  @doc "A plain proto3 field: left out at its default."
  @spec implicit(tag(), type(), term()) :: iodata()
  def implicit(tag, type, value) do
    if default?(type, value), do: [], else: always(tag, type, value)
  end

  @doc "A field with presence: left out when nil."
  @spec optional(tag(), type(), term()) :: iodata()
  def optional(_tag, _type, nil), do: []
  def optional(tag, type, value), do: always(tag, type, value)

  @doc "A field that is written whatever its value is."
  @spec always(tag(), type(), term()) :: iodata()
  def always(tag, type, value), do: [Wire.varint(tag), value(type, value)]

  @doc "A list, one field for each element."
  @spec repeated(tag(), type(), list()) :: iodata()
  def repeated(tag, type, values), do: Enum.map(values, &always(tag, type, &1))

  @doc "A list of numbers as one run of bytes; left out when empty."
  @spec packed(tag(), type(), list()) :: iodata()
  def packed(_tag, _type, []), do: []

  def packed(tag, type, values) do
    [Wire.varint(tag), delimited(Enum.map(values, &value(type, &1)))]
  end

  @doc "Fields that their message does not declare, as they came."
  @spec unknown([Protobuf.unknown_field()]) :: iodata()
  def unknown(fields) do
    for {number, wire_type, raw} <- fields do
      [Wire.varint(number <<< 3 ||| wire_type), unknown_value(wire_type, raw)]
    end
  end

  defp unknown_value(0, varint), do: Wire.varint(varint)
  defp unknown_value(2, bytes), do: delimited(bytes)
  defp unknown_value(_wire_type, bytes), do: bytes

  # -0.0 equals 0.0 and yet is not the default.
  defp default?(type, value) when type in [:double, :float] and is_float(value),
    do: <<value::float>> == <<0::64>>

  defp default?(:string, value), do: value == ""
  defp default?(:bytes, value), do: value == "" or (is_list(value) and length_of(value) == 0)
  defp default?(:bool, value), do: value == false
  defp default?({:enum, module}, value), do: enum(module, value) == 0
  defp default?(_number, value), do: value == 0

  defp value(:uint32, value) when value in @uint32, do: Wire.varint(value)
  defp value(:uint64, value) when value in @uint64, do: Wire.varint(value)
  defp value(:int32, value) when value in @int32, do: signed(value)
  defp value(:int64, value) when value in @int64, do: signed(value)
  defp value(:sint32, value) when value in @int32, do: zigzag(value)
  defp value(:sint64, value) when value in @int64, do: zigzag(value)
  defp value(:fixed32, value) when value in @uint32, do: <<value::little-32>>
  defp value(:fixed64, value) when value in @uint64, do: <<value::little-64>>
  defp value(:sfixed32, value) when value in @int32, do: <<value::little-32>>
  defp value(:sfixed64, value) when value in @int64, do: <<value::little-64>>
  defp value(:bool, true), do: 1
  defp value(:bool, false), do: 0
  defp value(:double, value), do: double(value)
  defp value(:float, value), do: single(value)
  defp value({:enum, module}, value), do: signed(enum(module, value))

  defp value({:message, module}, %module{} = message),
    do: delimited(module.encode_to_iodata(message))

  defp value(:string, value) when is_binary(value) do
    unless String.valid?(value), do: refuse(:string, value)
    [Wire.varint(byte_size(value)), value]
  end

  defp value(:bytes, value) when is_binary(value) or is_list(value),
    do: [Wire.varint(length_of(value)), value]

  defp value(type, value), do: refuse(type, value)

  defp delimited(iodata), do: [Wire.varint(IO.iodata_length(iodata)), iodata]

  defp length_of(bytes) do
    IO.iodata_length(bytes)
  rescue
    ArgumentError -> refuse(:bytes, bytes)
  end

  defp signed(value) when value < 0, do: Wire.varint(value + 0x1_0000_0000_0000_0000)
  defp signed(value), do: Wire.varint(value)

  defp zigzag(value) when value < 0, do: Wire.varint(-2 * value - 1)
  defp zigzag(value), do: Wire.varint(2 * value)

  defp enum(module, name) when is_atom(name) do
    module.value(name)
  rescue
    FunctionClauseError -> refuse({:enum, module}, name)
  end

  defp enum(_module, number) when number in @int32, do: number
  defp enum(module, other), do: refuse({:enum, module}, other)

  defp double(:nan), do: <<0, 0, 0, 0, 0, 0, 0xF8, 0x7F>>
  defp double(:infinity), do: <<0, 0, 0, 0, 0, 0, 0xF0, 0x7F>>
  defp double(:negative_infinity), do: <<0, 0, 0, 0, 0, 0, 0xF0, 0xFF>>

  defp double(value) do
    <<value::little-float-64>>
  rescue
    ArgumentError -> refuse(:double, value)
  end

  defp single(:nan), do: <<0, 0, 0xC0, 0x7F>>
  defp single(:infinity), do: <<0, 0, 0x80, 0x7F>>
  defp single(:negative_infinity), do: <<0, 0, 0x80, 0xFF>>

  defp single(value) do
    <<value::little-float-32>>
  rescue
    ArgumentError -> refuse(:float, value)
  end

  @spec refuse(type(), term()) :: no_return()
  defp refuse(type, value), do: raise(EncodeError, {type, value})
end
