# Generated from rankbridge/v1/error.proto by protoc-gen-rankbridge-elixir. Do not edit.

defmodule RankBridge.Proto.V1.ErrorCode do
  @moduledoc """
  The kind of a failure. The comment of each says what the caller may do.

  Numbers without a name stay integers.

  ## Values

    * `:ERROR_CODE_UNSPECIFIED` - Not said. Never sent.
    * `:ERROR_CODE_INVALID_ARGUMENT` - An argument is missing, malformed or contradicts another. Correct the call.
    * `:ERROR_CODE_UNKNOWN_REF` - No such ref on this rank. A ref exists only on the rank that made it.
    * `:ERROR_CODE_RELEASED_REF` - The ref has been released on this rank. It cannot be restored.
    * `:ERROR_CODE_WRONG_SESSION` - The ref or group belongs to another session. Name its own session in the call.
    * `:ERROR_CODE_UNKNOWN_SESSION` - No such session, or it was closed. Open one.
    * `:ERROR_CODE_UNKNOWN_GROUP` - No such group on this rank.
    * `:ERROR_CODE_GROUP_EXISTS` - A group of that name exists. Destroy it first, or choose another name.
    * `:ERROR_CODE_RANK_OUT_OF_RANGE` - A rank or rank_in_group is not below the size it counts in.
    * `:ERROR_CODE_UNSUPPORTED_DTYPE` - The backend cannot do this operation, or this reduce op, on this dtype.
    * `:ERROR_CODE_RESOURCE_EXHAUSTED` - Over a limit of the rank: tensor bytes, refs, pending calls. Release something or go slower.
    * `:ERROR_CODE_MISMATCH` - The members of the group asked for different things. `ranks` shows every side. Nothing ran.
    * `:ERROR_CODE_PEER_MISSING` - Some members did not call before the timeout. `ranks` names them. Nothing ran; the group is healthy.
    * `:ERROR_CODE_PEER_LOST` - A rank died or its link closed. The generation is over; form the next.
    * `:ERROR_CODE_DEADLINE_EXCEEDED` - The timeout passed while the operation ran. It may yet complete on some or all ranks.
    * `:ERROR_CODE_NOT_FORMED` - No generation was formed on the rank yet. Form one.
    * `:ERROR_CODE_STALE_GENERATION` - The generation is over, or is not the one that the call names. Form the next, or name the current one.
    * `:ERROR_CODE_BACKEND_FAILED` - The backend failed while data moved. No ref changed; the generation is over.
    * `:ERROR_CODE_ABORTED` - The generation or the call was ended on purpose.
    * `:ERROR_CODE_FORMING_FAILED` - The forming of a generation failed. The gang has no generation; form again.
    * `:ERROR_CODE_INTERNAL` - A fault of rankbridge itself. Please report it.
    * `:ERROR_CODE_UNKNOWN_OPERATION` - No operation with this id is known on this rank: it never came, or was forgotten after thousands of others.
    * `:ERROR_CODE_CANCELLED` - The call was cancelled before any rank did anything.
    * `:ERROR_CODE_UNSUPPORTED_OPERATION` - The backend cannot do this operation at all. `DescribeRank` says what it can.
    * `:ERROR_CODE_UNKNOWN_QUEUE` - No such queue in the group on this rank, or it was shut down.
    * `:ERROR_CODE_NAME_EXISTS` - A queue or a graph of that name exists. Choose another name.
    * `:ERROR_CODE_UNKNOWN_GRAPH` - No such graph in the session on this rank, or nothing is being recorded.
    * `:ERROR_CODE_UNKNOWN_SHARED_MEMORY` - No such shared memory in the session on this rank, or it was given up. Open some, or use a stream.
    * `:ERROR_CODE_FUNCTION_FAILED` - A function raised, here or on a rank for which this one waited; then the generation is over, form the next.
    * `:ERROR_CODE_UNKNOWN_FUNCTION` - The rank offers no such function. `ListFunctions` says which it does.
  """

  @type t ::
          :ERROR_CODE_UNSPECIFIED
          | :ERROR_CODE_INVALID_ARGUMENT
          | :ERROR_CODE_UNKNOWN_REF
          | :ERROR_CODE_RELEASED_REF
          | :ERROR_CODE_WRONG_SESSION
          | :ERROR_CODE_UNKNOWN_SESSION
          | :ERROR_CODE_UNKNOWN_GROUP
          | :ERROR_CODE_GROUP_EXISTS
          | :ERROR_CODE_RANK_OUT_OF_RANGE
          | :ERROR_CODE_UNSUPPORTED_DTYPE
          | :ERROR_CODE_RESOURCE_EXHAUSTED
          | :ERROR_CODE_MISMATCH
          | :ERROR_CODE_PEER_MISSING
          | :ERROR_CODE_PEER_LOST
          | :ERROR_CODE_DEADLINE_EXCEEDED
          | :ERROR_CODE_NOT_FORMED
          | :ERROR_CODE_STALE_GENERATION
          | :ERROR_CODE_BACKEND_FAILED
          | :ERROR_CODE_ABORTED
          | :ERROR_CODE_FORMING_FAILED
          | :ERROR_CODE_INTERNAL
          | :ERROR_CODE_UNKNOWN_OPERATION
          | :ERROR_CODE_CANCELLED
          | :ERROR_CODE_UNSUPPORTED_OPERATION
          | :ERROR_CODE_UNKNOWN_QUEUE
          | :ERROR_CODE_NAME_EXISTS
          | :ERROR_CODE_UNKNOWN_GRAPH
          | :ERROR_CODE_UNKNOWN_SHARED_MEMORY
          | :ERROR_CODE_FUNCTION_FAILED
          | :ERROR_CODE_UNKNOWN_FUNCTION
          | integer()

  @doc "The number of each name."
  @spec mapping() :: %{atom() => integer()}
  def mapping do
    %{
      ERROR_CODE_UNSPECIFIED: 0,
      ERROR_CODE_INVALID_ARGUMENT: 1,
      ERROR_CODE_UNKNOWN_REF: 2,
      ERROR_CODE_RELEASED_REF: 3,
      ERROR_CODE_WRONG_SESSION: 4,
      ERROR_CODE_UNKNOWN_SESSION: 5,
      ERROR_CODE_UNKNOWN_GROUP: 6,
      ERROR_CODE_GROUP_EXISTS: 7,
      ERROR_CODE_RANK_OUT_OF_RANGE: 8,
      ERROR_CODE_UNSUPPORTED_DTYPE: 9,
      ERROR_CODE_RESOURCE_EXHAUSTED: 10,
      ERROR_CODE_MISMATCH: 11,
      ERROR_CODE_PEER_MISSING: 12,
      ERROR_CODE_PEER_LOST: 13,
      ERROR_CODE_DEADLINE_EXCEEDED: 14,
      ERROR_CODE_NOT_FORMED: 15,
      ERROR_CODE_STALE_GENERATION: 16,
      ERROR_CODE_BACKEND_FAILED: 17,
      ERROR_CODE_ABORTED: 18,
      ERROR_CODE_FORMING_FAILED: 19,
      ERROR_CODE_INTERNAL: 20,
      ERROR_CODE_UNKNOWN_OPERATION: 21,
      ERROR_CODE_CANCELLED: 22,
      ERROR_CODE_UNSUPPORTED_OPERATION: 23,
      ERROR_CODE_UNKNOWN_QUEUE: 24,
      ERROR_CODE_NAME_EXISTS: 25,
      ERROR_CODE_UNKNOWN_GRAPH: 26,
      ERROR_CODE_UNKNOWN_SHARED_MEMORY: 27,
      ERROR_CODE_FUNCTION_FAILED: 28,
      ERROR_CODE_UNKNOWN_FUNCTION: 29
    }
  end

  @doc "The number of a name; a number is its own."
  @spec value(t()) :: integer()
  def value(:ERROR_CODE_UNSPECIFIED), do: 0
  def value(:ERROR_CODE_INVALID_ARGUMENT), do: 1
  def value(:ERROR_CODE_UNKNOWN_REF), do: 2
  def value(:ERROR_CODE_RELEASED_REF), do: 3
  def value(:ERROR_CODE_WRONG_SESSION), do: 4
  def value(:ERROR_CODE_UNKNOWN_SESSION), do: 5
  def value(:ERROR_CODE_UNKNOWN_GROUP), do: 6
  def value(:ERROR_CODE_GROUP_EXISTS), do: 7
  def value(:ERROR_CODE_RANK_OUT_OF_RANGE), do: 8
  def value(:ERROR_CODE_UNSUPPORTED_DTYPE), do: 9
  def value(:ERROR_CODE_RESOURCE_EXHAUSTED), do: 10
  def value(:ERROR_CODE_MISMATCH), do: 11
  def value(:ERROR_CODE_PEER_MISSING), do: 12
  def value(:ERROR_CODE_PEER_LOST), do: 13
  def value(:ERROR_CODE_DEADLINE_EXCEEDED), do: 14
  def value(:ERROR_CODE_NOT_FORMED), do: 15
  def value(:ERROR_CODE_STALE_GENERATION), do: 16
  def value(:ERROR_CODE_BACKEND_FAILED), do: 17
  def value(:ERROR_CODE_ABORTED), do: 18
  def value(:ERROR_CODE_FORMING_FAILED), do: 19
  def value(:ERROR_CODE_INTERNAL), do: 20
  def value(:ERROR_CODE_UNKNOWN_OPERATION), do: 21
  def value(:ERROR_CODE_CANCELLED), do: 22
  def value(:ERROR_CODE_UNSUPPORTED_OPERATION), do: 23
  def value(:ERROR_CODE_UNKNOWN_QUEUE), do: 24
  def value(:ERROR_CODE_NAME_EXISTS), do: 25
  def value(:ERROR_CODE_UNKNOWN_GRAPH), do: 26
  def value(:ERROR_CODE_UNKNOWN_SHARED_MEMORY), do: 27
  def value(:ERROR_CODE_FUNCTION_FAILED), do: 28
  def value(:ERROR_CODE_UNKNOWN_FUNCTION), do: 29
  def value(number) when is_integer(number), do: number

  @doc "The name of a number, or the number where it has none."
  @spec key(integer()) :: t()
  def key(0), do: :ERROR_CODE_UNSPECIFIED
  def key(1), do: :ERROR_CODE_INVALID_ARGUMENT
  def key(2), do: :ERROR_CODE_UNKNOWN_REF
  def key(3), do: :ERROR_CODE_RELEASED_REF
  def key(4), do: :ERROR_CODE_WRONG_SESSION
  def key(5), do: :ERROR_CODE_UNKNOWN_SESSION
  def key(6), do: :ERROR_CODE_UNKNOWN_GROUP
  def key(7), do: :ERROR_CODE_GROUP_EXISTS
  def key(8), do: :ERROR_CODE_RANK_OUT_OF_RANGE
  def key(9), do: :ERROR_CODE_UNSUPPORTED_DTYPE
  def key(10), do: :ERROR_CODE_RESOURCE_EXHAUSTED
  def key(11), do: :ERROR_CODE_MISMATCH
  def key(12), do: :ERROR_CODE_PEER_MISSING
  def key(13), do: :ERROR_CODE_PEER_LOST
  def key(14), do: :ERROR_CODE_DEADLINE_EXCEEDED
  def key(15), do: :ERROR_CODE_NOT_FORMED
  def key(16), do: :ERROR_CODE_STALE_GENERATION
  def key(17), do: :ERROR_CODE_BACKEND_FAILED
  def key(18), do: :ERROR_CODE_ABORTED
  def key(19), do: :ERROR_CODE_FORMING_FAILED
  def key(20), do: :ERROR_CODE_INTERNAL
  def key(21), do: :ERROR_CODE_UNKNOWN_OPERATION
  def key(22), do: :ERROR_CODE_CANCELLED
  def key(23), do: :ERROR_CODE_UNSUPPORTED_OPERATION
  def key(24), do: :ERROR_CODE_UNKNOWN_QUEUE
  def key(25), do: :ERROR_CODE_NAME_EXISTS
  def key(26), do: :ERROR_CODE_UNKNOWN_GRAPH
  def key(27), do: :ERROR_CODE_UNKNOWN_SHARED_MEMORY
  def key(28), do: :ERROR_CODE_FUNCTION_FAILED
  def key(29), do: :ERROR_CODE_UNKNOWN_FUNCTION
  def key(number) when is_integer(number), do: number
