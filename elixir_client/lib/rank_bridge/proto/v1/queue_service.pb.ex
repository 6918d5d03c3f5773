# Generated from rankbridge/v1/queue_service.proto by protoc-gen-rankbridge-elixir. Do not edit.

defmodule RankBridge.Proto.V1.Queue do
  @moduledoc """
  A queue, as one rank sees it.

  ## Fields

    * `name` - Its name, unique in its group.
    * `group` - Name of its group.
    * `writer_rank_in_group` - Rank in the group that writes.
    * `reader_ranks_in_group` - Ranks in the group that read, in ascending order.
    * `shared_memory_ranks_in_group` - The readers that get values in shared memory; the others get them by the backend.
    * `max_chunk_bytes` - Size of the buffer for one value, in bytes; a larger value is sent separately.
    * `max_chunks` - Values that may be unread by the slowest reader.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Protobuf.{Decode, Encode}

  @type t :: %__MODULE__{
          name: String.t(),
          group: String.t(),
          writer_rank_in_group: non_neg_integer(),
          reader_ranks_in_group: [non_neg_integer()],
          shared_memory_ranks_in_group: [non_neg_integer()],
          max_chunk_bytes: non_neg_integer(),
          max_chunks: non_neg_integer(),
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct name: "",
            group: "",
            writer_rank_in_group: 0,
            reader_ranks_in_group: [],
            shared_memory_ranks_in_group: [],
            max_chunk_bytes: 0,
            max_chunks: 0,
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
      Encode.implicit(0x0A, :string, message.name),
      Encode.implicit(0x12, :string, message.group),
      Encode.implicit(0x18, :uint32, message.writer_rank_in_group),
      Encode.packed(0x22, :uint32, message.reader_ranks_in_group),
      Encode.packed(0x2A, :uint32, message.shared_memory_ranks_in_group),
      Encode.implicit(0x30, :uint64, message.max_chunk_bytes),
      Encode.implicit(0x38, :uint32, message.max_chunks),
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
    %{message | name: Decode.value(:string, raw)}
  end

  def __put__(message, 2, 2, raw, _depth) do
    %{message | group: Decode.value(:string, raw)}
  end

  def __put__(message, 3, 0, raw, _depth) do
    %{message | writer_rank_in_group: Decode.value(:uint32, raw)}
  end

  def __put__(message, 4, 0, raw, _depth) do
    %{
      message
      | reader_ranks_in_group: [Decode.value(:uint32, raw) | message.reader_ranks_in_group]
    }
  end

  def __put__(message, 4, 2, raw, _depth) do
    %{message | reader_ranks_in_group: Decode.packed(:uint32, raw, message.reader_ranks_in_group)}
  end

  def __put__(message, 5, 0, raw, _depth) do
    %{
      message
      | shared_memory_ranks_in_group: [
          Decode.value(:uint32, raw) | message.shared_memory_ranks_in_group
        ]
    }
  end

  def __put__(message, 5, 2, raw, _depth) do
    %{
      message
      | shared_memory_ranks_in_group:
          Decode.packed(:uint32, raw, message.shared_memory_ranks_in_group)
    }
  end

  def __put__(message, 6, 0, raw, _depth) do
    %{message | max_chunk_bytes: Decode.value(:uint64, raw)}
  end

  def __put__(message, 7, 0, raw, _depth) do
    %{message | max_chunks: Decode.value(:uint32, raw)}
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
      | reader_ranks_in_group: Enum.reverse(message.reader_ranks_in_group),
        shared_memory_ranks_in_group: Enum.reverse(message.shared_memory_ranks_in_group),
        __unknown_fields__: Enum.reverse(message.__unknown_fields__)
    }
  end

  @doc false
  @impl true
  @spec __fields__() :: [RankBridge.Protobuf.Message.field()]
  def __fields__ do
    [
      {1, :name, :string, :implicit},
      {2, :group, :string, :implicit},
      {3, :writer_rank_in_group, :uint32, :implicit},
      {4, :reader_ranks_in_group, :uint32, :repeated},
      {5, :shared_memory_ranks_in_group, :uint32, :repeated},
      {6, :max_chunk_bytes, :uint64, :implicit},
      {7, :max_chunks, :uint32, :implicit}
    ]
  end
end

defmodule RankBridge.Proto.V1.NewQueueRequest do
  @moduledoc """
  Makes a queue.

  ## Fields

    * `call` - Group, identity, timeout.
    * `name` - Its name, unique in its group, 1 to 128 bytes.
    * `writer_rank_in_group` - Rank in the group that writes, 0 to the group's size - 1.
    * `reader_ranks_in_group` - Ranks in the group that read. Empty: all but the writer.
    * `max_chunk_bytes` - Size of the buffer for one value, in bytes. 0: 4,194,304.
    * `max_chunks` - Values that may be unread by the slowest reader, at most 1,024. 0: 6.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.{Decode, Encode}

  @type t :: %__MODULE__{
          call: V1.Call.t() | nil,
          name: String.t(),
          writer_rank_in_group: non_neg_integer(),
          reader_ranks_in_group: [non_neg_integer()],
          max_chunk_bytes: non_neg_integer(),
          max_chunks: non_neg_integer(),
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct call: nil,
            name: "",
            writer_rank_in_group: 0,
            reader_ranks_in_group: [],
            max_chunk_bytes: 0,
            max_chunks: 0,
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
      Encode.implicit(0x12, :string, message.name),
      Encode.implicit(0x18, :uint32, message.writer_rank_in_group),
      Encode.packed(0x22, :uint32, message.reader_ranks_in_group),
      Encode.implicit(0x28, :uint64, message.max_chunk_bytes),
      Encode.implicit(0x30, :uint32, message.max_chunks),
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
    %{message | name: Decode.value(:string, raw)}
  end

  def __put__(message, 3, 0, raw, _depth) do
    %{message | writer_rank_in_group: Decode.value(:uint32, raw)}
  end

  def __put__(message, 4, 0, raw, _depth) do
    %{
      message
      | reader_ranks_in_group: [Decode.value(:uint32, raw) | message.reader_ranks_in_group]
    }
  end

  def __put__(message, 4, 2, raw, _depth) do
    %{message | reader_ranks_in_group: Decode.packed(:uint32, raw, message.reader_ranks_in_group)}
  end

  def __put__(message, 5, 0, raw, _depth) do
    %{message | max_chunk_bytes: Decode.value(:uint64, raw)}
  end

  def __put__(message, 6, 0, raw, _depth) do
    %{message | max_chunks: Decode.value(:uint32, raw)}
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
      | reader_ranks_in_group: Enum.reverse(message.reader_ranks_in_group),
        __unknown_fields__: Enum.reverse(message.__unknown_fields__)
    }
  end

  @doc false
  @impl true
  @spec __fields__() :: [RankBridge.Protobuf.Message.field()]
  def __fields__ do
    [
      {1, :call, {:message, V1.Call}, :optional},
      {2, :name, :string, :implicit},
      {3, :writer_rank_in_group, :uint32, :implicit},
      {4, :reader_ranks_in_group, :uint32, :repeated},
      {5, :max_chunk_bytes, :uint64, :implicit},
      {6, :max_chunks, :uint32, :implicit}
    ]
  end
