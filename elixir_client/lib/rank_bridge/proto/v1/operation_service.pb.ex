# Generated from rankbridge/v1/operation_service.proto by protoc-gen-rankbridge-elixir. Do not edit.

defmodule RankBridge.Proto.V1.OperationState do
  @moduledoc """
  How far an operation is.

  Numbers without a name stay integers.

  ## Values

    * `:OPERATION_STATE_UNSPECIFIED` - Not said.
    * `:OPERATION_STATE_QUEUED` - Behind others on its group's lane.
    * `:OPERATION_STATE_ADMISSION` - Waiting for the other members.
    * `:OPERATION_STATE_DATA` - In the backend.
    * `:OPERATION_STATE_DONE` - Its outcome is known.
  """

  @type t ::
          :OPERATION_STATE_UNSPECIFIED
          | :OPERATION_STATE_QUEUED
          | :OPERATION_STATE_ADMISSION
          | :OPERATION_STATE_DATA
          | :OPERATION_STATE_DONE
          | integer()

  @doc "The number of each name."
  @spec mapping() :: %{atom() => integer()}
  def mapping do
    %{
      OPERATION_STATE_UNSPECIFIED: 0,
      OPERATION_STATE_QUEUED: 1,
      OPERATION_STATE_ADMISSION: 2,
      OPERATION_STATE_DATA: 3,
      OPERATION_STATE_DONE: 4
    }
  end

  @doc "The number of a name; a number is its own."
  @spec value(t()) :: integer()
  def value(:OPERATION_STATE_UNSPECIFIED), do: 0
  def value(:OPERATION_STATE_QUEUED), do: 1
  def value(:OPERATION_STATE_ADMISSION), do: 2
  def value(:OPERATION_STATE_DATA), do: 3
  def value(:OPERATION_STATE_DONE), do: 4
  def value(number) when is_integer(number), do: number

  @doc "The name of a number, or the number where it has none."
  @spec key(integer()) :: t()
  def key(0), do: :OPERATION_STATE_UNSPECIFIED
  def key(1), do: :OPERATION_STATE_QUEUED
  def key(2), do: :OPERATION_STATE_ADMISSION
  def key(3), do: :OPERATION_STATE_DATA
  def key(4), do: :OPERATION_STATE_DONE
  def key(number) when is_integer(number), do: number
end

