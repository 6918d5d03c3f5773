# Generated from rankbridge/v1/ref_service.proto by protoc-gen-rankbridge-elixir. Do not edit.

defmodule RankBridge.Proto.V1.OpenSessionRequest do
  @moduledoc """
  Begins a session.

  ## Fields

    * `session_id` - Id of the session, chosen by the controller, the same on every rank, 1 to 128 bytes. Opening one that is
      open already changes nothing but its lease. Empty: the rank chooses.
    * `lease_ms` - Longest time without a call that names the session, in milliseconds; then it is closed. 0: it has no lease and
      lives until it is closed.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Protobuf.{Decode, Encode}

  @type t :: %__MODULE__{
          session_id: String.t(),
          lease_ms: non_neg_integer(),
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct session_id: "",
            lease_ms: 0,
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
      Encode.implicit(0x10, :uint32, message.lease_ms),
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
    %{message | lease_ms: Decode.value(:uint32, raw)}
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
      {2, :lease_ms, :uint32, :implicit}
    ]
  end
end

defmodule RankBridge.Proto.V1.OpenSessionResponse do
  @moduledoc """
  Outcome of OpenSession.

  ## Fields

    * `session_id` - Id of the open session.
    * `error` - What failed.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.{Decode, Encode}

  @type outcome :: {:session_id, String.t()} | {:error, V1.Error.t()}

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

  defp encode_outcome({:session_id, value}) do
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
    %{message | outcome: {:session_id, Decode.value(:string, raw)}}
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
      {1, :session_id, :string, {:oneof, :outcome}},
      {2, :error, {:message, V1.Error}, {:oneof, :outcome}}
    ]
  end
end

defmodule RankBridge.Proto.V1.RenewSessionRequest do
  @moduledoc """
  Keeps a session alive.

  ## Fields

    * `session_id` - Id of the session.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Protobuf.{Decode, Encode}

  @type t :: %__MODULE__{
          session_id: String.t(),
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct session_id: "",
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
      {1, :session_id, :string, :implicit}
    ]
  end
end

defmodule RankBridge.Proto.V1.RenewSessionResponse do
  @moduledoc """
  Outcome of RenewSession.

  ## Fields

    * `lease_ms` - Time until it would be closed, in milliseconds. 0: it has no lease.
    * `error` - What failed: it is not open.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.{Decode, Encode}

  @type outcome :: {:lease_ms, non_neg_integer()} | {:error, V1.Error.t()}

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

  defp encode_outcome({:lease_ms, value}) do
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
    %{message | outcome: {:lease_ms, Decode.value(:uint32, raw)}}
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
      {1, :lease_ms, :uint32, {:oneof, :outcome}},
      {2, :error, {:message, V1.Error}, {:oneof, :outcome}}
    ]
  end
end

defmodule RankBridge.Proto.V1.CloseSessionRequest do
  @moduledoc """
  Ends a session.

  ## Fields

    * `session_id` - Id of the session. The shared session (empty) cannot be closed.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Protobuf.{Decode, Encode}

  @type t :: %__MODULE__{
          session_id: String.t(),
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct session_id: "",
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
      {1, :session_id, :string, :implicit}
    ]
  end
end

defmodule RankBridge.Proto.V1.CloseSessionResponse do
  @moduledoc """
  Outcome of CloseSession.

  ## Fields

    * `released` - Number of refs that were freed.
    * `error` - What failed.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.{Decode, Encode}

  @type outcome :: {:released, non_neg_integer()} | {:error, V1.Error.t()}

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

  defp encode_outcome({:released, value}) do
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
    %{message | outcome: {:released, Decode.value(:uint64, raw)}}
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
      {1, :released, :uint64, {:oneof, :outcome}},
      {2, :error, {:message, V1.Error}, {:oneof, :outcome}}
    ]
  end
end

defmodule RankBridge.Proto.V1.Zeros do
  @moduledoc """
  Every element 0.
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

defmodule RankBridge.Proto.V1.Full do
  @moduledoc """
  Every element the same.

  ## Fields

    * `float` - For floating-point dtypes, and for complex ones with an imaginary part of 0.
    * `int` - For integer dtypes; also accepted for floating-point ones.
    * `bool` - For bool.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Protobuf.{Decode, Encode}

  @type element ::
          {:float, RankBridge.Protobuf.float_value()} | {:int, integer()} | {:bool, boolean()}

  @type t :: %__MODULE__{
          element: element() | nil,
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct element: nil,
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
      encode_element(message.element),
      Encode.unknown(message.__unknown_fields__)
    ]
  end

  defp encode_element(nil), do: []

  defp encode_element({:float, value}) do
    Encode.always(0x09, :double, value)
  end

  defp encode_element({:int, value}) do
    Encode.always(0x10, :sint64, value)
  end

  defp encode_element({:bool, value}) do
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
  def __put__(message, 1, 1, raw, _depth) do
    %{message | element: {:float, Decode.value(:double, raw)}}
  end

  def __put__(message, 2, 0, raw, _depth) do
    %{message | element: {:int, Decode.value(:sint64, raw)}}
  end

  def __put__(message, 3, 0, raw, _depth) do
    %{message | element: {:bool, Decode.value(:bool, raw)}}
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
      {1, :float, :double, {:oneof, :element}},
      {2, :int, :sint64, {:oneof, :element}},
      {3, :bool, :bool, {:oneof, :element}}
    ]
  end
end

