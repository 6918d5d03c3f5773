# Generated from rankbridge/v1/gang_service.proto by protoc-gen-rankbridge-elixir. Do not edit.

defmodule RankBridge.Proto.V1.FormRequest do
  @moduledoc """
  Forms a generation.

  ## Fields

    * `endpoints` - A gRPC target for each rank, in rank order, as the asked sidecar can reach it: "10.0.0.7:50051", "unix:/run/...".
      The asked sidecar's own is among them. At least one.
    * `groups` - Groups to form beside "world". One with the name of a group of the previous generation takes its place.
    * `timeout_ms` - Longest time for all of it, in milliseconds. 0: 10,000.
    * `forget_groups` - False: the groups of the previous generation are made again, too. Their members are the ranks that were members,
      under their new numbers, and new ranks that stand where a lost member stood; lost members without a replacement
      are left out, and a group without members is not made. A group that was destroyed is not made again, unless no rank
      that was a member is left. True: none is made again.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.{Decode, Encode}

  @type t :: %__MODULE__{
          endpoints: [String.t()],
          groups: [V1.GroupDescription.t()],
          timeout_ms: non_neg_integer(),
          forget_groups: boolean(),
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct endpoints: [],
            groups: [],
            timeout_ms: 0,
            forget_groups: false,
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
      Encode.repeated(0x0A, :string, message.endpoints),
      Encode.repeated(0x12, {:message, V1.GroupDescription}, message.groups),
      Encode.implicit(0x18, :uint32, message.timeout_ms),
      Encode.implicit(0x20, :bool, message.forget_groups),
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
    %{message | endpoints: [Decode.value(:string, raw) | message.endpoints]}
  end

  def __put__(message, 2, 2, raw, depth) do
    %{message | groups: [Decode.message(V1.GroupDescription, nil, raw, depth) | message.groups]}
  end

  def __put__(message, 3, 0, raw, _depth) do
    %{message | timeout_ms: Decode.value(:uint32, raw)}
  end

  def __put__(message, 4, 0, raw, _depth) do
    %{message | forget_groups: Decode.value(:bool, raw)}
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
      | endpoints: Enum.reverse(message.endpoints),
        groups: Enum.reverse(message.groups),
        __unknown_fields__: Enum.reverse(message.__unknown_fields__)
    }
  end

  @doc false
  @impl true
  @spec __fields__() :: [RankBridge.Protobuf.Message.field()]
  def __fields__ do
    [
      {1, :endpoints, :string, :repeated},
      {2, :groups, {:message, V1.GroupDescription}, :repeated},
      {3, :timeout_ms, :uint32, :implicit},
      {4, :forget_groups, :bool, :implicit}
    ]
  end
end

defmodule RankBridge.Proto.V1.Formed do
  @moduledoc """
  A generation that was formed.

  ## Fields

    * `generation` - Its number.
    * `world_size` - Ranks in it.
    * `took_us` - The time from the first prepare to the last verification, in microseconds.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Protobuf.{Decode, Encode}

  @type t :: %__MODULE__{
          generation: non_neg_integer(),
          world_size: non_neg_integer(),
          took_us: non_neg_integer(),
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct generation: 0,
            world_size: 0,
            took_us: 0,
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
      Encode.implicit(0x10, :uint32, message.world_size),
      Encode.implicit(0x18, :uint64, message.took_us),
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
    %{message | world_size: Decode.value(:uint32, raw)}
  end

  def __put__(message, 3, 0, raw, _depth) do
    %{message | took_us: Decode.value(:uint64, raw)}
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
      {2, :world_size, :uint32, :implicit},
      {3, :took_us, :uint64, :implicit}
    ]
  end
end

defmodule RankBridge.Proto.V1.FormResponse do
  @moduledoc """
  Outcome of Form.

  ## Fields

    * `formed` - The generation.
    * `error` - What failed, with each rank's part in `ranks`. No rank has the generation.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.{Decode, Encode}

  @type outcome :: {:formed, V1.Formed.t()} | {:error, V1.Error.t()}

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

  defp encode_outcome({:formed, value}) do
    Encode.always(0x0A, {:message, V1.Formed}, value)
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
    held = Decode.held(message.outcome, :formed)
    %{message | outcome: {:formed, Decode.message(V1.Formed, held, raw, depth)}}
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
      {1, :formed, {:message, V1.Formed}, {:oneof, :outcome}},
      {2, :error, {:message, V1.Error}, {:oneof, :outcome}}
    ]
  end
end

defmodule RankBridge.Proto.V1.CallRequest do
  @moduledoc """
  Does a collective on every member of a group.

  ## Fields

    * `call` - Group, identity, timeout: of all parts. The session owns the refs of every member. Without an operation id the
      sidecar makes one, and answers with it.
    * `operations` - Each member's part, in group order; or a single one, for every member. All of one kind, which does not send or receive
      point to point, each without a `call` of its own, and each of at most 64 KiB.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.{Decode, Encode}

  @type t :: %__MODULE__{
          call: V1.Call.t() | nil,
          operations: [V1.Operation.t()],
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct call: nil,
            operations: [],
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
      Encode.repeated(0x12, {:message, V1.Operation}, message.operations),
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
    %{message | operations: [Decode.message(V1.Operation, nil, raw, depth) | message.operations]}
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
      {1, :call, {:message, V1.Call}, :optional},
      {2, :operations, {:message, V1.Operation}, :repeated}
    ]
  end