defmodule RankBridge.Proto.V1.Operation do
  @moduledoc """
  Any collective or point-to-point operation.

  ## Fields

    * `barrier` - Wait for all members.
    * `broadcast` - Give every member the source's tensor.
    * `gather` - Concatenate all members' tensors at one of them.
    * `all_reduce` - Reduce all members' tensors.
    * `all_gather` - Concatenate all members' tensors at all of them.
    * `reduce` - Reduce all members' tensors at one of them.
    * `scatter` - Divide one member's tensor among all.
    * `reduce_scatter` - Reduce all members' tensors, and divide the result among them.
    * `all_to_all` - Send every member its part of every member's tensor.
    * `scan` - Reduce the tensors of the members so far.
    * `broadcast_object` - Send every member the source's value.
    * `scatter_object` - Send every member its own of the source's values.
    * `gather_object` - Collect all members' values at one of them.
    * `all_gather_object` - Collect all members' values at all of them.
    * `all_reduce_value` - Reduce all members' numbers.
    * `broadcast_tensor_dict` - Send every member the source's map of tensors.
    * `send` - Send a tensor to one member.
    * `recv` - Receive a tensor.
    * `send_object` - Send a value to one member.
    * `recv_object` - Receive a value.
    * `send_tensor_dict` - Send a map of tensors to one member.
    * `recv_tensor_dict` - Receive a map of tensors.
    * `coalesce` - Several collectives of one group.
    * `replay` - Run a graph again.
    * `enqueue` - Write a value into a queue.
    * `dequeue` - Read a value from a queue.
    * `ping` - Agree with all members, and do nothing else.
    * `run_program` - Several collectives of one group, each of which may take another's result.
    * `call_function` - Call a function of the user's own.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.{Decode, Encode}

  @type kind ::
          {:barrier, V1.BarrierRequest.t()}
          | {:broadcast, V1.BroadcastRequest.t()}
          | {:gather, V1.GatherRequest.t()}
          | {:all_reduce, V1.AllReduceRequest.t()}
          | {:all_gather, V1.AllGatherRequest.t()}
          | {:reduce, V1.ReduceRequest.t()}
          | {:scatter, V1.ScatterRequest.t()}
          | {:reduce_scatter, V1.ReduceScatterRequest.t()}
          | {:all_to_all, V1.AllToAllRequest.t()}
          | {:scan, V1.ScanRequest.t()}
          | {:broadcast_object, V1.BroadcastObjectRequest.t()}
          | {:scatter_object, V1.ScatterObjectRequest.t()}
          | {:gather_object, V1.GatherObjectRequest.t()}
          | {:all_gather_object, V1.AllGatherObjectRequest.t()}
          | {:all_reduce_value, V1.AllReduceValueRequest.t()}
          | {:broadcast_tensor_dict, V1.BroadcastTensorDictRequest.t()}
          | {:send, V1.SendRequest.t()}
          | {:recv, V1.RecvRequest.t()}
          | {:send_object, V1.SendObjectRequest.t()}
          | {:recv_object, V1.RecvObjectRequest.t()}
          | {:send_tensor_dict, V1.SendTensorDictRequest.t()}
          | {:recv_tensor_dict, V1.RecvTensorDictRequest.t()}
          | {:coalesce, V1.CoalesceRequest.t()}
          | {:replay, V1.ReplayRequest.t()}
          | {:enqueue, V1.EnqueueRequest.t()}
          | {:dequeue, V1.DequeueRequest.t()}
          | {:ping, V1.PingRequest.t()}
          | {:run_program, V1.RunProgramRequest.t()}
          | {:call_function, V1.CallFunctionRequest.t()}

  @type t :: %__MODULE__{
          kind: kind() | nil,
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct kind: nil,
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
      Encode.unknown(message.__unknown_fields__)
    ]
  end

  defp encode_kind(nil), do: []

  defp encode_kind({:barrier, value}) do
    Encode.always(0x0A, {:message, V1.BarrierRequest}, value)
  end

  defp encode_kind({:broadcast, value}) do
    Encode.always(0x12, {:message, V1.BroadcastRequest}, value)
  end

  defp encode_kind({:gather, value}) do
    Encode.always(0x1A, {:message, V1.GatherRequest}, value)
  end

  defp encode_kind({:all_reduce, value}) do
    Encode.always(0x22, {:message, V1.AllReduceRequest}, value)
  end

  defp encode_kind({:all_gather, value}) do
    Encode.always(0x2A, {:message, V1.AllGatherRequest}, value)
  end

  defp encode_kind({:reduce, value}) do
    Encode.always(0x32, {:message, V1.ReduceRequest}, value)
  end

  defp encode_kind({:scatter, value}) do
    Encode.always(0x3A, {:message, V1.ScatterRequest}, value)
  end

  defp encode_kind({:reduce_scatter, value}) do
    Encode.always(0x42, {:message, V1.ReduceScatterRequest}, value)
  end

  defp encode_kind({:all_to_all, value}) do
    Encode.always(0x4A, {:message, V1.AllToAllRequest}, value)
  end

  defp encode_kind({:scan, value}) do
    Encode.always(0x52, {:message, V1.ScanRequest}, value)
  end

  defp encode_kind({:broadcast_object, value}) do
    Encode.always(0x5A, {:message, V1.BroadcastObjectRequest}, value)
  end

  defp encode_kind({:scatter_object, value}) do
    Encode.always(0x62, {:message, V1.ScatterObjectRequest}, value)
  end

  defp encode_kind({:gather_object, value}) do
    Encode.always(0x6A, {:message, V1.GatherObjectRequest}, value)
  end

  defp encode_kind({:all_gather_object, value}) do
    Encode.always(0x72, {:message, V1.AllGatherObjectRequest}, value)
  end

  defp encode_kind({:all_reduce_value, value}) do
    Encode.always(0x7A, {:message, V1.AllReduceValueRequest}, value)
  end

  defp encode_kind({:broadcast_tensor_dict, value}) do
    Encode.always(0x82, {:message, V1.BroadcastTensorDictRequest}, value)
  end

  defp encode_kind({:send, value}) do
    Encode.always(0x8A, {:message, V1.SendRequest}, value)
  end

  defp encode_kind({:recv, value}) do
    Encode.always(0x92, {:message, V1.RecvRequest}, value)
  end

  defp encode_kind({:send_object, value}) do
    Encode.always(0x9A, {:message, V1.SendObjectRequest}, value)
  end

  defp encode_kind({:recv_object, value}) do
    Encode.always(0xA2, {:message, V1.RecvObjectRequest}, value)
  end

  defp encode_kind({:send_tensor_dict, value}) do
    Encode.always(0xAA, {:message, V1.SendTensorDictRequest}, value)
  end

  defp encode_kind({:recv_tensor_dict, value}) do
    Encode.always(0xB2, {:message, V1.RecvTensorDictRequest}, value)
  end

  defp encode_kind({:coalesce, value}) do
    Encode.always(0xBA, {:message, V1.CoalesceRequest}, value)
  end

  defp encode_kind({:replay, value}) do
    Encode.always(0xC2, {:message, V1.ReplayRequest}, value)
  end

  defp encode_kind({:enqueue, value}) do
    Encode.always(0xCA, {:message, V1.EnqueueRequest}, value)
  end

  defp encode_kind({:dequeue, value}) do
    Encode.always(0xD2, {:message, V1.DequeueRequest}, value)
  end

  defp encode_kind({:ping, value}) do
    Encode.always(0xDA, {:message, V1.PingRequest}, value)
  end

  defp encode_kind({:run_program, value}) do
    Encode.always(0xE2, {:message, V1.RunProgramRequest}, value)
  end

  defp encode_kind({:call_function, value}) do
    Encode.always(0xEA, {:message, V1.CallFunctionRequest}, value)
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
    held = Decode.held(message.kind, :barrier)
    %{message | kind: {:barrier, Decode.message(V1.BarrierRequest, held, raw, depth)}}
  end

  def __put__(message, 2, 2, raw, depth) do
    held = Decode.held(message.kind, :broadcast)
    %{message | kind: {:broadcast, Decode.message(V1.BroadcastRequest, held, raw, depth)}}
  end

  def __put__(message, 3, 2, raw, depth) do
    held = Decode.held(message.kind, :gather)
    %{message | kind: {:gather, Decode.message(V1.GatherRequest, held, raw, depth)}}
  end

  def __put__(message, 4, 2, raw, depth) do
    held = Decode.held(message.kind, :all_reduce)
    %{message | kind: {:all_reduce, Decode.message(V1.AllReduceRequest, held, raw, depth)}}
  end

  def __put__(message, 5, 2, raw, depth) do
    held = Decode.held(message.kind, :all_gather)
    %{message | kind: {:all_gather, Decode.message(V1.AllGatherRequest, held, raw, depth)}}
  end

  def __put__(message, 6, 2, raw, depth) do
    held = Decode.held(message.kind, :reduce)
    %{message | kind: {:reduce, Decode.message(V1.ReduceRequest, held, raw, depth)}}
  end

  def __put__(message, 7, 2, raw, depth) do
    held = Decode.held(message.kind, :scatter)
    %{message | kind: {:scatter, Decode.message(V1.ScatterRequest, held, raw, depth)}}
  end

  def __put__(message, 8, 2, raw, depth) do
    held = Decode.held(message.kind, :reduce_scatter)

    %{
      message
      | kind: {:reduce_scatter, Decode.message(V1.ReduceScatterRequest, held, raw, depth)}
    }
  end

  def __put__(message, 9, 2, raw, depth) do
    held = Decode.held(message.kind, :all_to_all)
    %{message | kind: {:all_to_all, Decode.message(V1.AllToAllRequest, held, raw, depth)}}
  end

  def __put__(message, 10, 2, raw, depth) do
    held = Decode.held(message.kind, :scan)
    %{message | kind: {:scan, Decode.message(V1.ScanRequest, held, raw, depth)}}
  end

  def __put__(message, 11, 2, raw, depth) do
    held = Decode.held(message.kind, :broadcast_object)

    %{
      message
      | kind: {:broadcast_object, Decode.message(V1.BroadcastObjectRequest, held, raw, depth)}
    }
  end

  def __put__(message, 12, 2, raw, depth) do
    held = Decode.held(message.kind, :scatter_object)

    %{
      message
      | kind: {:scatter_object, Decode.message(V1.ScatterObjectRequest, held, raw, depth)}
    }
  end

  def __put__(message, 13, 2, raw, depth) do
    held = Decode.held(message.kind, :gather_object)
    %{message | kind: {:gather_object, Decode.message(V1.GatherObjectRequest, held, raw, depth)}}
  end

  def __put__(message, 14, 2, raw, depth) do
    held = Decode.held(message.kind, :all_gather_object)

    %{
      message
      | kind: {:all_gather_object, Decode.message(V1.AllGatherObjectRequest, held, raw, depth)}
    }
  end

  def __put__(message, 15, 2, raw, depth) do
    held = Decode.held(message.kind, :all_reduce_value)

    %{
      message
      | kind: {:all_reduce_value, Decode.message(V1.AllReduceValueRequest, held, raw, depth)}
    }
  end

  def __put__(message, 16, 2, raw, depth) do
    held = Decode.held(message.kind, :broadcast_tensor_dict)

    %{
      message
      | kind:
          {:broadcast_tensor_dict,
           Decode.message(V1.BroadcastTensorDictRequest, held, raw, depth)}
    }
  end

  def __put__(message, 17, 2, raw, depth) do
    held = Decode.held(message.kind, :send)
    %{message | kind: {:send, Decode.message(V1.SendRequest, held, raw, depth)}}
  end

  def __put__(message, 18, 2, raw, depth) do
    held = Decode.held(message.kind, :recv)
    %{message | kind: {:recv, Decode.message(V1.RecvRequest, held, raw, depth)}}
  end

  def __put__(message, 19, 2, raw, depth) do
    held = Decode.held(message.kind, :send_object)
    %{message | kind: {:send_object, Decode.message(V1.SendObjectRequest, held, raw, depth)}}
  end

  def __put__(message, 20, 2, raw, depth) do
    held = Decode.held(message.kind, :recv_object)
    %{message | kind: {:recv_object, Decode.message(V1.RecvObjectRequest, held, raw, depth)}}
  end

  def __put__(message, 21, 2, raw, depth) do
    held = Decode.held(message.kind, :send_tensor_dict)

    %{
      message
      | kind: {:send_tensor_dict, Decode.message(V1.SendTensorDictRequest, held, raw, depth)}
    }
  end

  def __put__(message, 22, 2, raw, depth) do
    held = Decode.held(message.kind, :recv_tensor_dict)

    %{
      message
      | kind: {:recv_tensor_dict, Decode.message(V1.RecvTensorDictRequest, held, raw, depth)}
    }
  end

  def __put__(message, 23, 2, raw, depth) do
    held = Decode.held(message.kind, :coalesce)
    %{message | kind: {:coalesce, Decode.message(V1.CoalesceRequest, held, raw, depth)}}
  end

  def __put__(message, 24, 2, raw, depth) do
    held = Decode.held(message.kind, :replay)
    %{message | kind: {:replay, Decode.message(V1.ReplayRequest, held, raw, depth)}}
  end

  def __put__(message, 25, 2, raw, depth) do
    held = Decode.held(message.kind, :enqueue)
    %{message | kind: {:enqueue, Decode.message(V1.EnqueueRequest, held, raw, depth)}}
  end

  def __put__(message, 26, 2, raw, depth) do
    held = Decode.held(message.kind, :dequeue)
    %{message | kind: {:dequeue, Decode.message(V1.DequeueRequest, held, raw, depth)}}
  end

  def __put__(message, 27, 2, raw, depth) do
    held = Decode.held(message.kind, :ping)
    %{message | kind: {:ping, Decode.message(V1.PingRequest, held, raw, depth)}}
  end

  def __put__(message, 28, 2, raw, depth) do
    held = Decode.held(message.kind, :run_program)
    %{message | kind: {:run_program, Decode.message(V1.RunProgramRequest, held, raw, depth)}}
  end

  def __put__(message, 29, 2, raw, depth) do
    held = Decode.held(message.kind, :call_function)
    %{message | kind: {:call_function, Decode.message(V1.CallFunctionRequest, held, raw, depth)}}
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
      {1, :barrier, {:message, V1.BarrierRequest}, {:oneof, :kind}},
      {2, :broadcast, {:message, V1.BroadcastRequest}, {:oneof, :kind}},
      {3, :gather, {:message, V1.GatherRequest}, {:oneof, :kind}},
      {4, :all_reduce, {:message, V1.AllReduceRequest}, {:oneof, :kind}},
      {5, :all_gather, {:message, V1.AllGatherRequest}, {:oneof, :kind}},
      {6, :reduce, {:message, V1.ReduceRequest}, {:oneof, :kind}},
      {7, :scatter, {:message, V1.ScatterRequest}, {:oneof, :kind}},
      {8, :reduce_scatter, {:message, V1.ReduceScatterRequest}, {:oneof, :kind}},
      {9, :all_to_all, {:message, V1.AllToAllRequest}, {:oneof, :kind}},
      {10, :scan, {:message, V1.ScanRequest}, {:oneof, :kind}},
      {11, :broadcast_object, {:message, V1.BroadcastObjectRequest}, {:oneof, :kind}},
      {12, :scatter_object, {:message, V1.ScatterObjectRequest}, {:oneof, :kind}},
      {13, :gather_object, {:message, V1.GatherObjectRequest}, {:oneof, :kind}},
      {14, :all_gather_object, {:message, V1.AllGatherObjectRequest}, {:oneof, :kind}},
      {15, :all_reduce_value, {:message, V1.AllReduceValueRequest}, {:oneof, :kind}},
      {16, :broadcast_tensor_dict, {:message, V1.BroadcastTensorDictRequest}, {:oneof, :kind}},
      {17, :send, {:message, V1.SendRequest}, {:oneof, :kind}},
      {18, :recv, {:message, V1.RecvRequest}, {:oneof, :kind}},
      {19, :send_object, {:message, V1.SendObjectRequest}, {:oneof, :kind}},
      {20, :recv_object, {:message, V1.RecvObjectRequest}, {:oneof, :kind}},
      {21, :send_tensor_dict, {:message, V1.SendTensorDictRequest}, {:oneof, :kind}},
      {22, :recv_tensor_dict, {:message, V1.RecvTensorDictRequest}, {:oneof, :kind}},
      {23, :coalesce, {:message, V1.CoalesceRequest}, {:oneof, :kind}},
      {24, :replay, {:message, V1.ReplayRequest}, {:oneof, :kind}},
      {25, :enqueue, {:message, V1.EnqueueRequest}, {:oneof, :kind}},
      {26, :dequeue, {:message, V1.DequeueRequest}, {:oneof, :kind}},
      {27, :ping, {:message, V1.PingRequest}, {:oneof, :kind}},
      {28, :run_program, {:message, V1.RunProgramRequest}, {:oneof, :kind}},
      {29, :call_function, {:message, V1.CallFunctionRequest}, {:oneof, :kind}}
    ]
  end
end

defmodule RankBridge.Proto.V1.PingRequest do
  @moduledoc """
  Asks all members whether they are there, in the order of the group's other operations. It is admitted as a collective
  is, and gives none: the backend is not entered.

  ## Fields

    * `call` - Group, identity, timeout.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.{Decode, Encode}

  @type t :: %__MODULE__{
          call: V1.Call.t() | nil,
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct call: nil,
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
      {1, :call, {:message, V1.Call}, :optional}
    ]
  end