defmodule RankBridge.Proto.V1.Arange do
  @moduledoc """
  Element i, counted in row-major order, is start + i * step.

  ## Fields

    * `start` - First element.
    * `step` - Difference of neighbours. 0: 1.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Protobuf.{Decode, Encode}

  @type t :: %__MODULE__{
          start: RankBridge.Protobuf.float_value(),
          step: RankBridge.Protobuf.float_value(),
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct start: 0.0,
            step: 0.0,
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
      Encode.implicit(0x09, :double, message.start),
      Encode.implicit(0x11, :double, message.step),
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
  def __put__(message, 1, 1, raw, _depth) do
    %{message | start: Decode.value(:double, raw)}
  end

  def __put__(message, 2, 1, raw, _depth) do
    %{message | step: Decode.value(:double, raw)}
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
      {1, :start, :double, :implicit},
      {2, :step, :double, :implicit}
    ]
  end
end

defmodule RankBridge.Proto.V1.Uniform do
  @moduledoc """
  Uniformly distributed elements from a seeded generator: torch's CPU generator, equal on every machine.

  ## Fields

    * `seed` - Seed of the generator.
    * `low` - Lowest element, included.
    * `high` - Highest element, not included. Both 0: from 0 to 1.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Protobuf.{Decode, Encode}

  @type t :: %__MODULE__{
          seed: non_neg_integer(),
          low: RankBridge.Protobuf.float_value(),
          high: RankBridge.Protobuf.float_value(),
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct seed: 0,
            low: 0.0,
            high: 0.0,
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
      Encode.implicit(0x08, :uint64, message.seed),
      Encode.implicit(0x11, :double, message.low),
      Encode.implicit(0x19, :double, message.high),
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
    %{message | seed: Decode.value(:uint64, raw)}
  end

  def __put__(message, 2, 1, raw, _depth) do
    %{message | low: Decode.value(:double, raw)}
  end

  def __put__(message, 3, 1, raw, _depth) do
    %{message | high: Decode.value(:double, raw)}
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
      {1, :seed, :uint64, :implicit},
      {2, :low, :double, :implicit},
      {3, :high, :double, :implicit}
    ]
  end
end

defmodule RankBridge.Proto.V1.Normal do
  @moduledoc """
  Normally distributed elements from a seeded generator: torch's CPU generator, equal on every machine.

  ## Fields

    * `seed` - Seed of the generator.
    * `mean` - Mean.
    * `std` - Standard deviation, 0 or more. Absent: 1.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Protobuf.{Decode, Encode}

  @type t :: %__MODULE__{
          seed: non_neg_integer(),
          mean: RankBridge.Protobuf.float_value(),
          std: RankBridge.Protobuf.float_value() | nil,
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct seed: 0,
            mean: 0.0,
            std: nil,
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
      Encode.implicit(0x08, :uint64, message.seed),
      Encode.implicit(0x11, :double, message.mean),
      Encode.optional(0x19, :double, message.std),
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
    %{message | seed: Decode.value(:uint64, raw)}
  end

  def __put__(message, 2, 1, raw, _depth) do
    %{message | mean: Decode.value(:double, raw)}
  end

  def __put__(message, 3, 1, raw, _depth) do
    %{message | std: Decode.value(:double, raw)}
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
      {1, :seed, :uint64, :implicit},
      {2, :mean, :double, :implicit},
      {3, :std, :double, :optional}
    ]
  end
end

defmodule RankBridge.Proto.V1.CreateTensorRequest do
  @moduledoc """
  Makes a tensor on the rank.

  ## Fields

    * `session_id` - Owner of the ref. Empty: the rank's shared session.
    * `tensor` - dtype, shape and device.
    * `zeros` - Every element 0.
    * `full` - Every element the same.
    * `arange` - Evenly spaced elements. Not for bool and complex.
    * `uniform` - Random, uniform. Floating-point dtypes only.
    * `normal` - Random, normal. Floating-point dtypes only.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.{Decode, Encode}

  @type init ::
          {:zeros, V1.Zeros.t()}
          | {:full, V1.Full.t()}
          | {:arange, V1.Arange.t()}
          | {:uniform, V1.Uniform.t()}
          | {:normal, V1.Normal.t()}

  @type t :: %__MODULE__{
          session_id: String.t(),
          tensor: V1.TensorSpec.t() | nil,
          init: init() | nil,
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct session_id: "",
            tensor: nil,
            init: nil,
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
      Encode.optional(0x12, {:message, V1.TensorSpec}, message.tensor),
      encode_init(message.init),
      Encode.unknown(message.__unknown_fields__)
    ]
  end

  defp encode_init(nil), do: []

  defp encode_init({:zeros, value}) do
    Encode.always(0x1A, {:message, V1.Zeros}, value)
  end

  defp encode_init({:full, value}) do
    Encode.always(0x22, {:message, V1.Full}, value)
  end

  defp encode_init({:arange, value}) do
    Encode.always(0x2A, {:message, V1.Arange}, value)
  end

  defp encode_init({:uniform, value}) do
    Encode.always(0x32, {:message, V1.Uniform}, value)
  end

  defp encode_init({:normal, value}) do
    Encode.always(0x3A, {:message, V1.Normal}, value)
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

  def __put__(message, 2, 2, raw, depth) do
    %{message | tensor: Decode.message(V1.TensorSpec, message.tensor, raw, depth)}
  end

  def __put__(message, 3, 2, raw, depth) do
    held = Decode.held(message.init, :zeros)
    %{message | init: {:zeros, Decode.message(V1.Zeros, held, raw, depth)}}
  end

  def __put__(message, 4, 2, raw, depth) do
    held = Decode.held(message.init, :full)
    %{message | init: {:full, Decode.message(V1.Full, held, raw, depth)}}
  end

  def __put__(message, 5, 2, raw, depth) do
    held = Decode.held(message.init, :arange)
    %{message | init: {:arange, Decode.message(V1.Arange, held, raw, depth)}}
  end

  def __put__(message, 6, 2, raw, depth) do
    held = Decode.held(message.init, :uniform)
    %{message | init: {:uniform, Decode.message(V1.Uniform, held, raw, depth)}}
  end

  def __put__(message, 7, 2, raw, depth) do
    held = Decode.held(message.init, :normal)
    %{message | init: {:normal, Decode.message(V1.Normal, held, raw, depth)}}
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
      {2, :tensor, {:message, V1.TensorSpec}, :optional},
      {3, :zeros, {:message, V1.Zeros}, {:oneof, :init}},
      {4, :full, {:message, V1.Full}, {:oneof, :init}},
      {5, :arange, {:message, V1.Arange}, {:oneof, :init}},
      {6, :uniform, {:message, V1.Uniform}, {:oneof, :init}},
      {7, :normal, {:message, V1.Normal}, {:oneof, :init}}
    ]
  end
