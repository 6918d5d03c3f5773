# Generated from rankbridge/v1/debug_service.proto by protoc-gen-rankbridge-elixir. Do not edit.

defmodule RankBridge.Proto.V1.VerdictKind do
  @moduledoc """
  What is wrong with a gang.

  Numbers without a name stay integers.

  ## Values

    * `:VERDICT_KIND_UNSPECIFIED` - Not said. Never sent.
    * `:VERDICT_KIND_HEALTHY` - Nobody waits for long, and nothing has failed.
    * `:VERDICT_KIND_NEVER_CALLED` - Others wait for a rank that has not called; its condition says why.
    * `:VERDICT_KIND_MISMATCH_KIND` - Members asked for different kinds of operation.
    * `:VERDICT_KIND_MISMATCH_SHAPE` - Members asked for different shapes or sizes.
    * `:VERDICT_KIND_MISMATCH_DTYPE` - Members asked for different dtypes.
    * `:VERDICT_KIND_MISMATCH_OP` - Members asked for different reduce ops.
    * `:VERDICT_KIND_MISMATCH_ROOT` - Members named different roots.
    * `:VERDICT_KIND_MISMATCH_TERMS` - Members differ in something else that they must agree on.
    * `:VERDICT_KIND_MEMBERSHIP` - Ranks know a group by one name with different members.
    * `:VERDICT_KIND_ORDER` - Ranks called the same in another order.
    * `:VERDICT_KIND_ORDER_INVERSION` - Ranks wait for each other in a circle.
    * `:VERDICT_KIND_P2P_UNMATCHED` - A send and a receive that do not meet.
    * `:VERDICT_KIND_RENDEZVOUS` - A rank does not come to the beginning of the job.
    * `:VERDICT_KIND_SLOW` - The gang moves, and one rank keeps the others waiting.
    * `:VERDICT_KIND_NETWORK` - The network between ranks.
    * `:VERDICT_KIND_UNKNOWN` - Nothing is certain; what was seen is in `evidence`.
  """

  @type t ::
          :VERDICT_KIND_UNSPECIFIED
          | :VERDICT_KIND_HEALTHY
          | :VERDICT_KIND_NEVER_CALLED
          | :VERDICT_KIND_MISMATCH_KIND
          | :VERDICT_KIND_MISMATCH_SHAPE
          | :VERDICT_KIND_MISMATCH_DTYPE
          | :VERDICT_KIND_MISMATCH_OP
          | :VERDICT_KIND_MISMATCH_ROOT
          | :VERDICT_KIND_MISMATCH_TERMS
          | :VERDICT_KIND_MEMBERSHIP
          | :VERDICT_KIND_ORDER
          | :VERDICT_KIND_ORDER_INVERSION
          | :VERDICT_KIND_P2P_UNMATCHED
          | :VERDICT_KIND_RENDEZVOUS
          | :VERDICT_KIND_SLOW
          | :VERDICT_KIND_NETWORK
          | :VERDICT_KIND_UNKNOWN
          | integer()

  @doc "The number of each name."
  @spec mapping() :: %{atom() => integer()}
  def mapping do
    %{
      VERDICT_KIND_UNSPECIFIED: 0,
      VERDICT_KIND_HEALTHY: 1,
      VERDICT_KIND_NEVER_CALLED: 2,
      VERDICT_KIND_MISMATCH_KIND: 3,
      VERDICT_KIND_MISMATCH_SHAPE: 4,
      VERDICT_KIND_MISMATCH_DTYPE: 5,
      VERDICT_KIND_MISMATCH_OP: 6,
      VERDICT_KIND_MISMATCH_ROOT: 7,
      VERDICT_KIND_MISMATCH_TERMS: 8,
      VERDICT_KIND_MEMBERSHIP: 9,
      VERDICT_KIND_ORDER: 10,
      VERDICT_KIND_ORDER_INVERSION: 11,
      VERDICT_KIND_P2P_UNMATCHED: 12,
      VERDICT_KIND_RENDEZVOUS: 13,
      VERDICT_KIND_SLOW: 14,
      VERDICT_KIND_NETWORK: 15,
      VERDICT_KIND_UNKNOWN: 16
    }
  end

  @doc "The number of a name; a number is its own."
  @spec value(t()) :: integer()
  def value(:VERDICT_KIND_UNSPECIFIED), do: 0
  def value(:VERDICT_KIND_HEALTHY), do: 1
  def value(:VERDICT_KIND_NEVER_CALLED), do: 2
  def value(:VERDICT_KIND_MISMATCH_KIND), do: 3
  def value(:VERDICT_KIND_MISMATCH_SHAPE), do: 4
  def value(:VERDICT_KIND_MISMATCH_DTYPE), do: 5
  def value(:VERDICT_KIND_MISMATCH_OP), do: 6
  def value(:VERDICT_KIND_MISMATCH_ROOT), do: 7
  def value(:VERDICT_KIND_MISMATCH_TERMS), do: 8
  def value(:VERDICT_KIND_MEMBERSHIP), do: 9
  def value(:VERDICT_KIND_ORDER), do: 10
  def value(:VERDICT_KIND_ORDER_INVERSION), do: 11
  def value(:VERDICT_KIND_P2P_UNMATCHED), do: 12
  def value(:VERDICT_KIND_RENDEZVOUS), do: 13
  def value(:VERDICT_KIND_SLOW), do: 14
  def value(:VERDICT_KIND_NETWORK), do: 15
  def value(:VERDICT_KIND_UNKNOWN), do: 16
  def value(number) when is_integer(number), do: number

  @doc "The name of a number, or the number where it has none."
  @spec key(integer()) :: t()
  def key(0), do: :VERDICT_KIND_UNSPECIFIED
  def key(1), do: :VERDICT_KIND_HEALTHY
  def key(2), do: :VERDICT_KIND_NEVER_CALLED
  def key(3), do: :VERDICT_KIND_MISMATCH_KIND
  def key(4), do: :VERDICT_KIND_MISMATCH_SHAPE
  def key(5), do: :VERDICT_KIND_MISMATCH_DTYPE
  def key(6), do: :VERDICT_KIND_MISMATCH_OP
  def key(7), do: :VERDICT_KIND_MISMATCH_ROOT
  def key(8), do: :VERDICT_KIND_MISMATCH_TERMS
  def key(9), do: :VERDICT_KIND_MEMBERSHIP
  def key(10), do: :VERDICT_KIND_ORDER
  def key(11), do: :VERDICT_KIND_ORDER_INVERSION
  def key(12), do: :VERDICT_KIND_P2P_UNMATCHED
  def key(13), do: :VERDICT_KIND_RENDEZVOUS
  def key(14), do: :VERDICT_KIND_SLOW
  def key(15), do: :VERDICT_KIND_NETWORK
  def key(16), do: :VERDICT_KIND_UNKNOWN
  def key(number) when is_integer(number), do: number
end

defmodule RankBridge.Proto.V1.Condition do
  @moduledoc """
  What a rank does instead of what others wait for.

  Numbers without a name stay integers.

  ## Values

    * `:CONDITION_UNSPECIFIED` - Not said. Never sent.
    * `:CONDITION_ASLEEP` - It sleeps until a time.
    * `:CONDITION_SPINNING` - It runs, and calls no collective.
    * `:CONDITION_BLOCKED_READ` - It waits for input: of a file, a pipe, a socket.
    * `:CONDITION_LOCK` - It waits for a lock.
    * `:CONDITION_GIL_HELD` - A thread of it holds Python's lock, and waits.
    * `:CONDITION_STOPPED` - It is stopped by a signal or a debugger.
    * `:CONDITION_DEAD` - It has ended by a signal or with a failure.
    * `:CONDITION_EXITED` - It has ended normally.
    * `:CONDITION_TEARDOWN` - It is on its way out.
    * `:CONDITION_WAITING_FOR_CHILD` - It waits for a process that it has started.
    * `:CONDITION_STARVED` - It is ready to run, and has no CPU.
    * `:CONDITION_IN_COLLECTIVE` - It is in a collective.
    * `:CONDITION_IDLE` - It has no call: its controller has not called it.
    * `:CONDITION_SILENT` - It does not answer, and what it does cannot be seen from outside.
    * `:CONDITION_UNKNOWN` - It is not known.
    * `:CONDITION_HELD` - A breakpoint holds it.
  """

  @type t ::
          :CONDITION_UNSPECIFIED
          | :CONDITION_ASLEEP
          | :CONDITION_SPINNING
          | :CONDITION_BLOCKED_READ
          | :CONDITION_LOCK
          | :CONDITION_GIL_HELD
          | :CONDITION_STOPPED
          | :CONDITION_DEAD
          | :CONDITION_EXITED
          | :CONDITION_TEARDOWN
          | :CONDITION_WAITING_FOR_CHILD
          | :CONDITION_STARVED
          | :CONDITION_IN_COLLECTIVE
          | :CONDITION_IDLE
          | :CONDITION_SILENT
          | :CONDITION_UNKNOWN
          | :CONDITION_HELD
          | integer()

  @doc "The number of each name."
  @spec mapping() :: %{atom() => integer()}
  def mapping do
    %{
      CONDITION_UNSPECIFIED: 0,
      CONDITION_ASLEEP: 1,
      CONDITION_SPINNING: 2,
      CONDITION_BLOCKED_READ: 3,
      CONDITION_LOCK: 4,
      CONDITION_GIL_HELD: 5,
      CONDITION_STOPPED: 6,
      CONDITION_DEAD: 7,
      CONDITION_EXITED: 8,
      CONDITION_TEARDOWN: 9,
      CONDITION_WAITING_FOR_CHILD: 10,
      CONDITION_STARVED: 11,
      CONDITION_IN_COLLECTIVE: 12,
      CONDITION_IDLE: 13,
      CONDITION_SILENT: 14,
      CONDITION_UNKNOWN: 15,
      CONDITION_HELD: 16
    }
  end

  @doc "The number of a name; a number is its own."
  @spec value(t()) :: integer()
  def value(:CONDITION_UNSPECIFIED), do: 0
  def value(:CONDITION_ASLEEP), do: 1
  def value(:CONDITION_SPINNING), do: 2
  def value(:CONDITION_BLOCKED_READ), do: 3
  def value(:CONDITION_LOCK), do: 4
  def value(:CONDITION_GIL_HELD), do: 5
  def value(:CONDITION_STOPPED), do: 6
  def value(:CONDITION_DEAD), do: 7
  def value(:CONDITION_EXITED), do: 8
  def value(:CONDITION_TEARDOWN), do: 9
  def value(:CONDITION_WAITING_FOR_CHILD), do: 10
  def value(:CONDITION_STARVED), do: 11
  def value(:CONDITION_IN_COLLECTIVE), do: 12
  def value(:CONDITION_IDLE), do: 13
  def value(:CONDITION_SILENT), do: 14
  def value(:CONDITION_UNKNOWN), do: 15
  def value(:CONDITION_HELD), do: 16
  def value(number) when is_integer(number), do: number

  @doc "The name of a number, or the number where it has none."
  @spec key(integer()) :: t()
  def key(0), do: :CONDITION_UNSPECIFIED
  def key(1), do: :CONDITION_ASLEEP
  def key(2), do: :CONDITION_SPINNING
  def key(3), do: :CONDITION_BLOCKED_READ
  def key(4), do: :CONDITION_LOCK
  def key(5), do: :CONDITION_GIL_HELD
  def key(6), do: :CONDITION_STOPPED
  def key(7), do: :CONDITION_DEAD
  def key(8), do: :CONDITION_EXITED
  def key(9), do: :CONDITION_TEARDOWN
  def key(10), do: :CONDITION_WAITING_FOR_CHILD
  def key(11), do: :CONDITION_STARVED
  def key(12), do: :CONDITION_IN_COLLECTIVE
  def key(13), do: :CONDITION_IDLE
  def key(14), do: :CONDITION_SILENT
  def key(15), do: :CONDITION_UNKNOWN
  def key(16), do: :CONDITION_HELD
  def key(number) when is_integer(number), do: number