end

defmodule RankBridge.Proto.V1.RunRequest do
  @moduledoc """
  Does an operation.

  ## Fields

    * `operation` - The operation.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.{Decode, Encode}

  @type t :: %__MODULE__{
          operation: V1.Operation.t() | nil,
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct operation: nil,
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
      Encode.optional(0x0A, {:message, V1.Operation}, message.operation),
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
    %{message | operation: Decode.message(V1.Operation, message.operation, raw, depth)}
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
      {1, :operation, {:message, V1.Operation}, :optional}
    ]
  end
end

defmodule RankBridge.Proto.V1.RunResponse do
  @moduledoc """
  Outcome of Run: the fields of `OperationResult`.

  ## Fields

    * `value` - What the operation gave this rank.
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

defmodule RankBridge.Proto.V1.SubmitRequest do
  @moduledoc """
  Begins an operation.

  ## Fields

    * `operation` - The operation, with an operation id in its call.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.{Decode, Encode}

  @type t :: %__MODULE__{
          operation: V1.Operation.t() | nil,
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct operation: nil,
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
      Encode.optional(0x0A, {:message, V1.Operation}, message.operation),
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
    %{message | operation: Decode.message(V1.Operation, message.operation, raw, depth)}
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
      {1, :operation, {:message, V1.Operation}, :optional}
    ]
  end
end

defmodule RankBridge.Proto.V1.SubmitResponse do
  @moduledoc """
  Outcome of Submit.

  ## Fields

    * `operation_id` - Id of the operation, which is under way or was submitted before.
    * `error` - What was refused. Nothing happened.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.{Decode, Encode}

  @type outcome :: {:operation_id, String.t()} | {:error, V1.Error.t()}

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

  defp encode_outcome({:operation_id, value}) do
    Encode.always(0x0A, :string, value)
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
  def __put__(message, 1, 2, raw, _depth) do
    %{message | outcome: {:operation_id, Decode.value(:string, raw)}}
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
      {1, :operation_id, :string, {:oneof, :outcome}},
      {2, :error, {:message, V1.Error}, {:oneof, :outcome}}
    ]
  end
