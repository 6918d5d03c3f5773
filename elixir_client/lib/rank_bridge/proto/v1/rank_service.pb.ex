# Generated from rankbridge/v1/rank_service.proto by protoc-gen-rankbridge-elixir. Do not edit.

defmodule RankBridge.Proto.V1.GenerationState do
  @moduledoc """
  The state of a rank's generation.

  Numbers without a name stay integers.

  ## Values

    * `:GENERATION_STATE_UNSPECIFIED` - Not said.
    * `:GENERATION_STATE_NONE` - No generation was formed yet.
    * `:GENERATION_STATE_PREPARED` - Prepared, waiting for commit or abort.
    * `:GENERATION_STATE_FORMED` - Formed: operations run.
    * `:GENERATION_STATE_OVER` - Over: a rank was lost, the backend failed, or it was aborted.
  """

  @type t ::
          :GENERATION_STATE_UNSPECIFIED
          | :GENERATION_STATE_NONE
          | :GENERATION_STATE_PREPARED
          | :GENERATION_STATE_FORMED
          | :GENERATION_STATE_OVER
          | integer()

  @doc "The number of each name."
  @spec mapping() :: %{atom() => integer()}
  def mapping do
    %{
      GENERATION_STATE_UNSPECIFIED: 0,
      GENERATION_STATE_NONE: 1,
      GENERATION_STATE_PREPARED: 2,
      GENERATION_STATE_FORMED: 3,
      GENERATION_STATE_OVER: 4
    }
  end

  @doc "The number of a name; a number is its own."
  @spec value(t()) :: integer()
  def value(:GENERATION_STATE_UNSPECIFIED), do: 0
  def value(:GENERATION_STATE_NONE), do: 1
  def value(:GENERATION_STATE_PREPARED), do: 2
  def value(:GENERATION_STATE_FORMED), do: 3
  def value(:GENERATION_STATE_OVER), do: 4
  def value(number) when is_integer(number), do: number

  @doc "The name of a number, or the number where it has none."
  @spec key(integer()) :: t()
  def key(0), do: :GENERATION_STATE_UNSPECIFIED
  def key(1), do: :GENERATION_STATE_NONE
  def key(2), do: :GENERATION_STATE_PREPARED
  def key(3), do: :GENERATION_STATE_FORMED
  def key(4), do: :GENERATION_STATE_OVER
  def key(number) when is_integer(number), do: number
end

defmodule RankBridge.Proto.V1.SessionUsage do
  @moduledoc """
  Number of refs and bytes of one session.

  ## Fields

    * `session_id` - Id of the session. Empty: the shared session.
    * `refs` - Refs that it owns.
    * `bytes` - Bytes of their tensors.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Protobuf.{Decode, Encode}

  @type t :: %__MODULE__{
          session_id: String.t(),
          refs: non_neg_integer(),
          bytes: non_neg_integer(),
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct session_id: "",
            refs: 0,
            bytes: 0,
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
      Encode.implicit(0x0A, :string, message.session_id),
      Encode.implicit(0x10, :uint64, message.refs),
      Encode.implicit(0x18, :uint64, message.bytes),
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
    %{message | session_id: Decode.value(:string, raw)}
  end

  def __put__(message, 2, 0, raw, _depth) do
    %{message | refs: Decode.value(:uint64, raw)}
  end

  def __put__(message, 3, 0, raw, _depth) do
    %{message | bytes: Decode.value(:uint64, raw)}
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
      {1, :session_id, :string, :implicit},
      {2, :refs, :uint64, :implicit},
      {3, :bytes, :uint64, :implicit}
    ]
  end
end

defmodule RankBridge.Proto.V1.DescribeRankRequest do
  @moduledoc """
  Describes this rank.
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