end

defmodule RankBridge.Proto.V1.GetRecordRequest do
  @moduledoc """
  Asks for the record.

  ## Fields

    * `limit` - At most so many operations, the last ones. 0: all.
    * `group` - Only those of a group. Empty: of all.
    * `by_script` - Only calls of the user's own code (true), or only operations of controllers (false). Not set: both.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Protobuf.{Decode, Encode}

  @type t :: %__MODULE__{
          limit: non_neg_integer(),
          group: String.t(),
          by_script: boolean() | nil,
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct limit: 0,
            group: "",
            by_script: nil,
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
      Encode.implicit(0x08, :uint32, message.limit),
      Encode.implicit(0x12, :string, message.group),
      Encode.optional(0x18, :bool, message.by_script),
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
    %{message | limit: Decode.value(:uint32, raw)}
  end

  def __put__(message, 2, 2, raw, _depth) do
    %{message | group: Decode.value(:string, raw)}
  end

  def __put__(message, 3, 0, raw, _depth) do
    %{message | by_script: Decode.value(:bool, raw)}
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
      {1, :limit, :uint32, :implicit},
      {2, :group, :string, :implicit},
      {3, :by_script, :bool, :optional}
    ]
  end
end

defmodule RankBridge.Proto.V1.GetRecordResponse do
  @moduledoc """
  The record.

  ## Fields

    * `operations` - Operations that are done, in the order in which they ended; then those that are not, the oldest first.
    * `ended` - How many operations have ended on this rank since it started. The record keeps the last ones.
    * `from_outside` - Whether it was read from outside: of operations that are not done, those that were accepted last may be missing.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.{Decode, Encode}

  @type t :: %__MODULE__{
          operations: [V1.RecordedOperation.t()],
          ended: non_neg_integer(),
          from_outside: boolean(),
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct operations: [],
            ended: 0,
            from_outside: false,
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
      Encode.repeated(0x0A, {:message, V1.RecordedOperation}, message.operations),
      Encode.implicit(0x10, :uint64, message.ended),
      Encode.implicit(0x18, :bool, message.from_outside),
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
    %{
      message
      | operations: [Decode.message(V1.RecordedOperation, nil, raw, depth) | message.operations]
    }
  end

  def __put__(message, 2, 0, raw, _depth) do
    %{message | ended: Decode.value(:uint64, raw)}
  end

  def __put__(message, 3, 0, raw, _depth) do
    %{message | from_outside: Decode.value(:bool, raw)}
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
      | operations: Enum.reverse(message.operations),
        __unknown_fields__: Enum.reverse(message.__unknown_fields__)
    }
  end

  @doc false
  @impl true
  @spec __fields__() :: [RankBridge.Protobuf.Message.field()]
  def __fields__ do
    [
      {1, :operations, {:message, V1.RecordedOperation}, :repeated},
      {2, :ended, :uint64, :implicit},
      {3, :from_outside, :bool, :implicit}
    ]
  end
end

defmodule RankBridge.Proto.V1.WatchRecordRequest do
  @moduledoc """
  Asks for the record as it grows.

  ## Fields

    * `group` - Only operations of a group. Empty: of all.
    * `after` - `ended` of the response after which to begin; 0: with the oldest operation that the record has. More than have ended, and a
      number of another record, count as 0. Not set: what ends from now on, and the `last` before.
    * `record` - Record in which `after` counts: `record` of that response. 0: whichever the rank has.
    * `interval_ms` - Time between two responses, in milliseconds: 50 to 10,000. 0: 250. Where nothing happens, a response comes each second, or
      after this time if it is longer.
    * `last` - Where `after` is not set: so many operations that have ended last come first, as far as the record has them. 0: none.
    * `by_script` - Only calls of the user's own code (true), or only operations of controllers (false). Not set: both.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Protobuf.{Decode, Encode}

  @type t :: %__MODULE__{
          group: String.t(),
          after: non_neg_integer() | nil,
          record: non_neg_integer(),
          interval_ms: non_neg_integer(),
          last: non_neg_integer(),
          by_script: boolean() | nil,
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct group: "",
            after: nil,
            record: 0,
            interval_ms: 0,
            last: 0,
            by_script: nil,
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
      Encode.optional(0x10, :uint64, message.after),
      Encode.implicit(0x18, :uint64, message.record),
      Encode.implicit(0x20, :uint32, message.interval_ms),
      Encode.implicit(0x28, :uint32, message.last),
      Encode.optional(0x30, :bool, message.by_script),
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

  def __put__(message, 2, 0, raw, _depth) do
    %{message | after: Decode.value(:uint64, raw)}
  end

  def __put__(message, 3, 0, raw, _depth) do
    %{message | record: Decode.value(:uint64, raw)}
  end

  def __put__(message, 4, 0, raw, _depth) do
    %{message | interval_ms: Decode.value(:uint32, raw)}
  end

  def __put__(message, 5, 0, raw, _depth) do
    %{message | last: Decode.value(:uint32, raw)}
  end

  def __put__(message, 6, 0, raw, _depth) do
    %{message | by_script: Decode.value(:bool, raw)}
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
      {1, :group, :string, :implicit},
      {2, :after, :uint64, :optional},
      {3, :record, :uint64, :implicit},
      {4, :interval_ms, :uint32, :implicit},
      {5, :last, :uint32, :implicit},
      {6, :by_script, :bool, :optional}
    ]
  end
end

defmodule RankBridge.Proto.V1.WatchRecordResponse do
  @moduledoc """
  What has happened since the response before. The first comes at once.

  ## Fields

    * `growth` - How the record has grown.
    * `error` - Why it cannot be watched.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.{Decode, Encode}

  @type outcome :: {:growth, V1.RecordGrowth.t()} | {:error, V1.Error.t()}

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

  defp encode_outcome({:growth, value}) do
    Encode.always(0x0A, {:message, V1.RecordGrowth}, value)
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
    held = Decode.held(message.outcome, :growth)
    %{message | outcome: {:growth, Decode.message(V1.RecordGrowth, held, raw, depth)}}
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
      {1, :growth, {:message, V1.RecordGrowth}, {:oneof, :outcome}},
      {2, :error, {:message, V1.Error}, {:oneof, :outcome}}
    ]
  end
end