end

defmodule RankBridge.Proto.V1.MemberOutcome do
  @moduledoc """
  The outcome of a gang call at one member.

  ## Fields

    * `rank` - Rank in the gang.
    * `result` - The member's result or error. Absent: the part is done, and its result is too large to be passed on; fetch it from
      that rank, with OperationService.Await.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.{Decode, Encode}

  @type t :: %__MODULE__{
          rank: non_neg_integer(),
          result: V1.OperationResult.t() | nil,
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct rank: 0,
            result: nil,
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
      Encode.optional(0x12, {:message, V1.OperationResult}, message.result),
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

  def __put__(message, 2, 2, raw, depth) do
    %{message | result: Decode.message(V1.OperationResult, message.result, raw, depth)}
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
      {2, :result, {:message, V1.OperationResult}, :optional}
    ]
  end
end

defmodule RankBridge.Proto.V1.MemberOutcomes do
  @moduledoc """
  The outcome of a gang call.

  ## Fields

    * `operation_id` - Id of the operation.
    * `members` - Every member, in group order.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.{Decode, Encode}

  @type t :: %__MODULE__{
          operation_id: String.t(),
          members: [V1.MemberOutcome.t()],
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct operation_id: "",
            members: [],
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
      Encode.implicit(0x0A, :string, message.operation_id),
      Encode.repeated(0x12, {:message, V1.MemberOutcome}, message.members),
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
    %{message | operation_id: Decode.value(:string, raw)}
  end

  def __put__(message, 2, 2, raw, depth) do
    %{message | members: [Decode.message(V1.MemberOutcome, nil, raw, depth) | message.members]}
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
      | members: Enum.reverse(message.members),
        __unknown_fields__: Enum.reverse(message.__unknown_fields__)
    }
  end

  @doc false
  @impl true
  @spec __fields__() :: [RankBridge.Protobuf.Message.field()]
  def __fields__ do
    [
      {1, :operation_id, :string, :implicit},
      {2, :members, {:message, V1.MemberOutcome}, :repeated}
    ]
  end
end

defmodule RankBridge.Proto.V1.CallResponse do
  @moduledoc """
  Outcome of Call.

  ## Fields

    * `outcomes` - Every member's outcome. A member's failure is in its outcome only.
    * `error` - What is wrong with the call as a whole. No member was asked.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.{Decode, Encode}

  @type outcome :: {:outcomes, V1.MemberOutcomes.t()} | {:error, V1.Error.t()}

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

  defp encode_outcome({:outcomes, value}) do
    Encode.always(0x0A, {:message, V1.MemberOutcomes}, value)
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
    held = Decode.held(message.outcome, :outcomes)
    %{message | outcome: {:outcomes, Decode.message(V1.MemberOutcomes, held, raw, depth)}}
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
      {1, :outcomes, {:message, V1.MemberOutcomes}, {:oneof, :outcome}},
      {2, :error, {:message, V1.Error}, {:oneof, :outcome}}
    ]
  end
end

defmodule RankBridge.Proto.V1.ExecuteRequest do
  @moduledoc """
  One request on a stream.

  ## Fields

    * `call` - Does a collective on every member of a group. Has an answer.
    * `withdraw` - Withdraws the request of this stream with this operation id from every member that has not admitted it, as cancelling
      withdraws a single call. With a `number`, withdraws the request of that number, and the id may be empty. Has no
      answer of its own; the withdrawn request has one.
    * `part` - Does this rank's own part of an operation, as that operation's RPC does: the other members' parts go to their own
      ranks. With a `call` of its own. Has an answer.
    * `number` - Number of this request on its stream. The answer has the same number, and comes as soon as the request is done.
      Requests under way on a stream have different numbers. 0: none; the answer comes after the answers of all requests
      without a number that were sent before it.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.{Decode, Encode}

  @type kind :: {:call, V1.CallRequest.t()} | {:withdraw, String.t()} | {:part, V1.Operation.t()}

  @type t :: %__MODULE__{
          kind: kind() | nil,
          number: non_neg_integer(),
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct kind: nil,
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
      encode_kind(message.kind),
      Encode.implicit(0x20, :uint64, message.number),
      Encode.unknown(message.__unknown_fields__)
    ]
  end

  defp encode_kind(nil), do: []

  defp encode_kind({:call, value}) do
    Encode.always(0x0A, {:message, V1.CallRequest}, value)
  end

  defp encode_kind({:withdraw, value}) do
    Encode.always(0x12, :string, value)
  end

  defp encode_kind({:part, value}) do
    Encode.always(0x1A, {:message, V1.Operation}, value)
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
    held = Decode.held(message.kind, :call)
    %{message | kind: {:call, Decode.message(V1.CallRequest, held, raw, depth)}}
  end

  def __put__(message, 2, 2, raw, _depth) do
    %{message | kind: {:withdraw, Decode.value(:string, raw)}}
  end

  def __put__(message, 3, 2, raw, depth) do
    held = Decode.held(message.kind, :part)
    %{message | kind: {:part, Decode.message(V1.Operation, held, raw, depth)}}
  end

  def __put__(message, 4, 0, raw, _depth) do
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
      {1, :call, {:message, V1.CallRequest}, {:oneof, :kind}},
      {2, :withdraw, :string, {:oneof, :kind}},
      {3, :part, {:message, V1.Operation}, {:oneof, :kind}},
      {4, :number, :uint64, :implicit}
    ]
  end