end

defmodule RankBridge.Proto.V1.Phase do
  @moduledoc """
  The phase in which a call failed.

  Numbers without a name stay integers.

  ## Values

    * `:PHASE_UNSPECIFIED` - Not said: the error is not of an operation.
    * `:PHASE_CHECK` - Checked on its own rank. Nothing happened anywhere.
    * `:PHASE_ADMISSION` - Waiting for, or comparing with, the other members. Nothing happened anywhere.
    * `:PHASE_DATA` - In the backend, in scratch memory.
    * `:PHASE_FORMING` - Forming a generation or a group.
  """

  @type t ::
          :PHASE_UNSPECIFIED
          | :PHASE_CHECK
          | :PHASE_ADMISSION
          | :PHASE_DATA
          | :PHASE_FORMING
          | integer()

  @doc "The number of each name."
  @spec mapping() :: %{atom() => integer()}
  def mapping do
    %{
      PHASE_UNSPECIFIED: 0,
      PHASE_CHECK: 1,
      PHASE_ADMISSION: 2,
      PHASE_DATA: 3,
      PHASE_FORMING: 4
    }
  end

  @doc "The number of a name; a number is its own."
  @spec value(t()) :: integer()
  def value(:PHASE_UNSPECIFIED), do: 0
  def value(:PHASE_CHECK), do: 1
  def value(:PHASE_ADMISSION), do: 2
  def value(:PHASE_DATA), do: 3
  def value(:PHASE_FORMING), do: 4
  def value(number) when is_integer(number), do: number

  @doc "The name of a number, or the number where it has none."
  @spec key(integer()) :: t()
  def key(0), do: :PHASE_UNSPECIFIED
  def key(1), do: :PHASE_CHECK
  def key(2), do: :PHASE_ADMISSION
  def key(3), do: :PHASE_DATA
  def key(4), do: :PHASE_FORMING
  def key(number) when is_integer(number), do: number