defmodule RankBridge.Proto.V1.DescribeRankResponse do
  @moduledoc """
  What this rank is.

  ## Fields

    * `rank` - Rank in the gang. Before the first forming: what its launcher said.
    * `world_size` - Ranks in the gang. 0: not known yet.
    * `local_rank` - Rank on its host.
    * `pid` - Process id, on its host.
    * `host` - Name of its host.
    * `backend` - Backend that moves data: "gloo", "fake".
    * `generation` - Number of the generation in `generation_state`. 0: none yet.
    * `generation_state` - The state of that generation.
    * `generation_error` - Why the generation is over. Absent: it is not.
    * `groups` - Groups of the generation that the rank knows, by name. Groups without `rank_in_group` may have ended.
    * `sessions` - Sessions and what they own; the shared one first.
    * `pending_operations` - Operations accepted and not yet answered.
    * `endpoints` - Endpoints at which this sidecar serves, as gRPC targets: "unix:/run/...", "127.0.0.1:50051".
    * `version` - Version of rankbridge on the rank.
    * `abilities` - The backend's abilities. Absent: the rank's version does not report them.
    * `device` - Where tensors live that name no device: "cpu", "cuda:0".
    * `fs_local_rank` - Rank among the ranks that share its file system, as its launcher says: rank 0 downloads for the others.
    * `local_world_size` - Ranks on its host, as its launcher says. 0: not said.
    * `highest_generation` - Highest generation that the rank was ever asked to prepare: `generation`, or later ones whose forming failed.
    * `generation_since_us` - When the generation was formed, or when it was over if it is, by the clock of the rank's host: microseconds since
      1970 in UTC. 0: neither.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.{Decode, Encode}

  @type t :: %__MODULE__{
          rank: non_neg_integer(),
          world_size: non_neg_integer(),
          local_rank: non_neg_integer(),
          pid: non_neg_integer(),
          host: String.t(),
          backend: String.t(),
          generation: non_neg_integer(),
          generation_state: V1.GenerationState.t(),
          generation_error: V1.Error.t() | nil,
          groups: [V1.Group.t()],
          sessions: [V1.SessionUsage.t()],
          pending_operations: non_neg_integer(),
          endpoints: [String.t()],
          version: String.t(),
          abilities: V1.Abilities.t() | nil,
          device: String.t(),
          fs_local_rank: non_neg_integer(),
          local_world_size: non_neg_integer(),
          highest_generation: non_neg_integer(),
          generation_since_us: non_neg_integer(),
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct rank: 0,
            world_size: 0,
            local_rank: 0,
            pid: 0,
            host: "",
            backend: "",
            generation: 0,
            generation_state: :GENERATION_STATE_UNSPECIFIED,
            generation_error: nil,
            groups: [],
            sessions: [],
            pending_operations: 0,
            endpoints: [],
            version: "",
            abilities: nil,
            device: "",
            fs_local_rank: 0,
            local_world_size: 0,
            highest_generation: 0,
            generation_since_us: 0,
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
      Encode.implicit(0x10, :uint32, message.world_size),
      Encode.implicit(0x18, :uint32, message.local_rank),
      Encode.implicit(0x20, :uint64, message.pid),
      Encode.implicit(0x2A, :string, message.host),
      Encode.implicit(0x32, :string, message.backend),
      Encode.implicit(0x38, :uint64, message.generation),
      Encode.implicit(0x40, {:enum, V1.GenerationState}, message.generation_state),
      Encode.optional(0x4A, {:message, V1.Error}, message.generation_error),
      Encode.repeated(0x52, {:message, V1.Group}, message.groups),
      Encode.repeated(0x5A, {:message, V1.SessionUsage}, message.sessions),
      Encode.implicit(0x60, :uint32, message.pending_operations),
      Encode.repeated(0x6A, :string, message.endpoints),
      Encode.implicit(0x72, :string, message.version),
      Encode.optional(0x7A, {:message, V1.Abilities}, message.abilities),
      Encode.implicit(0x82, :string, message.device),
      Encode.implicit(0x88, :uint32, message.fs_local_rank),
      Encode.implicit(0x90, :uint32, message.local_world_size),
      Encode.implicit(0x98, :uint64, message.highest_generation),
      Encode.implicit(0xA0, :uint64, message.generation_since_us),
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
    %{message | world_size: Decode.value(:uint32, raw)}
  end

  def __put__(message, 3, 0, raw, _depth) do
    %{message | local_rank: Decode.value(:uint32, raw)}
  end

  def __put__(message, 4, 0, raw, _depth) do
    %{message | pid: Decode.value(:uint64, raw)}
  end

  def __put__(message, 5, 2, raw, _depth) do
    %{message | host: Decode.value(:string, raw)}
  end

  def __put__(message, 6, 2, raw, _depth) do
    %{message | backend: Decode.value(:string, raw)}
  end

  def __put__(message, 7, 0, raw, _depth) do
    %{message | generation: Decode.value(:uint64, raw)}
  end

  def __put__(message, 8, 0, raw, _depth) do
    %{message | generation_state: Decode.value({:enum, V1.GenerationState}, raw)}
  end

  def __put__(message, 9, 2, raw, depth) do
    %{message | generation_error: Decode.message(V1.Error, message.generation_error, raw, depth)}
  end

  def __put__(message, 10, 2, raw, depth) do
    %{message | groups: [Decode.message(V1.Group, nil, raw, depth) | message.groups]}
  end

  def __put__(message, 11, 2, raw, depth) do
    %{message | sessions: [Decode.message(V1.SessionUsage, nil, raw, depth) | message.sessions]}
  end

  def __put__(message, 12, 0, raw, _depth) do
    %{message | pending_operations: Decode.value(:uint32, raw)}
  end

  def __put__(message, 13, 2, raw, _depth) do
    %{message | endpoints: [Decode.value(:string, raw) | message.endpoints]}
  end

  def __put__(message, 14, 2, raw, _depth) do
    %{message | version: Decode.value(:string, raw)}
  end

  def __put__(message, 15, 2, raw, depth) do
    %{message | abilities: Decode.message(V1.Abilities, message.abilities, raw, depth)}
  end

  def __put__(message, 16, 2, raw, _depth) do
    %{message | device: Decode.value(:string, raw)}
  end

  def __put__(message, 17, 0, raw, _depth) do
    %{message | fs_local_rank: Decode.value(:uint32, raw)}
  end

  def __put__(message, 18, 0, raw, _depth) do
    %{message | local_world_size: Decode.value(:uint32, raw)}
  end

  def __put__(message, 19, 0, raw, _depth) do
    %{message | highest_generation: Decode.value(:uint64, raw)}
  end

  def __put__(message, 20, 0, raw, _depth) do
    %{message | generation_since_us: Decode.value(:uint64, raw)}
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
        sessions: Enum.reverse(message.sessions),
        endpoints: Enum.reverse(message.endpoints),
        __unknown_fields__: Enum.reverse(message.__unknown_fields__)
    }
  end

  @doc false
  @impl true
  @spec __fields__() :: [RankBridge.Protobuf.Message.field()]
  def __fields__ do
    [
      {1, :rank, :uint32, :implicit},
      {2, :world_size, :uint32, :implicit},
      {3, :local_rank, :uint32, :implicit},
      {4, :pid, :uint64, :implicit},
      {5, :host, :string, :implicit},
      {6, :backend, :string, :implicit},
      {7, :generation, :uint64, :implicit},
      {8, :generation_state, {:enum, V1.GenerationState}, :implicit},
      {9, :generation_error, {:message, V1.Error}, :optional},
      {10, :groups, {:message, V1.Group}, :repeated},
      {11, :sessions, {:message, V1.SessionUsage}, :repeated},
      {12, :pending_operations, :uint32, :implicit},
      {13, :endpoints, :string, :repeated},
      {14, :version, :string, :implicit},
      {15, :abilities, {:message, V1.Abilities}, :optional},
      {16, :device, :string, :implicit},
      {17, :fs_local_rank, :uint32, :implicit},
      {18, :local_world_size, :uint32, :implicit},
      {19, :highest_generation, :uint64, :implicit},
      {20, :generation_since_us, :uint64, :implicit}
    ]
  end
end

defmodule RankBridge.Proto.V1.ListPendingRequest do
  @moduledoc """
  Lists pending operations.
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

