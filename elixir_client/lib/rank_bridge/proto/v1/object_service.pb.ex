# Generated from rankbridge/v1/object_service.proto by protoc-gen-rankbridge-elixir. Do not edit.

defmodule RankBridge.Proto.V1.BroadcastObjectRequest do
  @moduledoc """
  Sends one member's value to all.

  ## Fields

    * `call` - Group, identity, timeout.
    * `value` - At the source: what is sent. Elsewhere: leave it out; it goes nowhere.
    * `src_rank_in_group` - Rank in the group whose value is sent, 0 to the group's size - 1.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.{Decode, Encode}

  @type t :: %__MODULE__{
          call: V1.Call.t() | nil,
          value: V1.Value.t() | nil,
          src_rank_in_group: non_neg_integer(),
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct call: nil,
            value: nil,
            src_rank_in_group: 0,
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
      Encode.implicit(0x18, :uint32, message.src_rank_in_group),
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
    %{message | src_rank_in_group: Decode.value(:uint32, raw)}
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
      {3, :src_rank_in_group, :uint32, :implicit}
    ]
  end
end

defmodule RankBridge.Proto.V1.BroadcastObjectResponse do
  @moduledoc """
  Outcome of BroadcastObject.

  ## Fields

    * `value` - The source's value; at the source, what it gave.
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

defmodule RankBridge.Proto.V1.ScatterObjectRequest do
  @moduledoc """
  Divides one member's values among all.

  ## Fields

    * `call` - Group, identity, timeout.
    * `values` - At the source: a list of one value for each member, in group order. Elsewhere: none, or nothing.
    * `src_rank_in_group` - Rank in the group whose values are sent, 0 to the group's size - 1.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.{Decode, Encode}

  @type t :: %__MODULE__{
          call: V1.Call.t() | nil,
          values: V1.Value.t() | nil,
          src_rank_in_group: non_neg_integer(),
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct call: nil,
            values: nil,
            src_rank_in_group: 0,
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
      Encode.optional(0x12, {:message, V1.Value}, message.values),
      Encode.implicit(0x18, :uint32, message.src_rank_in_group),
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
    %{message | values: Decode.message(V1.Value, message.values, raw, depth)}
  end

  def __put__(message, 3, 0, raw, _depth) do
    %{message | src_rank_in_group: Decode.value(:uint32, raw)}
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
      {2, :values, {:message, V1.Value}, :optional},
      {3, :src_rank_in_group, :uint32, :implicit}
    ]
  end
end

defmodule RankBridge.Proto.V1.ScatterObjectResponse do
  @moduledoc """
  Outcome of ScatterObject.

  ## Fields

    * `value` - This member's value.
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

defmodule RankBridge.Proto.V1.GatherObjectRequest do
  @moduledoc """
  Collects all members' values at one of them.

  ## Fields

    * `call` - Group, identity, timeout.
    * `value` - This member's value.
    * `dst_rank_in_group` - Rank in the group that receives, 0 to the group's size - 1.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.{Decode, Encode}

  @type t :: %__MODULE__{
          call: V1.Call.t() | nil,
          value: V1.Value.t() | nil,
          dst_rank_in_group: non_neg_integer(),
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct call: nil,
            value: nil,
            dst_rank_in_group: 0,
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
      {3, :dst_rank_in_group, :uint32, :implicit}
    ]
  end
end

defmodule RankBridge.Proto.V1.GatherObjectResponse do
  @moduledoc """
  Outcome of GatherObject.

  ## Fields

    * `value` - At the destination a list of all values by rank in group, elsewhere none.
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

defmodule RankBridge.Proto.V1.AllGatherObjectRequest do
  @moduledoc """
  Collects all members' values at all of them.

  ## Fields

    * `call` - Group, identity, timeout.
    * `value` - This member's value.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.{Decode, Encode}

  @type t :: %__MODULE__{
          call: V1.Call.t() | nil,
          value: V1.Value.t() | nil,
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct call: nil,
            value: nil,
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
      {2, :value, {:message, V1.Value}, :optional}
    ]
  end
end

defmodule RankBridge.Proto.V1.AllGatherObjectResponse do
  @moduledoc """
  Outcome of AllGatherObject.

  ## Fields

    * `value` - A list of all values by rank in group.
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

defmodule RankBridge.Proto.V1.AllReduceValueRequest do
  @moduledoc """
  Reduces all members' numbers.

  ## Fields

    * `call` - Group, identity, timeout.
    * `value` - This member's number: a bool, an int of at most 65,536 bits or a float; the same kind on all members.
    * `op` - How they are combined, as AllReduce does. Unspecified: `sum`. Bools have no `avg`, floats no bitwise op; the average of
      ints is a float.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.{Decode, Encode}

  @type t :: %__MODULE__{
          call: V1.Call.t() | nil,
          value: V1.Value.t() | nil,
          op: V1.ReduceOp.t(),
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct call: nil,
            value: nil,
            op: :REDUCE_OP_UNSPECIFIED,
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
      Encode.implicit(0x18, {:enum, V1.ReduceOp}, message.op),
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
    %{message | op: Decode.value({:enum, V1.ReduceOp}, raw)}
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
      {3, :op, {:enum, V1.ReduceOp}, :implicit}
    ]
  end
end

defmodule RankBridge.Proto.V1.AllReduceValueResponse do
  @moduledoc """
  Outcome of AllReduceValue.

  ## Fields

    * `value` - A number of the same kind, but of ints' avg, a float: of floats computed in float64, of ints exactly.
    * `error` - What failed. UNSUPPORTED_DTYPE: numbers of this kind have no such op; MISMATCH: they are not of one kind, or the
      ops differ.
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

