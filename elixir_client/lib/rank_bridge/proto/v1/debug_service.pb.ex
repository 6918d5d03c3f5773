# Generated from rankbridge/v1/debug_service.proto by protoc-gen-rankbridge-elixir. Do not edit.

defmodule RankBridge.Proto.V1.GetRecordRequest do
  @moduledoc """
  Asks for the record.

  ## Fields

    * `limit` - At most so many operations, the last ones. 0: all.
    * `group` - Only those of a group. Empty: of all.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Protobuf.{Decode, Encode}

  @type t :: %__MODULE__{
          limit: non_neg_integer(),
          group: String.t(),
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct limit: 0,
            group: "",
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
      {2, :group, :string, :implicit}
    ]
  end
end

defmodule RankBridge.Proto.V1.GetRecordResponse do
  @moduledoc """
  The record.

  ## Fields

    * `operations` - Operations that are done, in the order in which they ended; then those that are not, the oldest first.
    * `ended` - How many operations have ended on this rank since it started. The record keeps the last ones.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.{Decode, Encode}

  @type t :: %__MODULE__{
          operations: [V1.RecordedOperation.t()],
          ended: non_neg_integer(),
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct operations: [],
            ended: 0,
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
      {2, :ended, :uint64, :implicit}
    ]
  end
end

defmodule RankBridge.Proto.V1.RecordedOperation do
  @moduledoc """
  An operation in the record.

  ## Fields

    * `operation` - Its kind: "all_reduce".
    * `group` - Name of its group.
    * `operation_id` - Its operation id. Empty: its caller gave none.
    * `session_id` - Session of its caller. Empty: the shared one.
    * `generation` - Generation in which it was called.
    * `contract` - What its members agree on: "all_reduce dtype=float32 shape=[4] op=sum". Empty: it was not announced, or needs no agreement.
    * `site` - The line of code that has made the call. Empty: not said.
    * `function` - Name of the user's function that it calls. Empty: none.
    * `called_us` - When the rank accepted it, by the clock of the rank's host: microseconds since 1970 in UTC.
    * `announced_us` - When it was announced to the group's leader, in microseconds after `called_us`. Not set: it was not.
    * `entered_us` - When it was admitted and entered the backend, or the function began, likewise.
    * `done_us` - When it was answered, likewise. Not set: it is not yet.
    * `phase` - How far it has come.
    * `code` - How it ended. ERROR_CODE_UNSPECIFIED: well, or not yet.
    * `message` - The error's text. Empty: none.
    * `indefinite` - Whether other ranks may have done it although it failed here.
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
      {16, :indefinite, :bool, :implicit}
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
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.{Decode, Encode}

  @type t :: %__MODULE__{
          threads: [V1.ThreadStack.t()],
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct threads: [],
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
      {1, :threads, {:message, V1.ThreadStack}, :repeated}
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
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.{Decode, Encode}

  @type t :: %__MODULE__{
          name: String.t(),
          native_id: non_neg_integer(),
          frames: [V1.StackFrame.t()],
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct name: "",
            native_id: 0,
            frames: [],
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
      {3, :frames, {:message, V1.StackFrame}, :repeated}
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

defmodule RankBridge.Proto.V1.DebugService do
  @moduledoc """
  What a rank has done and does, for who looks for a fault. It changes nothing, and always answers, whatever the gang is
  doing, as long as the rank's process runs.
  """

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.Rpc

  @doc "Every method of the service."
  @spec methods() :: [Rpc.t()]
  def methods do
    [
      get_record(),
      get_stacks()
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
end