end

defmodule RankBridge.Proto.V1.RankState do
  @moduledoc """
  The state of one rank in a failure.

  Numbers without a name stay integers.

  ## Values

    * `:RANK_STATE_UNSPECIFIED` - Not said.
    * `:RANK_STATE_ARRIVED` - It called, and agreed.
    * `:RANK_STATE_MISSING` - It did not call in time.
    * `:RANK_STATE_DISAGREES` - Its call differs from the call of the first rank to arrive.
    * `:RANK_STATE_LOST` - It is dead or cannot be reached.
    * `:RANK_STATE_FAILED` - It failed by itself; `detail` says how.
  """

  @type t ::
          :RANK_STATE_UNSPECIFIED
          | :RANK_STATE_ARRIVED
          | :RANK_STATE_MISSING
          | :RANK_STATE_DISAGREES
          | :RANK_STATE_LOST
          | :RANK_STATE_FAILED
          | integer()

  @doc "The number of each name."
  @spec mapping() :: %{atom() => integer()}
  def mapping do
    %{
      RANK_STATE_UNSPECIFIED: 0,
      RANK_STATE_ARRIVED: 1,
      RANK_STATE_MISSING: 2,
      RANK_STATE_DISAGREES: 3,
      RANK_STATE_LOST: 4,
      RANK_STATE_FAILED: 5
    }
  end

  @doc "The number of a name; a number is its own."
  @spec value(t()) :: integer()
  def value(:RANK_STATE_UNSPECIFIED), do: 0
  def value(:RANK_STATE_ARRIVED), do: 1
  def value(:RANK_STATE_MISSING), do: 2
  def value(:RANK_STATE_DISAGREES), do: 3
  def value(:RANK_STATE_LOST), do: 4
  def value(:RANK_STATE_FAILED), do: 5
  def value(number) when is_integer(number), do: number

  @doc "The name of a number, or the number where it has none."
  @spec key(integer()) :: t()
  def key(0), do: :RANK_STATE_UNSPECIFIED
  def key(1), do: :RANK_STATE_ARRIVED
  def key(2), do: :RANK_STATE_MISSING
  def key(3), do: :RANK_STATE_DISAGREES
  def key(4), do: :RANK_STATE_LOST
  def key(5), do: :RANK_STATE_FAILED
  def key(number) when is_integer(number), do: number