end

defmodule RankBridge.Proto.V1.NewQueueResponse do
  @moduledoc """
  Outcome of NewQueue.

  ## Fields

    * `queue` - The queue.
    * `error` - What failed.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.{Decode, Encode}

  @type outcome :: {:queue, V1.Queue.t()} | {:error, V1.Error.t()}

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

  defp encode_outcome({:queue, value}) do
    Encode.always(0x0A, {:message, V1.Queue}, value)
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
    held = Decode.held(message.outcome, :queue)
    %{message | outcome: {:queue, Decode.message(V1.Queue, held, raw, depth)}}
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
      {1, :queue, {:message, V1.Queue}, {:oneof, :outcome}},
      {2, :error, {:message, V1.Error}, {:oneof, :outcome}}
    ]
  end
end

defmodule RankBridge.Proto.V1.EnqueueRequest do
  @moduledoc """
  Writes a value.

  ## Fields

    * `call` - Group of the queue, identity, timeout.
    * `queue` - Name of the queue.
    * `value` - What is written.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.{Decode, Encode}

  @type t :: %__MODULE__{
          call: V1.Call.t() | nil,
          queue: String.t(),
          value: V1.Value.t() | nil,
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct call: nil,
            queue: "",
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
      Encode.implicit(0x12, :string, message.queue),
      Encode.optional(0x1A, {:message, V1.Value}, message.value),
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
    %{message | queue: Decode.value(:string, raw)}
  end

  def __put__(message, 3, 2, raw, depth) do
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
      {2, :queue, :string, :implicit},
      {3, :value, {:message, V1.Value}, :optional}
    ]
  end