end

defmodule RankBridge.Proto.V1.CreateTensorResponse do
  @moduledoc """
  Outcome of CreateTensor.

  ## Fields

    * `ref` - The ref on the new tensor.
    * `error` - What failed.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.{Decode, Encode}

  @type outcome :: {:ref, V1.Ref.t()} | {:error, V1.Error.t()}

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

  defp encode_outcome({:ref, value}) do
    Encode.always(0x0A, {:message, V1.Ref}, value)
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
    held = Decode.held(message.outcome, :ref)
    %{message | outcome: {:ref, Decode.message(V1.Ref, held, raw, depth)}}
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
      {1, :ref, {:message, V1.Ref}, {:oneof, :outcome}},
      {2, :error, {:message, V1.Error}, {:oneof, :outcome}}
    ]
  end
end

defmodule RankBridge.Proto.V1.PutTensorHeader do
  @moduledoc """
  What a put begins with.

  ## Fields

    * `session_id` - Owner of the ref. Empty: the rank's shared session.
    * `tensor` - dtype, shape and device. The chunks' lengths add up to its size in bytes.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.{Decode, Encode}

  @type t :: %__MODULE__{
          session_id: String.t(),
          tensor: V1.TensorSpec.t() | nil,
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct session_id: "",
            tensor: nil,
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
      Encode.optional(0x12, {:message, V1.TensorSpec}, message.tensor),
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

  def __put__(message, 2, 2, raw, depth) do
    %{message | tensor: Decode.message(V1.TensorSpec, message.tensor, raw, depth)}
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
      {2, :tensor, {:message, V1.TensorSpec}, :optional}
    ]
  end
end

defmodule RankBridge.Proto.V1.PutTensorRequest do
  @moduledoc """
  One message of a put. The first holds the header, every other one a chunk.

  ## Fields

    * `header` - The first message.
    * `chunk` - Next bytes of the elements, of any length; 1 MiB is fast. A chunk may end anywhere, also within an element.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.{Decode, Encode}

  @type part :: {:header, V1.PutTensorHeader.t()} | {:chunk, iodata()}

  @type t :: %__MODULE__{
          part: part() | nil,
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct part: nil,
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
      encode_part(message.part),
      Encode.unknown(message.__unknown_fields__)
    ]
  end

  defp encode_part(nil), do: []

  defp encode_part({:header, value}) do
    Encode.always(0x0A, {:message, V1.PutTensorHeader}, value)
  end

  defp encode_part({:chunk, value}) do
    Encode.always(0x12, :bytes, value)
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
    held = Decode.held(message.part, :header)
    %{message | part: {:header, Decode.message(V1.PutTensorHeader, held, raw, depth)}}
  end

  def __put__(message, 2, 2, raw, _depth) do
    %{message | part: {:chunk, Decode.value(:bytes, raw)}}
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
      {1, :header, {:message, V1.PutTensorHeader}, {:oneof, :part}},
      {2, :chunk, :bytes, {:oneof, :part}}
    ]
  end
end

defmodule RankBridge.Proto.V1.PutTensorResponse do
  @moduledoc """
  Outcome of PutTensor.

  ## Fields

    * `ref` - The ref on the new tensor.
    * `error` - What failed. Nothing is kept.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.{Decode, Encode}

  @type outcome :: {:ref, V1.Ref.t()} | {:error, V1.Error.t()}

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

  defp encode_outcome({:ref, value}) do
    Encode.always(0x0A, {:message, V1.Ref}, value)
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
    held = Decode.held(message.outcome, :ref)
    %{message | outcome: {:ref, Decode.message(V1.Ref, held, raw, depth)}}
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
      {1, :ref, {:message, V1.Ref}, {:oneof, :outcome}},
      {2, :error, {:message, V1.Error}, {:oneof, :outcome}}
    ]
  end
end

defmodule RankBridge.Proto.V1.GetTensorRequest do
  @moduledoc """
  Fetches a tensor.

  ## Fields

    * `session_id` - Session of the ref. Empty: the rank's shared session.
    * `ref_id` - Id of the ref.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Protobuf.{Decode, Encode}

  @type t :: %__MODULE__{
          session_id: String.t(),
          ref_id: String.t(),
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct session_id: "",
            ref_id: "",
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
      Encode.implicit(0x12, :string, message.ref_id),
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

  def __put__(message, 2, 2, raw, _depth) do
    %{message | ref_id: Decode.value(:string, raw)}
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
      {2, :ref_id, :string, :implicit}
    ]
  end
end

defmodule RankBridge.Proto.V1.GetTensorResponse do
  @moduledoc """
  One message of a fetch. The first holds the tensor's spec, every other one a chunk.

  ## Fields

    * `tensor` - The first message.
    * `chunk` - Next bytes of the elements, at most 1 MiB.
    * `error` - What failed; nothing follows.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.{Decode, Encode}

  @type part :: {:tensor, V1.TensorSpec.t()} | {:chunk, iodata()} | {:error, V1.Error.t()}

  @type t :: %__MODULE__{
          part: part() | nil,
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct part: nil,
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
      encode_part(message.part),
      Encode.unknown(message.__unknown_fields__)
    ]
  end

  defp encode_part(nil), do: []

  defp encode_part({:tensor, value}) do
    Encode.always(0x0A, {:message, V1.TensorSpec}, value)
  end

  defp encode_part({:chunk, value}) do
    Encode.always(0x12, :bytes, value)
  end

  defp encode_part({:error, value}) do
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
    held = Decode.held(message.part, :tensor)
    %{message | part: {:tensor, Decode.message(V1.TensorSpec, held, raw, depth)}}
  end

  def __put__(message, 2, 2, raw, _depth) do
    %{message | part: {:chunk, Decode.value(:bytes, raw)}}
  end

  def __put__(message, 3, 2, raw, depth) do
    held = Decode.held(message.part, :error)
    %{message | part: {:error, Decode.message(V1.Error, held, raw, depth)}}
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
      {1, :tensor, {:message, V1.TensorSpec}, {:oneof, :part}},
      {2, :chunk, :bytes, {:oneof, :part}},
      {3, :error, {:message, V1.Error}, {:oneof, :part}}
    ]
  end