defmodule RankBridge.Proto.V1.RecordGrowth do
  @moduledoc """
  How a record has grown.

  ## Fields

    * `operations` - Operations that have ended since the response before, in the order in which they ended: at most 1,000. The next response
      follows at once if there are more.
    * `pending` - Operations that are not answered now, the oldest first.
    * `ended` - How many operations have ended on this rank since it started, up to the last one here; of all groups.
    * `lost` - How many of them this watcher has lost since the response before, as the record has not kept them long enough; of all
      groups.
    * `record` - Names the record in which `ended` counts; another process of the rank has another.
    * `at_us` - When it was so, by the clock of the rank's host: microseconds since 1970 in UTC.
    * `from_outside` - Whether it was read from outside, because the rank does not run Python: it is stopped, or a thread holds Python's lock.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.{Decode, Encode}

  @type t :: %__MODULE__{
          operations: [V1.RecordedOperation.t()],
          pending: [V1.RecordedOperation.t()],
          ended: non_neg_integer(),
          lost: non_neg_integer(),
          record: non_neg_integer(),
          at_us: non_neg_integer(),
          from_outside: boolean(),
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct operations: [],
            pending: [],
            ended: 0,
            lost: 0,
            record: 0,
            at_us: 0,
            from_outside: false,
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
      Encode.repeated(0x0A, {:message, V1.RecordedOperation}, message.operations),
      Encode.repeated(0x12, {:message, V1.RecordedOperation}, message.pending),
      Encode.implicit(0x18, :uint64, message.ended),
      Encode.implicit(0x20, :uint64, message.lost),
      Encode.implicit(0x28, :uint64, message.record),
      Encode.implicit(0x30, :uint64, message.at_us),
      Encode.implicit(0x38, :bool, message.from_outside),
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
    %{
      message
      | operations: [Decode.message(V1.RecordedOperation, nil, raw, depth) | message.operations]
    }
  end

  def __put__(message, 2, 2, raw, depth) do
    %{
      message
      | pending: [Decode.message(V1.RecordedOperation, nil, raw, depth) | message.pending]
    }
  end

  def __put__(message, 3, 0, raw, _depth) do
    %{message | ended: Decode.value(:uint64, raw)}
  end

  def __put__(message, 4, 0, raw, _depth) do
    %{message | lost: Decode.value(:uint64, raw)}
  end

  def __put__(message, 5, 0, raw, _depth) do
    %{message | record: Decode.value(:uint64, raw)}
  end

  def __put__(message, 6, 0, raw, _depth) do
    %{message | at_us: Decode.value(:uint64, raw)}
  end

  def __put__(message, 7, 0, raw, _depth) do
    %{message | from_outside: Decode.value(:bool, raw)}
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
      | operations: Enum.reverse(message.operations),
        pending: Enum.reverse(message.pending),
        __unknown_fields__: Enum.reverse(message.__unknown_fields__)
    }
  end

  @doc false
  @impl true
  @spec __fields__() :: [RankBridge.Protobuf.Message.field()]
  def __fields__ do
    [
      {1, :operations, {:message, V1.RecordedOperation}, :repeated},
      {2, :pending, {:message, V1.RecordedOperation}, :repeated},
      {3, :ended, :uint64, :implicit},
      {4, :lost, :uint64, :implicit},
      {5, :record, :uint64, :implicit},
      {6, :at_us, :uint64, :implicit},
      {7, :from_outside, :bool, :implicit}
    ]
  end
end

defmodule RankBridge.Proto.V1.RecordedOperation do
  @moduledoc """
  An operation in the record.

  ## Fields

    * `operation` - Its kind: "all_reduce".
    * `group` - Name of its group.
    * `operation_id` - Its operation id; of a call of the user's own code, what torch's group and `number` make, the same on all members. Empty: none.
    * `session_id` - Session of its caller. Empty: the shared one.
    * `generation` - Generation in which it was called.
    * `contract` - What its members agree on: "all_reduce dtype=float32 shape=[4] op=sum". Empty: it was not announced, or needs no agreement.
    * `site` - The line of code that has made the call; of a library that a script has called, "loop.py:7 < train.py:88". Empty: not
      said.
    * `function` - Name of the user's function that it calls. Empty: none.
    * `called_us` - When the rank accepted it, by the clock of the rank's host: microseconds since 1970 in UTC.
    * `announced_us` - When it was announced to the group's leader, in microseconds after `called_us`. Not set: it was not.
    * `entered_us` - When it was admitted and entered the backend, or the function began, likewise.
    * `done_us` - When it was answered, likewise. Not set: it is not yet.
    * `phase` - How far it has come.
    * `code` - How it ended. ERROR_CODE_UNSPECIFIED: well, or not yet.
    * `message` - The error's text. Empty: none.
    * `indefinite` - Whether other ranks may have done it although it failed here.
    * `sequence` - How many operations its group had admitted in the generation when it was announced: of those that were admitted, the same
      on all members for the same operation alone. Not set: it was not announced.
    * `by_script` - Whether the user's own code has called it, by torch.distributed: a function on the rank, or the script of the job to which it
      is attached. Otherwise a controller has.
    * `number` - Of a call of the user's own code: its number in its group, from 1, the same on all members; of a coordinator's send or receive,
      among those of its kind with the same peer. 0: it has none, as a send or a receive of torch.distributed.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.{Decode, Encode}

  @type t :: %__MODULE__{
          operation: String.t(),
          group: String.t(),
          operation_id: String.t(),
          session_id: String.t(),
          generation: non_neg_integer(),
          contract: String.t(),
          site: String.t(),
          function: String.t(),
          called_us: non_neg_integer(),
          announced_us: non_neg_integer() | nil,
          entered_us: non_neg_integer() | nil,
          done_us: non_neg_integer() | nil,
          phase: V1.Phase.t(),
          code: V1.ErrorCode.t(),
          message: String.t(),
          indefinite: boolean(),
          sequence: non_neg_integer() | nil,
          by_script: boolean(),
          number: non_neg_integer(),
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct operation: "",
            group: "",
            operation_id: "",
            session_id: "",
            generation: 0,
            contract: "",
            site: "",
            function: "",
            called_us: 0,
            announced_us: nil,
            entered_us: nil,
            done_us: nil,
            phase: :PHASE_UNSPECIFIED,
            code: :ERROR_CODE_UNSPECIFIED,
            message: "",
            indefinite: false,
            sequence: nil,
            by_script: false,
            number: 0,
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
      Encode.implicit(0x0A, :string, message.operation),
      Encode.implicit(0x12, :string, message.group),
      Encode.implicit(0x1A, :string, message.operation_id),
      Encode.implicit(0x22, :string, message.session_id),
      Encode.implicit(0x28, :uint64, message.generation),
      Encode.implicit(0x32, :string, message.contract),
      Encode.implicit(0x3A, :string, message.site),
      Encode.implicit(0x42, :string, message.function),
      Encode.implicit(0x48, :uint64, message.called_us),
      Encode.optional(0x50, :uint64, message.announced_us),
      Encode.optional(0x58, :uint64, message.entered_us),
      Encode.optional(0x60, :uint64, message.done_us),
      Encode.implicit(0x68, {:enum, V1.Phase}, message.phase),
      Encode.implicit(0x70, {:enum, V1.ErrorCode}, message.code),
      Encode.implicit(0x7A, :string, message.message),
      Encode.implicit(0x80, :bool, message.indefinite),
      Encode.optional(0x88, :uint64, message.sequence),
      Encode.implicit(0x90, :bool, message.by_script),
      Encode.implicit(0x98, :uint64, message.number),
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
    %{message | operation: Decode.value(:string, raw)}
  end

  def __put__(message, 2, 2, raw, _depth) do
    %{message | group: Decode.value(:string, raw)}
  end

  def __put__(message, 3, 2, raw, _depth) do
    %{message | operation_id: Decode.value(:string, raw)}
  end

  def __put__(message, 4, 2, raw, _depth) do
    %{message | session_id: Decode.value(:string, raw)}
  end

  def __put__(message, 5, 0, raw, _depth) do
    %{message | generation: Decode.value(:uint64, raw)}
  end

  def __put__(message, 6, 2, raw, _depth) do
    %{message | contract: Decode.value(:string, raw)}
  end

  def __put__(message, 7, 2, raw, _depth) do
    %{message | site: Decode.value(:string, raw)}
  end

  def __put__(message, 8, 2, raw, _depth) do
    %{message | function: Decode.value(:string, raw)}
  end

  def __put__(message, 9, 0, raw, _depth) do
    %{message | called_us: Decode.value(:uint64, raw)}
  end

  def __put__(message, 10, 0, raw, _depth) do
    %{message | announced_us: Decode.value(:uint64, raw)}
  end

  def __put__(message, 11, 0, raw, _depth) do
    %{message | entered_us: Decode.value(:uint64, raw)}
  end

  def __put__(message, 12, 0, raw, _depth) do
    %{message | done_us: Decode.value(:uint64, raw)}
  end

  def __put__(message, 13, 0, raw, _depth) do
    %{message | phase: Decode.value({:enum, V1.Phase}, raw)}
  end

  def __put__(message, 14, 0, raw, _depth) do
    %{message | code: Decode.value({:enum, V1.ErrorCode}, raw)}
  end

  def __put__(message, 15, 2, raw, _depth) do
    %{message | message: Decode.value(:string, raw)}
  end

  def __put__(message, 16, 0, raw, _depth) do
    %{message | indefinite: Decode.value(:bool, raw)}
  end

  def __put__(message, 17, 0, raw, _depth) do
    %{message | sequence: Decode.value(:uint64, raw)}
  end

  def __put__(message, 18, 0, raw, _depth) do
    %{message | by_script: Decode.value(:bool, raw)}
  end

  def __put__(message, 19, 0, raw, _depth) do
    %{message | number: Decode.value(:uint64, raw)}
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
      {1, :operation, :string, :implicit},
      {2, :group, :string, :implicit},
      {3, :operation_id, :string, :implicit},
      {4, :session_id, :string, :implicit},
      {5, :generation, :uint64, :implicit},
      {6, :contract, :string, :implicit},
      {7, :site, :string, :implicit},
      {8, :function, :string, :implicit},
      {9, :called_us, :uint64, :implicit},
      {10, :announced_us, :uint64, :optional},
      {11, :entered_us, :uint64, :optional},
      {12, :done_us, :uint64, :optional},
      {13, :phase, {:enum, V1.Phase}, :implicit},
      {14, :code, {:enum, V1.ErrorCode}, :implicit},
      {15, :message, :string, :implicit},
      {16, :indefinite, :bool, :implicit},
      {17, :sequence, :uint64, :optional},
      {18, :by_script, :bool, :implicit},
      {19, :number, :uint64, :implicit}
    ]
  end