end

defmodule RankBridge.Proto.V1.Doing do
  @moduledoc """
  What a rank does while others wait for it.

  Numbers without a name stay integers.

  ## Values

    * `:DOING_UNSPECIFIED` - Not said. Never sent.
    * `:DOING_IDLE` - It has no call of any controller's.
    * `:DOING_WAITING` - It waits for other ranks: in another operation, or for the other end of a send or a receive.
    * `:DOING_RUNNING` - It is in the backend with another operation.
    * `:DOING_FUNCTION` - It runs a function of the user's.
    * `:DOING_STOPPED` - Its process is stopped, as by SIGSTOP.
    * `:DOING_SILENT` - It did not answer in time. It may be busy or starved; nothing says that it is dead.
    * `:DOING_HELD` - A breakpoint holds it before a call.
  """

  @type t ::
          :DOING_UNSPECIFIED
          | :DOING_IDLE
          | :DOING_WAITING
          | :DOING_RUNNING
          | :DOING_FUNCTION
          | :DOING_STOPPED
          | :DOING_SILENT
          | :DOING_HELD
          | integer()

  @doc "The number of each name."
  @spec mapping() :: %{atom() => integer()}
  def mapping do
    %{
      DOING_UNSPECIFIED: 0,
      DOING_IDLE: 1,
      DOING_WAITING: 2,
      DOING_RUNNING: 3,
      DOING_FUNCTION: 4,
      DOING_STOPPED: 5,
      DOING_SILENT: 6,
      DOING_HELD: 7
    }
  end

  @doc "The number of a name; a number is its own."
  @spec value(t()) :: integer()
  def value(:DOING_UNSPECIFIED), do: 0
  def value(:DOING_IDLE), do: 1
  def value(:DOING_WAITING), do: 2
  def value(:DOING_RUNNING), do: 3
  def value(:DOING_FUNCTION), do: 4
  def value(:DOING_STOPPED), do: 5
  def value(:DOING_SILENT), do: 6
  def value(:DOING_HELD), do: 7
  def value(number) when is_integer(number), do: number

  @doc "The name of a number, or the number where it has none."
  @spec key(integer()) :: t()
  def key(0), do: :DOING_UNSPECIFIED
  def key(1), do: :DOING_IDLE
  def key(2), do: :DOING_WAITING
  def key(3), do: :DOING_RUNNING
  def key(4), do: :DOING_FUNCTION
  def key(5), do: :DOING_STOPPED
  def key(6), do: :DOING_SILENT
  def key(7), do: :DOING_HELD
  def key(number) when is_integer(number), do: number