end

defmodule RankBridge.Proto.V1.OpenSharedMemoryRequest do
  @moduledoc """
  Makes a segment.

  ## Fields

    * `session_id` - Session that the segment belongs to, with which it ends. Not the shared session.
    * `bytes` - Room for elements, in bytes, 1 or more.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Protobuf.{Decode, Encode}

  @type t :: %__MODULE__{
          session_id: String.t(),
          bytes: non_neg_integer(),
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct session_id: "",
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
      Encode.implicit(0x10, :uint64, message.bytes),
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
      {2, :bytes, :uint64, :implicit}
    ]
  end
end

defmodule RankBridge.Proto.V1.SharedMemory do
  @moduledoc """
  A segment: the caller's from OpenSharedMemory until CloseSharedMemory, but for calls that name it. During such a call,
  and when it ends without an answer, it is the rank's: then the caller gives it up and does not use it again.

  ## Fields

    * `id` - Names it, in its session on its rank.
    * `path` - Path of the file on the rank's host. Elements begin at its first byte.
    * `bytes` - Room for elements, in bytes: what was asked for or more.
    * `nonce` - What lies in the file from byte `bytes` on, 16 random bytes. A caller that finds something else there, or no file,
      has another file system than the rank, and uses a stream.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Protobuf.{Decode, Encode}

  @type t :: %__MODULE__{
          id: String.t(),
          path: String.t(),
          bytes: non_neg_integer(),
          nonce: iodata(),
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct id: "",
            path: "",
            bytes: 0,
            nonce: "",
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
      Encode.implicit(0x0A, :string, message.id),
      Encode.implicit(0x12, :string, message.path),
      Encode.implicit(0x18, :uint64, message.bytes),
      Encode.implicit(0x22, :bytes, message.nonce),
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
    %{message | id: Decode.value(:string, raw)}
  end

  def __put__(message, 2, 2, raw, _depth) do
    %{message | path: Decode.value(:string, raw)}
  end

  def __put__(message, 3, 0, raw, _depth) do
    %{message | bytes: Decode.value(:uint64, raw)}
  end

  def __put__(message, 4, 2, raw, _depth) do
    %{message | nonce: Decode.value(:bytes, raw)}
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
      {1, :id, :string, :implicit},
      {2, :path, :string, :implicit},
      {3, :bytes, :uint64, :implicit},
      {4, :nonce, :bytes, :implicit}
    ]
  end
end

defmodule RankBridge.Proto.V1.OpenSharedMemoryResponse do
  @moduledoc """
  Outcome of OpenSharedMemory.

  ## Fields

    * `memory` - The segment, whose elements have no particular value. It may be a segment that this session used before.
    * `error` - What failed. RESOURCE_EXHAUSTED: no room now. UNSUPPORTED_OPERATION: this rank shares no memory.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.{Decode, Encode}

  @type outcome :: {:memory, V1.SharedMemory.t()} | {:error, V1.Error.t()}

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

  defp encode_outcome({:memory, value}) do
    Encode.always(0x0A, {:message, V1.SharedMemory}, value)
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
    held = Decode.held(message.outcome, :memory)
    %{message | outcome: {:memory, Decode.message(V1.SharedMemory, held, raw, depth)}}
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
      {1, :memory, {:message, V1.SharedMemory}, {:oneof, :outcome}},
      {2, :error, {:message, V1.Error}, {:oneof, :outcome}}
    ]
  end
end

defmodule RankBridge.Proto.V1.CloseSharedMemoryRequest do
  @moduledoc """
  Gives segments up.

  ## Fields

    * `session_id` - Session of the segments.
    * `memory_ids` - Ids of the segments.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Protobuf.{Decode, Encode}

  @type t :: %__MODULE__{
          session_id: String.t(),
          memory_ids: [String.t()],
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct session_id: "",
            memory_ids: [],
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
      Encode.repeated(0x12, :string, message.memory_ids),
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

  def __put__(message, 2, 2, raw, _depth) do
    %{message | memory_ids: [Decode.value(:string, raw) | message.memory_ids]}
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
      | memory_ids: Enum.reverse(message.memory_ids),
        __unknown_fields__: Enum.reverse(message.__unknown_fields__)
    }
  end

  @doc false
  @impl true
  @spec __fields__() :: [RankBridge.Protobuf.Message.field()]
  def __fields__ do
    [
      {1, :session_id, :string, :implicit},
      {2, :memory_ids, :string, :repeated}
    ]
  end
end

