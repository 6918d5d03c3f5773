defmodule RankBridge.Dtype do
  @moduledoc """
  Element types of tensors, by torch's names: `:float32`, `:bfloat16`, `:int64`, `:bool`, `:complex64`, ...

      iex> RankBridge.Dtype.size(:bfloat16)
      2
      iex> RankBridge.Dtype.from_nx({:bf, 16})
      {:ok, :bfloat16}
  """

  alias RankBridge.Proto.V1

  @type t ::
          :float32
          | :float64
          | :float16
          | :bfloat16
          | :int8
          | :int16
          | :int32
          | :int64
          | :uint8
          | :uint16
          | :uint32
          | :uint64
          | :bool
          | :complex64
          | :complex128
          | :float8_e4m3fn
          | :float8_e5m2
          | :float8_e4m3fnuz
          | :float8_e5m2fnuz
          | :complex32
          | :float8_e8m0fnu

  # Name, bytes of one element, name on the wire, type in Nx (nil: Nx has none).
  @table [
    {:float32, 4, :DTYPE_FLOAT32, {:f, 32}},
    {:float64, 8, :DTYPE_FLOAT64, {:f, 64}},
    {:float16, 2, :DTYPE_FLOAT16, {:f, 16}},
    {:bfloat16, 2, :DTYPE_BFLOAT16, {:bf, 16}},
    {:int8, 1, :DTYPE_INT8, {:s, 8}},
    {:int16, 2, :DTYPE_INT16, {:s, 16}},
    {:int32, 4, :DTYPE_INT32, {:s, 32}},
    {:int64, 8, :DTYPE_INT64, {:s, 64}},
    {:uint8, 1, :DTYPE_UINT8, {:u, 8}},
    {:uint16, 2, :DTYPE_UINT16, {:u, 16}},
    {:uint32, 4, :DTYPE_UINT32, {:u, 32}},
    {:uint64, 8, :DTYPE_UINT64, {:u, 64}},
    {:bool, 1, :DTYPE_BOOL, nil},
    {:complex64, 8, :DTYPE_COMPLEX64, {:c, 64}},
    {:complex128, 16, :DTYPE_COMPLEX128, {:c, 128}},
    {:float8_e4m3fn, 1, :DTYPE_FLOAT8_E4M3FN, {:f8_e4m3fn, 8}},
    {:float8_e5m2, 1, :DTYPE_FLOAT8_E5M2, {:f, 8}},
    {:float8_e4m3fnuz, 1, :DTYPE_FLOAT8_E4M3FNUZ, nil},
    {:float8_e5m2fnuz, 1, :DTYPE_FLOAT8_E5M2FNUZ, nil},
    {:complex32, 4, :DTYPE_COMPLEX32, nil},
    {:float8_e8m0fnu, 1, :DTYPE_FLOAT8_E8M0FNU, nil}
  ]

  @doc "Every dtype."
  @spec all() :: [t()]
  def all, do: unquote(Enum.map(@table, &elem(&1, 0)))

  @doc "Whether a term is a dtype."
  @spec valid?(term()) :: boolean()
  def valid?(dtype), do: dtype in all()

  @doc "Bytes of one element."
  @spec size(t()) :: pos_integer()
  for {dtype, size, _proto, _nx} <- @table do
    def size(unquote(dtype)), do: unquote(size)
  end

  @doc "Name on the wire."
  @spec to_proto(t()) :: V1.Dtype.t()
  for {dtype, _size, proto, _nx} <- @table do
    def to_proto(unquote(dtype)), do: unquote(proto)
  end

  @doc "Type in Nx, or nil where Nx has none."
  @spec to_nx(t()) :: {atom(), pos_integer()} | nil
  for {dtype, _size, _proto, nx} <- @table do
    def to_nx(unquote(dtype)), do: unquote(nx)
  end

  @doc "The dtype of a name on the wire, or `:error`."
  @spec from_proto(V1.Dtype.t()) :: {:ok, t()} | :error
  for {dtype, _size, proto, _nx} <- @table do
    def from_proto(unquote(proto)), do: {:ok, unquote(dtype)}
  end

  def from_proto(_other), do: :error

  @doc "The dtype of a type in Nx, or `:error`."
  @spec from_nx(term()) :: {:ok, t()} | :error
  for {dtype, _size, _proto, nx} <- @table, nx do
    def from_nx(unquote(nx)), do: {:ok, unquote(dtype)}
  end

  def from_nx(_other), do: :error
end