end

defmodule RankBridge.Proto.V1.GetStacksRequest do
  @moduledoc """
  Asks for stacks.
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

defmodule RankBridge.Proto.V1.GetStacksResponse do
  @moduledoc """
  Stacks of a process.

  ## Fields

    * `threads` - Its threads that run Python, the main one first.
    * `from_outside` - Whether they were read from outside, because the rank does not run Python.
    * `trouble` - Why there are none, and what would make it possible. Empty: there are.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.{Decode, Encode}

  @type t :: %__MODULE__{
          threads: [V1.ThreadStack.t()],
          from_outside: boolean(),
          trouble: String.t(),
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct threads: [],
            from_outside: false,
            trouble: "",
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
      Encode.repeated(0x0A, {:message, V1.ThreadStack}, message.threads),
      Encode.implicit(0x10, :bool, message.from_outside),
      Encode.implicit(0x1A, :string, message.trouble),
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
    %{message | threads: [Decode.message(V1.ThreadStack, nil, raw, depth) | message.threads]}
  end

  def __put__(message, 2, 0, raw, _depth) do
    %{message | from_outside: Decode.value(:bool, raw)}
  end

  def __put__(message, 3, 2, raw, _depth) do
    %{message | trouble: Decode.value(:string, raw)}
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
      | threads: Enum.reverse(message.threads),
        __unknown_fields__: Enum.reverse(message.__unknown_fields__)
    }
  end

  @doc false
  @impl true
  @spec __fields__() :: [RankBridge.Protobuf.Message.field()]
  def __fields__ do
    [
      {1, :threads, {:message, V1.ThreadStack}, :repeated},
      {2, :from_outside, :bool, :implicit},
      {3, :trouble, :string, :implicit}
    ]
  end
end

defmodule RankBridge.Proto.V1.ThreadStack do
  @moduledoc """
  The stack of a thread.

  ## Fields

    * `name` - Name of the thread: "MainThread".
    * `native_id` - The kernel's number of the thread.
    * `frames` - Its calls, the innermost first.
    * `state` - The thread's state, as `state` of `Process`. Empty: it was not asked for.
    * `holds_lock` - Whether it holds Python's lock. Not set: it is not known.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.{Decode, Encode}

  @type t :: %__MODULE__{
          name: String.t(),
          native_id: non_neg_integer(),
          frames: [V1.StackFrame.t()],
          state: String.t(),
          holds_lock: boolean() | nil,
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct name: "",
            native_id: 0,
            frames: [],
            state: "",
            holds_lock: nil,
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
      Encode.implicit(0x10, :uint64, message.native_id),
      Encode.repeated(0x1A, {:message, V1.StackFrame}, message.frames),
      Encode.implicit(0x22, :string, message.state),
      Encode.optional(0x28, :bool, message.holds_lock),
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

  def __put__(message, 2, 0, raw, _depth) do
    %{message | native_id: Decode.value(:uint64, raw)}
  end

  def __put__(message, 3, 2, raw, depth) do
    %{message | frames: [Decode.message(V1.StackFrame, nil, raw, depth) | message.frames]}
  end

  def __put__(message, 4, 2, raw, _depth) do
    %{message | state: Decode.value(:string, raw)}
  end

  def __put__(message, 5, 0, raw, _depth) do
    %{message | holds_lock: Decode.value(:bool, raw)}
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
      | frames: Enum.reverse(message.frames),
        __unknown_fields__: Enum.reverse(message.__unknown_fields__)
    }
  end

  @doc false
  @impl true
  @spec __fields__() :: [RankBridge.Protobuf.Message.field()]
  def __fields__ do
    [
      {1, :name, :string, :implicit},
      {2, :native_id, :uint64, :implicit},
      {3, :frames, {:message, V1.StackFrame}, :repeated},
      {4, :state, :string, :implicit},
      {5, :holds_lock, :bool, :optional}
    ]
  end
end

defmodule RankBridge.Proto.V1.StackFrame do
  @moduledoc """
  A call in a stack.

  ## Fields

    * `function` - Name of the function, with its class: "Lane._run".
    * `file` - File of its code.
    * `line` - The line at which it is.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Protobuf.{Decode, Encode}

  @type t :: %__MODULE__{
          function: String.t(),
          file: String.t(),
          line: non_neg_integer(),
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct function: "",
            file: "",
            line: 0,
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
      Encode.implicit(0x0A, :string, message.function),
      Encode.implicit(0x12, :string, message.file),
      Encode.implicit(0x18, :uint32, message.line),
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
    %{message | function: Decode.value(:string, raw)}
  end

  def __put__(message, 2, 2, raw, _depth) do
    %{message | file: Decode.value(:string, raw)}
  end

  def __put__(message, 3, 0, raw, _depth) do
    %{message | line: Decode.value(:uint32, raw)}
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
      {1, :function, :string, :implicit},
      {2, :file, :string, :implicit},
      {3, :line, :uint32, :implicit}
    ]
  end
end

defmodule RankBridge.Proto.V1.GetProcessRequest do
  @moduledoc """
  Asks for the process.
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

defmodule RankBridge.Proto.V1.GetProcessResponse do
  @moduledoc """
  A process.

  ## Fields

    * `process` - What the kernel says of it.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.{Decode, Encode}

  @type t :: %__MODULE__{
          process: V1.Process.t() | nil,
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct process: nil,
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
      Encode.optional(0x0A, {:message, V1.Process}, message.process),
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
    %{message | process: Decode.message(V1.Process, message.process, raw, depth)}
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
      {1, :process, {:message, V1.Process}, :optional}
    ]
  end
end

defmodule RankBridge.Proto.V1.Process do
  @moduledoc """
  What the kernel says of a process at a moment, and of one thread of it. What it does not say is not set.

  ## Fields

    * `pid` - Its process id, on its host.
    * `native_id` - The kernel's number of the thread: of the one that runs the user's code, if one does; otherwise of the main one.
    * `state` - The thread's state, as /proc has it: "R" runs, "S" sleeps, "D" waits for a device, "T" is stopped, "Z" has ended;
      "gone": there is no such process.
    * `wchan` - Where in the kernel the thread waits: "hrtimer_nanosleep". Empty: nowhere, or it is not said.
    * `syscall` - The system call that the thread is in: "futex". Empty: none, or one without a name here.
    * `cpu_us` - CPU time of the thread since it began, in microseconds.
    * `run_delay_us` - For how long the thread was ready to run and had no CPU, in microseconds.
    * `switches` - How often the thread gave up the CPU by itself.
    * `blocked_us` - For how long the thread has not run, in microseconds.
    * `resident_bytes` - Memory of the process, in bytes.
    * `resident_peak_bytes` - The most that it ever was, in bytes.
    * `throttled_us` - For how long the process's control group was held back because its share of the CPU was used up, in microseconds.
    * `oom_kills` - Processes of the control group that were killed for want of memory.
    * `children` - Processes that it has started and that are there: "4711 python S".
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Protobuf.{Decode, Encode}

  @type t :: %__MODULE__{
          pid: non_neg_integer(),
          native_id: non_neg_integer(),
          state: String.t(),
          wchan: String.t(),
          syscall: String.t(),
          cpu_us: non_neg_integer(),
          run_delay_us: non_neg_integer() | nil,
          switches: non_neg_integer() | nil,
          blocked_us: non_neg_integer() | nil,
          resident_bytes: non_neg_integer() | nil,
          resident_peak_bytes: non_neg_integer() | nil,
          throttled_us: non_neg_integer() | nil,
          oom_kills: non_neg_integer() | nil,
          children: [String.t()],
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct pid: 0,
            native_id: 0,
            state: "",
            wchan: "",
            syscall: "",
            cpu_us: 0,
            run_delay_us: nil,
            switches: nil,
            blocked_us: nil,
            resident_bytes: nil,
            resident_peak_bytes: nil,
            throttled_us: nil,
            oom_kills: nil,
            children: [],
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
      Encode.implicit(0x08, :uint64, message.pid),
      Encode.implicit(0x10, :uint64, message.native_id),
      Encode.implicit(0x1A, :string, message.state),
      Encode.implicit(0x22, :string, message.wchan),
      Encode.implicit(0x2A, :string, message.syscall),
      Encode.implicit(0x30, :uint64, message.cpu_us),
      Encode.optional(0x38, :uint64, message.run_delay_us),
      Encode.optional(0x40, :uint64, message.switches),
      Encode.optional(0x48, :uint64, message.blocked_us),
      Encode.optional(0x50, :uint64, message.resident_bytes),
      Encode.optional(0x58, :uint64, message.resident_peak_bytes),
      Encode.optional(0x60, :uint64, message.throttled_us),
      Encode.optional(0x68, :uint64, message.oom_kills),
      Encode.repeated(0x72, :string, message.children),
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
    %{message | pid: Decode.value(:uint64, raw)}
  end

  def __put__(message, 2, 0, raw, _depth) do
    %{message | native_id: Decode.value(:uint64, raw)}
  end

  def __put__(message, 3, 2, raw, _depth) do
    %{message | state: Decode.value(:string, raw)}
  end

  def __put__(message, 4, 2, raw, _depth) do
    %{message | wchan: Decode.value(:string, raw)}
  end

  def __put__(message, 5, 2, raw, _depth) do
    %{message | syscall: Decode.value(:string, raw)}
  end

  def __put__(message, 6, 0, raw, _depth) do
    %{message | cpu_us: Decode.value(:uint64, raw)}
  end

  def __put__(message, 7, 0, raw, _depth) do
    %{message | run_delay_us: Decode.value(:uint64, raw)}
  end

  def __put__(message, 8, 0, raw, _depth) do
    %{message | switches: Decode.value(:uint64, raw)}
  end

  def __put__(message, 9, 0, raw, _depth) do
    %{message | blocked_us: Decode.value(:uint64, raw)}
  end

  def __put__(message, 10, 0, raw, _depth) do
    %{message | resident_bytes: Decode.value(:uint64, raw)}
  end

  def __put__(message, 11, 0, raw, _depth) do
    %{message | resident_peak_bytes: Decode.value(:uint64, raw)}
  end

  def __put__(message, 12, 0, raw, _depth) do
    %{message | throttled_us: Decode.value(:uint64, raw)}
  end

  def __put__(message, 13, 0, raw, _depth) do
    %{message | oom_kills: Decode.value(:uint64, raw)}
  end

  def __put__(message, 14, 2, raw, _depth) do
    %{message | children: [Decode.value(:string, raw) | message.children]}
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
      | children: Enum.reverse(message.children),
        __unknown_fields__: Enum.reverse(message.__unknown_fields__)
    }
  end

  @doc false
  @impl true
  @spec __fields__() :: [RankBridge.Protobuf.Message.field()]
  def __fields__ do
    [
      {1, :pid, :uint64, :implicit},
      {2, :native_id, :uint64, :implicit},
      {3, :state, :string, :implicit},
      {4, :wchan, :string, :implicit},
      {5, :syscall, :string, :implicit},
      {6, :cpu_us, :uint64, :implicit},
      {7, :run_delay_us, :uint64, :optional},
      {8, :switches, :uint64, :optional},
      {9, :blocked_us, :uint64, :optional},
      {10, :resident_bytes, :uint64, :optional},
      {11, :resident_peak_bytes, :uint64, :optional},
      {12, :throttled_us, :uint64, :optional},
      {13, :oom_kills, :uint64, :optional},
      {14, :children, :string, :repeated}
    ]
  end
end

defmodule RankBridge.Proto.V1.GetEvidenceRequest do
  @moduledoc """
  Asks for the evidence of a rank.

  ## Fields

    * `interval_ms` - Time between both looks, in milliseconds. 0: 200. At most 5,000.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Protobuf.{Decode, Encode}

  @type t :: %__MODULE__{
          interval_ms: non_neg_integer(),
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct interval_ms: 0,
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
      Encode.implicit(0x08, :uint32, message.interval_ms),
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
    %{message | interval_ms: Decode.value(:uint32, raw)}
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
      {1, :interval_ms, :uint32, :implicit}
    ]
  end