end

defmodule RankBridge.Proto.V1.PollRequest do
  @moduledoc """
  Returns the status of an operation.

  ## Fields

    * `operation_id` - Its id.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Protobuf.{Decode, Encode}

  @type t :: %__MODULE__{
          operation_id: String.t(),
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct operation_id: "",
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
      {1, :operation_id, :string, :implicit}
    ]
  end
end

defmodule RankBridge.Proto.V1.OperationStatus do
  @moduledoc """
  The status of an operation.

  ## Fields

    * `state` - How far it is.
    * `result` - Its result or error. Absent: it is not done.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.{Decode, Encode}

  @type t :: %__MODULE__{
          state: V1.OperationState.t(),
          result: V1.OperationResult.t() | nil,
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct state: :OPERATION_STATE_UNSPECIFIED,
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
      Encode.implicit(0x08, {:enum, V1.OperationState}, message.state),
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
    %{message | state: Decode.value({:enum, V1.OperationState}, raw)}
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
      {1, :state, {:enum, V1.OperationState}, :implicit},
      {2, :result, {:message, V1.OperationResult}, :optional}
    ]
  end
end

defmodule RankBridge.Proto.V1.OperationResult do
  @moduledoc """
  The result of an operation, or its error.

  ## Fields

    * `value` - What it gave.
    * `error` - How it failed.
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

defmodule RankBridge.Proto.V1.PollResponse do
  @moduledoc """
  Outcome of Poll.

  ## Fields

    * `status` - What is known of the operation.
    * `error` - What failed in asking: the id is unknown.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.{Decode, Encode}

  @type outcome :: {:status, V1.OperationStatus.t()} | {:error, V1.Error.t()}

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

  defp encode_outcome({:status, value}) do
    Encode.always(0x0A, {:message, V1.OperationStatus}, value)
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
    held = Decode.held(message.outcome, :status)
    %{message | outcome: {:status, Decode.message(V1.OperationStatus, held, raw, depth)}}
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
      {1, :status, {:message, V1.OperationStatus}, {:oneof, :outcome}},
      {2, :error, {:message, V1.Error}, {:oneof, :outcome}}
    ]
  end
