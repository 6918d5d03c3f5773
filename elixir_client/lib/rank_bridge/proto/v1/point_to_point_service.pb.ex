# Generated from rankbridge/v1/point_to_point_service.proto by protoc-gen-rankbridge-elixir. Do not edit.

defmodule RankBridge.Proto.V1.SendRequest do
  @moduledoc """
  Sends a tensor.

  ## Fields

    * `call` - Group, identity, timeout.
    * `ref_id` - Id of this rank's tensor.
    * `dst_rank_in_group` - Rank in the group that receives, 0 to the group's size - 1, not this one.
    * `tag` - Separates messages between the same two members, 0 to 2**32 - 1.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.{Decode, Encode}

  @type t :: %__MODULE__{
          call: V1.Call.t() | nil,
          ref_id: String.t(),
          dst_rank_in_group: non_neg_integer(),
          tag: non_neg_integer(),
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct call: nil,
            ref_id: "",
            dst_rank_in_group: 0,
            tag: 0,
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
      Encode.optional(0x0A, {:message, V1.Call}, message.call),
      Encode.implicit(0x12, :string, message.ref_id),
      Encode.implicit(0x18, :uint32, message.dst_rank_in_group),
      Encode.implicit(0x20, :uint32, message.tag),
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
    %{message | call: Decode.message(V1.Call, message.call, raw, depth)}
  end

  def __put__(message, 2, 2, raw, _depth) do
    %{message | ref_id: Decode.value(:string, raw)}
  end

  def __put__(message, 3, 0, raw, _depth) do
    %{message | dst_rank_in_group: Decode.value(:uint32, raw)}
  end

  def __put__(message, 4, 0, raw, _depth) do
    %{message | tag: Decode.value(:uint32, raw)}
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
      {1, :call, {:message, V1.Call}, :optional},
      {2, :ref_id, :string, :implicit},
      {3, :dst_rank_in_group, :uint32, :implicit},
      {4, :tag, :uint32, :implicit}
    ]
  end
end

defmodule RankBridge.Proto.V1.SendResponse do
  @moduledoc """
  Outcome of Send.

  ## Fields

    * `value` - None, when the receiver has been found and the data has left this rank.
    * `error` - What failed.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.{Decode, Encode}

  @type outcome :: {:value, V1.Value.t()} | {:error, V1.Error.t()}

  @type t :: %__MODULE__{
          outcome: outcome() | nil,
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct outcome: nil,
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
      encode_outcome(message.outcome),
      Encode.unknown(message.__unknown_fields__)
    ]
  end

  defp encode_outcome(nil), do: []

  defp encode_outcome({:value, value}) do
    Encode.always(0x0A, {:message, V1.Value}, value)
  end

  defp encode_outcome({:error, value}) do
    Encode.always(0x12, {:message, V1.Error}, value)
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
    held = Decode.held(message.outcome, :value)
    %{message | outcome: {:value, Decode.message(V1.Value, held, raw, depth)}}
  end

  def __put__(message, 2, 2, raw, depth) do
    held = Decode.held(message.outcome, :error)
    %{message | outcome: {:error, Decode.message(V1.Error, held, raw, depth)}}
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
      {1, :value, {:message, V1.Value}, {:oneof, :outcome}},
      {2, :error, {:message, V1.Error}, {:oneof, :outcome}}
    ]
  end
end