end

defmodule RankBridge.Proto.V1.ExecuteResponse do
  @moduledoc """
  Outcome of one call of a stream, written as CallResponse is, or of one part.

  ## Fields

    * `outcomes` - Every member's outcome. A member's failure is in its outcome only.
    * `error` - What is wrong with the call as a whole, or with the stream. No member was asked.
    * `result` - The result of this rank's part.
    * `number` - The request's number. 0: the request had none.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.{Decode, Encode}

  @type outcome ::
          {:outcomes, V1.MemberOutcomes.t()}
          | {:error, V1.Error.t()}
          | {:result, V1.OperationResult.t()}

  @type t :: %__MODULE__{
          outcome: outcome() | nil,
          number: non_neg_integer(),
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct outcome: nil,
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
      encode_outcome(message.outcome),
      Encode.implicit(0x20, :uint64, message.number),
      Encode.unknown(message.__unknown_fields__)
    ]
  end

  defp encode_outcome(nil), do: []

  defp encode_outcome({:outcomes, value}) do
    Encode.always(0x0A, {:message, V1.MemberOutcomes}, value)
  end

  defp encode_outcome({:error, value}) do
    Encode.always(0x12, {:message, V1.Error}, value)
  end

  defp encode_outcome({:result, value}) do
    Encode.always(0x1A, {:message, V1.OperationResult}, value)
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
    held = Decode.held(message.outcome, :outcomes)
    %{message | outcome: {:outcomes, Decode.message(V1.MemberOutcomes, held, raw, depth)}}
  end

  def __put__(message, 2, 2, raw, depth) do
    held = Decode.held(message.outcome, :error)
    %{message | outcome: {:error, Decode.message(V1.Error, held, raw, depth)}}
  end

  def __put__(message, 3, 2, raw, depth) do
    held = Decode.held(message.outcome, :result)
    %{message | outcome: {:result, Decode.message(V1.OperationResult, held, raw, depth)}}
  end

  def __put__(message, 4, 0, raw, _depth) do
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
      {1, :outcomes, {:message, V1.MemberOutcomes}, {:oneof, :outcome}},
      {2, :error, {:message, V1.Error}, {:oneof, :outcome}},
      {3, :result, {:message, V1.OperationResult}, {:oneof, :outcome}},
      {4, :number, :uint64, :implicit}
    ]
  end
end

defmodule RankBridge.Proto.V1.GangService do
  @moduledoc """
  The gang as a whole, through any of its sidecars.
  """

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.Rpc

  @doc "Every method of the service."
  @spec methods() :: [Rpc.t()]
  def methods do
    [
      form(),
      call(),
      execute()
    ]
  end

  @doc """
  Forms the next generation of all ranks named: prepare on each, then commit on each. Either every rank has the
  new generation or none has.
  """
  @spec form() :: Rpc.t()
  def form do
    %Rpc{
      path: "/rankbridge.v1.GangService/Form",
      request: V1.FormRequest,
      response: V1.FormResponse,
      client_stream?: false,
      server_stream?: false
    }
  end

  @doc """
  Does a collective on every member of a group, and answers with every member's outcome. Any sidecar takes the call;
  the sidecar of the group's first rank needs the fewest messages. If one member refuses its part, all members fail at
  once, and nothing has happened. If the caller cancels the call, every part that was not admitted is withdrawn.
  """
  @spec call() :: Rpc.t()
  def call do
    %Rpc{
      path: "/rankbridge.v1.GangService/Call",
      request: V1.CallRequest,
      response: V1.CallResponse,
      client_stream?: false,
      server_stream?: false
    }
  end

  @doc """
  Does gang calls, or this rank's parts of operations; requests may be sent while others are under way. Requests with a
  number are answered as soon as they are done, requests without one in the order in which they were sent. The end of
  the requests withdraws nothing: the requests sent before are done and answered. On the rank's own host the same
  messages can be sent without gRPC, each after its length in 4 bytes in network order: a rank that serves at
  "unix:PATH" takes them at the unix socket PATH.stream. See docs/streams.md.
  """
  @spec execute() :: Rpc.t()
  def execute do
    %Rpc{
      path: "/rankbridge.v1.GangService/Execute",
      request: V1.ExecuteRequest,
      response: V1.ExecuteResponse,
      client_stream?: true,
      server_stream?: true
    }
  end
end