end

defmodule RankBridge.Proto.V1.AwaitRequest do
  @moduledoc """
  Waits for an operation's outcome.

  ## Fields

    * `operation_id` - Its id.
    * `timeout_ms` - Longest time to wait, in milliseconds. 0: the rank's default (30,000).
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Protobuf.{Decode, Encode}

  @type t :: %__MODULE__{
          operation_id: String.t(),
          timeout_ms: non_neg_integer(),
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct operation_id: "",
            timeout_ms: 0,
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
      Encode.implicit(0x10, :uint32, message.timeout_ms),
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

  def __put__(message, 2, 0, raw, _depth) do
    %{message | timeout_ms: Decode.value(:uint32, raw)}
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
      {1, :operation_id, :string, :implicit},
      {2, :timeout_ms, :uint32, :implicit}
    ]
  end
end

defmodule RankBridge.Proto.V1.AwaitResponse do
  @moduledoc """
  Outcome of Await.

  ## Fields

    * `value` - What it gave.
    * `error` - How it failed; UNKNOWN_OPERATION, or DEADLINE_EXCEEDED if it is not done yet.
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

defmodule RankBridge.Proto.V1.CancelRequest do
  @moduledoc """
  Withdraws an operation.

  ## Fields

    * `operation_id` - Its id.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Protobuf.{Decode, Encode}

  @type t :: %__MODULE__{
          operation_id: String.t(),
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct operation_id: "",
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
      {1, :operation_id, :string, :implicit}
    ]
  end
end

defmodule RankBridge.Proto.V1.CancelResponse do
  @moduledoc """
  Outcome of Cancel.

  ## Fields

    * `cancelled` - True: it was withdrawn, and no rank will do it with this one. False: it was admitted or done already.
    * `error` - What failed in asking: the id is unknown.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.{Decode, Encode}

  @type outcome :: {:cancelled, boolean()} | {:error, V1.Error.t()}

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

  defp encode_outcome({:cancelled, value}) do
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
    %{message | outcome: {:cancelled, Decode.value(:bool, raw)}}
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
      {1, :cancelled, :bool, {:oneof, :outcome}},
      {2, :error, {:message, V1.Error}, {:oneof, :outcome}}
    ]
  end