defmodule RankBridge.Proto.V1.RecvRequest do
  @moduledoc """
  Receives a tensor.

  ## Fields

    * `call` - Group, identity, timeout.
    * `src_rank_in_group` - Rank in the group that sends, 0 to the group's size - 1, not this one. Absent: any.
    * `tag` - Tag of the message, 0 to 2**32 - 1.
    * `ref_id` - Id of a tensor of this rank with the dtype and shape that must come; it takes what comes, under the same ref.
    * `tensor` - dtype and shape that must come.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.{Decode, Encode}

  @type expected :: {:ref_id, String.t()} | {:tensor, V1.TensorSpec.t()}

  @type t :: %__MODULE__{
          call: V1.Call.t() | nil,
          src_rank_in_group: non_neg_integer() | nil,
          tag: non_neg_integer(),
          expected: expected() | nil,
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct call: nil,
            src_rank_in_group: nil,
            tag: 0,
            expected: nil,
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
      Encode.optional(0x0A, {:message, V1.Call}, message.call),
      Encode.optional(0x10, :uint32, message.src_rank_in_group),
      Encode.implicit(0x18, :uint32, message.tag),
      encode_expected(message.expected),
      Encode.unknown(message.__unknown_fields__)
    ]
  end

  defp encode_expected(nil), do: []

  defp encode_expected({:ref_id, value}) do
    Encode.always(0x22, :string, value)
  end

  defp encode_expected({:tensor, value}) do
    Encode.always(0x2A, {:message, V1.TensorSpec}, value)
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
    %{message | call: Decode.message(V1.Call, message.call, raw, depth)}
  end

  def __put__(message, 2, 0, raw, _depth) do
    %{message | src_rank_in_group: Decode.value(:uint32, raw)}
  end

  def __put__(message, 3, 0, raw, _depth) do
    %{message | tag: Decode.value(:uint32, raw)}
  end

  def __put__(message, 4, 2, raw, _depth) do
    %{message | expected: {:ref_id, Decode.value(:string, raw)}}
  end

  def __put__(message, 5, 2, raw, depth) do
    held = Decode.held(message.expected, :tensor)
    %{message | expected: {:tensor, Decode.message(V1.TensorSpec, held, raw, depth)}}
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
      {1, :call, {:message, V1.Call}, :optional},
      {2, :src_rank_in_group, :uint32, :optional},
      {3, :tag, :uint32, :implicit},
      {4, :ref_id, :string, {:oneof, :expected}},
      {5, :tensor, {:message, V1.TensorSpec}, {:oneof, :expected}}
    ]
  end
end

defmodule RankBridge.Proto.V1.RecvResponse do
  @moduledoc """
  Outcome of Recv.

  ## Fields

    * `value` - A tuple: a ref on what came (the one expected, if a ref was), and the rank in group that it came from.
    * `error` - What failed.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.{Decode, Encode}

  @type outcome :: {:value, V1.Value.t()} | {:error, V1.Error.t()}

  @type t :: %__MODULE__{
          outcome: outcome() | nil,
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct outcome: nil,
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
      encode_outcome(message.outcome),
      Encode.unknown(message.__unknown_fields__)
    ]
  end

  defp encode_outcome(nil), do: []

  defp encode_outcome({:value, value}) do
    Encode.always(0x0A, {:message, V1.Value}, value)
  end

  defp encode_outcome({:error, value}) do
    Encode.always(0x12, {:message, V1.Error}, value)
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
    held = Decode.held(message.outcome, :value)
    %{message | outcome: {:value, Decode.message(V1.Value, held, raw, depth)}}
  end

  def __put__(message, 2, 2, raw, depth) do
    held = Decode.held(message.outcome, :error)
    %{message | outcome: {:error, Decode.message(V1.Error, held, raw, depth)}}
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
      {1, :value, {:message, V1.Value}, {:oneof, :outcome}},
      {2, :error, {:message, V1.Error}, {:oneof, :outcome}}
    ]
  end
end

defmodule RankBridge.Proto.V1.SendObjectRequest do
  @moduledoc """
  Sends a value.

  ## Fields

    * `call` - Group, identity, timeout.
    * `value` - What is sent.
    * `dst_rank_in_group` - Rank in the group that receives, 0 to the group's size - 1, not this one.
    * `tag` - Separates messages between the same two members, 0 to 2**32 - 1.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.{Decode, Encode}

  @type t :: %__MODULE__{
          call: V1.Call.t() | nil,
          value: V1.Value.t() | nil,
          dst_rank_in_group: non_neg_integer(),
          tag: non_neg_integer(),
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct call: nil,
            value: nil,
            dst_rank_in_group: 0,
            tag: 0,
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
      Encode.optional(0x0A, {:message, V1.Call}, message.call),
      Encode.optional(0x12, {:message, V1.Value}, message.value),
      Encode.implicit(0x18, :uint32, message.dst_rank_in_group),
      Encode.implicit(0x20, :uint32, message.tag),
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
    %{message | call: Decode.message(V1.Call, message.call, raw, depth)}
  end

  def __put__(message, 2, 2, raw, depth) do
    %{message | value: Decode.message(V1.Value, message.value, raw, depth)}
  end

  def __put__(message, 3, 0, raw, _depth) do
    %{message | dst_rank_in_group: Decode.value(:uint32, raw)}
  end

  def __put__(message, 4, 0, raw, _depth) do
    %{message | tag: Decode.value(:uint32, raw)}
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
      {1, :call, {:message, V1.Call}, :optional},
      {2, :value, {:message, V1.Value}, :optional},
      {3, :dst_rank_in_group, :uint32, :implicit},
      {4, :tag, :uint32, :implicit}
    ]
  end
end

defmodule RankBridge.Proto.V1.SendObjectResponse do
  @moduledoc """
  Outcome of SendObject.

  ## Fields

    * `value` - None, when the receiver has been found and the data has left this rank.
    * `error` - What failed.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.{Decode, Encode}

  @type outcome :: {:value, V1.Value.t()} | {:error, V1.Error.t()}

  @type t :: %__MODULE__{
          outcome: outcome() | nil,
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct outcome: nil,
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
      encode_outcome(message.outcome),
      Encode.unknown(message.__unknown_fields__)
    ]
  end

  defp encode_outcome(nil), do: []

  defp encode_outcome({:value, value}) do
    Encode.always(0x0A, {:message, V1.Value}, value)
  end

  defp encode_outcome({:error, value}) do
    Encode.always(0x12, {:message, V1.Error}, value)
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
    held = Decode.held(message.outcome, :value)
    %{message | outcome: {:value, Decode.message(V1.Value, held, raw, depth)}}
  end

  def __put__(message, 2, 2, raw, depth) do
    held = Decode.held(message.outcome, :error)
    %{message | outcome: {:error, Decode.message(V1.Error, held, raw, depth)}}
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
      {1, :value, {:message, V1.Value}, {:oneof, :outcome}},
      {2, :error, {:message, V1.Error}, {:oneof, :outcome}}
    ]
  end