defmodule RankBridge.Proto.V1.CloseSharedMemoryResponse do
  @moduledoc """
  Outcome of CloseSharedMemory.

  ## Fields

    * `closed` - Number of segments that were given up now.
    * `error` - What failed.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.{Decode, Encode}

  @type outcome :: {:closed, non_neg_integer()} | {:error, V1.Error.t()}

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

  defp encode_outcome({:closed, value}) do
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
    %{message | outcome: {:closed, Decode.value(:uint64, raw)}}
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
      {1, :closed, :uint64, {:oneof, :outcome}},
      {2, :error, {:message, V1.Error}, {:oneof, :outcome}}
    ]
  end
end

defmodule RankBridge.Proto.V1.PutSharedTensorRequest do
  @moduledoc """
  Makes a tensor of what lies in a segment.

  ## Fields

    * `session_id` - Owner of the ref. Empty: the rank's shared session.
    * `tensor` - dtype, shape and device. Its elements lie in the segment, little-endian and row-major, from the first byte on.
    * `memory_session_id` - Session of the segment.
    * `memory_id` - Id of the segment.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.{Decode, Encode}

  @type t :: %__MODULE__{
          session_id: String.t(),
          tensor: V1.TensorSpec.t() | nil,
          memory_session_id: String.t(),
          memory_id: String.t(),
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct session_id: "",
            tensor: nil,
            memory_session_id: "",
            memory_id: "",
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
      Encode.optional(0x12, {:message, V1.TensorSpec}, message.tensor),
      Encode.implicit(0x1A, :string, message.memory_session_id),
      Encode.implicit(0x22, :string, message.memory_id),
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

  def __put__(message, 2, 2, raw, depth) do
    %{message | tensor: Decode.message(V1.TensorSpec, message.tensor, raw, depth)}
  end

  def __put__(message, 3, 2, raw, _depth) do
    %{message | memory_session_id: Decode.value(:string, raw)}
  end

  def __put__(message, 4, 2, raw, _depth) do
    %{message | memory_id: Decode.value(:string, raw)}
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
      {2, :tensor, {:message, V1.TensorSpec}, :optional},
      {3, :memory_session_id, :string, :implicit},
      {4, :memory_id, :string, :implicit}
    ]
  end
end

defmodule RankBridge.Proto.V1.SharedPut do
  @moduledoc """
  A tensor that was made of what lay in a segment.

  ## Fields

    * `ref` - The ref on the new tensor.
    * `adopted` - The segment has become the tensor's memory, and is the caller's no more. False: it is the caller's again.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.{Decode, Encode}

  @type t :: %__MODULE__{
          ref: V1.Ref.t() | nil,
          adopted: boolean(),
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct ref: nil,
            adopted: false,
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
      Encode.optional(0x0A, {:message, V1.Ref}, message.ref),
      Encode.implicit(0x10, :bool, message.adopted),
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
    %{message | ref: Decode.message(V1.Ref, message.ref, raw, depth)}
  end

  def __put__(message, 2, 0, raw, _depth) do
    %{message | adopted: Decode.value(:bool, raw)}
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
      {1, :ref, {:message, V1.Ref}, :optional},
      {2, :adopted, :bool, :implicit}
    ]
  end
end

defmodule RankBridge.Proto.V1.PutSharedTensorResponse do
  @moduledoc """
  Outcome of PutSharedTensor.

  ## Fields

    * `put` - The tensor.
    * `error` - What failed. Nothing is kept; the segment is the caller's again.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.{Decode, Encode}

  @type outcome :: {:put, V1.SharedPut.t()} | {:error, V1.Error.t()}

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

  defp encode_outcome({:put, value}) do
    Encode.always(0x0A, {:message, V1.SharedPut}, value)
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
    held = Decode.held(message.outcome, :put)
    %{message | outcome: {:put, Decode.message(V1.SharedPut, held, raw, depth)}}
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
      {1, :put, {:message, V1.SharedPut}, {:oneof, :outcome}},
      {2, :error, {:message, V1.Error}, {:oneof, :outcome}}
    ]
  end
end

defmodule RankBridge.Proto.V1.GetSharedTensorRequest do
  @moduledoc """
  Writes a tensor's elements into a segment.

  ## Fields

    * `session_id` - Session of the ref. Empty: the rank's shared session.
    * `ref_id` - Id of the ref.
    * `memory_session_id` - Session of the segment.
    * `memory_id` - Id of the segment.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Protobuf.{Decode, Encode}

  @type t :: %__MODULE__{
          session_id: String.t(),
          ref_id: String.t(),
          memory_session_id: String.t(),
          memory_id: String.t(),
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct session_id: "",
            ref_id: "",
            memory_session_id: "",
            memory_id: "",
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
      Encode.implicit(0x12, :string, message.ref_id),
      Encode.implicit(0x1A, :string, message.memory_session_id),
      Encode.implicit(0x22, :string, message.memory_id),
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

  def __put__(message, 2, 2, raw, _depth) do
    %{message | ref_id: Decode.value(:string, raw)}
  end

  def __put__(message, 3, 2, raw, _depth) do
    %{message | memory_session_id: Decode.value(:string, raw)}
  end

  def __put__(message, 4, 2, raw, _depth) do
    %{message | memory_id: Decode.value(:string, raw)}
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
      {2, :ref_id, :string, :implicit},
      {3, :memory_session_id, :string, :implicit},
      {4, :memory_id, :string, :implicit}
    ]
  end
end

defmodule RankBridge.Proto.V1.GetSharedTensorResponse do
  @moduledoc """
  Outcome of GetSharedTensor.

  ## Fields

    * `tensor` - dtype, shape and device. The elements lie in the segment, little-endian and row-major, from the first byte on.
    * `error` - What failed. The segment is the caller's again, and unchanged.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.{Decode, Encode}

  @type outcome :: {:tensor, V1.TensorSpec.t()} | {:error, V1.Error.t()}

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

  defp encode_outcome({:tensor, value}) do
    Encode.always(0x0A, {:message, V1.TensorSpec}, value)
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
    held = Decode.held(message.outcome, :tensor)
    %{message | outcome: {:tensor, Decode.message(V1.TensorSpec, held, raw, depth)}}
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
      {1, :tensor, {:message, V1.TensorSpec}, {:oneof, :outcome}},
      {2, :error, {:message, V1.Error}, {:oneof, :outcome}}
    ]
  end