end

defmodule RankBridge.Proto.V1.EnqueueResponse do
  @moduledoc """
  Outcome of Enqueue.

  ## Fields

    * `value` - None: it is in the queue.
    * `error` - What failed: PEER_MISSING, with the readers that have not read, and then it is not in the queue.
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

defmodule RankBridge.Proto.V1.DequeueRequest do
  @moduledoc """
  Reads a value.

  ## Fields

    * `call` - Group of the queue, identity, timeout.
    * `queue` - Name of the queue.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.{Decode, Encode}

  @type t :: %__MODULE__{
          call: V1.Call.t() | nil,
          queue: String.t(),
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct call: nil,
            queue: "",
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
      Encode.implicit(0x12, :string, message.queue),
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
    %{message | queue: Decode.value(:string, raw)}
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
      {2, :queue, :string, :implicit}
    ]
  end
end

defmodule RankBridge.Proto.V1.DequeueResponse do
  @moduledoc """
  Outcome of Dequeue.

  ## Fields

    * `value` - The value.
    * `error` - What failed: PEER_MISSING if nothing was written in time.
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

defmodule RankBridge.Proto.V1.ShutDownQueueRequest do
  @moduledoc """
  Ends a queue on this rank.

  ## Fields

    * `call` - Group of the queue. Operation id and timeout are not looked at.
    * `queue` - Name of the queue.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.{Decode, Encode}

  @type t :: %__MODULE__{
          call: V1.Call.t() | nil,
          queue: String.t(),
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct call: nil,
            queue: "",
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
      Encode.implicit(0x12, :string, message.queue),
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
    %{message | queue: Decode.value(:string, raw)}
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
      {2, :queue, :string, :implicit}
    ]
  end
end

