# Generated from rankbridge/v1/event.proto by protoc-gen-rankbridge-elixir. Do not edit.

defmodule RankBridge.Proto.V1.EventKind do
  @moduledoc """
  The kind of an event.

  Numbers without a name stay integers.

  ## Values

    * `:EVENT_KIND_UNSPECIFIED` - Not said. Never sent.
    * `:EVENT_KIND_FORMED` - A generation was formed.
    * `:EVENT_KIND_OVER` - A generation is over.
    * `:EVENT_KIND_MISMATCH` - The members of a group asked for different things.
    * `:EVENT_KIND_PEER_MISSING` - Some members of a group did not call before the timeout.
    * `:EVENT_KIND_STRAGGLER` - Some members of a group keep the others waiting.
  """

  @type t ::
          :EVENT_KIND_UNSPECIFIED
          | :EVENT_KIND_FORMED
          | :EVENT_KIND_OVER
          | :EVENT_KIND_MISMATCH
          | :EVENT_KIND_PEER_MISSING
          | :EVENT_KIND_STRAGGLER
          | integer()

  @doc "The number of each name."
  @spec mapping() :: %{atom() => integer()}
  def mapping do
    %{
      EVENT_KIND_UNSPECIFIED: 0,
      EVENT_KIND_FORMED: 1,
      EVENT_KIND_OVER: 2,
      EVENT_KIND_MISMATCH: 3,
      EVENT_KIND_PEER_MISSING: 4,
      EVENT_KIND_STRAGGLER: 5
    }
  end

  @doc "The number of a name; a number is its own."
  @spec value(t()) :: integer()
  def value(:EVENT_KIND_UNSPECIFIED), do: 0
  def value(:EVENT_KIND_FORMED), do: 1
  def value(:EVENT_KIND_OVER), do: 2
  def value(:EVENT_KIND_MISMATCH), do: 3
  def value(:EVENT_KIND_PEER_MISSING), do: 4
  def value(:EVENT_KIND_STRAGGLER), do: 5
  def value(number) when is_integer(number), do: number

  @doc "The name of a number, or the number where it has none."
  @spec key(integer()) :: t()
  def key(0), do: :EVENT_KIND_UNSPECIFIED
  def key(1), do: :EVENT_KIND_FORMED
  def key(2), do: :EVENT_KIND_OVER
  def key(3), do: :EVENT_KIND_MISMATCH
  def key(4), do: :EVENT_KIND_PEER_MISSING
  def key(5), do: :EVENT_KIND_STRAGGLER
  def key(number) when is_integer(number), do: number
end