defmodule RankBridge.Proto.V1.ListPendingResponse do
  @moduledoc """
  Pending operations.

  ## Fields

    * `operations` - Operations accepted and not yet answered, the oldest first.
    * `admissions` - Admissions that some members keep waiting, of the groups of which this rank is the first member: who has come, and
      who is missing. At most one for each group. Only the group's first rank knows.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.{Decode, Encode}

  @type t :: %__MODULE__{
          operations: [V1.PendingOperation.t()],
          admissions: [V1.StragglerEvent.t()],
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct operations: [],
            admissions: [],
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
      Encode.repeated(0x0A, {:message, V1.PendingOperation}, message.operations),
      Encode.repeated(0x12, {:message, V1.StragglerEvent}, message.admissions),
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
      | operations: [Decode.message(V1.PendingOperation, nil, raw, depth) | message.operations]
    }
  end

  def __put__(message, 2, 2, raw, depth) do
    %{
      message
      | admissions: [Decode.message(V1.StragglerEvent, nil, raw, depth) | message.admissions]
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
      | operations: Enum.reverse(message.operations),
        admissions: Enum.reverse(message.admissions),
        __unknown_fields__: Enum.reverse(message.__unknown_fields__)
    }
  end

  @doc false
  @impl true
  @spec __fields__() :: [RankBridge.Protobuf.Message.field()]
  def __fields__ do
    [
      {1, :operations, {:message, V1.PendingOperation}, :repeated},
      {2, :admissions, {:message, V1.StragglerEvent}, :repeated}
    ]
  end
end

defmodule RankBridge.Proto.V1.PendingOperation do
  @moduledoc """
  An operation that a rank has accepted and not answered yet.

  ## Fields

    * `operation` - Its kind: "all_reduce".
    * `group` - Name of its group.
    * `operation_id` - Its operation id. Empty: its caller gave none.
    * `session_id` - Session of its caller. Empty: the shared one.
    * `phase` - PHASE_CHECK: it is queued behind others of its group. PHASE_ADMISSION: it waits for the other members.
      PHASE_DATA: it is in the backend.
    * `waited_us` - How long ago the rank accepted it, in microseconds.
    * `remaining_us` - Until its deadline, in microseconds. 0: the deadline has passed.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.{Decode, Encode}

  @type t :: %__MODULE__{
          operation: String.t(),
          group: String.t(),
          operation_id: String.t(),
          session_id: String.t(),
          phase: V1.Phase.t(),
          waited_us: non_neg_integer(),
          remaining_us: non_neg_integer(),
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct operation: "",
            group: "",
            operation_id: "",
            session_id: "",
            phase: :PHASE_UNSPECIFIED,
            waited_us: 0,
            remaining_us: 0,
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
      Encode.implicit(0x28, {:enum, V1.Phase}, message.phase),
      Encode.implicit(0x30, :uint64, message.waited_us),
      Encode.implicit(0x38, :uint64, message.remaining_us),
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
    %{message | phase: Decode.value({:enum, V1.Phase}, raw)}
  end

  def __put__(message, 6, 0, raw, _depth) do
    %{message | waited_us: Decode.value(:uint64, raw)}
  end

  def __put__(message, 7, 0, raw, _depth) do
    %{message | remaining_us: Decode.value(:uint64, raw)}
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
      {5, :phase, {:enum, V1.Phase}, :implicit},
      {6, :waited_us, :uint64, :implicit},
      {7, :remaining_us, :uint64, :implicit}
    ]
  end
end

defmodule RankBridge.Proto.V1.GetMetricsRequest do
  @moduledoc """
  Asks for metrics.
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

defmodule RankBridge.Proto.V1.GetMetricsResponse do
  @moduledoc """
  The metrics of a rank.

  ## Fields

    * `families` - Each name once. Counters and histograms only if the rank was started with --metrics.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.{Decode, Encode}

  @type t :: %__MODULE__{
          families: [V1.MetricFamily.t()],
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct families: [],
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
      Encode.repeated(0x0A, {:message, V1.MetricFamily}, message.families),
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
    %{message | families: [Decode.message(V1.MetricFamily, nil, raw, depth) | message.families]}
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
      | families: Enum.reverse(message.families),
        __unknown_fields__: Enum.reverse(message.__unknown_fields__)
    }
  end

  @doc false
  @impl true
  @spec __fields__() :: [RankBridge.Protobuf.Message.field()]
  def __fields__ do
    [
      {1, :families, {:message, V1.MetricFamily}, :repeated}
    ]
  end
end