end

defmodule RankBridge.Proto.V1.RecvObjectRequest do
  @moduledoc """
  Receives a value.

  ## Fields

    * `call` - Group, identity, timeout.
    * `src_rank_in_group` - Rank in the group that sends, 0 to the group's size - 1, not this one. Absent: any.
    * `tag` - Tag of the message, 0 to 2**32 - 1.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.{Decode, Encode}

  @type t :: %__MODULE__{
          call: V1.Call.t() | nil,
          src_rank_in_group: non_neg_integer() | nil,
          tag: non_neg_integer(),
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct call: nil,
            src_rank_in_group: nil,
            tag: 0,
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
      Encode.optional(0x0A, {:message, V1.Call}, message.call),
      Encode.optional(0x10, :uint32, message.src_rank_in_group),
      Encode.implicit(0x18, :uint32, message.tag),
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
    %{message | call: Decode.message(V1.Call, message.call, raw, depth)}
  end

  def __put__(message, 2, 0, raw, _depth) do
    %{message | src_rank_in_group: Decode.value(:uint32, raw)}
  end

  def __put__(message, 3, 0, raw, _depth) do
    %{message | tag: Decode.value(:uint32, raw)}
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
      {1, :call, {:message, V1.Call}, :optional},
      {2, :src_rank_in_group, :uint32, :optional},
      {3, :tag, :uint32, :implicit}
    ]
  end
end

defmodule RankBridge.Proto.V1.RecvObjectResponse do
  @moduledoc """
  Outcome of RecvObject.

  ## Fields

    * `value` - A tuple: the value that came, and the rank in group that it came from.
    * `error` - What failed.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.{Decode, Encode}

  @type outcome :: {:value, V1.Value.t()} | {:error, V1.Error.t()}

  @type t :: %__MODULE__{
          outcome: outcome() | nil,
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct outcome: nil,
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
      encode_outcome(message.outcome),
      Encode.unknown(message.__unknown_fields__)
    ]
  end

  defp encode_outcome(nil), do: []

  defp encode_outcome({:value, value}) do
    Encode.always(0x0A, {:message, V1.Value}, value)
  end

  defp encode_outcome({:error, value}) do
    Encode.always(0x12, {:message, V1.Error}, value)
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
    held = Decode.held(message.outcome, :value)
    %{message | outcome: {:value, Decode.message(V1.Value, held, raw, depth)}}
  end

  def __put__(message, 2, 2, raw, depth) do
    held = Decode.held(message.outcome, :error)
    %{message | outcome: {:error, Decode.message(V1.Error, held, raw, depth)}}
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
      {1, :value, {:message, V1.Value}, {:oneof, :outcome}},
      {2, :error, {:message, V1.Error}, {:oneof, :outcome}}
    ]
  end
end