end

defmodule RankBridge.Proto.V1.GetEvidenceResponse do
  @moduledoc """
  The evidence of a rank.

  ## Fields

    * `rank` - What it is, and the state of its generation.
    * `pending` - What it has accepted and not answered, and for whom the groups wait that it leads.
    * `record` - Its last operations, at most 1,000; where ranks are few, at most 8,000 of all ranks.
    * `activity` - What it does.
    * `stacks` - Its stacks at the second look, that of `user_thread` first.
    * `before` - Its process at the first look.
    * `process` - And at the second.
    * `still` - Whether the thread that `process` is about was at the same place both times.
    * `interval_us` - Time between both looks, in microseconds.
    * `at_us` - When the second look was taken, by the clock of the rank's host: microseconds since 1970 in UTC.
    * `user_thread` - The kernel's number of the thread that runs the user's code: a function, or the script of a job to which the rank was
      attached. 0: none does.
    * `torch` - What torch.distributed has of this process for functions, or for the script of a job to which the rank was attached. Not
      set: nothing.
    * `from_outside` - Whether it was read from outside: from the rank's record, from /proc, and by py-spy. The rank does not run Python, or is dead:
      then the state of its process is "gone".
    * `alive_us` - When the rank ran Python last, as its record says, by the clock of its host: microseconds since 1970 in UTC. Not set: now.
    * `ended_in_order` - Whether it has ended because it was asked to.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.{Decode, Encode}

  @type t :: %__MODULE__{
          rank: V1.DescribeRankResponse.t() | nil,
          pending: V1.ListPendingResponse.t() | nil,
          record: V1.GetRecordResponse.t() | nil,
          activity: V1.Activity.t() | nil,
          stacks: V1.GetStacksResponse.t() | nil,
          before: V1.Process.t() | nil,
          process: V1.Process.t() | nil,
          still: boolean(),
          interval_us: non_neg_integer(),
          at_us: non_neg_integer(),
          user_thread: non_neg_integer(),
          torch: V1.TorchState.t() | nil,
          from_outside: boolean(),
          alive_us: non_neg_integer() | nil,
          ended_in_order: boolean(),
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct rank: nil,
            pending: nil,
            record: nil,
            activity: nil,
            stacks: nil,
            before: nil,
            process: nil,
            still: false,
            interval_us: 0,
            at_us: 0,
            user_thread: 0,
            torch: nil,
            from_outside: false,
            alive_us: nil,
            ended_in_order: false,
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
      Encode.optional(0x0A, {:message, V1.DescribeRankResponse}, message.rank),
      Encode.optional(0x12, {:message, V1.ListPendingResponse}, message.pending),
      Encode.optional(0x1A, {:message, V1.GetRecordResponse}, message.record),
      Encode.optional(0x22, {:message, V1.Activity}, message.activity),
      Encode.optional(0x2A, {:message, V1.GetStacksResponse}, message.stacks),
      Encode.optional(0x32, {:message, V1.Process}, message.before),
      Encode.optional(0x3A, {:message, V1.Process}, message.process),
      Encode.implicit(0x40, :bool, message.still),
      Encode.implicit(0x48, :uint64, message.interval_us),
      Encode.implicit(0x50, :uint64, message.at_us),
      Encode.implicit(0x58, :uint64, message.user_thread),
      Encode.optional(0x62, {:message, V1.TorchState}, message.torch),
      Encode.implicit(0x68, :bool, message.from_outside),
      Encode.optional(0x70, :uint64, message.alive_us),
      Encode.implicit(0x78, :bool, message.ended_in_order),
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
    %{message | rank: Decode.message(V1.DescribeRankResponse, message.rank, raw, depth)}
  end

  def __put__(message, 2, 2, raw, depth) do
    %{message | pending: Decode.message(V1.ListPendingResponse, message.pending, raw, depth)}
  end

  def __put__(message, 3, 2, raw, depth) do
    %{message | record: Decode.message(V1.GetRecordResponse, message.record, raw, depth)}
  end

  def __put__(message, 4, 2, raw, depth) do
    %{message | activity: Decode.message(V1.Activity, message.activity, raw, depth)}
  end

  def __put__(message, 5, 2, raw, depth) do
    %{message | stacks: Decode.message(V1.GetStacksResponse, message.stacks, raw, depth)}
  end

  def __put__(message, 6, 2, raw, depth) do
    %{message | before: Decode.message(V1.Process, message.before, raw, depth)}
  end

  def __put__(message, 7, 2, raw, depth) do
    %{message | process: Decode.message(V1.Process, message.process, raw, depth)}
  end

  def __put__(message, 8, 0, raw, _depth) do
    %{message | still: Decode.value(:bool, raw)}
  end

  def __put__(message, 9, 0, raw, _depth) do
    %{message | interval_us: Decode.value(:uint64, raw)}
  end

  def __put__(message, 10, 0, raw, _depth) do
    %{message | at_us: Decode.value(:uint64, raw)}
  end

  def __put__(message, 11, 0, raw, _depth) do
    %{message | user_thread: Decode.value(:uint64, raw)}
  end

  def __put__(message, 12, 2, raw, depth) do
    %{message | torch: Decode.message(V1.TorchState, message.torch, raw, depth)}
  end

  def __put__(message, 13, 0, raw, _depth) do
    %{message | from_outside: Decode.value(:bool, raw)}
  end

  def __put__(message, 14, 0, raw, _depth) do
    %{message | alive_us: Decode.value(:uint64, raw)}
  end

  def __put__(message, 15, 0, raw, _depth) do
    %{message | ended_in_order: Decode.value(:bool, raw)}
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
      {1, :rank, {:message, V1.DescribeRankResponse}, :optional},
      {2, :pending, {:message, V1.ListPendingResponse}, :optional},
      {3, :record, {:message, V1.GetRecordResponse}, :optional},
      {4, :activity, {:message, V1.Activity}, :optional},
      {5, :stacks, {:message, V1.GetStacksResponse}, :optional},
      {6, :before, {:message, V1.Process}, :optional},
      {7, :process, {:message, V1.Process}, :optional},
      {8, :still, :bool, :implicit},
      {9, :interval_us, :uint64, :implicit},
      {10, :at_us, :uint64, :implicit},
      {11, :user_thread, :uint64, :implicit},
      {12, :torch, {:message, V1.TorchState}, :optional},
      {13, :from_outside, :bool, :implicit},
      {14, :alive_us, :uint64, :optional},
      {15, :ended_in_order, :bool, :implicit}
    ]
  end
end

defmodule RankBridge.Proto.V1.TorchState do
  @moduledoc """
  What torch.distributed has of a process.

  ## Fields

    * `groups` - Its groups.
    * `collectives` - Its newest collectives in each of them, in the order in which they were issued; of this generation, in functions.
    * `calling` - The method in C that the innermost line of `user_thread` has called. Empty: none, or not known.
    * `peer` - Of the call of torch.distributed that `user_thread` is in: the rank that is its root, or to which it sends, or from which
      it receives. Not set: none, or not known.
    * `tag` - Its tag. Not set: none, or not known.
    * `script` - Whether it is the script's of a job, and not that of functions.
    * `coordinators` - Groups of objects that look like vLLM's GroupCoordinator, whose calls may pass by torch.distributed; where the rank records what
      the user's own code calls.
    * `coordinator_calls` - Their newest calls: those that have ended, in that order, then the others.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.{Decode, Encode}

  @type t :: %__MODULE__{
          groups: [V1.TorchGroup.t()],
          collectives: [V1.TorchCollective.t()],
          calling: String.t(),
          peer: integer() | nil,
          tag: integer() | nil,
          script: boolean(),
          coordinators: [V1.CoordinatorGroup.t()],
          coordinator_calls: [V1.RecordedOperation.t()],
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct groups: [],
            collectives: [],
            calling: "",
            peer: nil,
            tag: nil,
            script: false,
            coordinators: [],
            coordinator_calls: [],
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
      Encode.repeated(0x0A, {:message, V1.TorchGroup}, message.groups),
      Encode.repeated(0x12, {:message, V1.TorchCollective}, message.collectives),
      Encode.implicit(0x1A, :string, message.calling),
      Encode.optional(0x20, :int64, message.peer),
      Encode.optional(0x28, :int64, message.tag),
      Encode.implicit(0x30, :bool, message.script),
      Encode.repeated(0x3A, {:message, V1.CoordinatorGroup}, message.coordinators),
      Encode.repeated(0x42, {:message, V1.RecordedOperation}, message.coordinator_calls),
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
    %{message | groups: [Decode.message(V1.TorchGroup, nil, raw, depth) | message.groups]}
  end

  def __put__(message, 2, 2, raw, depth) do
    %{
      message
      | collectives: [Decode.message(V1.TorchCollective, nil, raw, depth) | message.collectives]
    }
  end

  def __put__(message, 3, 2, raw, _depth) do
    %{message | calling: Decode.value(:string, raw)}
  end

  def __put__(message, 4, 0, raw, _depth) do
    %{message | peer: Decode.value(:int64, raw)}
  end

  def __put__(message, 5, 0, raw, _depth) do
    %{message | tag: Decode.value(:int64, raw)}
  end

  def __put__(message, 6, 0, raw, _depth) do
    %{message | script: Decode.value(:bool, raw)}
  end

  def __put__(message, 7, 2, raw, depth) do
    %{
      message
      | coordinators: [
          Decode.message(V1.CoordinatorGroup, nil, raw, depth) | message.coordinators
        ]
    }
  end

  def __put__(message, 8, 2, raw, depth) do
    %{
      message
      | coordinator_calls: [
          Decode.message(V1.RecordedOperation, nil, raw, depth) | message.coordinator_calls
        ]
    }
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
        collectives: Enum.reverse(message.collectives),
        coordinators: Enum.reverse(message.coordinators),
        coordinator_calls: Enum.reverse(message.coordinator_calls),
        __unknown_fields__: Enum.reverse(message.__unknown_fields__)
    }
  end

  @doc false
  @impl true
  @spec __fields__() :: [RankBridge.Protobuf.Message.field()]
  def __fields__ do
    [
      {1, :groups, {:message, V1.TorchGroup}, :repeated},
      {2, :collectives, {:message, V1.TorchCollective}, :repeated},
      {3, :calling, :string, :implicit},
      {4, :peer, :int64, :optional},
      {5, :tag, :int64, :optional},
      {6, :script, :bool, :implicit},
      {7, :coordinators, {:message, V1.CoordinatorGroup}, :repeated},
      {8, :coordinator_calls, {:message, V1.RecordedOperation}, :repeated}
    ]
  end
