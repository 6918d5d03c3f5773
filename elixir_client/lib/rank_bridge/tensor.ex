defmodule RankBridge.Tensor do
  @moduledoc """
  A tensor by value: dtype, shape, and the bytes of its elements, little-endian and in row-major order.

  `data` may be iodata; its length is always the product of the shape times the element size.

      iex> tensor = RankBridge.Tensor.from_list([[1.0, 2.0], [3.0, :nan]])
      iex> {tensor.dtype, tensor.shape}
      {:float32, [2, 2]}
      iex> RankBridge.Tensor.to_list(tensor)
      [[1.0, 2.0], [3.0, :nan]]
  """

  alias RankBridge.{Dtype, Error}
  alias RankBridge.Tensor.Elements

  @type shape :: [non_neg_integer()]

  @type t :: %__MODULE__{dtype: Dtype.t(), shape: shape(), data: iodata()}

  @typedoc "A number, or lists of them inside each other, all of one length at each level."
  @type nested :: Elements.element() | [nested()]

  @typedoc "What `coerce/1` takes."
  @type like :: t() | nested() | struct()

  @enforce_keys [:dtype, :shape, :data]
  defstruct [:dtype, :shape, :data]

  @doc "A tensor of bytes. The error says what does not fit."
  @spec new(Dtype.t(), shape(), iodata()) :: {:ok, t()} | {:error, Error.t()}
  def new(dtype, shape, data) do
    with :ok <- check(dtype, shape), {:ok, got} <- length_of(data) do
      expected = byte_size(dtype, shape)

      if got == expected do
        {:ok, %__MODULE__{dtype: dtype, shape: shape, data: data}}
      else
        {:error,
         Error.refusal(:invalid_argument, "the data does not fit #{describe(dtype, shape)}",
           expected: "#{expected} bytes",
           got: "#{got} bytes"
         )}
      end
    end
  end

  @doc "As `new/3`; raises the error."
  @spec new!(Dtype.t(), shape(), iodata()) :: t()
  def new!(dtype, shape, data) do
    case new(dtype, shape, data) do
      {:ok, tensor} -> tensor
      {:error, error} -> raise error
    end
  end

  @doc "Checks a dtype and a shape."
  @spec check(term(), term()) :: :ok | {:error, Error.t()}
  def check(dtype, shape) do
    cond do
      not Dtype.valid?(dtype) ->
        {:error, Error.refusal(:unsupported_dtype, "no such dtype: #{inspect(dtype)}")}

      not (is_list(shape) and
               Enum.all?(shape, &(is_integer(&1) and &1 in 0..0x7FFF_FFFF_FFFF_FFFF))) ->
        {:error, Error.refusal(:invalid_argument, "not a shape: #{inspect(shape, limit: 10)}")}

      true ->
        :ok
    end
  end

  @doc "Bytes that the elements of a dtype and shape take."
  @spec byte_size(Dtype.t(), shape()) :: non_neg_integer()
  def byte_size(dtype, shape), do: Enum.product(shape) * Dtype.size(dtype)

  @doc "The data as one binary."
  @spec to_binary(t()) :: binary()
  def to_binary(%__MODULE__{data: data}), do: IO.iodata_to_binary(data)

  @doc """
  A tensor of a number, or of lists of numbers inside each other.

  Integers are integers, elements of dtype `:bool` are true or false, floating-point numbers are floats or `:nan`,
  `:infinity`, `:negative_infinity`, and complex numbers are `{real, imaginary}`.

  The default dtype is torch's: `:int64` if all are integers, `:bool` if all are booleans, `:complex64` if any is
  complex, else `:float32`. Raises ArgumentError for ragged lists and for elements that the dtype cannot hold.
  """
  @spec from_list(nested(), Dtype.t() | nil) :: t()
  def from_list(list, dtype \\ nil) do
    shape = shape_of(list)
    elements = flatten(list, shape)
    dtype = dtype || default_dtype(elements)
    unless Dtype.valid?(dtype), do: raise(ArgumentError, "no such dtype: #{inspect(dtype)}")
    %__MODULE__{dtype: dtype, shape: shape, data: Elements.encode(elements, dtype)}
  end

  defp shape_of([first | _rest] = list), do: [length(list) | shape_of(first)]
  defp shape_of([]), do: [0]
  defp shape_of(_element), do: []

  defp flatten(element, []) when not is_list(element), do: [element]

  defp flatten(list, [size | inner]) when is_list(list) and length(list) == size,
    do: Enum.flat_map(list, &flatten(&1, inner))

  defp flatten(other, shape) do
    got = if is_list(other), do: "#{length(other)} elements", else: inspect(other)
    raise ArgumentError, "a ragged list: expected #{inspect(shape)} inside, got #{got}"
  end

  defp default_dtype(elements) do
    cond do
      elements == [] -> :float32
      Enum.all?(elements, &is_boolean/1) -> :bool
      Enum.all?(elements, &is_integer/1) -> :int64
      Enum.any?(elements, &is_tuple/1) -> :complex64
      true -> :float32
    end
  end

  @doc "The elements as lists inside each other, or as one element for a tensor without dimensions."
  @spec to_list(t()) :: nested()
  def to_list(%__MODULE__{} = tensor) do
    elements = tensor |> to_binary() |> Elements.decode(tensor.dtype)
    nest(elements, tensor.shape)
  end

  defp nest([element], []), do: element
  defp nest(elements, [_size]), do: elements

  defp nest(elements, [size | inner]) do
    case Enum.product(inner) do
      0 -> for _ <- 1..size//1, do: nest([], inner)
      step -> elements |> Enum.chunk_every(step) |> Enum.map(&nest(&1, inner))
    end
  end

  @doc """
  Makes a tensor of a `RankBridge.Tensor`, of numbers or lists of them, or of another library's tensor.

  A tensor of another library is any struct with Nx's fields `type` and `shape`, whose bytes come from
  `to_binary/1` of Nx or of the struct's own module.
  """
  @spec coerce(like()) :: {:ok, t()} | {:error, Error.t()}
  def coerce(%__MODULE__{} = tensor), do: new(tensor.dtype, tensor.shape, tensor.data)

  def coerce(%module{type: type, shape: shape} = other) when is_tuple(shape) do
    with {:ok, library} <- library(module, other),
         {:ok, dtype} <- dtype_of(type) do
      new(dtype, Tuple.to_list(shape), library.to_binary(other))
    end
  end

  def coerce(list) when is_list(list) or is_number(list) or is_boolean(list) do
    {:ok, from_list(list)}
  rescue
    error in ArgumentError -> {:error, Error.refusal(:invalid_argument, error.message)}
  end

  def coerce(other), do: not_a_tensor(other)

  defp library(module, other) do
    # Nx.Tensor's functions live in Nx.
    candidates = if module == Nx.Tensor, do: [Nx], else: [module]

    case Enum.find(
           candidates,
           &(Code.ensure_loaded?(&1) and function_exported?(&1, :to_binary, 1))
         ) do
      nil -> not_a_tensor(other)
      library -> {:ok, library}
    end
  end

  defp dtype_of(type) do
    with :error <- Dtype.from_nx(type) do
      {:error, Error.refusal(:unsupported_dtype, "no dtype for the type #{inspect(type)}")}
    end
  end

  defp not_a_tensor(other) do
    shown = inspect(other, limit: 3, printable_limit: 40)
    {:error, Error.refusal(:invalid_argument, "not a tensor: #{shown}")}
  end

  @doc "An Nx tensor. Raises ArgumentError where Nx is missing or has no such type (bool becomes `{:u, 8}`)."
  @spec to_nx(t()) :: struct()
  def to_nx(%__MODULE__{} = tensor) do
    nx = Nx
    type = if tensor.dtype == :bool, do: {:u, 8}, else: Dtype.to_nx(tensor.dtype)

    unless type && Code.ensure_loaded?(nx) do
      raise ArgumentError, "Nx is not there, or has no #{tensor.dtype}"
    end

    flat = apply(nx, :from_binary, [to_binary(tensor), type])
    apply(nx, :reshape, [flat, List.to_tuple(tensor.shape)])
  end

  @doc "For people: `float32[2, 3]`."
  @spec describe(Dtype.t(), shape()) :: String.t()
  def describe(dtype, shape), do: "#{dtype}[#{Enum.join(shape, ", ")}]"

  defp length_of(data) do
    {:ok, IO.iodata_length(data)}
  rescue
    ArgumentError -> {:error, Error.refusal(:invalid_argument, "the data is not iodata")}
  end

  defimpl Inspect do
    def inspect(tensor, _options) do
      "#RankBridge.Tensor<#{RankBridge.Tensor.describe(tensor.dtype, tensor.shape)}>"
    end
  end
end
