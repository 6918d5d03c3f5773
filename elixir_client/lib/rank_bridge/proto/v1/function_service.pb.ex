# Generated from rankbridge/v1/function_service.proto by protoc-gen-rankbridge-elixir. Do not edit.

defmodule RankBridge.Proto.V1.ParameterKind do
  @moduledoc """
  How a parameter is given.

  Numbers without a name stay integers.

  ## Values

    * `:PARAMETER_KIND_UNSPECIFIED` - Not said. Never sent.
    * `:PARAMETER_KIND_PLAIN` - By place or by name.
    * `:PARAMETER_KIND_POSITIONAL` - By place alone.
    * `:PARAMETER_KIND_NAMED` - By name alone.
    * `:PARAMETER_KIND_REST` - All further values that have no name.
    * `:PARAMETER_KIND_NAMED_REST` - All further values that have a name.
  """

  @type t ::
          :PARAMETER_KIND_UNSPECIFIED
          | :PARAMETER_KIND_PLAIN
          | :PARAMETER_KIND_POSITIONAL
          | :PARAMETER_KIND_NAMED
          | :PARAMETER_KIND_REST
          | :PARAMETER_KIND_NAMED_REST
          | integer()

  @doc "The number of each name."
  @spec mapping() :: %{atom() => integer()}
  def mapping do
    %{
      PARAMETER_KIND_UNSPECIFIED: 0,
      PARAMETER_KIND_PLAIN: 1,
      PARAMETER_KIND_POSITIONAL: 2,
      PARAMETER_KIND_NAMED: 3,
      PARAMETER_KIND_REST: 4,
      PARAMETER_KIND_NAMED_REST: 5
    }
  end

  @doc "The number of a name; a number is its own."
  @spec value(t()) :: integer()
  def value(:PARAMETER_KIND_UNSPECIFIED), do: 0
  def value(:PARAMETER_KIND_PLAIN), do: 1
  def value(:PARAMETER_KIND_POSITIONAL), do: 2
  def value(:PARAMETER_KIND_NAMED), do: 3
  def value(:PARAMETER_KIND_REST), do: 4
  def value(:PARAMETER_KIND_NAMED_REST), do: 5
  def value(number) when is_integer(number), do: number

  @doc "The name of a number, or the number where it has none."
  @spec key(integer()) :: t()
  def key(0), do: :PARAMETER_KIND_UNSPECIFIED
  def key(1), do: :PARAMETER_KIND_PLAIN
  def key(2), do: :PARAMETER_KIND_POSITIONAL
  def key(3), do: :PARAMETER_KIND_NAMED
  def key(4), do: :PARAMETER_KIND_REST
  def key(5), do: :PARAMETER_KIND_NAMED_REST
  def key(number) when is_integer(number), do: number
end

defmodule RankBridge.Proto.V1.Argument do
  @moduledoc """
  One argument of a call.

  ## Fields

    * `name` - Name of the parameter. Empty: it is given by its place, after those without a name that precede it.
    * `value` - The value. Refs, of this rank and of the call's session, arrive as the tensors that they stand for.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.{Decode, Encode}

  @type t :: %__MODULE__{
          name: String.t(),
          value: V1.Value.t() | nil,
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct name: "",
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
      Encode.implicit(0x0A, :string, message.name),
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
  def __put__(message, 1, 2, raw, _depth) do
    %{message | name: Decode.value(:string, raw)}
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
      {1, :name, :string, :implicit},
      {2, :value, {:message, V1.Value}, :optional}
    ]
  end
end

defmodule RankBridge.Proto.V1.CallFunctionRequest do
  @moduledoc """
  Calls a function.

  ## Fields

    * `call` - Group, identity, timeout. The timeout is of the function, too: after it the function is asked to end.
    * `function` - Name of the function.
    * `arguments` - Its arguments, those without a name first.
    * `alone` - True: this rank alone calls it, at once, and no other member is asked. Not in a gang call.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.{Decode, Encode}

  @type t :: %__MODULE__{
          call: V1.Call.t() | nil,
          function: String.t(),
          arguments: [V1.Argument.t()],
          alone: boolean(),
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct call: nil,
            function: "",
            arguments: [],
            alone: false,
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
      Encode.implicit(0x12, :string, message.function),
      Encode.repeated(0x1A, {:message, V1.Argument}, message.arguments),
      Encode.implicit(0x20, :bool, message.alone),
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
    %{message | function: Decode.value(:string, raw)}
  end

  def __put__(message, 3, 2, raw, depth) do
    %{message | arguments: [Decode.message(V1.Argument, nil, raw, depth) | message.arguments]}
  end

  def __put__(message, 4, 0, raw, _depth) do
    %{message | alone: Decode.value(:bool, raw)}
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
      | arguments: Enum.reverse(message.arguments),
        __unknown_fields__: Enum.reverse(message.__unknown_fields__)
    }
  end

  @doc false
  @impl true
  @spec __fields__() :: [RankBridge.Protobuf.Message.field()]
  def __fields__ do
    [
      {1, :call, {:message, V1.Call}, :optional},
      {2, :function, :string, :implicit},
      {3, :arguments, {:message, V1.Argument}, :repeated},
      {4, :alone, :bool, :implicit}
    ]
  end