defmodule RankBridge.Proto.V1.MetricFamily do
  @moduledoc """
  Values of one name, as Prometheus has them.

  ## Fields

    * `name` - Name without a suffix: "rankbridge_collective_duration_seconds".
    * `kind` - "counter", "gauge" or "histogram".
    * `help` - What it is, for people.
    * `samples` - The values.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.{Decode, Encode}

  @type t :: %__MODULE__{
          name: String.t(),
          kind: String.t(),
          help: String.t(),
          samples: [V1.MetricSample.t()],
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct name: "",
            kind: "",
            help: "",
            samples: [],
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
      Encode.implicit(0x12, :string, message.kind),
      Encode.implicit(0x1A, :string, message.help),
      Encode.repeated(0x22, {:message, V1.MetricSample}, message.samples),
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
    %{message | kind: Decode.value(:string, raw)}
  end

  def __put__(message, 3, 2, raw, _depth) do
    %{message | help: Decode.value(:string, raw)}
  end

  def __put__(message, 4, 2, raw, depth) do
    %{message | samples: [Decode.message(V1.MetricSample, nil, raw, depth) | message.samples]}
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
      | samples: Enum.reverse(message.samples),
        __unknown_fields__: Enum.reverse(message.__unknown_fields__)
    }
  end

  @doc false
  @impl true
  @spec __fields__() :: [RankBridge.Protobuf.Message.field()]
  def __fields__ do
    [
      {1, :name, :string, :implicit},
      {2, :kind, :string, :implicit},
      {3, :help, :string, :implicit},
      {4, :samples, {:message, V1.MetricSample}, :repeated}
    ]
  end
end

defmodule RankBridge.Proto.V1.MetricSample do
  @moduledoc """
  One value.

  ## Fields

    * `suffix` - What its name has beyond its family's: "_bucket". Empty: nothing, or "_total" of a counter.
    * `labels` - Labels, each name once.
    * `value` - The value; of times in seconds.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.{Decode, Encode}

  @type t :: %__MODULE__{
          suffix: String.t(),
          labels: [V1.MetricLabel.t()],
          value: RankBridge.Protobuf.float_value(),
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct suffix: "",
            labels: [],
            value: 0.0,
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
      Encode.implicit(0x0A, :string, message.suffix),
      Encode.repeated(0x12, {:message, V1.MetricLabel}, message.labels),
      Encode.implicit(0x19, :double, message.value),
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
    %{message | suffix: Decode.value(:string, raw)}
  end

  def __put__(message, 2, 2, raw, depth) do
    %{message | labels: [Decode.message(V1.MetricLabel, nil, raw, depth) | message.labels]}
  end

  def __put__(message, 3, 1, raw, _depth) do
    %{message | value: Decode.value(:double, raw)}
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
      | labels: Enum.reverse(message.labels),
        __unknown_fields__: Enum.reverse(message.__unknown_fields__)
    }
  end

  @doc false
  @impl true
  @spec __fields__() :: [RankBridge.Protobuf.Message.field()]
  def __fields__ do
    [
      {1, :suffix, :string, :implicit},
      {2, :labels, {:message, V1.MetricLabel}, :repeated},
      {3, :value, :double, :implicit}
    ]
  end
end

defmodule RankBridge.Proto.V1.MetricLabel do
  @moduledoc """
  What a value is of.

  ## Fields

    * `name` - Its name: "group", "op".
    * `value` - Its value.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Protobuf.{Decode, Encode}

  @type t :: %__MODULE__{
          name: String.t(),
          value: String.t(),
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct name: "",
            value: "",
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
      Encode.implicit(0x12, :string, message.value),
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
    %{message | value: Decode.value(:string, raw)}
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
      {1, :name, :string, :implicit},
      {2, :value, :string, :implicit}
    ]
  end
end

defmodule RankBridge.Proto.V1.Abilities do
  @moduledoc """
  What a backend can do.

  ## Fields

    * `collectives` - Operations that the rank runs, by their fields in `Operation`: "all_reduce", "send".
    * `dtypes` - Dtypes that tensors can have; every collective that does not reduce moves all of them.
    * `reductions` - Reduce ops of reduce, all_reduce and reduce_scatter. One that is not here works on nothing.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.{Decode, Encode}

  @type t :: %__MODULE__{
          collectives: [String.t()],
          dtypes: [V1.Dtype.t()],
          reductions: [V1.Reduction.t()],
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct collectives: [],
            dtypes: [],
            reductions: [],
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
      Encode.repeated(0x0A, :string, message.collectives),
      Encode.packed(0x12, {:enum, V1.Dtype}, message.dtypes),
      Encode.repeated(0x1A, {:message, V1.Reduction}, message.reductions),
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
    %{message | collectives: [Decode.value(:string, raw) | message.collectives]}
  end

  def __put__(message, 2, 0, raw, _depth) do
    %{message | dtypes: [Decode.value({:enum, V1.Dtype}, raw) | message.dtypes]}
  end

  def __put__(message, 2, 2, raw, _depth) do
    %{message | dtypes: Decode.packed({:enum, V1.Dtype}, raw, message.dtypes)}
  end

  def __put__(message, 3, 2, raw, depth) do
    %{message | reductions: [Decode.message(V1.Reduction, nil, raw, depth) | message.reductions]}
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
      | collectives: Enum.reverse(message.collectives),
        dtypes: Enum.reverse(message.dtypes),
        reductions: Enum.reverse(message.reductions),
        __unknown_fields__: Enum.reverse(message.__unknown_fields__)
    }
  end

  @doc false
  @impl true
  @spec __fields__() :: [RankBridge.Protobuf.Message.field()]
  def __fields__ do
    [
      {1, :collectives, :string, :repeated},
      {2, :dtypes, {:enum, V1.Dtype}, :repeated},
      {3, :reductions, {:message, V1.Reduction}, :repeated}
    ]
  end