defmodule RankBridge.Proto.V1.BroadcastTensorDictRequest do
  @moduledoc """
  Sends one member's map of tensors to all.

  ## Fields

    * `call` - Group, identity, timeout.
    * `dict` - At the source: a map of values, maps in it included, whose refs are tensors on this rank. Elsewhere: none, or nothing.
    * `src_rank_in_group` - Rank in the group whose map is sent, 0 to the group's size - 1.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.{Decode, Encode}

  @type t :: %__MODULE__{
          call: V1.Call.t() | nil,
          dict: V1.Value.t() | nil,
          src_rank_in_group: non_neg_integer(),
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct call: nil,
            dict: nil,
            src_rank_in_group: 0,
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
      Encode.implicit(0x18, :uint32, message.src_rank_in_group),
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
    %{message | src_rank_in_group: Decode.value(:uint32, raw)}
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
      {3, :src_rank_in_group, :uint32, :implicit}
    ]
  end
end

defmodule RankBridge.Proto.V1.BroadcastTensorDictResponse do
  @moduledoc """
  Outcome of BroadcastTensorDict.

  ## Fields

    * `value` - The source's map: at the source as it gave it, elsewhere with refs on new tensors of this rank.
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

defmodule RankBridge.Proto.V1.ObjectService do
  @moduledoc """
  Collectives on values without dtype and shape: anything that `Value` can hold, passed by value, and maps of tensors. They
  are called and fail as the collectives of CollectiveService. The source's value has its size with it: no member needs to
  know it before.

  A ref in a value travels as the handle that it is; it still names the tensor on the rank that made it. In a tensor
  dict alone, refs stand for their tensors.
  """

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.Rpc

  @doc "Every method of the service."
  @spec methods() :: [Rpc.t()]
  def methods do
    [
      broadcast_object(),
      scatter_object(),
      gather_object(),
      all_gather_object(),
      all_reduce_value(),
      broadcast_tensor_dict()
    ]
  end

  @doc """
  Gives every member the source's value.

  As vLLM's `broadcast_object`.
  """
  @spec broadcast_object() :: Rpc.t()
  def broadcast_object do
    %Rpc{
      path: "/rankbridge.v1.ObjectService/BroadcastObject",
      request: V1.BroadcastObjectRequest,
      response: V1.BroadcastObjectResponse,
      client_stream?: false,
      server_stream?: false
    }
  end

  @doc """
  Gives every member its own of the source's values.

  As `torch.distributed.scatter_object_list`.
  """
  @spec scatter_object() :: Rpc.t()
  def scatter_object do
    %Rpc{
      path: "/rankbridge.v1.ObjectService/ScatterObject",
      request: V1.ScatterObjectRequest,
      response: V1.ScatterObjectResponse,
      client_stream?: false,
      server_stream?: false
    }
  end

  @doc """
  Gives the destination a list of all members' values, in group order; the others none.

  As `torch.distributed.gather_object`.
  """
  @spec gather_object() :: Rpc.t()
  def gather_object do
    %Rpc{
      path: "/rankbridge.v1.ObjectService/GatherObject",
      request: V1.GatherObjectRequest,
      response: V1.GatherObjectResponse,
      client_stream?: false,
      server_stream?: false
    }
  end

  @doc """
  Gives every member a list of all members' values, in group order.

  As `torch.distributed.all_gather_object`.
  """
  @spec all_gather_object() :: Rpc.t()
  def all_gather_object do
    %Rpc{
      path: "/rankbridge.v1.ObjectService/AllGatherObject",
      request: V1.AllGatherObjectRequest,
      response: V1.AllGatherObjectResponse,
      client_stream?: false,
      server_stream?: false
    }
  end

  @doc """
  Gives every member the reduction of all members' numbers.

  As OLMo-core's `all_reduce_value`, but nothing goes through float32: ints are added exactly and stay ints, floats
  stay float64.
  """
  @spec all_reduce_value() :: Rpc.t()
  def all_reduce_value do
    %Rpc{
      path: "/rankbridge.v1.ObjectService/AllReduceValue",
      request: V1.AllReduceValueRequest,
      response: V1.AllReduceValueResponse,
      client_stream?: false,
      server_stream?: false
    }
  end

  @doc """
  Gives every member the source's map, with a tensor of its own for each of the source's.

  As vLLM's `broadcast_tensor_dict`, but refs in maps in the map are sent, strided tensors arrive as they were, and so
  do empty ones.
  """
  @spec broadcast_tensor_dict() :: Rpc.t()
  def broadcast_tensor_dict do
    %Rpc{
      path: "/rankbridge.v1.ObjectService/BroadcastTensorDict",
      request: V1.BroadcastTensorDictRequest,
      response: V1.BroadcastTensorDictResponse,
      client_stream?: false,
      server_stream?: false
    }
  end
end