end

defmodule RankBridge.Proto.V1.CallFunctionResponse do
  @moduledoc """
  Outcome of CallFunction.

  ## Fields

    * `value` - What the function has returned; its tensors are new refs.
    * `error` - What failed: FUNCTION_FAILED: the function raised, here or on a member for which this one waited; UNKNOWN_FUNCTION;
      INVALID_ARGUMENT: the arguments do not fit its parameters; DEADLINE_EXCEEDED: it has not ended, and goes on.
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

defmodule RankBridge.Proto.V1.ListFunctionsRequest do
  @moduledoc """
  Lists the functions.
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

defmodule RankBridge.Proto.V1.ListFunctionsResponse do
  @moduledoc """
  The functions of the rank.

  ## Fields

    * `functions` - By name.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.{Decode, Encode}

  @type t :: %__MODULE__{
          functions: [V1.Function.t()],
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct functions: [],
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
      Encode.repeated(0x0A, {:message, V1.Function}, message.functions),
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
    %{message | functions: [Decode.message(V1.Function, nil, raw, depth) | message.functions]}
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
      | functions: Enum.reverse(message.functions),
        __unknown_fields__: Enum.reverse(message.__unknown_fields__)
    }
  end

  @doc false
  @impl true
  @spec __fields__() :: [RankBridge.Protobuf.Message.field()]
  def __fields__ do
    [
      {1, :functions, {:message, V1.Function}, :repeated}
    ]
  end
end

defmodule RankBridge.Proto.V1.Function do
  @moduledoc """
  A function that can be called.

  ## Fields

    * `name` - Its name.
    * `doc` - Its docstring. Empty: it has none.
    * `parameters` - Its parameters, in order.
    * `returns` - The type that it returns, as Python writes it. Empty: not annotated.
    * `yields` - True: it yields: each value is a report, and what it returns in the end is the result.
    * `signature` - Its signature, as Python writes it, without the context: "(batch: int, lr: float = 0.1)".
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.{Decode, Encode}

  @type t :: %__MODULE__{
          name: String.t(),
          doc: String.t(),
          parameters: [V1.Parameter.t()],
          returns: String.t(),
          yields: boolean(),
          signature: String.t(),
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct name: "",
            doc: "",
            parameters: [],
            returns: "",
            yields: false,
            signature: "",
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
      Encode.implicit(0x12, :string, message.doc),
      Encode.repeated(0x1A, {:message, V1.Parameter}, message.parameters),
      Encode.implicit(0x22, :string, message.returns),
      Encode.implicit(0x28, :bool, message.yields),
      Encode.implicit(0x32, :string, message.signature),
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
    %{message | doc: Decode.value(:string, raw)}
  end

  def __put__(message, 3, 2, raw, depth) do
    %{message | parameters: [Decode.message(V1.Parameter, nil, raw, depth) | message.parameters]}
  end

  def __put__(message, 4, 2, raw, _depth) do
    %{message | returns: Decode.value(:string, raw)}
  end

  def __put__(message, 5, 0, raw, _depth) do
    %{message | yields: Decode.value(:bool, raw)}
  end

  def __put__(message, 6, 2, raw, _depth) do
    %{message | signature: Decode.value(:string, raw)}
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
      | parameters: Enum.reverse(message.parameters),
        __unknown_fields__: Enum.reverse(message.__unknown_fields__)
    }
  end

  @doc false
  @impl true
  @spec __fields__() :: [RankBridge.Protobuf.Message.field()]
  def __fields__ do
    [
      {1, :name, :string, :implicit},
      {2, :doc, :string, :implicit},
      {3, :parameters, {:message, V1.Parameter}, :repeated},
      {4, :returns, :string, :implicit},
      {5, :yields, :bool, :implicit},
      {6, :signature, :string, :implicit}
    ]
  end
