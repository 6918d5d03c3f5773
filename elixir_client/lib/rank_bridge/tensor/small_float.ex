defmodule RankBridge.Tensor.SmallFloat do
  @moduledoc false
  # Floating-point numbers of 8 and 16 bits, which binaries cannot hold: their bits to floats and back.
  #
  # Rounding is that of torch 2.13: to binary32 first, then to the nearest of the format, ties to even. What is too
  # large, infinities included, becomes infinity; in formats that have none NaN, but in `:float8_e4m3fn` the largest
  # number.

  import Bitwise

  alias RankBridge.Protobuf

  # Exponent bits, mantissa bits, bias, and what the codes beyond the finite numbers mean:
  # ieee: infinity and NaNs; fn: no infinity, NaN has all bits set; fnuz: no infinity, NaN is where -0 would be.
  @formats %{
    float16: {5, 10, 15, :ieee},
    bfloat16: {8, 7, 127, :ieee},
    float8_e4m3fn: {4, 3, 7, :fn},
    float8_e5m2: {5, 2, 15, :ieee},
    float8_e4m3fnuz: {4, 3, 8, :fnuz},
    float8_e5m2fnuz: {5, 2, 16, :fnuz}
  }

  @type format ::
          :float16
          | :bfloat16
          | :float8_e4m3fn
          | :float8_e5m2
          | :float8_e4m3fnuz
          | :float8_e5m2fnuz
          | :float8_e8m0fnu

  @doc "Bits of one number: 8 or 16."
  @spec bits(format()) :: 8 | 16
  def bits(format) when format in [:float16, :bfloat16], do: 16
  def bits(_format), do: 8

  @doc "The number that a code stands for."
  @spec decode(format(), non_neg_integer()) :: Protobuf.float_value()
  def decode(:float8_e8m0fnu, 0xFF), do: :nan
  def decode(:float8_e8m0fnu, code), do: :math.pow(2.0, code - 127)

  def decode(format, code) do
    {exponent_bits, mantissa_bits, bias, style} = Map.fetch!(@formats, format)
    magnitude_bits = exponent_bits + mantissa_bits
    negative? = code >>> magnitude_bits == 1
    magnitude = code &&& (1 <<< magnitude_bits) - 1
    exponent = magnitude >>> mantissa_bits
    fraction = magnitude &&& (1 <<< mantissa_bits) - 1

    cond do
      special = special(style, negative?, magnitude, top(exponent_bits, mantissa_bits)) -> special
      exponent == 0 -> signed(negative?, fraction * :math.pow(2.0, 1 - bias - mantissa_bits))
      true -> signed(negative?, normal(exponent, fraction, bias, mantissa_bits))
    end
  end

  defp normal(exponent, fraction, bias, mantissa_bits),
    do: (fraction + (1 <<< mantissa_bits)) * :math.pow(2.0, exponent - bias - mantissa_bits)

  # The magnitude of infinity in ieee formats.
  defp top(exponent_bits, mantissa_bits), do: ((1 <<< exponent_bits) - 1) <<< mantissa_bits

  defp special(:ieee, false, top, top), do: :infinity
  defp special(:ieee, true, top, top), do: :negative_infinity
  defp special(:ieee, _negative?, magnitude, top) when magnitude > top, do: :nan
  defp special(:fn, _negative?, 0x7F, _top), do: :nan
  defp special(:fnuz, true, 0, _top), do: :nan
  defp special(_style, _negative?, _magnitude, _top), do: nil

  # Unary minus would lose the sign of zero.
  defp signed(true, value), do: value * -1.0
  defp signed(false, value), do: value

  @doc "The code of the number nearest to a value."
  @spec encode(format(), number() | Protobuf.float_value()) :: non_neg_integer()
  def encode(format, value) when is_integer(value), do: encode(format, value * 1.0)
  def encode(format, :nan), do: nan(format)
  def encode(:float8_e8m0fnu, value) when is_atom(value), do: 0xFF
  def encode(format, :infinity), do: overflow(format, 0)
  def encode(format, :negative_infinity), do: overflow(format, 1)

  def encode(format, value) do
    case single(value) do
      value when is_float(value) -> finite(format, value)
      infinity -> encode(format, infinity)
    end
  end

  @doc "A float as binary32 holds it, as a float or an infinity."
  @spec single(float()) :: Protobuf.float_value()
  def single(value) do
    <<rounded::float-32>> = <<value::float-32>>
    rounded
  rescue
    _too_large in [ArgumentError, MatchError] ->
      if value > 0, do: :infinity, else: :negative_infinity
  end

  defp finite(:float8_e8m0fnu, value) do
    <<_sign::1, exponent::8, fraction::23>> = <<value::float-32>>
    guard? = fraction >= 0x40_0000
    rest? = (fraction &&& 0x3F_FFFF) > 0
    if guard? and (rest? or exponent > 0), do: min(exponent + 1, 0xFF), else: exponent
  end

  defp finite(format, value) do
    {exponent_bits, mantissa_bits, bias, style} = Map.fetch!(@formats, format)
    <<sign::1, exponent::11, fraction::52>> = <<value::float>>
    # The value is `significand * 2^(place - 52)`, and its leading bit is worth `2^place`.
    {place, significand} =
      if exponent == 0, do: {-1022, fraction}, else: {exponent - 1023, fraction + (1 <<< 52)}

    lowest = 1 - bias
    binade = max(place, lowest)
    # Units of the format's last place in this binade.
    units = round_half_even(significand, 52 - mantissa_bits + binade - place)
    magnitude = ((binade - lowest) <<< mantissa_bits) + units

    cond do
      magnitude >= limit(style, exponent_bits, mantissa_bits) -> overflow(format, sign)
      magnitude == 0 and style == :fnuz -> 0
      true -> sign <<< (exponent_bits + mantissa_bits) ||| magnitude
    end
  end

  # The first magnitude that is no finite number.
  defp limit(:ieee, exponent_bits, mantissa_bits), do: top(exponent_bits, mantissa_bits)
  defp limit(:fn, _exponent_bits, _mantissa_bits), do: 0x7F
  defp limit(:fnuz, _exponent_bits, _mantissa_bits), do: 0x80

  defp overflow(format, sign) do
    {exponent_bits, mantissa_bits, _bias, style} = Map.fetch!(@formats, format)

    case style do
      :ieee -> sign <<< (exponent_bits + mantissa_bits) ||| top(exponent_bits, mantissa_bits)
      :fn -> sign <<< 7 ||| 0x7E
      :fnuz -> 0x80
    end
  end

  defp nan(:float16), do: 0x7E00
  defp nan(:bfloat16), do: 0x7FC0
  defp nan(:float8_e4m3fn), do: 0x7F
  defp nan(:float8_e5m2), do: 0x7F
  defp nan(:float8_e8m0fnu), do: 0xFF
  defp nan(_fnuz), do: 0x80

  # Less than half of the last place.
  defp round_half_even(_significand, shift) when shift > 54, do: 0

  defp round_half_even(significand, shift) do
    half = 1 <<< (shift - 1)
    quotient = significand >>> shift
    remainder = significand &&& (1 <<< shift) - 1

    cond do
      remainder > half -> quotient + 1
      remainder == half -> quotient + (quotient &&& 1)
      true -> quotient
    end
  end
end