end

defmodule RankBridge.Proto.V1.Reduction do
  @moduledoc """
  What one reduce op works on.

  ## Fields

    * `op` - How elements are combined.
    * `dtypes` - Dtypes of tensors that are combined so.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.{Decode, Encode}

  @type t :: %__MODULE__{
          op: V1.ReduceOp.t(),
          dtypes: [V1.Dtype.t()],
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct op: :REDUCE_OP_UNSPECIFIED,
            dtypes: [],
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
      Encode.implicit(0x08, {:enum, V1.ReduceOp}, message.op),
      Encode.packed(0x12, {:enum, V1.Dtype}, message.dtypes),
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
    %{message | op: Decode.value({:enum, V1.ReduceOp}, raw)}
  end

  def __put__(message, 2, 0, raw, _depth) do
    %{message | dtypes: [Decode.value({:enum, V1.Dtype}, raw) | message.dtypes]}
  end

  def __put__(message, 2, 2, raw, _depth) do
    %{message | dtypes: Decode.packed({:enum, V1.Dtype}, raw, message.dtypes)}
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
        __unknown_fields__: Enum.reverse(message.__unknown_fields__)
    }
  end

  @doc false
  @impl true
  @spec __fields__() :: [RankBridge.Protobuf.Message.field()]
  def __fields__ do
    [
      {1, :op, {:enum, V1.ReduceOp}, :implicit},
      {2, :dtypes, {:enum, V1.Dtype}, :repeated}
    ]
  end
end

defmodule RankBridge.Proto.V1.GroupDescription do
  @moduledoc """
  A group that is to be formed.

  ## Fields

    * `name` - Unique in the gang, 1 to 128 bytes.
    * `ranks` - Ranks of the gang, in group order.
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

defmodule RankBridge.Proto.V1.PrepareGenerationRequest do
  @moduledoc """
  First phase of forming.

  ## Fields

    * `generation` - Number of the new generation, higher than any that this rank has seen.
    * `rank` - This rank's place in it, 0 to world_size - 1.
    * `world_size` - Ranks in the gang, 1 or more.
    * `groups` - Groups to form beside "world".
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.{Decode, Encode}

  @type t :: %__MODULE__{
          generation: non_neg_integer(),
          rank: non_neg_integer(),
          world_size: non_neg_integer(),
          groups: [V1.GroupDescription.t()],
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct generation: 0,
            rank: 0,
            world_size: 0,
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
      Encode.implicit(0x08, :uint64, message.generation),
      Encode.implicit(0x10, :uint32, message.rank),
      Encode.implicit(0x18, :uint32, message.world_size),
      Encode.repeated(0x22, {:message, V1.GroupDescription}, message.groups),
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
    %{message | generation: Decode.value(:uint64, raw)}
  end

  def __put__(message, 2, 0, raw, _depth) do
    %{message | rank: Decode.value(:uint32, raw)}
  end

  def __put__(message, 3, 0, raw, _depth) do
    %{message | world_size: Decode.value(:uint32, raw)}
  end

  def __put__(message, 4, 2, raw, depth) do
    %{message | groups: [Decode.message(V1.GroupDescription, nil, raw, depth) | message.groups]}
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
      {1, :generation, :uint64, :implicit},
      {2, :rank, :uint32, :implicit},
      {3, :world_size, :uint32, :implicit},
      {4, :groups, {:message, V1.GroupDescription}, :repeated}
    ]
  end
end

defmodule RankBridge.Proto.V1.GroupAddress do
  @moduledoc """
  The address of this rank in one group.

  ## Fields

    * `group` - Name of the group.
    * `address` - The backend's own address, opaque.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Protobuf.{Decode, Encode}

  @type t :: %__MODULE__{
          group: String.t(),
          address: iodata(),
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct group: "",
            address: "",
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
      Encode.implicit(0x12, :bytes, message.address),
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
    %{message | address: Decode.value(:bytes, raw)}
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
      {2, :address, :bytes, :implicit}
    ]
  end
end

defmodule RankBridge.Proto.V1.RankAddress do
  @moduledoc """
  The addresses of this rank.

  ## Fields

    * `rank` - Rank in the gang.
    * `link` - Where its control links are accepted: "unix:/path" or "host:port".
    * `groups` - One for each group that the rank belongs to, "world" included.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.{Decode, Encode}

  @type t :: %__MODULE__{
          rank: non_neg_integer(),
          link: String.t(),
          groups: [V1.GroupAddress.t()],
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct rank: 0,
            link: "",
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
      Encode.implicit(0x08, :uint32, message.rank),
      Encode.implicit(0x12, :string, message.link),
      Encode.repeated(0x1A, {:message, V1.GroupAddress}, message.groups),
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
    %{message | link: Decode.value(:string, raw)}
  end

  def __put__(message, 3, 2, raw, depth) do
    %{message | groups: [Decode.message(V1.GroupAddress, nil, raw, depth) | message.groups]}
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
      {1, :rank, :uint32, :implicit},
      {2, :link, :string, :implicit},
      {3, :groups, {:message, V1.GroupAddress}, :repeated}
    ]
  end
end

defmodule RankBridge.Proto.V1.PrepareGenerationResponse do
  @moduledoc """
  Outcome of PrepareGeneration.

  ## Fields

    * `address` - How to connect to this rank.
    * `error` - What failed. The rank has no generation.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.{Decode, Encode}

  @type outcome :: {:address, V1.RankAddress.t()} | {:error, V1.Error.t()}

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

  defp encode_outcome({:address, value}) do
    Encode.always(0x0A, {:message, V1.RankAddress}, value)
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
    held = Decode.held(message.outcome, :address)
    %{message | outcome: {:address, Decode.message(V1.RankAddress, held, raw, depth)}}
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
      {1, :address, {:message, V1.RankAddress}, {:oneof, :outcome}},
      {2, :error, {:message, V1.Error}, {:oneof, :outcome}}
    ]
  end