end

defmodule RankBridge.Proto.V1.DescribeRefRequest do
  @moduledoc """
  Describes one ref.

  ## Fields

    * `session_id` - Session of the ref. Empty: the rank's shared session.
    * `ref_id` - Id of the ref.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Protobuf.{Decode, Encode}

  @type t :: %__MODULE__{
          session_id: String.t(),
          ref_id: String.t(),
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct session_id: "",
            ref_id: "",
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
      Encode.implicit(0x12, :string, message.ref_id),
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

  def __put__(message, 2, 2, raw, _depth) do
    %{message | ref_id: Decode.value(:string, raw)}
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
      {2, :ref_id, :string, :implicit}
    ]
  end
end

defmodule RankBridge.Proto.V1.DescribeRefResponse do
  @moduledoc """
  Outcome of DescribeRef.

  ## Fields

    * `ref` - The ref.
    * `error` - What failed.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.{Decode, Encode}

  @type outcome :: {:ref, V1.Ref.t()} | {:error, V1.Error.t()}

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

  defp encode_outcome({:ref, value}) do
    Encode.always(0x0A, {:message, V1.Ref}, value)
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
    held = Decode.held(message.outcome, :ref)
    %{message | outcome: {:ref, Decode.message(V1.Ref, held, raw, depth)}}
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
      {1, :ref, {:message, V1.Ref}, {:oneof, :outcome}},
      {2, :error, {:message, V1.Error}, {:oneof, :outcome}}
    ]
  end
end

defmodule RankBridge.Proto.V1.SummarizeRefRequest do
  @moduledoc """
  Summarizes a tensor.

  ## Fields

    * `session_id` - Session of the ref. Empty: the rank's shared session.
    * `ref_id` - Id of the ref.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Protobuf.{Decode, Encode}

  @type t :: %__MODULE__{
          session_id: String.t(),
          ref_id: String.t(),
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct session_id: "",
            ref_id: "",
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
      Encode.implicit(0x12, :string, message.ref_id),
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

  def __put__(message, 2, 2, raw, _depth) do
    %{message | ref_id: Decode.value(:string, raw)}
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
      {2, :ref_id, :string, :implicit}
    ]
  end
end

defmodule RankBridge.Proto.V1.SummarizeRefResponse do
  @moduledoc """
  Outcome of SummarizeRef.

  ## Fields

    * `summary` - What the elements are like.
    * `error` - What failed.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.{Decode, Encode}

  @type outcome :: {:summary, V1.TensorSummary.t()} | {:error, V1.Error.t()}

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

  defp encode_outcome({:summary, value}) do
    Encode.always(0x0A, {:message, V1.TensorSummary}, value)
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
    held = Decode.held(message.outcome, :summary)
    %{message | outcome: {:summary, Decode.message(V1.TensorSummary, held, raw, depth)}}
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
      {1, :summary, {:message, V1.TensorSummary}, {:oneof, :outcome}},
      {2, :error, {:message, V1.Error}, {:oneof, :outcome}}
    ]
  end
end

defmodule RankBridge.Proto.V1.TensorSummary do
  @moduledoc """
  What the elements of a tensor are like: of those that are neither NaN nor infinite, in double precision; of complex ones, their
  absolute values count.

  ## Fields

    * `tensor` - What the tensor is.
    * `norm` - Root of the sum of squares. 0: of none.
    * `min` - Least element. Not set: there is none.
    * `max` - Largest element, likewise.
    * `mean` - Mean, likewise.
    * `nans` - How many elements are NaN, or have a part that is.
    * `infs` - How many are infinite, or have a part that is, and none that is NaN.
    * `hash` - Equal exactly if dtype, shape and all elements are, bit for bit: 32 hexadecimal digits.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.{Decode, Encode}

  @type t :: %__MODULE__{
          tensor: V1.TensorSpec.t() | nil,
          norm: RankBridge.Protobuf.float_value(),
          min: RankBridge.Protobuf.float_value() | nil,
          max: RankBridge.Protobuf.float_value() | nil,
          mean: RankBridge.Protobuf.float_value() | nil,
          nans: non_neg_integer(),
          infs: non_neg_integer(),
          hash: String.t(),
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct tensor: nil,
            norm: 0.0,
            min: nil,
            max: nil,
            mean: nil,
            nans: 0,
            infs: 0,
            hash: "",
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
      Encode.optional(0x0A, {:message, V1.TensorSpec}, message.tensor),
      Encode.implicit(0x11, :double, message.norm),
      Encode.optional(0x19, :double, message.min),
      Encode.optional(0x21, :double, message.max),
      Encode.optional(0x29, :double, message.mean),
      Encode.implicit(0x30, :uint64, message.nans),
      Encode.implicit(0x38, :uint64, message.infs),
      Encode.implicit(0x42, :string, message.hash),
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
    %{message | tensor: Decode.message(V1.TensorSpec, message.tensor, raw, depth)}
  end

  def __put__(message, 2, 1, raw, _depth) do
    %{message | norm: Decode.value(:double, raw)}
  end

  def __put__(message, 3, 1, raw, _depth) do
    %{message | min: Decode.value(:double, raw)}
  end

  def __put__(message, 4, 1, raw, _depth) do
    %{message | max: Decode.value(:double, raw)}
  end

  def __put__(message, 5, 1, raw, _depth) do
    %{message | mean: Decode.value(:double, raw)}
  end

  def __put__(message, 6, 0, raw, _depth) do
    %{message | nans: Decode.value(:uint64, raw)}
  end

  def __put__(message, 7, 0, raw, _depth) do
    %{message | infs: Decode.value(:uint64, raw)}
  end

  def __put__(message, 8, 2, raw, _depth) do
    %{message | hash: Decode.value(:string, raw)}
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
      {1, :tensor, {:message, V1.TensorSpec}, :optional},
      {2, :norm, :double, :implicit},
      {3, :min, :double, :optional},
      {4, :max, :double, :optional},
      {5, :mean, :double, :optional},
      {6, :nans, :uint64, :implicit},
      {7, :infs, :uint64, :implicit},
      {8, :hash, :string, :implicit}
    ]
  end
end

defmodule RankBridge.Proto.V1.ListRefsRequest do
  @moduledoc """
  Lists the refs of one session.

  ## Fields

    * `session_id` - Id of the session. Empty: the rank's shared session.
    * `page_token` - Id after which to go on, from `next_page_token`. Empty: from the start.
    * `page_size` - Most refs to list, at most 1,000. 0: 1,000.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Protobuf.{Decode, Encode}

  @type t :: %__MODULE__{
          session_id: String.t(),
          page_token: String.t(),
          page_size: non_neg_integer(),
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct session_id: "",
            page_token: "",
            page_size: 0,
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
      Encode.implicit(0x12, :string, message.page_token),
      Encode.implicit(0x18, :uint32, message.page_size),
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

  def __put__(message, 2, 2, raw, _depth) do
    %{message | page_token: Decode.value(:string, raw)}
  end

  def __put__(message, 3, 0, raw, _depth) do
    %{message | page_size: Decode.value(:uint32, raw)}
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
      {2, :page_token, :string, :implicit},
      {3, :page_size, :uint32, :implicit}
    ]
  end