end

defmodule RankBridge.Proto.V1.CoalesceRequest do
  @moduledoc """
  Does several collectives of one group as one operation.

  ## Fields

    * `call` - Group, identity, timeout: of all of them.
    * `operations` - Collectives of CollectiveService, one or more, each without a `call` of its own. None sees what another gives, not
      even what it did in place: all results are there at once.
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

defmodule RankBridge.Proto.V1.CoalesceResponse do
  @moduledoc """
  Outcome of Coalesce.

  ## Fields

    * `value` - A list: what each of them gave.
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

defmodule RankBridge.Proto.V1.RunProgramRequest do
  @moduledoc """
  Runs a list of collectives of one group. Results and what is changed in place are there when all of it is done, or
  not at all.

  ## Fields

    * `call` - Group, identity, timeout: of all of it.
    * `steps` - What is done, in this order: one step or more.
    * `results` - Names of what is kept, each once: it becomes a ref, as the result of a single collective does. What is not kept is
      freed.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.{Decode, Encode}

  @type t :: %__MODULE__{
          call: V1.Call.t() | nil,
          steps: [V1.ProgramStep.t()],
          results: [String.t()],
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct call: nil,
            steps: [],
            results: [],
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
      Encode.repeated(0x12, {:message, V1.ProgramStep}, message.steps),
      Encode.repeated(0x1A, :string, message.results),
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
    %{message | steps: [Decode.message(V1.ProgramStep, nil, raw, depth) | message.steps]}
  end

  def __put__(message, 3, 2, raw, _depth) do
    %{message | results: [Decode.value(:string, raw) | message.results]}
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
      | steps: Enum.reverse(message.steps),
        results: Enum.reverse(message.results),
        __unknown_fields__: Enum.reverse(message.__unknown_fields__)
    }
  end

  @doc false
  @impl true
  @spec __fields__() :: [RankBridge.Protobuf.Message.field()]
  def __fields__ do
    [
      {1, :call, {:message, V1.Call}, :optional},
      {2, :steps, {:message, V1.ProgramStep}, :repeated},
      {3, :results, :string, :repeated}
    ]
  end
end

defmodule RankBridge.Proto.V1.ProgramStep do
  @moduledoc """
  One step of a program.

  ## Fields

    * `operation` - A collective.
    * `loop` - Steps that are repeated.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.{Decode, Encode}

  @type kind :: {:operation, V1.ProgramOperation.t()} | {:loop, V1.ProgramLoop.t()}

  @type t :: %__MODULE__{
          kind: kind() | nil,
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct kind: nil,
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
      Encode.unknown(message.__unknown_fields__)
    ]
  end

  defp encode_kind(nil), do: []

  defp encode_kind({:operation, value}) do
    Encode.always(0x0A, {:message, V1.ProgramOperation}, value)
  end

  defp encode_kind({:loop, value}) do
    Encode.always(0x12, {:message, V1.ProgramLoop}, value)
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
    held = Decode.held(message.kind, :operation)
    %{message | kind: {:operation, Decode.message(V1.ProgramOperation, held, raw, depth)}}
  end

  def __put__(message, 2, 2, raw, depth) do
    held = Decode.held(message.kind, :loop)
    %{message | kind: {:loop, Decode.message(V1.ProgramLoop, held, raw, depth)}}
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
      {1, :operation, {:message, V1.ProgramOperation}, {:oneof, :kind}},
      {2, :loop, {:message, V1.ProgramLoop}, {:oneof, :kind}}
    ]
  end