end

defmodule RankBridge.Proto.V1.CommitGenerationRequest do
  @moduledoc """
  Second phase of forming.

  ## Fields

    * `generation` - Number that was prepared.
    * `addresses` - Addresses of all ranks, this one included, by rank.
    * `secret` - Random bytes, 16 or more, fresh for each generation: the secret that its control links show each other, or what that is
      derived from.
    * `timeout_ms` - Longest time for connecting and verifying, in milliseconds. 0: 10,000.
    * `derived` - True: the secret is an HMAC of `secret` by the token that the ranks of a gang show each other, because others may read
      this message.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.{Decode, Encode}

  @type t :: %__MODULE__{
          generation: non_neg_integer(),
          addresses: [V1.RankAddress.t()],
          secret: iodata(),
          timeout_ms: non_neg_integer(),
          derived: boolean(),
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct generation: 0,
            addresses: [],
            secret: "",
            timeout_ms: 0,
            derived: false,
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
      Encode.implicit(0x08, :uint64, message.generation),
      Encode.repeated(0x12, {:message, V1.RankAddress}, message.addresses),
      Encode.implicit(0x1A, :bytes, message.secret),
      Encode.implicit(0x20, :uint32, message.timeout_ms),
      Encode.implicit(0x28, :bool, message.derived),
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
    %{message | generation: Decode.value(:uint64, raw)}
  end

  def __put__(message, 2, 2, raw, depth) do
    %{message | addresses: [Decode.message(V1.RankAddress, nil, raw, depth) | message.addresses]}
  end

  def __put__(message, 3, 2, raw, _depth) do
    %{message | secret: Decode.value(:bytes, raw)}
  end

  def __put__(message, 4, 0, raw, _depth) do
    %{message | timeout_ms: Decode.value(:uint32, raw)}
  end

  def __put__(message, 5, 0, raw, _depth) do
    %{message | derived: Decode.value(:bool, raw)}
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
      | addresses: Enum.reverse(message.addresses),
        __unknown_fields__: Enum.reverse(message.__unknown_fields__)
    }
  end

  @doc false
  @impl true
  @spec __fields__() :: [RankBridge.Protobuf.Message.field()]
  def __fields__ do
    [
      {1, :generation, :uint64, :implicit},
      {2, :addresses, {:message, V1.RankAddress}, :repeated},
      {3, :secret, :bytes, :implicit},
      {4, :timeout_ms, :uint32, :implicit},
      {5, :derived, :bool, :implicit}
    ]
  end
end

defmodule RankBridge.Proto.V1.CommitGenerationResponse do
  @moduledoc """
  Outcome of CommitGeneration.

  ## Fields

    * `generation` - Number of the generation that is formed.
    * `error` - What failed. The rank has no generation.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.{Decode, Encode}

  @type outcome :: {:generation, non_neg_integer()} | {:error, V1.Error.t()}

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

  defp encode_outcome({:generation, value}) do
    Encode.always(0x08, :uint64, value)
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
  def __put__(message, 1, 0, raw, _depth) do
    %{message | outcome: {:generation, Decode.value(:uint64, raw)}}
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
      {1, :generation, :uint64, {:oneof, :outcome}},
      {2, :error, {:message, V1.Error}, {:oneof, :outcome}}
    ]
  end
end

defmodule RankBridge.Proto.V1.AbortGenerationRequest do
  @moduledoc """
  Ends a generation.

  ## Fields

    * `generation` - Number of the generation. One that is not prepared or running changes nothing.
    * `reason` - Why, for the errors of pending calls.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Protobuf.{Decode, Encode}

  @type t :: %__MODULE__{
          generation: non_neg_integer(),
          reason: String.t(),
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct generation: 0,
            reason: "",
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
      Encode.implicit(0x08, :uint64, message.generation),
      Encode.implicit(0x12, :string, message.reason),
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
    %{message | generation: Decode.value(:uint64, raw)}
  end

  def __put__(message, 2, 2, raw, _depth) do
    %{message | reason: Decode.value(:string, raw)}
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
      {1, :generation, :uint64, :implicit},
      {2, :reason, :string, :implicit}
    ]
  end
end

defmodule RankBridge.Proto.V1.AbortGenerationResponse do
  @moduledoc """
  Outcome of AbortGeneration.

  ## Fields

    * `aborted` - True: it was ended by this call. False: it was over already, or is not known here.
    * `error` - What failed.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.{Decode, Encode}

  @type outcome :: {:aborted, boolean()} | {:error, V1.Error.t()}

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

  defp encode_outcome({:aborted, value}) do
    Encode.always(0x08, :bool, value)
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
  def __put__(message, 1, 0, raw, _depth) do
    %{message | outcome: {:aborted, Decode.value(:bool, raw)}}
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
      {1, :aborted, :bool, {:oneof, :outcome}},
      {2, :error, {:message, V1.Error}, {:oneof, :outcome}}
    ]
  end
