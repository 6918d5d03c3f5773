# Generated from rankbridge/v1/tensor.proto by protoc-gen-rankbridge-elixir. Do not edit.

defmodule RankBridge.Proto.V1.TensorSpec do
  @moduledoc """
  What a tensor is, without its elements.

  ## Fields

    * `dtype` - Element type. Unspecified is refused.
    * `shape` - Sizes, outermost first, each 0 or more. Empty: a 0-dimensional tensor of one element.
    * `device` - Where the elements live: "cpu", "cuda:0". Empty: the rank's own device.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.{Decode, Encode}

  @type t :: %__MODULE__{
          dtype: V1.Dtype.t(),
          shape: [integer()],
          device: String.t(),
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct dtype: :DTYPE_UNSPECIFIED,
            shape: [],
            device: "",
            __unknown_fields__: []

  @impl true
  @spec encode(t()) :: binary()
  def encode(%__MODULE__{} = message) do
    IO.iodata_to_binary(encode_to_iodata(message))
  end

  @impl true
  @spec encode_to_iodata(t()) :: iodata()
  def encode_to_iodata(%__MODULE__{} = message) do
    [
      Encode.implicit(0x08, {:enum, V1.Dtype}, message.dtype),
      Encode.packed(0x12, :int64, message.shape),
      Encode.implicit(0x1A, :string, message.device),
      Encode.unknown(message.__unknown_fields__)
    ]
  end

  @impl true
  @spec decode(binary()) :: t()
  def decode(binary) when is_binary(binary) do
    Decode.message(__MODULE__, nil, binary, -1)
  end

  @doc false
  @impl true
  @spec __put__(t(), pos_integer(), 0..5, term(), integer()) :: t()
  def __put__(message, 1, 0, raw, _depth) do
    %{message | dtype: Decode.value({:enum, V1.Dtype}, raw)}
  end

  def __put__(message, 2, 0, raw, _depth) do
    %{message | shape: [Decode.value(:int64, raw) | message.shape]}
  end

  def __put__(message, 2, 2, raw, _depth) do
    %{message | shape: Decode.packed(:int64, raw, message.shape)}
  end

  def __put__(message, 3, 2, raw, _depth) do
    %{message | device: Decode.value(:string, raw)}
  end

  def __put__(message, number, wire_type, raw, _depth) do
    %{message | __unknown_fields__: [{number, wire_type, raw} | message.__unknown_fields__]}
  end

  @doc false
  @impl true
  @spec __flip__(t()) :: t()
  def __flip__(message) do
    %{
      message
      | shape: Enum.reverse(message.shape),
        __unknown_fields__: Enum.reverse(message.__unknown_fields__)
    }
  end

  @doc false
  @impl true
  @spec __fields__() :: [RankBridge.Protobuf.Message.field()]
  def __fields__ do
    [
      {1, :dtype, {:enum, V1.Dtype}, :implicit},
      {2, :shape, :int64, :repeated},
      {3, :device, :string, :implicit}
    ]
  end
end

defmodule RankBridge.Proto.V1.Tensor do
  @moduledoc """
  A tensor by value. Meant for small ones: larger ones travel through RefService in chunks.

  ## Fields

    * `spec` - Element type and shape.
    * `data` - Elements, little-endian, row-major. Its length is the product of the shape times the element size,
      in bytes; any other length is refused.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.{Decode, Encode}

  @type t :: %__MODULE__{
          spec: V1.TensorSpec.t() | nil,
          data: iodata(),
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct spec: nil,
            data: "",
            __unknown_fields__: []

  @impl true
  @spec encode(t()) :: binary()
  def encode(%__MODULE__{} = message) do
    IO.iodata_to_binary(encode_to_iodata(message))
  end

  @impl true
  @spec encode_to_iodata(t()) :: iodata()
  def encode_to_iodata(%__MODULE__{} = message) do
    [
      Encode.optional(0x0A, {:message, V1.TensorSpec}, message.spec),
      Encode.implicit(0x12, :bytes, message.data),
      Encode.unknown(message.__unknown_fields__)
    ]
  end

  @impl true
  @spec decode(binary()) :: t()
  def decode(binary) when is_binary(binary) do
    Decode.message(__MODULE__, nil, binary, -1)
  end

  @doc false
  @impl true
  @spec __put__(t(), pos_integer(), 0..5, term(), integer()) :: t()
  def __put__(message, 1, 2, raw, depth) do
    %{message | spec: Decode.message(V1.TensorSpec, message.spec, raw, depth)}
  end

  def __put__(message, 2, 2, raw, _depth) do
    %{message | data: Decode.value(:bytes, raw)}
  end

  def __put__(message, number, wire_type, raw, _depth) do
    %{message | __unknown_fields__: [{number, wire_type, raw} | message.__unknown_fields__]}
  end

  @doc false
  @impl true
  @spec __flip__(t()) :: t()
  def __flip__(message) do
    %{
      message
      | __unknown_fields__: Enum.reverse(message.__unknown_fields__)
    }
  end

  @doc false
  @impl true
  @spec __fields__() :: [RankBridge.Protobuf.Message.field()]
  def __fields__ do
    [
      {1, :spec, {:message, V1.TensorSpec}, :optional},
      {2, :data, :bytes, :implicit}
    ]
  end
end