end

defmodule RankBridge.Proto.V1.ProgramOperation do
  @moduledoc """
  A collective of a program.

  ## Fields

    * `operation` - A collective of CollectiveService, without a `call` of its own. Where it has a ref id, "%" and a name take what an
      earlier step has given under that name; what is changed in place has its new elements for all steps that follow.
    * `name` - Names what it gives, for the steps that follow. A name that is given again, as in a loop, stands for what it was
      given last; shape and dtype stay. Empty: what it gives is dropped.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.{Decode, Encode}

  @type t :: %__MODULE__{
          operation: V1.Operation.t() | nil,
          name: String.t(),
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct operation: nil,
            name: "",
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
      Encode.optional(0x0A, {:message, V1.Operation}, message.operation),
      Encode.implicit(0x12, :string, message.name),
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
    %{message | operation: Decode.message(V1.Operation, message.operation, raw, depth)}
  end

  def __put__(message, 2, 2, raw, _depth) do
    %{message | name: Decode.value(:string, raw)}
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
      {1, :operation, {:message, V1.Operation}, :optional},
      {2, :name, :string, :implicit}
    ]
  end
end

defmodule RankBridge.Proto.V1.ProgramLoop do
  @moduledoc """
  Steps that are repeated.

  ## Fields

    * `count` - How many times: 1 or more.
    * `steps` - What is repeated, one step or more.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.{Decode, Encode}

  @type t :: %__MODULE__{
          count: non_neg_integer(),
          steps: [V1.ProgramStep.t()],
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct count: 0,
            steps: [],
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
      Encode.implicit(0x08, :uint32, message.count),
      Encode.repeated(0x12, {:message, V1.ProgramStep}, message.steps),
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
    %{message | count: Decode.value(:uint32, raw)}
  end

  def __put__(message, 2, 2, raw, depth) do
    %{message | steps: [Decode.message(V1.ProgramStep, nil, raw, depth) | message.steps]}
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
      | steps: Enum.reverse(message.steps),
        __unknown_fields__: Enum.reverse(message.__unknown_fields__)
    }
  end

  @doc false
  @impl true
  @spec __fields__() :: [RankBridge.Protobuf.Message.field()]
  def __fields__ do
    [
      {1, :count, :uint32, :implicit},
      {2, :steps, {:message, V1.ProgramStep}, :repeated}
    ]
  end