end

defmodule RankBridge.Proto.V1.Parameter do
  @moduledoc """
  A parameter of a function.

  ## Fields

    * `name` - Its name.
    * `kind` - How it is given.
    * `type` - Its type, as Python writes it. Empty: not annotated.
    * `optional` - True: it may be left out.
    * `default` - Its default, as Python writes it. Empty: it has none.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.{Decode, Encode}

  @type t :: %__MODULE__{
          name: String.t(),
          kind: V1.ParameterKind.t(),
          type: String.t(),
          optional: boolean(),
          default: String.t(),
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct name: "",
            kind: :PARAMETER_KIND_UNSPECIFIED,
            type: "",
            optional: false,
            default: "",
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
      Encode.implicit(0x10, {:enum, V1.ParameterKind}, message.kind),
      Encode.implicit(0x1A, :string, message.type),
      Encode.implicit(0x20, :bool, message.optional),
      Encode.implicit(0x2A, :string, message.default),
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
    %{message | kind: Decode.value({:enum, V1.ParameterKind}, raw)}
  end

  def __put__(message, 3, 2, raw, _depth) do
    %{message | type: Decode.value(:string, raw)}
  end

  def __put__(message, 4, 0, raw, _depth) do
    %{message | optional: Decode.value(:bool, raw)}
  end

  def __put__(message, 5, 2, raw, _depth) do
    %{message | default: Decode.value(:string, raw)}
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
      {2, :kind, {:enum, V1.ParameterKind}, :implicit},
      {3, :type, :string, :implicit},
      {4, :optional, :bool, :implicit},
      {5, :default, :string, :implicit}
    ]
  end
end

defmodule RankBridge.Proto.V1.WatchReportsRequest do
  @moduledoc """
  Watches the reports of a call.

  ## Fields

    * `operation_id` - Id of the call's operation.
    * `after` - Number of the last report that is known already. 0: none.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Protobuf.{Decode, Encode}

  @type t :: %__MODULE__{
          operation_id: String.t(),
          after: non_neg_integer(),
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct operation_id: "",
            after: 0,
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
      Encode.implicit(0x10, :uint64, message.after),
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
    %{message | after: Decode.value(:uint64, raw)}
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
      {2, :after, :uint64, :implicit}
    ]
  end
end