defmodule RankBridge.Proto.V1.ShutDownQueueResponse do
  @moduledoc """
  Outcome of ShutDownQueue.

  ## Fields

    * `queue` - The queue that was ended.
    * `error` - What failed: there is no such queue.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.{Decode, Encode}

  @type outcome :: {:queue, V1.Queue.t()} | {:error, V1.Error.t()}

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

  defp encode_outcome({:queue, value}) do
    Encode.always(0x0A, {:message, V1.Queue}, value)
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
    held = Decode.held(message.outcome, :queue)
    %{message | outcome: {:queue, Decode.message(V1.Queue, held, raw, depth)}}
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
      {1, :queue, {:message, V1.Queue}, {:oneof, :outcome}},
      {2, :error, {:message, V1.Error}, {:oneof, :outcome}}
    ]
  end
end

defmodule RankBridge.Proto.V1.ListQueuesRequest do
  @moduledoc """
  Lists all queues.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Protobuf.{Decode, Encode}

  @type t :: %__MODULE__{
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct __unknown_fields__: []

  @impl true
  @spec encode(t()) :: binary()
  def encode(%__MODULE__{} = message) do
    IO.iodata_to_binary(encode_to_iodata(message))
  end

  @impl true
  @spec encode_to_iodata(t()) :: iodata()
  def encode_to_iodata(%__MODULE__{} = message) do
    [
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
  def __fields__, do: []
end

defmodule RankBridge.Proto.V1.ListQueuesResponse do
  @moduledoc """
  All queues of the rank.

  ## Fields

    * `queues` - By group and name.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.{Decode, Encode}

  @type t :: %__MODULE__{
          queues: [V1.Queue.t()],
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct queues: [],
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
      Encode.repeated(0x0A, {:message, V1.Queue}, message.queues),
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
    %{message | queues: [Decode.message(V1.Queue, nil, raw, depth) | message.queues]}
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
      | queues: Enum.reverse(message.queues),
        __unknown_fields__: Enum.reverse(message.__unknown_fields__)
    }
  end

  @doc false
  @impl true
  @spec __fields__() :: [RankBridge.Protobuf.Message.field()]
  def __fields__ do
    [
      {1, :queues, {:message, V1.Queue}, :repeated}
    ]
  end
end

defmodule RankBridge.Proto.V1.QueueService do
  @moduledoc """
  Message queues: one member of a group writes values, and every reader reads each of them, in order. Readers on the
  writer's host get them in shared memory, others by the backend. vLLM's message queue broadcasters.

  A queue belongs to its generation and to its group. Enqueue and Dequeue wait only for its readers and its writer, and not
  for the group's collectives.
  """

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.Rpc

  @doc "Every method of the service."
  @spec methods() :: [Rpc.t()]
  def methods do
    [
      new_queue(),
      enqueue(),
      dequeue(),
      shut_down_queue(),
      list_queues()
    ]
  end

  @doc """
  Makes a queue. Called on every member of the group, as a collective.
  """
  @spec new_queue() :: Rpc.t()
  def new_queue do
    %Rpc{
      path: "/rankbridge.v1.QueueService/NewQueue",
      request: V1.NewQueueRequest,
      response: V1.NewQueueResponse,
      client_stream?: false,
      server_stream?: false
    }
  end

  @doc """
  Writes a value, on the writer. Waits while a reader has `max_chunks` unread.
  """
  @spec enqueue() :: Rpc.t()
  def enqueue do
    %Rpc{
      path: "/rankbridge.v1.QueueService/Enqueue",
      request: V1.EnqueueRequest,
      response: V1.EnqueueResponse,
      client_stream?: false,
      server_stream?: false
    }
  end

  @doc """
  Reads the next value, on a reader. Waits until there is one.
  """
  @spec dequeue() :: Rpc.t()
  def dequeue do
    %Rpc{
      path: "/rankbridge.v1.QueueService/Dequeue",
      request: V1.DequeueRequest,
      response: V1.DequeueResponse,
      client_stream?: false,
      server_stream?: false
    }
  end

  @doc """
  Ends the queue on this rank: calls that wait here fail with ABORTED. The other ends learn of it: readers once they have
  read the values written before, the writer when it next writes for this reader.
  """
  @spec shut_down_queue() :: Rpc.t()
  def shut_down_queue do
    %Rpc{
      path: "/rankbridge.v1.QueueService/ShutDownQueue",
      request: V1.ShutDownQueueRequest,
      response: V1.ShutDownQueueResponse,
      client_stream?: false,
      server_stream?: false
    }
  end

  @doc """
  Lists all queues of the rank.
  """
  @spec list_queues() :: Rpc.t()
  def list_queues do
    %Rpc{
      path: "/rankbridge.v1.QueueService/ListQueues",
      request: V1.ListQueuesRequest,
      response: V1.ListQueuesResponse,
      client_stream?: false,
      server_stream?: false
    }
  end
end