defmodule RankBridge.Proto.V1.Event do
  @moduledoc """
  Something that happened on a rank.

  ## Fields

    * `number` - Ascending by one on this rank, from 1; begins again with a new process.
    * `time_us` - When it happened, by the clock of the rank's host: microseconds since 1970 in UTC.
    * `rank` - Rank in the gang that reports the event.
    * `generation` - Generation in which it happened, 1 or more.
    * `formed` - The generation was formed; this rank may be called. Every rank reports it.
    * `over` - The generation is over, because of this; lost ranks are in its `ranks`. Every rank reports it.
    * `mismatch` - The members of a group asked for different things; `ranks` shows every side, `rank` is the one whose side is in
      `expected`. Only the group's first rank reports it, even if it did not call itself.
    * `peer_missing` - Some members of a group did not call before the timeout; `ranks` names them. Reported as `mismatch` is.
    * `straggler` - Some members keep the others waiting. Only the group's first rank reports it.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.{Decode, Encode}

  @type kind ::
          {:formed, V1.FormedEvent.t()}
          | {:over, V1.Error.t()}
          | {:mismatch, V1.Error.t()}
          | {:peer_missing, V1.Error.t()}
          | {:straggler, V1.StragglerEvent.t()}

  @type t :: %__MODULE__{
          number: non_neg_integer(),
          time_us: non_neg_integer(),
          rank: non_neg_integer(),
          generation: non_neg_integer(),
          kind: kind() | nil,
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct number: 0,
            time_us: 0,
            rank: 0,
            generation: 0,
            kind: nil,
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
      Encode.implicit(0x08, :uint64, message.number),
      Encode.implicit(0x10, :uint64, message.time_us),
      Encode.implicit(0x18, :uint32, message.rank),
      Encode.implicit(0x20, :uint64, message.generation),
      encode_kind(message.kind),
      Encode.unknown(message.__unknown_fields__)
    ]
  end

  defp encode_kind(nil), do: []

  defp encode_kind({:formed, value}) do
    Encode.always(0x2A, {:message, V1.FormedEvent}, value)
  end

  defp encode_kind({:over, value}) do
    Encode.always(0x32, {:message, V1.Error}, value)
  end

  defp encode_kind({:mismatch, value}) do
    Encode.always(0x3A, {:message, V1.Error}, value)
  end

  defp encode_kind({:peer_missing, value}) do
    Encode.always(0x42, {:message, V1.Error}, value)
  end

  defp encode_kind({:straggler, value}) do
    Encode.always(0x4A, {:message, V1.StragglerEvent}, value)
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
    %{message | number: Decode.value(:uint64, raw)}
  end

  def __put__(message, 2, 0, raw, _depth) do
    %{message | time_us: Decode.value(:uint64, raw)}
  end

  def __put__(message, 3, 0, raw, _depth) do
    %{message | rank: Decode.value(:uint32, raw)}
  end

  def __put__(message, 4, 0, raw, _depth) do
    %{message | generation: Decode.value(:uint64, raw)}
  end

  def __put__(message, 5, 2, raw, depth) do
    held = Decode.held(message.kind, :formed)
    %{message | kind: {:formed, Decode.message(V1.FormedEvent, held, raw, depth)}}
  end

  def __put__(message, 6, 2, raw, depth) do
    held = Decode.held(message.kind, :over)
    %{message | kind: {:over, Decode.message(V1.Error, held, raw, depth)}}
  end

  def __put__(message, 7, 2, raw, depth) do
    held = Decode.held(message.kind, :mismatch)
    %{message | kind: {:mismatch, Decode.message(V1.Error, held, raw, depth)}}
  end

  def __put__(message, 8, 2, raw, depth) do
    held = Decode.held(message.kind, :peer_missing)
    %{message | kind: {:peer_missing, Decode.message(V1.Error, held, raw, depth)}}
  end

  def __put__(message, 9, 2, raw, depth) do
    held = Decode.held(message.kind, :straggler)
    %{message | kind: {:straggler, Decode.message(V1.StragglerEvent, held, raw, depth)}}
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
      {1, :number, :uint64, :implicit},
      {2, :time_us, :uint64, :implicit},
      {3, :rank, :uint32, :implicit},
      {4, :generation, :uint64, :implicit},
      {5, :formed, {:message, V1.FormedEvent}, {:oneof, :kind}},
      {6, :over, {:message, V1.Error}, {:oneof, :kind}},
      {7, :mismatch, {:message, V1.Error}, {:oneof, :kind}},
      {8, :peer_missing, {:message, V1.Error}, {:oneof, :kind}},
      {9, :straggler, {:message, V1.StragglerEvent}, {:oneof, :kind}}
    ]
  end
end

defmodule RankBridge.Proto.V1.FormedEvent do
  @moduledoc """
  A generation was formed.

  ## Fields

    * `world_size` - Ranks in the gang, 1 or more.
    * `groups` - Groups that were formed with it, by name, as this rank sees them.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.{Decode, Encode}

  @type t :: %__MODULE__{
          world_size: non_neg_integer(),
          groups: [V1.Group.t()],
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct world_size: 0,
            groups: [],
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
      Encode.implicit(0x08, :uint32, message.world_size),
      Encode.repeated(0x12, {:message, V1.Group}, message.groups),
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
    %{message | world_size: Decode.value(:uint32, raw)}
  end

  def __put__(message, 2, 2, raw, depth) do
    %{message | groups: [Decode.message(V1.Group, nil, raw, depth) | message.groups]}
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
      | groups: Enum.reverse(message.groups),
        __unknown_fields__: Enum.reverse(message.__unknown_fields__)
    }
  end

  @doc false
  @impl true
  @spec __fields__() :: [RankBridge.Protobuf.Message.field()]
  def __fields__ do
    [
      {1, :world_size, :uint32, :implicit},
      {2, :groups, {:message, V1.Group}, :repeated}
    ]
  end
end