end

defmodule RankBridge.Proto.V1.ListRefsResponse do
  @moduledoc """
  Refs of one session.

  ## Fields

    * `page` - The refs.
    * `error` - What failed.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.{Decode, Encode}

  @type outcome :: {:page, V1.RefPage.t()} | {:error, V1.Error.t()}

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

  defp encode_outcome({:page, value}) do
    Encode.always(0x0A, {:message, V1.RefPage}, value)
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
    held = Decode.held(message.outcome, :page)
    %{message | outcome: {:page, Decode.message(V1.RefPage, held, raw, depth)}}
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
      {1, :page, {:message, V1.RefPage}, {:oneof, :outcome}},
      {2, :error, {:message, V1.Error}, {:oneof, :outcome}}
    ]
  end
end

defmodule RankBridge.Proto.V1.RefPage do
  @moduledoc """
  One page of refs.

  ## Fields

    * `refs` - In the order in which they were made.
    * `next_page_token` - Token for the next page. Empty: this was the last.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.{Decode, Encode}

  @type t :: %__MODULE__{
          refs: [V1.Ref.t()],
          next_page_token: String.t(),
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct refs: [],
            next_page_token: "",
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
      Encode.repeated(0x0A, {:message, V1.Ref}, message.refs),
      Encode.implicit(0x12, :string, message.next_page_token),
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
    %{message | refs: [Decode.message(V1.Ref, nil, raw, depth) | message.refs]}
  end

  def __put__(message, 2, 2, raw, _depth) do
    %{message | next_page_token: Decode.value(:string, raw)}
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
      | refs: Enum.reverse(message.refs),
        __unknown_fields__: Enum.reverse(message.__unknown_fields__)
    }
  end

  @doc false
  @impl true
  @spec __fields__() :: [RankBridge.Protobuf.Message.field()]
  def __fields__ do
    [
      {1, :refs, {:message, V1.Ref}, :repeated},
      {2, :next_page_token, :string, :implicit}
    ]
  end
end

defmodule RankBridge.Proto.V1.ReleaseRefsRequest do
  @moduledoc """
  Frees refs.

  ## Fields

    * `session_id` - Session of the refs. Empty: the rank's shared session.
    * `ref_ids` - Ids of the refs. If any is unknown, released or of another session, none is freed.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Protobuf.{Decode, Encode}

  @type t :: %__MODULE__{
          session_id: String.t(),
          ref_ids: [String.t()],
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct session_id: "",
            ref_ids: [],
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
      Encode.repeated(0x12, :string, message.ref_ids),
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

  def __put__(message, 2, 2, raw, _depth) do
    %{message | ref_ids: [Decode.value(:string, raw) | message.ref_ids]}
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
      | ref_ids: Enum.reverse(message.ref_ids),
        __unknown_fields__: Enum.reverse(message.__unknown_fields__)
    }
  end

  @doc false
  @impl true
  @spec __fields__() :: [RankBridge.Protobuf.Message.field()]
  def __fields__ do
    [
      {1, :session_id, :string, :implicit},
      {2, :ref_ids, :string, :repeated}
    ]
  end
end

defmodule RankBridge.Proto.V1.ReleaseRefsResponse do
  @moduledoc """
  Outcome of ReleaseRefs.

  ## Fields

    * `released` - Number of refs that were freed.
    * `error` - What failed.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.{Decode, Encode}

  @type outcome :: {:released, non_neg_integer()} | {:error, V1.Error.t()}

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

  defp encode_outcome({:released, value}) do
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
    %{message | outcome: {:released, Decode.value(:uint64, raw)}}
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
      {1, :released, :uint64, {:oneof, :outcome}},
      {2, :error, {:message, V1.Error}, {:oneof, :outcome}}
    ]
  end
end