end

defmodule RankBridge.Proto.V1.CoordinatorGroup do
  @moduledoc """
  The group of an object that looks like vLLM's GroupCoordinator.

  ## Fields

    * `name` - Its name: "tp:0".
    * `ranks` - Its ranks in the job.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Protobuf.{Decode, Encode}

  @type t :: %__MODULE__{
          name: String.t(),
          ranks: [non_neg_integer()],
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct name: "",
            ranks: [],
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
      Encode.packed(0x12, :uint32, message.ranks),
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

  def __put__(message, 2, 0, raw, _depth) do
    %{message | ranks: [Decode.value(:uint32, raw) | message.ranks]}
  end

  def __put__(message, 2, 2, raw, _depth) do
    %{message | ranks: Decode.packed(:uint32, raw, message.ranks)}
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
      | ranks: Enum.reverse(message.ranks),
        __unknown_fields__: Enum.reverse(message.__unknown_fields__)
    }
  end

  @doc false
  @impl true
  @spec __fields__() :: [RankBridge.Protobuf.Message.field()]
  def __fields__ do
    [
      {1, :name, :string, :implicit},
      {2, :ranks, :uint32, :repeated}
    ]
  end
end

defmodule RankBridge.Proto.V1.TorchGroup do
  @moduledoc """
  A group of torch.distributed.

  ## Fields

    * `name` - Torch's name of it: "0".
    * `description` - What it is: "default_pg", or what its maker has said.
    * `ranks` - Its ranks in the job.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Protobuf.{Decode, Encode}

  @type t :: %__MODULE__{
          name: String.t(),
          description: String.t(),
          ranks: [non_neg_integer()],
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct name: "",
            description: "",
            ranks: [],
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
      Encode.implicit(0x12, :string, message.description),
      Encode.packed(0x1A, :uint32, message.ranks),
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
    %{message | description: Decode.value(:string, raw)}
  end

  def __put__(message, 3, 0, raw, _depth) do
    %{message | ranks: [Decode.value(:uint32, raw) | message.ranks]}
  end

  def __put__(message, 3, 2, raw, _depth) do
    %{message | ranks: Decode.packed(:uint32, raw, message.ranks)}
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
      | ranks: Enum.reverse(message.ranks),
        __unknown_fields__: Enum.reverse(message.__unknown_fields__)
    }
  end

  @doc false
  @impl true
  @spec __fields__() :: [RankBridge.Protobuf.Message.field()]
  def __fields__ do
    [
      {1, :name, :string, :implicit},
      {2, :description, :string, :implicit},
      {3, :ranks, :uint32, :repeated}
    ]
  end
end

defmodule RankBridge.Proto.V1.TorchCollective do
  @moduledoc """
  A collective in torch's flight recorder.

  ## Fields

    * `group` - Torch's name of its group.
    * `number` - Its number in the group, from 1.
    * `kind` - Its kind: "all_reduce".
    * `dtypes` - Dtypes of its tensors: "float32".
    * `shapes` - Their shapes.
    * `called_us` - When it was called, by the clock of the rank's host: microseconds since 1970 in UTC.
    * `done` - Whether it is done.
    * `on_device` - Whether a device does it: its rank may be far ahead of it.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.{Decode, Encode}

  @type t :: %__MODULE__{
          group: String.t(),
          number: non_neg_integer(),
          kind: String.t(),
          dtypes: [String.t()],
          shapes: [V1.TorchShape.t()],
          called_us: non_neg_integer(),
          done: boolean(),
          on_device: boolean(),
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct group: "",
            number: 0,
            kind: "",
            dtypes: [],
            shapes: [],
            called_us: 0,
            done: false,
            on_device: false,
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
      Encode.implicit(0x10, :uint64, message.number),
      Encode.implicit(0x1A, :string, message.kind),
      Encode.repeated(0x22, :string, message.dtypes),
      Encode.repeated(0x2A, {:message, V1.TorchShape}, message.shapes),
      Encode.implicit(0x30, :uint64, message.called_us),
      Encode.implicit(0x38, :bool, message.done),
      Encode.implicit(0x40, :bool, message.on_device),
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

  def __put__(message, 2, 0, raw, _depth) do
    %{message | number: Decode.value(:uint64, raw)}
  end

  def __put__(message, 3, 2, raw, _depth) do
    %{message | kind: Decode.value(:string, raw)}
  end

  def __put__(message, 4, 2, raw, _depth) do
    %{message | dtypes: [Decode.value(:string, raw) | message.dtypes]}
  end

  def __put__(message, 5, 2, raw, depth) do
    %{message | shapes: [Decode.message(V1.TorchShape, nil, raw, depth) | message.shapes]}
  end

  def __put__(message, 6, 0, raw, _depth) do
    %{message | called_us: Decode.value(:uint64, raw)}
  end

  def __put__(message, 7, 0, raw, _depth) do
    %{message | done: Decode.value(:bool, raw)}
  end

  def __put__(message, 8, 0, raw, _depth) do
    %{message | on_device: Decode.value(:bool, raw)}
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
      | dtypes: Enum.reverse(message.dtypes),
        shapes: Enum.reverse(message.shapes),
        __unknown_fields__: Enum.reverse(message.__unknown_fields__)
    }
  end

  @doc false
  @impl true
  @spec __fields__() :: [RankBridge.Protobuf.Message.field()]
  def __fields__ do
    [
      {1, :group, :string, :implicit},
      {2, :number, :uint64, :implicit},
      {3, :kind, :string, :implicit},
      {4, :dtypes, :string, :repeated},
      {5, :shapes, {:message, V1.TorchShape}, :repeated},
      {6, :called_us, :uint64, :implicit},
      {7, :done, :bool, :implicit},
      {8, :on_device, :bool, :implicit}
    ]
  end
end

defmodule RankBridge.Proto.V1.TorchShape do
  @moduledoc """
  A tensor's shape.

  ## Fields

    * `sizes` - Sizes, outermost first.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Protobuf.{Decode, Encode}

  @type t :: %__MODULE__{
          sizes: [non_neg_integer()],
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct sizes: [],
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
      Encode.packed(0x0A, :uint64, message.sizes),
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
    %{message | sizes: [Decode.value(:uint64, raw) | message.sizes]}
  end

  def __put__(message, 1, 2, raw, _depth) do
    %{message | sizes: Decode.packed(:uint64, raw, message.sizes)}
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
      | sizes: Enum.reverse(message.sizes),
        __unknown_fields__: Enum.reverse(message.__unknown_fields__)
    }
  end

  @doc false
  @impl true
  @spec __fields__() :: [RankBridge.Protobuf.Message.field()]
  def __fields__ do
    [
      {1, :sizes, :uint64, :repeated}
    ]
  end