end

defmodule RankBridge.Proto.V1.KillRankRequest do
  @moduledoc """
  Kills the rank's process.

  ## Fields

    * `pid` - Process id that the caller means. 0: the rank's, whichever it is. Another than the rank's kills nothing.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Protobuf.{Decode, Encode}

  @type t :: %__MODULE__{
          pid: non_neg_integer(),
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct pid: 0,
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
      Encode.implicit(0x08, :uint32, message.pid),
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
    %{message | pid: Decode.value(:uint32, raw)}
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
      {1, :pid, :uint32, :implicit}
    ]
  end
end

defmodule RankBridge.Proto.V1.KillRankResponse do
  @moduledoc """
  Outcome of KillRank.

  ## Fields

    * `pid` - Its process id. It is killed as soon as this was sent.
    * `error` - What was refused: the process is another, or has other ranks, too. Nothing happened.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.{Decode, Encode}

  @type outcome :: {:pid, non_neg_integer()} | {:error, V1.Error.t()}

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

  defp encode_outcome({:pid, value}) do
    Encode.always(0x08, :uint32, value)
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
  def __put__(message, 1, 0, raw, _depth) do
    %{message | outcome: {:pid, Decode.value(:uint32, raw)}}
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
      {1, :pid, :uint32, {:oneof, :outcome}},
      {2, :error, {:message, V1.Error}, {:oneof, :outcome}}
    ]
  end
end

defmodule RankBridge.Proto.V1.WatchEventsRequest do
  @moduledoc """
  Streams this rank's events.

  ## Fields

    * `kinds` - Kinds of events to stream. Empty: all.
    * `after` - Begins after the event of this number. 0: with the oldest that is kept. Absent: with what happens from now on. One
      that is not there yet begins with the oldest that is kept, as another process may have taken the rank's place.
    * `log` - Log in which `after` counts, from `Watching`. Any other log than the rank's: begins with the oldest that is kept.
      0: the rank's.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.{Decode, Encode}

  @type t :: %__MODULE__{
          kinds: [V1.EventKind.t()],
          after: non_neg_integer() | nil,
          log: non_neg_integer(),
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct kinds: [],
            after: nil,
            log: 0,
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
      Encode.packed(0x0A, {:enum, V1.EventKind}, message.kinds),
      Encode.optional(0x10, :uint64, message.after),
      Encode.implicit(0x18, :uint64, message.log),
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
    %{message | kinds: [Decode.value({:enum, V1.EventKind}, raw) | message.kinds]}
  end

  def __put__(message, 1, 2, raw, _depth) do
    %{message | kinds: Decode.packed({:enum, V1.EventKind}, raw, message.kinds)}
  end

  def __put__(message, 2, 0, raw, _depth) do
    %{message | after: Decode.value(:uint64, raw)}
  end

  def __put__(message, 3, 0, raw, _depth) do
    %{message | log: Decode.value(:uint64, raw)}
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
      | kinds: Enum.reverse(message.kinds),
        __unknown_fields__: Enum.reverse(message.__unknown_fields__)
    }
  end

  @doc false
  @impl true
  @spec __fields__() :: [RankBridge.Protobuf.Message.field()]
  def __fields__ do
    [
      {1, :kinds, {:enum, V1.EventKind}, :repeated},
      {2, :after, :uint64, :optional},
      {3, :log, :uint64, :implicit}
    ]
  end
end

defmodule RankBridge.Proto.V1.Watching do
  @moduledoc """
  The first response to a watcher, sent at once.

  ## Fields

    * `rank` - Rank in the gang.
    * `log` - Names the log in which this process numbers its events; another process's is another. Never 0.
    * `last` - Number of the newest event, whatever its kind. 0: nothing has happened yet.
    * `state` - The newest event of kind formed or over, which may be streamed again. Absent: no generation was formed yet.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.{Decode, Encode}

  @type t :: %__MODULE__{
          rank: non_neg_integer(),
          log: non_neg_integer(),
          last: non_neg_integer(),
          state: V1.Event.t() | nil,
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct rank: 0,
            log: 0,
            last: 0,
            state: nil,
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
      Encode.implicit(0x10, :uint64, message.log),
      Encode.implicit(0x18, :uint64, message.last),
      Encode.optional(0x22, {:message, V1.Event}, message.state),
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
    %{message | log: Decode.value(:uint64, raw)}
  end

  def __put__(message, 3, 0, raw, _depth) do
    %{message | last: Decode.value(:uint64, raw)}
  end

  def __put__(message, 4, 2, raw, depth) do
    %{message | state: Decode.message(V1.Event, message.state, raw, depth)}
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
      {2, :log, :uint64, :implicit},
      {3, :last, :uint64, :implicit},
      {4, :state, {:message, V1.Event}, :optional}
    ]
  end
end

