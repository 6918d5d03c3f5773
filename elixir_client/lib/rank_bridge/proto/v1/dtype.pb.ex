# Generated from rankbridge/v1/dtype.proto by protoc-gen-rankbridge-elixir. Do not edit.

defmodule RankBridge.Proto.V1.Dtype do
  @moduledoc """
  Element type of a tensor. Names and layouts are torch's; elements travel little-endian, in row-major
  order, `Dtype`'s own size each (bool: one byte, 0 or 1; complex: real part, then imaginary part).

  Numbers without a name stay integers.

  ## Values

    * `:DTYPE_UNSPECIFIED` - Not said. Refused wherever a dtype is needed.
    * `:DTYPE_FLOAT32` - IEEE 754 binary32, 4 bytes.
    * `:DTYPE_FLOAT64` - IEEE 754 binary64, 8 bytes.
    * `:DTYPE_FLOAT16` - IEEE 754 binary16, 2 bytes.
    * `:DTYPE_BFLOAT16` - The upper half of a binary32, 2 bytes.
    * `:DTYPE_INT8` - Signed, 1 byte.
    * `:DTYPE_INT16` - Signed, 2 bytes.
    * `:DTYPE_INT32` - Signed, 4 bytes.
    * `:DTYPE_INT64` - Signed, 8 bytes.
    * `:DTYPE_UINT8` - Unsigned, 1 byte.
    * `:DTYPE_UINT16` - Unsigned, 2 bytes.
    * `:DTYPE_UINT32` - Unsigned, 4 bytes.
    * `:DTYPE_UINT64` - Unsigned, 8 bytes.
    * `:DTYPE_BOOL` - One byte: 0 is false, 1 is true.
    * `:DTYPE_COMPLEX64` - Two binary32, 8 bytes.
    * `:DTYPE_COMPLEX128` - Two binary64, 16 bytes.
    * `:DTYPE_FLOAT8_E4M3FN` - 8-bit float, 4 exponent bits, 3 mantissa bits, no infinities.
    * `:DTYPE_FLOAT8_E5M2` - 8-bit float, 5 exponent bits, 2 mantissa bits.
    * `:DTYPE_FLOAT8_E4M3FNUZ` - E4M3 with one zero and a shifted bias, no infinities.
    * `:DTYPE_FLOAT8_E5M2FNUZ` - E5M2 with one zero and a shifted bias, no infinities.
    * `:DTYPE_COMPLEX32` - Two binary16, 4 bytes.
    * `:DTYPE_FLOAT8_E8M0FNU` - 8-bit power of two without sign, as scales of blocks use it.
  """

  @type t ::
          :DTYPE_UNSPECIFIED
          | :DTYPE_FLOAT32
          | :DTYPE_FLOAT64
          | :DTYPE_FLOAT16
          | :DTYPE_BFLOAT16
          | :DTYPE_INT8
          | :DTYPE_INT16
          | :DTYPE_INT32
          | :DTYPE_INT64
          | :DTYPE_UINT8
          | :DTYPE_UINT16
          | :DTYPE_UINT32
          | :DTYPE_UINT64
          | :DTYPE_BOOL
          | :DTYPE_COMPLEX64
          | :DTYPE_COMPLEX128
          | :DTYPE_FLOAT8_E4M3FN
          | :DTYPE_FLOAT8_E5M2
          | :DTYPE_FLOAT8_E4M3FNUZ
          | :DTYPE_FLOAT8_E5M2FNUZ
          | :DTYPE_COMPLEX32
          | :DTYPE_FLOAT8_E8M0FNU
          | integer()

  @doc "The number of each name."
  @spec mapping() :: %{atom() => integer()}
  def mapping do
    %{
      DTYPE_UNSPECIFIED: 0,
      DTYPE_FLOAT32: 1,
      DTYPE_FLOAT64: 2,
      DTYPE_FLOAT16: 3,
      DTYPE_BFLOAT16: 4,
      DTYPE_INT8: 5,
      DTYPE_INT16: 6,
      DTYPE_INT32: 7,
      DTYPE_INT64: 8,
      DTYPE_UINT8: 9,
      DTYPE_UINT16: 10,
      DTYPE_UINT32: 11,
      DTYPE_UINT64: 12,
      DTYPE_BOOL: 13,
      DTYPE_COMPLEX64: 14,
      DTYPE_COMPLEX128: 15,
      DTYPE_FLOAT8_E4M3FN: 16,
      DTYPE_FLOAT8_E5M2: 17,
      DTYPE_FLOAT8_E4M3FNUZ: 18,
      DTYPE_FLOAT8_E5M2FNUZ: 19,
      DTYPE_COMPLEX32: 20,
      DTYPE_FLOAT8_E8M0FNU: 21
    }
  end

  @doc "The number of a name; a number is its own."
  @spec value(t()) :: integer()
  def value(:DTYPE_UNSPECIFIED), do: 0
  def value(:DTYPE_FLOAT32), do: 1
  def value(:DTYPE_FLOAT64), do: 2
  def value(:DTYPE_FLOAT16), do: 3
  def value(:DTYPE_BFLOAT16), do: 4
  def value(:DTYPE_INT8), do: 5
  def value(:DTYPE_INT16), do: 6
  def value(:DTYPE_INT32), do: 7
  def value(:DTYPE_INT64), do: 8
  def value(:DTYPE_UINT8), do: 9
  def value(:DTYPE_UINT16), do: 10
  def value(:DTYPE_UINT32), do: 11
  def value(:DTYPE_UINT64), do: 12
  def value(:DTYPE_BOOL), do: 13
  def value(:DTYPE_COMPLEX64), do: 14
  def value(:DTYPE_COMPLEX128), do: 15
  def value(:DTYPE_FLOAT8_E4M3FN), do: 16
  def value(:DTYPE_FLOAT8_E5M2), do: 17
  def value(:DTYPE_FLOAT8_E4M3FNUZ), do: 18
  def value(:DTYPE_FLOAT8_E5M2FNUZ), do: 19
  def value(:DTYPE_COMPLEX32), do: 20
  def value(:DTYPE_FLOAT8_E8M0FNU), do: 21
  def value(number) when is_integer(number), do: number

  @doc "The name of a number, or the number where it has none."
  @spec key(integer()) :: t()
  def key(0), do: :DTYPE_UNSPECIFIED
  def key(1), do: :DTYPE_FLOAT32
  def key(2), do: :DTYPE_FLOAT64
  def key(3), do: :DTYPE_FLOAT16
  def key(4), do: :DTYPE_BFLOAT16
  def key(5), do: :DTYPE_INT8
  def key(6), do: :DTYPE_INT16
  def key(7), do: :DTYPE_INT32
  def key(8), do: :DTYPE_INT64
  def key(9), do: :DTYPE_UINT8
  def key(10), do: :DTYPE_UINT16
  def key(11), do: :DTYPE_UINT32
  def key(12), do: :DTYPE_UINT64
  def key(13), do: :DTYPE_BOOL
  def key(14), do: :DTYPE_COMPLEX64
  def key(15), do: :DTYPE_COMPLEX128
  def key(16), do: :DTYPE_FLOAT8_E4M3FN
  def key(17), do: :DTYPE_FLOAT8_E5M2
  def key(18), do: :DTYPE_FLOAT8_E4M3FNUZ
  def key(19), do: :DTYPE_FLOAT8_E5M2FNUZ
  def key(20), do: :DTYPE_COMPLEX32
  def key(21), do: :DTYPE_FLOAT8_E8M0FNU
  def key(number) when is_integer(number), do: number
end