end

defmodule RankBridge.Proto.V1.Activity do
  @moduledoc """
  What one rank does while others wait for it, as its sidecar says. Of several operations, one: first of the group in which the
  others wait, then the oldest.

  ## Fields

    * `doing` - What it does.
    * `group` - Name of the group of what it waits for, runs, or is held at. Empty: none of these.
    * `operation` - Kind of operation that it waits for or runs; with FUNCTION, the function's name. Empty: neither.
    * `operation_id` - Id of that operation. Empty: it has none.
    * `site` - The line of code that called for it. Empty: not said.
    * `for_ms` - For how long, in milliseconds; with SILENT, how long others waited for its answer. 0 with STOPPED: not known.
    * `where` - With FUNCTION, where the function is: the innermost line of the user's own code, "data.py:88 in next_batch". With
      IDLE, where the script is of a job to which the rank was attached. Empty: not known.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.{Decode, Encode}

  @type t :: %__MODULE__{
          doing: V1.Doing.t(),
          group: String.t(),
          operation: String.t(),
          operation_id: String.t(),
          site: String.t(),
          for_ms: non_neg_integer(),
          where: String.t(),
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct doing: :DOING_UNSPECIFIED,
            group: "",
            operation: "",
            operation_id: "",
            site: "",
            for_ms: 0,
            where: "",
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
      Encode.implicit(0x08, {:enum, V1.Doing}, message.doing),
      Encode.implicit(0x12, :string, message.group),
      Encode.implicit(0x1A, :string, message.operation),
      Encode.implicit(0x22, :string, message.operation_id),
      Encode.implicit(0x2A, :string, message.site),
      Encode.implicit(0x30, :uint64, message.for_ms),
      Encode.implicit(0x3A, :string, message.where),
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
    %{message | doing: Decode.value({:enum, V1.Doing}, raw)}
  end

  def __put__(message, 2, 2, raw, _depth) do
    %{message | group: Decode.value(:string, raw)}
  end

  def __put__(message, 3, 2, raw, _depth) do
    %{message | operation: Decode.value(:string, raw)}
  end

  def __put__(message, 4, 2, raw, _depth) do
    %{message | operation_id: Decode.value(:string, raw)}
  end

  def __put__(message, 5, 2, raw, _depth) do
    %{message | site: Decode.value(:string, raw)}
  end

  def __put__(message, 6, 0, raw, _depth) do
    %{message | for_ms: Decode.value(:uint64, raw)}
  end

  def __put__(message, 7, 2, raw, _depth) do
    %{message | where: Decode.value(:string, raw)}
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
      {1, :doing, {:enum, V1.Doing}, :implicit},
      {2, :group, :string, :implicit},
      {3, :operation, :string, :implicit},
      {4, :operation_id, :string, :implicit},
      {5, :site, :string, :implicit},
      {6, :for_ms, :uint64, :implicit},
      {7, :where, :string, :implicit}
    ]
  end
end

defmodule RankBridge.Proto.V1.RankDetail do
  @moduledoc """
  One rank's part in a failure.

  ## Fields

    * `rank` - Rank in the gang.
    * `rank_in_group` - Rank in the group of the operation.
    * `state` - The rank's state in the failure.
    * `detail` - The rank's request, or its failure, in words.
    * `site` - The line of code that made the rank's request: `Call.site`. Empty: it made none, or its caller did not say.
    * `activity` - With RANK_STATE_MISSING: what it does instead. Absent: it was not asked.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.{Decode, Encode}

  @type t :: %__MODULE__{
          rank: non_neg_integer(),
          rank_in_group: non_neg_integer(),
          state: V1.RankState.t(),
          detail: String.t(),
          site: String.t(),
          activity: V1.Activity.t() | nil,
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct rank: 0,
            rank_in_group: 0,
            state: :RANK_STATE_UNSPECIFIED,
            detail: "",
            site: "",
            activity: nil,
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
      Encode.implicit(0x18, {:enum, V1.RankState}, message.state),
      Encode.implicit(0x22, :string, message.detail),
      Encode.implicit(0x2A, :string, message.site),
      Encode.optional(0x32, {:message, V1.Activity}, message.activity),
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
    %{message | state: Decode.value({:enum, V1.RankState}, raw)}
  end

  def __put__(message, 4, 2, raw, _depth) do
    %{message | detail: Decode.value(:string, raw)}
  end

  def __put__(message, 5, 2, raw, _depth) do
    %{message | site: Decode.value(:string, raw)}
  end

  def __put__(message, 6, 2, raw, depth) do
    %{message | activity: Decode.message(V1.Activity, message.activity, raw, depth)}
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
      {3, :state, {:enum, V1.RankState}, :implicit},
      {4, :detail, :string, :implicit},
      {5, :site, :string, :implicit},
      {6, :activity, {:message, V1.Activity}, :optional}
    ]
  end