defmodule RankBridge.Proto.V1.WatchReportsResponse do
  @moduledoc """
  One message of the watch.

  ## Fields

    * `report` - A report.
    * `error` - What failed: the request is wrong, or the rank has too many watchers. The only response.
    * `watching` - True: the watch has begun. The first response, and no other.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.{Decode, Encode}

  @type outcome :: {:report, V1.Report.t()} | {:error, V1.Error.t()} | {:watching, boolean()}

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

  defp encode_outcome({:report, value}) do
    Encode.always(0x0A, {:message, V1.Report}, value)
  end

  defp encode_outcome({:error, value}) do
    Encode.always(0x12, {:message, V1.Error}, value)
  end

  defp encode_outcome({:watching, value}) do
    Encode.always(0x18, :bool, value)
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
    held = Decode.held(message.outcome, :report)
    %{message | outcome: {:report, Decode.message(V1.Report, held, raw, depth)}}
  end

  def __put__(message, 2, 2, raw, depth) do
    held = Decode.held(message.outcome, :error)
    %{message | outcome: {:error, Decode.message(V1.Error, held, raw, depth)}}
  end

  def __put__(message, 3, 0, raw, _depth) do
    %{message | outcome: {:watching, Decode.value(:bool, raw)}}
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
      {1, :report, {:message, V1.Report}, {:oneof, :outcome}},
      {2, :error, {:message, V1.Error}, {:oneof, :outcome}},
      {3, :watching, :bool, {:oneof, :outcome}}
    ]
  end
end

defmodule RankBridge.Proto.V1.Report do
  @moduledoc """
  What a function has reported.

  ## Fields

    * `rank` - Rank in the gang.
    * `number` - Number among the reports of the call on this rank, from 1.
    * `time_us` - When, in microseconds since 1970.
    * `value` - A map of names to values; of a function that yields, the value. Tensors by value.
    * `missed` - Reports before this one that the rank dropped before this watcher could get them. 0: none.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.{Decode, Encode}

  @type t :: %__MODULE__{
          rank: non_neg_integer(),
          number: non_neg_integer(),
          time_us: non_neg_integer(),
          value: V1.Value.t() | nil,
          missed: non_neg_integer(),
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct rank: 0,
            number: 0,
            time_us: 0,
            value: nil,
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
      Encode.implicit(0x08, :uint32, message.rank),
      Encode.implicit(0x10, :uint64, message.number),
      Encode.implicit(0x18, :uint64, message.time_us),
      Encode.optional(0x22, {:message, V1.Value}, message.value),
      Encode.implicit(0x28, :uint64, message.missed),
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
    %{message | number: Decode.value(:uint64, raw)}
  end

  def __put__(message, 3, 0, raw, _depth) do
    %{message | time_us: Decode.value(:uint64, raw)}
  end

  def __put__(message, 4, 2, raw, depth) do
    %{message | value: Decode.message(V1.Value, message.value, raw, depth)}
  end

  def __put__(message, 5, 0, raw, _depth) do
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
      {1, :rank, :uint32, :implicit},
      {2, :number, :uint64, :implicit},
      {3, :time_us, :uint64, :implicit},
      {4, :value, {:message, V1.Value}, :optional},
      {5, :missed, :uint64, :implicit}
    ]
  end
end

defmodule RankBridge.Proto.V1.FunctionService do
  @moduledoc """
  Functions of the user's own, which the command line has loaded into every rank.
  """

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.Rpc

  @doc "Every method of the service."
  @spec methods() :: [Rpc.t()]
  def methods do
    [
      list_functions(),
      call_function(),
      watch_reports()
    ]
  end

  @doc """
  Lists the functions that the rank offers, by name.
  """
  @spec list_functions() :: Rpc.t()
  def list_functions do
    %Rpc{
      path: "/rankbridge.v1.FunctionService/ListFunctions",
      request: V1.ListFunctionsRequest,
      response: V1.ListFunctionsResponse,
      client_stream?: false,
      server_stream?: false
    }
  end

  @doc """
  Calls a function on every member of a group, each with its own arguments or all with the same. The functions of a group
  run one after another, in one order on all members, beside the group's other operations. If the function raises on one
  member, those that wait for it in torch.distributed are released.
  """
  @spec call_function() :: Rpc.t()
  def call_function do
    %Rpc{
      path: "/rankbridge.v1.FunctionService/CallFunction",
      request: V1.CallFunctionRequest,
      response: V1.CallFunctionResponse,
      client_stream?: false,
      server_stream?: false
    }
  end

  @doc """
  Watches what a call of a function reports on this rank: first what it has reported so far, as far as the rank keeps it.
  Ends when the call has ended here. A call that has not come yet is waited for.
  """
  @spec watch_reports() :: Rpc.t()
  def watch_reports do
    %Rpc{
      path: "/rankbridge.v1.FunctionService/WatchReports",
      request: V1.WatchReportsRequest,
      response: V1.WatchReportsResponse,
      client_stream?: false,
      server_stream?: true
    }
  end
end