defmodule RankBridge.Proto.V1.SendTensorDictRequest do
  @moduledoc """
  Sends a map of tensors.

  ## Fields

    * `call` - Group, identity, timeout.
    * `dict` - A map of values, maps in it included, whose refs are tensors on this rank.
    * `dst_rank_in_group` - Rank in the group that receives, 0 to the group's size - 1, not this one.
    * `tag` - Separates messages between the same two members, 0 to 2**32 - 1.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.{Decode, Encode}

  @type t :: %__MODULE__{
          call: V1.Call.t() | nil,
          dict: V1.Value.t() | nil,
          dst_rank_in_group: non_neg_integer(),
          tag: non_neg_integer(),
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct call: nil,
            dict: nil,
            dst_rank_in_group: 0,
            tag: 0,
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
      Encode.optional(0x0A, {:message, V1.Call}, message.call),
      Encode.optional(0x12, {:message, V1.Value}, message.dict),
      Encode.implicit(0x18, :uint32, message.dst_rank_in_group),
      Encode.implicit(0x20, :uint32, message.tag),
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
    %{message | call: Decode.message(V1.Call, message.call, raw, depth)}
  end

  def __put__(message, 2, 2, raw, depth) do
    %{message | dict: Decode.message(V1.Value, message.dict, raw, depth)}
  end

  def __put__(message, 3, 0, raw, _depth) do
    %{message | dst_rank_in_group: Decode.value(:uint32, raw)}
  end

  def __put__(message, 4, 0, raw, _depth) do
    %{message | tag: Decode.value(:uint32, raw)}
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
      {1, :call, {:message, V1.Call}, :optional},
      {2, :dict, {:message, V1.Value}, :optional},
      {3, :dst_rank_in_group, :uint32, :implicit},
      {4, :tag, :uint32, :implicit}
    ]
  end
end

defmodule RankBridge.Proto.V1.SendTensorDictResponse do
  @moduledoc """
  Outcome of SendTensorDict.

  ## Fields

    * `value` - None, when the receiver has been found and the data has left this rank.
    * `error` - What failed.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.{Decode, Encode}

  @type outcome :: {:value, V1.Value.t()} | {:error, V1.Error.t()}

  @type t :: %__MODULE__{
          outcome: outcome() | nil,
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct outcome: nil,
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
      encode_outcome(message.outcome),
      Encode.unknown(message.__unknown_fields__)
    ]
  end

  defp encode_outcome(nil), do: []

  defp encode_outcome({:value, value}) do
    Encode.always(0x0A, {:message, V1.Value}, value)
  end

  defp encode_outcome({:error, value}) do
    Encode.always(0x12, {:message, V1.Error}, value)
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
    held = Decode.held(message.outcome, :value)
    %{message | outcome: {:value, Decode.message(V1.Value, held, raw, depth)}}
  end

  def __put__(message, 2, 2, raw, depth) do
    held = Decode.held(message.outcome, :error)
    %{message | outcome: {:error, Decode.message(V1.Error, held, raw, depth)}}
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
      {1, :value, {:message, V1.Value}, {:oneof, :outcome}},
      {2, :error, {:message, V1.Error}, {:oneof, :outcome}}
    ]
  end
end

defmodule RankBridge.Proto.V1.RecvTensorDictRequest do
  @moduledoc """
  Receives a map of tensors.

  ## Fields

    * `call` - Group, identity, timeout.
    * `src_rank_in_group` - Rank in the group that sends, 0 to the group's size - 1, not this one. Absent: any.
    * `tag` - Tag of the message, 0 to 2**32 - 1.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.{Decode, Encode}

  @type t :: %__MODULE__{
          call: V1.Call.t() | nil,
          src_rank_in_group: non_neg_integer() | nil,
          tag: non_neg_integer(),
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct call: nil,
            src_rank_in_group: nil,
            tag: 0,
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
      Encode.optional(0x0A, {:message, V1.Call}, message.call),
      Encode.optional(0x10, :uint32, message.src_rank_in_group),
      Encode.implicit(0x18, :uint32, message.tag),
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
    %{message | call: Decode.message(V1.Call, message.call, raw, depth)}
  end

  def __put__(message, 2, 0, raw, _depth) do
    %{message | src_rank_in_group: Decode.value(:uint32, raw)}
  end

  def __put__(message, 3, 0, raw, _depth) do
    %{message | tag: Decode.value(:uint32, raw)}
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
      {1, :call, {:message, V1.Call}, :optional},
      {2, :src_rank_in_group, :uint32, :optional},
      {3, :tag, :uint32, :implicit}
    ]
  end
end

defmodule RankBridge.Proto.V1.RecvTensorDictResponse do
  @moduledoc """
  Outcome of RecvTensorDict.

  ## Fields

    * `value` - A tuple: the map that came, with refs on new tensors of this rank, and the rank in group that it came from.
    * `error` - What failed.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.{Decode, Encode}

  @type outcome :: {:value, V1.Value.t()} | {:error, V1.Error.t()}

  @type t :: %__MODULE__{
          outcome: outcome() | nil,
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct outcome: nil,
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
      encode_outcome(message.outcome),
      Encode.unknown(message.__unknown_fields__)
    ]
  end

  defp encode_outcome(nil), do: []

  defp encode_outcome({:value, value}) do
    Encode.always(0x0A, {:message, V1.Value}, value)
  end

  defp encode_outcome({:error, value}) do
    Encode.always(0x12, {:message, V1.Error}, value)
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
    held = Decode.held(message.outcome, :value)
    %{message | outcome: {:value, Decode.message(V1.Value, held, raw, depth)}}
  end

  def __put__(message, 2, 2, raw, depth) do
    held = Decode.held(message.outcome, :error)
    %{message | outcome: {:error, Decode.message(V1.Error, held, raw, depth)}}
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
      {1, :value, {:message, V1.Value}, {:oneof, :outcome}},
      {2, :error, {:message, V1.Error}, {:oneof, :outcome}}
    ]
  end
