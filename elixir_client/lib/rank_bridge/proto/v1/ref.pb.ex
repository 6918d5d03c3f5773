# Generated from rankbridge/v1/ref.proto by protoc-gen-rankbridge-elixir. Do not edit.

defmodule RankBridge.Proto.V1.Ref do
  @moduledoc """
  A handle on a value that stays on its rank.

  ## Fields

    * `id` - Names the value. Made by the rank, never used twice, not even by a rank that replaces it.
    * `rank` - Rank in the gang that holds the value, 0 to the gang's size - 1.
    * `session_id` - Session that owns the value. Empty: the rank's shared session, which lives as long as the rank.
    * `tensor` - dtype, shape and device of the value, as of when the ref was given out.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.{Decode, Encode}

  @type t :: %__MODULE__{
          id: String.t(),
          rank: non_neg_integer(),
          session_id: String.t(),
          tensor: V1.TensorSpec.t() | nil,
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct id: "",
            rank: 0,
            session_id: "",
            tensor: nil,
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
      Encode.implicit(0x0A, :string, message.id),
      Encode.implicit(0x10, :uint32, message.rank),
      Encode.implicit(0x1A, :string, message.session_id),
      Encode.optional(0x22, {:message, V1.TensorSpec}, message.tensor),
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
  def __put__(message, 1, 2, raw, _depth) do
    %{message | id: Decode.value(:string, raw)}
  end

  def __put__(message, 2, 0, raw, _depth) do
    %{message | rank: Decode.value(:uint32, raw)}
  end

  def __put__(message, 3, 2, raw, _depth) do
    %{message | session_id: Decode.value(:string, raw)}
  end

  def __put__(message, 4, 2, raw, depth) do
    %{message | tensor: Decode.message(V1.TensorSpec, message.tensor, raw, depth)}
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
      {1, :id, :string, :implicit},
      {2, :rank, :uint32, :implicit},
      {3, :session_id, :string, :implicit},
      {4, :tensor, {:message, V1.TensorSpec}, :optional}
    ]
  end
end