end

defmodule RankBridge.Proto.V1.DiagnoseRequest do
  @moduledoc """
  Asks for a verdict.

  ## Fields

    * `evidence` - What ranks have answered to GetEvidence, one for each, in any order. Of one gang, of its current generation.
    * `patience_ms` - For how long ranks may wait for each other without being called stuck, in milliseconds. 0: 2,000.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.{Decode, Encode}

  @type t :: %__MODULE__{
          evidence: [V1.GetEvidenceResponse.t()],
          patience_ms: non_neg_integer(),
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct evidence: [],
            patience_ms: 0,
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
      Encode.repeated(0x0A, {:message, V1.GetEvidenceResponse}, message.evidence),
      Encode.implicit(0x10, :uint32, message.patience_ms),
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
    %{
      message
      | evidence: [Decode.message(V1.GetEvidenceResponse, nil, raw, depth) | message.evidence]
    }
  end

  def __put__(message, 2, 0, raw, _depth) do
    %{message | patience_ms: Decode.value(:uint32, raw)}
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
      | evidence: Enum.reverse(message.evidence),
        __unknown_fields__: Enum.reverse(message.__unknown_fields__)
    }
  end

  @doc false
  @impl true
  @spec __fields__() :: [RankBridge.Protobuf.Message.field()]
  def __fields__ do
    [
      {1, :evidence, {:message, V1.GetEvidenceResponse}, :repeated},
      {2, :patience_ms, :uint32, :implicit}
    ]
  end
end

defmodule RankBridge.Proto.V1.DiagnoseResponse do
  @moduledoc """
  The verdict.

  ## Fields

    * `verdict` - The verdict.
    * `error` - What is wrong with the evidence.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.{Decode, Encode}

  @type outcome :: {:verdict, V1.Verdict.t()} | {:error, V1.Error.t()}

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

  defp encode_outcome({:verdict, value}) do
    Encode.always(0x0A, {:message, V1.Verdict}, value)
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
    held = Decode.held(message.outcome, :verdict)
    %{message | outcome: {:verdict, Decode.message(V1.Verdict, held, raw, depth)}}
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
      {1, :verdict, {:message, V1.Verdict}, {:oneof, :outcome}},
      {2, :error, {:message, V1.Error}, {:oneof, :outcome}}
    ]
  end
end

defmodule RankBridge.Proto.V1.Verdict do
  @moduledoc """
  A verdict on a gang.

  ## Fields

    * `kind` - What is wrong.
    * `summary` - The verdict in one sentence, which names ranks, call and reason.
    * `confidence` - How sure it is: 0 to 1.
    * `culprits` - The ranks that are to blame. None: nobody is, or it is not known who.
    * `call` - The call that it is about: "all_reduce world". Empty: none.
    * `sides` - What ranks asked for, if they differ.
    * `waits` - What each waiting rank waits for, those first that have waited longest.
    * `cycle` - Ranks that wait for each other in a circle, each for the next, the last for the first.
    * `advice` - What to do next. Empty: nothing is known.
    * `evidence` - What was seen, if the verdict is UNKNOWN.
    * `notes` - What was not seen, and what would show it.
    * `world_size` - Ranks in the gang.
    * `page` - The verdict as a page for people, of at most some 40 lines.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.{Decode, Encode}

  @type t :: %__MODULE__{
          kind: V1.VerdictKind.t(),
          summary: String.t(),
          confidence: RankBridge.Protobuf.float_value(),
          culprits: [V1.Culprit.t()],
          call: String.t(),
          sides: [V1.VerdictSide.t()],
          waits: [V1.VerdictWait.t()],
          cycle: [non_neg_integer()],
          advice: String.t(),
          evidence: [String.t()],
          notes: [String.t()],
          world_size: non_neg_integer(),
          page: String.t(),
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct kind: :VERDICT_KIND_UNSPECIFIED,
            summary: "",
            confidence: 0.0,
            culprits: [],
            call: "",
            sides: [],
            waits: [],
            cycle: [],
            advice: "",
            evidence: [],
            notes: [],
            world_size: 0,
            page: "",
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
      Encode.implicit(0x08, {:enum, V1.VerdictKind}, message.kind),
      Encode.implicit(0x12, :string, message.summary),
      Encode.implicit(0x19, :double, message.confidence),
      Encode.repeated(0x22, {:message, V1.Culprit}, message.culprits),
      Encode.implicit(0x2A, :string, message.call),
      Encode.repeated(0x32, {:message, V1.VerdictSide}, message.sides),
      Encode.repeated(0x3A, {:message, V1.VerdictWait}, message.waits),
      Encode.packed(0x42, :uint32, message.cycle),
      Encode.implicit(0x4A, :string, message.advice),
      Encode.repeated(0x52, :string, message.evidence),
      Encode.repeated(0x5A, :string, message.notes),
      Encode.implicit(0x60, :uint32, message.world_size),
      Encode.implicit(0x6A, :string, message.page),
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
    %{message | kind: Decode.value({:enum, V1.VerdictKind}, raw)}
  end

  def __put__(message, 2, 2, raw, _depth) do
    %{message | summary: Decode.value(:string, raw)}
  end

  def __put__(message, 3, 1, raw, _depth) do
    %{message | confidence: Decode.value(:double, raw)}
  end

  def __put__(message, 4, 2, raw, depth) do
    %{message | culprits: [Decode.message(V1.Culprit, nil, raw, depth) | message.culprits]}
  end

  def __put__(message, 5, 2, raw, _depth) do
    %{message | call: Decode.value(:string, raw)}
  end

  def __put__(message, 6, 2, raw, depth) do
    %{message | sides: [Decode.message(V1.VerdictSide, nil, raw, depth) | message.sides]}
  end

  def __put__(message, 7, 2, raw, depth) do
    %{message | waits: [Decode.message(V1.VerdictWait, nil, raw, depth) | message.waits]}
  end

  def __put__(message, 8, 0, raw, _depth) do
    %{message | cycle: [Decode.value(:uint32, raw) | message.cycle]}
  end

  def __put__(message, 8, 2, raw, _depth) do
    %{message | cycle: Decode.packed(:uint32, raw, message.cycle)}
  end

  def __put__(message, 9, 2, raw, _depth) do
    %{message | advice: Decode.value(:string, raw)}
  end

  def __put__(message, 10, 2, raw, _depth) do
    %{message | evidence: [Decode.value(:string, raw) | message.evidence]}
  end

  def __put__(message, 11, 2, raw, _depth) do
    %{message | notes: [Decode.value(:string, raw) | message.notes]}
  end

  def __put__(message, 12, 0, raw, _depth) do
    %{message | world_size: Decode.value(:uint32, raw)}
  end

  def __put__(message, 13, 2, raw, _depth) do
    %{message | page: Decode.value(:string, raw)}
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
      | culprits: Enum.reverse(message.culprits),
        sides: Enum.reverse(message.sides),
        waits: Enum.reverse(message.waits),
        cycle: Enum.reverse(message.cycle),
        evidence: Enum.reverse(message.evidence),
        notes: Enum.reverse(message.notes),
        __unknown_fields__: Enum.reverse(message.__unknown_fields__)
    }
  end

  @doc false
  @impl true
  @spec __fields__() :: [RankBridge.Protobuf.Message.field()]
  def __fields__ do
    [
      {1, :kind, {:enum, V1.VerdictKind}, :implicit},
      {2, :summary, :string, :implicit},
      {3, :confidence, :double, :implicit},
      {4, :culprits, {:message, V1.Culprit}, :repeated},
      {5, :call, :string, :implicit},
      {6, :sides, {:message, V1.VerdictSide}, :repeated},
      {7, :waits, {:message, V1.VerdictWait}, :repeated},
      {8, :cycle, :uint32, :repeated},
      {9, :advice, :string, :implicit},
      {10, :evidence, :string, :repeated},
      {11, :notes, :string, :repeated},
      {12, :world_size, :uint32, :implicit},
      {13, :page, :string, :implicit}
    ]
  end
end

defmodule RankBridge.Proto.V1.Culprit do
  @moduledoc """
  A rank that others have to blame.

  ## Fields

    * `rank` - Rank in the gang.
    * `confidence` - How sure that is: 0 to 1.
    * `condition` - What it does.
    * `why` - The same in words.
    * `pid` - Its process id, on its host. 0: not known.
    * `host` - Its host. Empty: not known.
    * `stack` - Where the thread that runs the user's code is, the innermost call first. None: it is not known, or it runs none.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.{Decode, Encode}

  @type t :: %__MODULE__{
          rank: non_neg_integer(),
          confidence: RankBridge.Protobuf.float_value(),
          condition: V1.Condition.t(),
          why: String.t(),
          pid: non_neg_integer(),
          host: String.t(),
          stack: [V1.StackFrame.t()],
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct rank: 0,
            confidence: 0.0,
            condition: :CONDITION_UNSPECIFIED,
            why: "",
            pid: 0,
            host: "",
            stack: [],
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
      Encode.implicit(0x11, :double, message.confidence),
      Encode.implicit(0x18, {:enum, V1.Condition}, message.condition),
      Encode.implicit(0x22, :string, message.why),
      Encode.implicit(0x28, :uint64, message.pid),
      Encode.implicit(0x32, :string, message.host),
      Encode.repeated(0x3A, {:message, V1.StackFrame}, message.stack),
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

  def __put__(message, 2, 1, raw, _depth) do
    %{message | confidence: Decode.value(:double, raw)}
  end

  def __put__(message, 3, 0, raw, _depth) do
    %{message | condition: Decode.value({:enum, V1.Condition}, raw)}
  end

  def __put__(message, 4, 2, raw, _depth) do
    %{message | why: Decode.value(:string, raw)}
  end

  def __put__(message, 5, 0, raw, _depth) do
    %{message | pid: Decode.value(:uint64, raw)}
  end

  def __put__(message, 6, 2, raw, _depth) do
    %{message | host: Decode.value(:string, raw)}
  end

  def __put__(message, 7, 2, raw, depth) do
    %{message | stack: [Decode.message(V1.StackFrame, nil, raw, depth) | message.stack]}
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
      | stack: Enum.reverse(message.stack),
        __unknown_fields__: Enum.reverse(message.__unknown_fields__)
    }
  end

  @doc false
  @impl true
  @spec __fields__() :: [RankBridge.Protobuf.Message.field()]
  def __fields__ do
    [
      {1, :rank, :uint32, :implicit},
      {2, :confidence, :double, :implicit},
      {3, :condition, {:enum, V1.Condition}, :implicit},
      {4, :why, :string, :implicit},
      {5, :pid, :uint64, :implicit},
      {6, :host, :string, :implicit},
      {7, :stack, {:message, V1.StackFrame}, :repeated}
    ]
  end