defmodule RankBridge.Proto.V1.WatchEventsResponse do
  @moduledoc """
  One response to a watcher.

  ## Fields

    * `watching` - The watch has begun. The first response, and no other.
    * `event` - What happened.
    * `error` - The request is wrong, or the rank has too many watchers. The only response.
    * `missed` - Events, of all kinds, that were dropped before this watcher got them, since the response before this
      one. 0: none. The rank keeps the newest 1,024.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.{Decode, Encode}

  @type outcome :: {:watching, V1.Watching.t()} | {:event, V1.Event.t()} | {:error, V1.Error.t()}

  @type t :: %__MODULE__{
          outcome: outcome() | nil,
          missed: non_neg_integer(),
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct outcome: nil,
            missed: 0,
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
      Encode.implicit(0x20, :uint64, message.missed),
      Encode.unknown(message.__unknown_fields__)
    ]
  end

  defp encode_outcome(nil), do: []

  defp encode_outcome({:watching, value}) do
    Encode.always(0x0A, {:message, V1.Watching}, value)
  end

  defp encode_outcome({:event, value}) do
    Encode.always(0x12, {:message, V1.Event}, value)
  end

  defp encode_outcome({:error, value}) do
    Encode.always(0x1A, {:message, V1.Error}, value)
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
    held = Decode.held(message.outcome, :watching)
    %{message | outcome: {:watching, Decode.message(V1.Watching, held, raw, depth)}}
  end

  def __put__(message, 2, 2, raw, depth) do
    held = Decode.held(message.outcome, :event)
    %{message | outcome: {:event, Decode.message(V1.Event, held, raw, depth)}}
  end

  def __put__(message, 3, 2, raw, depth) do
    held = Decode.held(message.outcome, :error)
    %{message | outcome: {:error, Decode.message(V1.Error, held, raw, depth)}}
  end

  def __put__(message, 4, 0, raw, _depth) do
    %{message | missed: Decode.value(:uint64, raw)}
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
      {1, :watching, {:message, V1.Watching}, {:oneof, :outcome}},
      {2, :event, {:message, V1.Event}, {:oneof, :outcome}},
      {3, :error, {:message, V1.Error}, {:oneof, :outcome}},
      {4, :missed, :uint64, :implicit}
    ]
  end
end

defmodule RankBridge.Proto.V1.RankService do
  @moduledoc """
  One rank: its description, its events, and its part in forming a generation.
  """

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.Rpc

  @doc "Every method of the service."
  @spec methods() :: [Rpc.t()]
  def methods do
    [
      describe_rank(),
      list_pending(),
      get_metrics(),
      prepare_generation(),
      commit_generation(),
      abort_generation(),
      watch_events(),
      kill_rank()
    ]
  end

  @doc """
  Describes this rank. Always answers, whatever the gang is doing.
  """
  @spec describe_rank() :: Rpc.t()
  def describe_rank do
    %Rpc{
      path: "/rankbridge.v1.RankService/DescribeRank",
      request: V1.DescribeRankRequest,
      response: V1.DescribeRankResponse,
      client_stream?: false,
      server_stream?: false
    }
  end

  @doc """
  Lists the operations that this rank has accepted and not answered yet, and the members for which the groups that it
  leads wait. Always answers, whatever the gang is doing.
  """
  @spec list_pending() :: Rpc.t()
  def list_pending do
    %Rpc{
      path: "/rankbridge.v1.RankService/ListPending",
      request: V1.ListPendingRequest,
      response: V1.ListPendingResponse,
      client_stream?: false,
      server_stream?: false
    }
  end

  @doc """
  Gives what this rank has counted, and what it holds: the metrics that `--metrics` serves to Prometheus.
  """
  @spec get_metrics() :: Rpc.t()
  def get_metrics do
    %Rpc{
      path: "/rankbridge.v1.RankService/GetMetrics",
      request: V1.GetMetricsRequest,
      response: V1.GetMetricsResponse,
      client_stream?: false,
      server_stream?: false
    }
  end

  @doc """
  First phase of forming: ends the running generation, and makes the addresses for the other ranks. Meant for
  GangService.Form and for controllers that form a gang by themselves.
  """
  @spec prepare_generation() :: Rpc.t()
  def prepare_generation do
    %Rpc{
      path: "/rankbridge.v1.RankService/PrepareGeneration",
      request: V1.PrepareGenerationRequest,
      response: V1.PrepareGenerationResponse,
      client_stream?: false,
      server_stream?: false
    }
  end

  @doc """
  Second phase of forming: connects to every rank and verifies.
  """
  @spec commit_generation() :: Rpc.t()
  def commit_generation do
    %Rpc{
      path: "/rankbridge.v1.RankService/CommitGeneration",
      request: V1.CommitGenerationRequest,
      response: V1.CommitGenerationResponse,
      client_stream?: false,
      server_stream?: false
    }
  end

  @doc """
  Ends a prepared or running generation. Pending calls fail with ABORTED.
  """
  @spec abort_generation() :: Rpc.t()
  def abort_generation do
    %Rpc{
      path: "/rankbridge.v1.RankService/AbortGeneration",
      request: V1.AbortGenerationRequest,
      response: V1.AbortGenerationResponse,
      client_stream?: false,
      server_stream?: false
    }
  end

  @doc """
  Streams this rank's events: first its state, then every event. Ends when the caller cancels, and when the rank stops.
  A slow watcher delays no other; it gets the number of events that it missed.
  """
  @spec watch_events() :: Rpc.t()
  def watch_events do
    %Rpc{
      path: "/rankbridge.v1.RankService/WatchEvents",
      request: V1.WatchEventsRequest,
      response: V1.WatchEventsResponse,
      client_stream?: false,
      server_stream?: true
    }
  end

  @doc """
  Kills this rank's process, as SIGKILL does: for one in which a function never returns. The others lose the rank, and its
  agent replaces it.
  """
  @spec kill_rank() :: Rpc.t()
  def kill_rank do
    %Rpc{
      path: "/rankbridge.v1.RankService/KillRank",
      request: V1.KillRankRequest,
      response: V1.KillRankResponse,
      client_stream?: false,
      server_stream?: false
    }
  end
end