end

defmodule RankBridge.Proto.V1.Raised do
  @moduledoc """
  An exception that a function of the user's raised.

  ## Fields

    * `rank` - Rank in the gang on which it was raised.
    * `type` - Name of its class, with the module unless it is Python's own: "ValueError", "torch.OutOfMemoryError".
    * `text` - Its text.
    * `traceback` - Python's traceback, the user's own lines first, the innermost at the top. At most 16 KiB.
    * `where` - The innermost line of the user's own: "train.py:88 in next_batch". Empty: there is none.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Protobuf.{Decode, Encode}

  @type t :: %__MODULE__{
          rank: non_neg_integer(),
          type: String.t(),
          text: String.t(),
          traceback: String.t(),
          where: String.t(),
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct rank: 0,
            type: "",
            text: "",
            traceback: "",
            where: "",
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
      Encode.implicit(0x12, :string, message.type),
      Encode.implicit(0x1A, :string, message.text),
      Encode.implicit(0x22, :string, message.traceback),
      Encode.implicit(0x2A, :string, message.where),
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
    %{message | type: Decode.value(:string, raw)}
  end

  def __put__(message, 3, 2, raw, _depth) do
    %{message | text: Decode.value(:string, raw)}
  end

  def __put__(message, 4, 2, raw, _depth) do
    %{message | traceback: Decode.value(:string, raw)}
  end

  def __put__(message, 5, 2, raw, _depth) do
    %{message | where: Decode.value(:string, raw)}
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
      {2, :type, :string, :implicit},
      {3, :text, :string, :implicit},
      {4, :traceback, :string, :implicit},
      {5, :where, :string, :implicit}
    ]
  end
end

defmodule RankBridge.Proto.V1.Error do
  @moduledoc """
  A failure, with what a caller needs to act on it.

  ## Fields

    * `code` - What went wrong.
    * `message` - One sentence for people, with rank, group and operation in it. Its wording may change; match on `code`.
    * `indefinite` - True: some rank may have done the operation. False: no rank has, and none will.
    * `phase` - The phase in which the call failed.
    * `rank` - Rank in the gang that reports the failure.
    * `group` - Name of the group. Empty: none was involved.
    * `operation` - Kind of operation: "all_reduce", "get". Empty: none was involved.
    * `operation_id` - Id of the operation. Empty: the operation has none.
    * `generation` - Generation in which the call failed. 0: none was formed.
    * `expected` - The expected value. Empty: it does not apply.
    * `got` - The actual value. Empty: it does not apply.
    * `ranks` - Ranks concerned, ascending. Empty: this rank alone.
    * `raised` - With FUNCTION_FAILED: the exception. Absent: no function raised one.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.{Decode, Encode}

  @type t :: %__MODULE__{
          code: V1.ErrorCode.t(),
          message: String.t(),
          indefinite: boolean(),
          phase: V1.Phase.t(),
          rank: non_neg_integer(),
          group: String.t(),
          operation: String.t(),
          operation_id: String.t(),
          generation: non_neg_integer(),
          expected: String.t(),
          got: String.t(),
          ranks: [V1.RankDetail.t()],
          raised: V1.Raised.t() | nil,
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct code: :ERROR_CODE_UNSPECIFIED,
            message: "",
            indefinite: false,
            phase: :PHASE_UNSPECIFIED,
            rank: 0,
            group: "",
            operation: "",
            operation_id: "",
            generation: 0,
            expected: "",
            got: "",
            ranks: [],
            raised: nil,
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
      Encode.implicit(0x08, {:enum, V1.ErrorCode}, message.code),
      Encode.implicit(0x12, :string, message.message),
      Encode.implicit(0x18, :bool, message.indefinite),
      Encode.implicit(0x20, {:enum, V1.Phase}, message.phase),
      Encode.implicit(0x28, :uint32, message.rank),
      Encode.implicit(0x32, :string, message.group),
      Encode.implicit(0x3A, :string, message.operation),
      Encode.implicit(0x42, :string, message.operation_id),
      Encode.implicit(0x48, :uint64, message.generation),
      Encode.implicit(0x52, :string, message.expected),
      Encode.implicit(0x5A, :string, message.got),
      Encode.repeated(0x62, {:message, V1.RankDetail}, message.ranks),
      Encode.optional(0x6A, {:message, V1.Raised}, message.raised),
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
    %{message | code: Decode.value({:enum, V1.ErrorCode}, raw)}
  end

  def __put__(message, 2, 2, raw, _depth) do
    %{message | message: Decode.value(:string, raw)}
  end

  def __put__(message, 3, 0, raw, _depth) do
    %{message | indefinite: Decode.value(:bool, raw)}
  end

  def __put__(message, 4, 0, raw, _depth) do
    %{message | phase: Decode.value({:enum, V1.Phase}, raw)}
  end

  def __put__(message, 5, 0, raw, _depth) do
    %{message | rank: Decode.value(:uint32, raw)}
  end

  def __put__(message, 6, 2, raw, _depth) do
    %{message | group: Decode.value(:string, raw)}
  end

  def __put__(message, 7, 2, raw, _depth) do
    %{message | operation: Decode.value(:string, raw)}
  end

  def __put__(message, 8, 2, raw, _depth) do
    %{message | operation_id: Decode.value(:string, raw)}
  end

  def __put__(message, 9, 0, raw, _depth) do
    %{message | generation: Decode.value(:uint64, raw)}
  end

  def __put__(message, 10, 2, raw, _depth) do
    %{message | expected: Decode.value(:string, raw)}
  end

  def __put__(message, 11, 2, raw, _depth) do
    %{message | got: Decode.value(:string, raw)}
  end

  def __put__(message, 12, 2, raw, depth) do
    %{message | ranks: [Decode.message(V1.RankDetail, nil, raw, depth) | message.ranks]}
  end

  def __put__(message, 13, 2, raw, depth) do
    %{message | raised: Decode.message(V1.Raised, message.raised, raw, depth)}
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
      {1, :code, {:enum, V1.ErrorCode}, :implicit},
      {2, :message, :string, :implicit},
      {3, :indefinite, :bool, :implicit},
      {4, :phase, {:enum, V1.Phase}, :implicit},
      {5, :rank, :uint32, :implicit},
      {6, :group, :string, :implicit},
      {7, :operation, :string, :implicit},
      {8, :operation_id, :string, :implicit},
      {9, :generation, :uint64, :implicit},
      {10, :expected, :string, :implicit},
      {11, :got, :string, :implicit},
      {12, :ranks, {:message, V1.RankDetail}, :repeated},
      {13, :raised, {:message, V1.Raised}, :optional}
    ]
  end
end