end

defmodule RankBridge.Proto.V1.PointToPointService do
  @moduledoc """
  Sends and receives between two members of a group. A send waits for its receive and a receive for its send, each for its
  own timeout; then the data moves. They match by source, destination and tag; of several, in the order in which they
  came. They do not wait for the group's collectives, and do not delay them.

  To call without waiting, submit the operation with OperationService.Submit. Its id serves to poll, await and cancel it.

  Each kind has its own receive: Recv for a tensor, RecvObject for an object, RecvTensorDict for a tensor dict. With another
  kind, both ends fail with MISMATCH, and also if the value differs from what the receive expects.
  """

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.Rpc

  @doc "Every method of the service."
  @spec methods() :: [Rpc.t()]
  def methods do
    [
      send(),
      recv(),
      send_object(),
      recv_object(),
      send_tensor_dict(),
      recv_tensor_dict()
    ]
  end

  @doc """
  Sends a tensor to one member, and returns when it has left this rank.
  """
  @spec send() :: Rpc.t()
  def send do
    %Rpc{
      path: "/rankbridge.v1.PointToPointService/Send",
      request: V1.SendRequest,
      response: V1.SendResponse,
      client_stream?: false,
      server_stream?: false
    }
  end

  @doc """
  Receives a tensor from one member, or from any.
  """
  @spec recv() :: Rpc.t()
  def recv do
    %Rpc{
      path: "/rankbridge.v1.PointToPointService/Recv",
      request: V1.RecvRequest,
      response: V1.RecvResponse,
      client_stream?: false,
      server_stream?: false
    }
  end

  @doc """
  Sends a value to one member. A ref in it travels as the handle that it is.
  """
  @spec send_object() :: Rpc.t()
  def send_object do
    %Rpc{
      path: "/rankbridge.v1.PointToPointService/SendObject",
      request: V1.SendObjectRequest,
      response: V1.SendObjectResponse,
      client_stream?: false,
      server_stream?: false
    }
  end

  @doc """
  Receives a value from one member, or from any.
  """
  @spec recv_object() :: Rpc.t()
  def recv_object do
    %Rpc{
      path: "/rankbridge.v1.PointToPointService/RecvObject",
      request: V1.RecvObjectRequest,
      response: V1.RecvObjectResponse,
      client_stream?: false,
      server_stream?: false
    }
  end

  @doc """
  Sends a map of tensors to one member.
  """
  @spec send_tensor_dict() :: Rpc.t()
  def send_tensor_dict do
    %Rpc{
      path: "/rankbridge.v1.PointToPointService/SendTensorDict",
      request: V1.SendTensorDictRequest,
      response: V1.SendTensorDictResponse,
      client_stream?: false,
      server_stream?: false
    }
  end

  @doc """
  Receives a map of tensors from one member, or from any.
  """
  @spec recv_tensor_dict() :: Rpc.t()
  def recv_tensor_dict do
    %Rpc{
      path: "/rankbridge.v1.PointToPointService/RecvTensorDict",
      request: V1.RecvTensorDictRequest,
      response: V1.RecvTensorDictResponse,
      client_stream?: false,
      server_stream?: false
    }
  end
end