defmodule RankBridge.Proto.V1.RefService do
  @moduledoc """
  Values that stay on a rank, and the sessions that own them.
  """

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.Rpc

  @doc "Every method of the service."
  @spec methods() :: [Rpc.t()]
  def methods do
    [
      open_session(),
      renew_session(),
      close_session(),
      create_tensor(),
      put_tensor(),
      get_tensor(),
      open_shared_memory(),
      close_shared_memory(),
      put_shared_tensor(),
      get_shared_tensor(),
      describe_ref(),
      summarize_ref(),
      list_refs(),
      release_refs()
    ]
  end

  @doc """
  Begins a session. Refs made in it are freed when it is closed.
  """
  @spec open_session() :: Rpc.t()
  def open_session do
    %Rpc{
      path: "/rankbridge.v1.RefService/OpenSession",
      request: V1.OpenSessionRequest,
      response: V1.OpenSessionResponse,
      client_stream?: false,
      server_stream?: false
    }
  end

  @doc """
  Keeps a session alive for another lease. Every call that names the session does so as well.
  """
  @spec renew_session() :: Rpc.t()
  def renew_session do
    %Rpc{
      path: "/rankbridge.v1.RefService/RenewSession",
      request: V1.RenewSessionRequest,
      response: V1.RenewSessionResponse,
      client_stream?: false,
      server_stream?: false
    }
  end

  @doc """
  Ends a session, frees its refs and withdraws its calls that were not admitted yet.
  """
  @spec close_session() :: Rpc.t()
  def close_session do
    %Rpc{
      path: "/rankbridge.v1.RefService/CloseSession",
      request: V1.CloseSessionRequest,
      response: V1.CloseSessionResponse,
      client_stream?: false,
      server_stream?: false
    }
  end

  @doc """
  Makes a tensor on the rank from a description.
  """
  @spec create_tensor() :: Rpc.t()
  def create_tensor do
    %Rpc{
      path: "/rankbridge.v1.RefService/CreateTensor",
      request: V1.CreateTensorRequest,
      response: V1.CreateTensorResponse,
      client_stream?: false,
      server_stream?: false
    }
  end

  @doc """
  Brings a tensor to the rank: first its header, then its elements in chunks.
  """
  @spec put_tensor() :: Rpc.t()
  def put_tensor do
    %Rpc{
      path: "/rankbridge.v1.RefService/PutTensor",
      request: V1.PutTensorRequest,
      response: V1.PutTensorResponse,
      client_stream?: true,
      server_stream?: false
    }
  end

  @doc """
  Fetches a tensor: first its spec, then its elements in chunks of at most 1 MiB.
  """
  @spec get_tensor() :: Rpc.t()
  def get_tensor do
    %Rpc{
      path: "/rankbridge.v1.RefService/GetTensor",
      request: V1.GetTensorRequest,
      response: V1.GetTensorResponse,
      client_stream?: false,
      server_stream?: true
    }
  end

  @doc """
  Makes a segment: a file in memory that the rank and a caller on its host both read and write.
  """
  @spec open_shared_memory() :: Rpc.t()
  def open_shared_memory do
    %Rpc{
      path: "/rankbridge.v1.RefService/OpenSharedMemory",
      request: V1.OpenSharedMemoryRequest,
      response: V1.OpenSharedMemoryResponse,
      client_stream?: false,
      server_stream?: false
    }
  end

  @doc """
  Gives segments up, all or none. Segments that were given up already are no error.
  """
  @spec close_shared_memory() :: Rpc.t()
  def close_shared_memory do
    %Rpc{
      path: "/rankbridge.v1.RefService/CloseSharedMemory",
      request: V1.CloseSharedMemoryRequest,
      response: V1.CloseSharedMemoryResponse,
      client_stream?: false,
      server_stream?: false
    }
  end

  @doc """
  Makes a tensor of the elements that the caller wrote into a segment.
  """
  @spec put_shared_tensor() :: Rpc.t()
  def put_shared_tensor do
    %Rpc{
      path: "/rankbridge.v1.RefService/PutSharedTensor",
      request: V1.PutSharedTensorRequest,
      response: V1.PutSharedTensorResponse,
      client_stream?: false,
      server_stream?: false
    }
  end

  @doc """
  Writes the elements of a tensor into a segment, where the caller reads them.
  """
  @spec get_shared_tensor() :: Rpc.t()
  def get_shared_tensor do
    %Rpc{
      path: "/rankbridge.v1.RefService/GetSharedTensor",
      request: V1.GetSharedTensorRequest,
      response: V1.GetSharedTensorResponse,
      client_stream?: false,
      server_stream?: false
    }
  end

  @doc """
  Describes one ref: dtype, shape and device.
  """
  @spec describe_ref() :: Rpc.t()
  def describe_ref do
    %Rpc{
      path: "/rankbridge.v1.RefService/DescribeRef",
      request: V1.DescribeRefRequest,
      response: V1.DescribeRefResponse,
      client_stream?: false,
      server_stream?: false
    }
  end

  @doc """
  Says what the elements of a tensor are like. It is computed where the tensor is, and no element travels. Of a tensor that an
  operation writes meanwhile, it may see some new elements and some old ones.
  """
  @spec summarize_ref() :: Rpc.t()
  def summarize_ref do
    %Rpc{
      path: "/rankbridge.v1.RefService/SummarizeRef",
      request: V1.SummarizeRefRequest,
      response: V1.SummarizeRefResponse,
      client_stream?: false,
      server_stream?: false
    }
  end

  @doc """
  Lists the refs of one session.
  """
  @spec list_refs() :: Rpc.t()
  def list_refs do
    %Rpc{
      path: "/rankbridge.v1.RefService/ListRefs",
      request: V1.ListRefsRequest,
      response: V1.ListRefsResponse,
      client_stream?: false,
      server_stream?: false
    }
  end

  @doc """
  Frees refs, all or none.
  """
  @spec release_refs() :: Rpc.t()
  def release_refs do
    %Rpc{
      path: "/rankbridge.v1.RefService/ReleaseRefs",
      request: V1.ReleaseRefsRequest,
      response: V1.ReleaseRefsResponse,
      client_stream?: false,
      server_stream?: false
    }
  end
end