end

defmodule RankBridge.Proto.V1.VerdictSide do
  @moduledoc """
  Ranks that asked for the same.

  ## Fields

    * `ranks` - Ranks in the gang.
    * `what` - What they asked for.
    * `sites` - The lines of code that did: "train.py:88".
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Protobuf.{Decode, Encode}

  @type t :: %__MODULE__{
          ranks: [non_neg_integer()],
          what: String.t(),
          sites: [String.t()],
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct ranks: [],
            what: "",
            sites: [],
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
      Encode.packed(0x0A, :uint32, message.ranks),
      Encode.implicit(0x12, :string, message.what),
      Encode.repeated(0x1A, :string, message.sites),
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
    %{message | ranks: [Decode.value(:uint32, raw) | message.ranks]}
  end

  def __put__(message, 1, 2, raw, _depth) do
    %{message | ranks: Decode.packed(:uint32, raw, message.ranks)}
  end

  def __put__(message, 2, 2, raw, _depth) do
    %{message | what: Decode.value(:string, raw)}
  end

  def __put__(message, 3, 2, raw, _depth) do
    %{message | sites: [Decode.value(:string, raw) | message.sites]}
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
      | ranks: Enum.reverse(message.ranks),
        sites: Enum.reverse(message.sites),
        __unknown_fields__: Enum.reverse(message.__unknown_fields__)
    }
  end

  @doc false
  @impl true
  @spec __fields__() :: [RankBridge.Protobuf.Message.field()]
  def __fields__ do
    [
      {1, :ranks, :uint32, :repeated},
      {2, :what, :string, :implicit},
      {3, :sites, :string, :repeated}
    ]
  end
end

defmodule RankBridge.Proto.V1.VerdictWait do
  @moduledoc """
  A rank that waits.

  ## Fields

    * `rank` - Rank in the gang.
    * `call` - The call that it is in: "all_reduce world".
    * `waits_for` - Ranks for which it waits.
    * `waited_us` - For how long, in microseconds. Not set: not known.
    * `site` - The line of code that made the call. Empty: not known.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Protobuf.{Decode, Encode}

  @type t :: %__MODULE__{
          rank: non_neg_integer(),
          call: String.t(),
          waits_for: [non_neg_integer()],
          waited_us: non_neg_integer() | nil,
          site: String.t(),
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct rank: 0,
            call: "",
            waits_for: [],
            waited_us: nil,
            site: "",
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
      Encode.implicit(0x12, :string, message.call),
      Encode.packed(0x1A, :uint32, message.waits_for),
      Encode.optional(0x20, :uint64, message.waited_us),
      Encode.implicit(0x2A, :string, message.site),
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

  def __put__(message, 2, 2, raw, _depth) do
    %{message | call: Decode.value(:string, raw)}
  end

  def __put__(message, 3, 0, raw, _depth) do
    %{message | waits_for: [Decode.value(:uint32, raw) | message.waits_for]}
  end

  def __put__(message, 3, 2, raw, _depth) do
    %{message | waits_for: Decode.packed(:uint32, raw, message.waits_for)}
  end

  def __put__(message, 4, 0, raw, _depth) do
    %{message | waited_us: Decode.value(:uint64, raw)}
  end

  def __put__(message, 5, 2, raw, _depth) do
    %{message | site: Decode.value(:string, raw)}
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
      | waits_for: Enum.reverse(message.waits_for),
        __unknown_fields__: Enum.reverse(message.__unknown_fields__)
    }
  end

  @doc false
  @impl true
  @spec __fields__() :: [RankBridge.Protobuf.Message.field()]
  def __fields__ do
    [
      {1, :rank, :uint32, :implicit},
      {2, :call, :string, :implicit},
      {3, :waits_for, :uint32, :repeated},
      {4, :waited_us, :uint64, :optional},
      {5, :site, :string, :implicit}
    ]
  end
end

defmodule RankBridge.Proto.V1.DebugService do
  @moduledoc """
  What a rank has done and does, for who looks for a fault, and what is wrong with the gang. It changes nothing, and always
  answers, whatever the gang is doing, as long as the rank's process runs. At a socket of the folder for observers it answers also
  while the process is stopped, or a thread of it holds Python's lock: then a process beside the ranks reads the rank from outside.
  """

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.Rpc

  @doc "Every method of the service."
  @spec methods() :: [Rpc.t()]
  def methods do
    [
      get_record(),
      watch_record(),
      get_stacks(),
      get_process(),
      get_evidence(),
      diagnose()
    ]
  end

  @doc """
  Gives the rank's record: its last operations.
  """
  @spec get_record() :: Rpc.t()
  def get_record do
    %Rpc{
      path: "/rankbridge.v1.DebugService/GetRecord",
      request: V1.GetRecordRequest,
      response: V1.GetRecordResponse,
      client_stream?: false,
      server_stream?: false
    }
  end

  @doc """
  Streams the record as it grows: what has ended since the response before, and what is pending. It ends with the call, or
  with the rank. The rank keeps nothing for a watcher: one that reads too slowly loses operations, and the response says how many.
  """
  @spec watch_record() :: Rpc.t()
  def watch_record do
    %Rpc{
      path: "/rankbridge.v1.DebugService/WatchRecord",
      request: V1.WatchRecordRequest,
      response: V1.WatchRecordResponse,
      client_stream?: false,
      server_stream?: true
    }
  end

  @doc """
  Gives the stacks of the threads of the rank's process.
  """
  @spec get_stacks() :: Rpc.t()
  def get_stacks do
    %Rpc{
      path: "/rankbridge.v1.DebugService/GetStacks",
      request: V1.GetStacksRequest,
      response: V1.GetStacksResponse,
      client_stream?: false,
      server_stream?: false
    }
  end

  @doc """
  Gives what the kernel says of the rank's process.
  """
  @spec get_process() :: Rpc.t()
  def get_process do
    %Rpc{
      path: "/rankbridge.v1.DebugService/GetProcess",
      request: V1.GetProcessRequest,
      response: V1.GetProcessResponse,
      client_stream?: false,
      server_stream?: false
    }
  end

  @doc """
  Gives all that a verdict needs of the rank, as two looks at it show it.
  """
  @spec get_evidence() :: Rpc.t()
  def get_evidence do
    %Rpc{
      path: "/rankbridge.v1.DebugService/GetEvidence",
      request: V1.GetEvidenceRequest,
      response: V1.GetEvidenceResponse,
      client_stream?: false,
      server_stream?: false
    }
  end

  @doc """
  Judges the gang from the evidence of its ranks: who keeps whom waiting, in which call, and why. Of ranks whose evidence
  is missing it adds what this rank's host knows: ask the lowest rank that has answered. It asks no rank.
  """
  @spec diagnose() :: Rpc.t()
  def diagnose do
    %Rpc{
      path: "/rankbridge.v1.DebugService/Diagnose",
      request: V1.DiagnoseRequest,
      response: V1.DiagnoseResponse,
      client_stream?: false,
      server_stream?: false
    }
  end
end
