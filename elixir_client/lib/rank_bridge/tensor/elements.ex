defmodule RankBridge.Tensor.Elements do
  @moduledoc false
  # Elements as Elixir terms, and as the bytes that travel: little-endian, one after the other.
  #
  # Integers are integers, bool is true or false, floating-point numbers are floats or `:nan`, `:infinity`,
  # `:negative_infinity`, complex numbers are `{real, imaginary}`.

  alias RankBridge.{Dtype, Protobuf}
  alias RankBridge.Tensor.SmallFloat

  @type real :: integer() | Protobuf.float_value()
  @type element :: boolean() | real() | {real(), real()}

  @integers %{
    int8: -0x80..0x7F,
    int16: -0x8000..0x7FFF,
    int32: -0x8000_0000..0x7FFF_FFFF,
    int64: -0x8000_0000_0000_0000..0x7FFF_FFFF_FFFF_FFFF,
    uint8: 0..0xFF,
    uint16: 0..0xFFFF,
    uint32: 0..0xFFFF_FFFF,
    uint64: 0..0xFFFF_FFFF_FFFF_FFFF
  }

  @complex %{complex32: :float16, complex64: :float32, complex128: :float64}

  @doc "The bytes of elements. Raises ArgumentError for what the dtype cannot hold."
  @spec encode([element()], Dtype.t()) :: binary()
  def encode(elements, dtype) when is_map_key(@integers, dtype) do
    range = Map.fetch!(@integers, dtype)
    bits = 8 * Dtype.size(dtype)
    for element <- elements, into: <<>>, do: integer(element, range, bits, dtype)
  end

  def encode(elements, :bool) do
    for element <- elements, into: <<>> do
      case element do
        true -> <<1>>
        false -> <<0>>
        other -> refuse(other, :bool)
      end
    end
  end

  def encode(elements, dtype) when is_map_key(@complex, dtype) do
    part = Map.fetch!(@complex, dtype)

    for element <- elements, into: <<>> do
      case element do
        {real, imaginary} -> <<float(real, part)::binary, float(imaginary, part)::binary>>
        real -> <<float(real, part)::binary, float(0.0, part)::binary>>
      end
    end
  end

  def encode(elements, dtype), do: for(element <- elements, into: <<>>, do: float(element, dtype))

  defp integer(element, range, bits, dtype) do
    if is_integer(element) and element in range,
      do: <<element::little-size(bits)>>,
      else: refuse(element, dtype)
  end

  defp float(element, dtype)
       when not is_number(element) and element not in [:nan, :infinity, :negative_infinity],
       do: refuse(element, dtype)

  defp float(element, :float64), do: double(element)
  defp float(element, :float32), do: single(element)

  defp float(element, dtype) do
    bits = SmallFloat.bits(dtype)
    <<SmallFloat.encode(dtype, element)::little-size(bits)>>
  end

  defp double(:nan), do: <<0::48, 0xF8, 0x7F>>
  defp double(:infinity), do: <<0::48, 0xF0, 0x7F>>
  defp double(:negative_infinity), do: <<0::48, 0xF0, 0xFF>>
  defp double(value), do: <<value::little-float-64>>

  defp single(:nan), do: <<0::16, 0xC0, 0x7F>>
  defp single(:infinity), do: <<0::16, 0x80, 0x7F>>
  defp single(:negative_infinity), do: <<0::16, 0x80, 0xFF>>

  defp single(value) do
    <<value::little-float-32>>
  rescue
    _too_large in ArgumentError -> single(SmallFloat.single(value * 1.0))
  end

  @doc "The elements of bytes, whose length is a multiple of the dtype's size."
  @spec decode(binary(), Dtype.t()) :: [element()]
  def decode(binary, dtype) when is_map_key(@integers, dtype) do
    bits = 8 * Dtype.size(dtype)

    if Map.fetch!(@integers, dtype).first < 0,
      do: for(<<element::little-signed-size(bits) <- binary>>, do: element),
      else: for(<<element::little-unsigned-size(bits) <- binary>>, do: element)
  end

  def decode(binary, :bool), do: for(<<element::8 <- binary>>, do: element != 0)

  def decode(binary, dtype) when is_map_key(@complex, dtype) do
    part = Map.fetch!(@complex, dtype)
    binary |> decode(part) |> Enum.chunk_every(2) |> Enum.map(&List.to_tuple/1)
  end

  # Patterns of floats do not match NaN and the infinities, so the bits are taken first.
  def decode(binary, :float64),
    do: for(<<bits::binary-size(8) <- binary>>, do: decode_double(bits))

  def decode(binary, :float32),
    do: for(<<bits::binary-size(4) <- binary>>, do: decode_single(bits))

  def decode(binary, dtype) do
    bits = SmallFloat.bits(dtype)
    for <<code::little-size(bits) <- binary>>, do: SmallFloat.decode(dtype, code)
  end

  defp decode_double(<<value::little-float-64>>), do: value
  defp decode_double(<<0::48, 0xF0, 0x7F>>), do: :infinity
  defp decode_double(<<0::48, 0xF0, 0xFF>>), do: :negative_infinity
  defp decode_double(_nan), do: :nan

  defp decode_single(<<value::little-float-32>>), do: value
  defp decode_single(<<0::16, 0x80, 0x7F>>), do: :infinity
  defp decode_single(<<0::16, 0x80, 0xFF>>), do: :negative_infinity
  defp decode_single(_nan), do: :nan

  @spec refuse(term(), Dtype.t()) :: no_return()
  defp refuse(element, dtype) do
    raise ArgumentError, "not a #{dtype}: #{inspect(element, limit: 5, printable_limit: 40)}"
  end
end