defmodule RankBridge.Proto.V1.StragglerEvent do
  @moduledoc """
  An admission has been waiting for longer than the leader's --straggler-after since the first member came. Reported
  at that time; and once more if all others come after that, with no member missing.

  ## Fields

    * `group` - Name of the group.
    * `operation` - Kind of operation that the first member asked for: "all_reduce".
    * `operation_id` - Id of the operation. Empty: no member has named one.
    * `arrived` - Members that have come, in group order.
    * `missing` - Members that have not, in group order. None: all have come meanwhile.
    * `waited_us` - How long the first member has waited, or had waited when the last one came, in microseconds.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.{Decode, Encode}

  @type t :: %__MODULE__{
          group: String.t(),
          operation: String.t(),
          operation_id: String.t(),
          arrived: [V1.ArrivedMember.t()],
          missing: [V1.MissingMember.t()],
          waited_us: non_neg_integer(),
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct group: "",
            operation: "",
            operation_id: "",
            arrived: [],
            missing: [],
            waited_us: 0,
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
      Encode.implicit(0x0A, :string, message.group),
      Encode.implicit(0x12, :string, message.operation),
      Encode.implicit(0x1A, :string, message.operation_id),
      Encode.repeated(0x22, {:message, V1.ArrivedMember}, message.arrived),
      Encode.repeated(0x2A, {:message, V1.MissingMember}, message.missing),
      Encode.implicit(0x30, :uint64, message.waited_us),
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
    %{message | group: Decode.value(:string, raw)}
  end

  def __put__(message, 2, 2, raw, _depth) do
    %{message | operation: Decode.value(:string, raw)}
  end

  def __put__(message, 3, 2, raw, _depth) do
    %{message | operation_id: Decode.value(:string, raw)}
  end

  def __put__(message, 4, 2, raw, depth) do
    %{message | arrived: [Decode.message(V1.ArrivedMember, nil, raw, depth) | message.arrived]}
  end

  def __put__(message, 5, 2, raw, depth) do
    %{message | missing: [Decode.message(V1.MissingMember, nil, raw, depth) | message.missing]}
  end

  def __put__(message, 6, 0, raw, _depth) do
    %{message | waited_us: Decode.value(:uint64, raw)}
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
      | arrived: Enum.reverse(message.arrived),
        missing: Enum.reverse(message.missing),
        __unknown_fields__: Enum.reverse(message.__unknown_fields__)
    }
  end

  @doc false
  @impl true
  @spec __fields__() :: [RankBridge.Protobuf.Message.field()]
  def __fields__ do
    [
      {1, :group, :string, :implicit},
      {2, :operation, :string, :implicit},
      {3, :operation_id, :string, :implicit},
      {4, :arrived, {:message, V1.ArrivedMember}, :repeated},
      {5, :missing, {:message, V1.MissingMember}, :repeated},
      {6, :waited_us, :uint64, :implicit}
    ]
  end
end

defmodule RankBridge.Proto.V1.ArrivedMember do
  @moduledoc """
  A member that has come for an operation.

  ## Fields

    * `rank` - Rank in the gang.
    * `rank_in_group` - Rank in the group.
    * `after_us` - How long after the first member, in microseconds. 0: it is the first.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Protobuf.{Decode, Encode}

  @type t :: %__MODULE__{
          rank: non_neg_integer(),
          rank_in_group: non_neg_integer(),
          after_us: non_neg_integer(),
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct rank: 0,
            rank_in_group: 0,
            after_us: 0,
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
      Encode.implicit(0x08, :uint32, message.rank),
      Encode.implicit(0x10, :uint32, message.rank_in_group),
      Encode.implicit(0x18, :uint64, message.after_us),
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
    %{message | rank: Decode.value(:uint32, raw)}
  end

  def __put__(message, 2, 0, raw, _depth) do
    %{message | rank_in_group: Decode.value(:uint32, raw)}
  end

  def __put__(message, 3, 0, raw, _depth) do
    %{message | after_us: Decode.value(:uint64, raw)}
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
      {1, :rank, :uint32, :implicit},
      {2, :rank_in_group, :uint32, :implicit},
      {3, :after_us, :uint64, :implicit}
    ]
  end
end

defmodule RankBridge.Proto.V1.MissingMember do
  @moduledoc """
  A member that has not come for an operation.

  ## Fields

    * `rank` - Rank in the gang.
    * `rank_in_group` - Rank in the group.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Protobuf.{Decode, Encode}

  @type t :: %__MODULE__{
          rank: non_neg_integer(),
          rank_in_group: non_neg_integer(),
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct rank: 0,
            rank_in_group: 0,
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
      Encode.implicit(0x08, :uint32, message.rank),
      Encode.implicit(0x10, :uint32, message.rank_in_group),
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
    %{message | rank: Decode.value(:uint32, raw)}
  end

  def __put__(message, 2, 0, raw, _depth) do
    %{message | rank_in_group: Decode.value(:uint32, raw)}
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
      {1, :rank, :uint32, :implicit},
      {2, :rank_in_group, :uint32, :implicit}
    ]
  end
end