end

defmodule RankBridge.Proto.V1.RunProgramResponse do
  @moduledoc """
  Outcome of RunProgram.

  ## Fields

    * `value` - A list: what is kept, in the order of `results`; none where a member was given nothing.
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

defmodule RankBridge.Proto.V1.OperationService do
  @moduledoc """
  Operations that run without a waiting caller, and the outcomes of any operation by its id.
  """

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.Rpc

  @doc "Every method of the service."
  @spec methods() :: [Rpc.t()]
  def methods do
    [
      run(),
      submit(),
      poll(),
      await(),
      cancel(),
      coalesce(),
      run_program()
    ]
  end

  @doc """
  Does an operation and waits for its outcome: what the RPC of its own does, for all kinds. A caller that hangs up
  withdraws it, unless it was admitted.
  """
  @spec run() :: Rpc.t()
  def run do
    %Rpc{
      path: "/rankbridge.v1.OperationService/Run",
      request: V1.RunRequest,
      response: V1.RunResponse,
      client_stream?: false,
      server_stream?: false
    }
  end

  @doc """
  Begins an operation and returns at once. Its `call.operation_id` is needed; it names the operation below.
  """
  @spec submit() :: Rpc.t()
  def submit do
    %Rpc{
      path: "/rankbridge.v1.OperationService/Submit",
      request: V1.SubmitRequest,
      response: V1.SubmitResponse,
      client_stream?: false,
      server_stream?: false
    }
  end

  @doc """
  Returns the status of an operation.
  """
  @spec poll() :: Rpc.t()
  def poll do
    %Rpc{
      path: "/rankbridge.v1.OperationService/Poll",
      request: V1.PollRequest,
      response: V1.PollResponse,
      client_stream?: false,
      server_stream?: false
    }
  end

  @doc """
  Waits for the outcome of any caller's operation, even if that caller has gone.
  """
  @spec await() :: Rpc.t()
  def await do
    %Rpc{
      path: "/rankbridge.v1.OperationService/Await",
      request: V1.AwaitRequest,
      response: V1.AwaitResponse,
      client_stream?: false,
      server_stream?: false
    }
  end

  @doc """
  Withdraws an operation that has not been admitted yet. One that was admitted goes on.
  """
  @spec cancel() :: Rpc.t()
  def cancel do
    %Rpc{
      path: "/rankbridge.v1.OperationService/Cancel",
      request: V1.CancelRequest,
      response: V1.CancelResponse,
      client_stream?: false,
      server_stream?: false
    }
  end

  @doc """
  Does several collectives of one group as one operation: admitted at once, run one after another.
  """
  @spec coalesce() :: Rpc.t()
  def coalesce do
    %Rpc{
      path: "/rankbridge.v1.OperationService/Coalesce",
      request: V1.CoalesceRequest,
      response: V1.CoalesceResponse,
      client_stream?: false,
      server_stream?: false
    }
  end

  @doc """
  Runs a list of collectives of one group, each of which may take another's result: admitted at once, and then run by
  the ranks without messages to the controller in between.
  """
  @spec run_program() :: Rpc.t()
  def run_program do
    %Rpc{
      path: "/rankbridge.v1.OperationService/RunProgram",
      request: V1.RunProgramRequest,
      response: V1.RunProgramResponse,
      client_stream?: false,
      server_stream?: false
    }
  end
end
