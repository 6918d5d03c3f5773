# Generated from rankbridge/v1/value.proto by protoc-gen-rankbridge-elixir. Do not edit.

defmodule RankBridge.Proto.V1.NoneValue do
  @moduledoc """
  None, as Python's None and Elixir's nil.
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

defmodule RankBridge.Proto.V1.ListValue do
  @moduledoc """
  A sequence that its language may change: Python's and Elixir's list.

  ## Fields

    * `items` - In order. Empty: the empty list.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.{Decode, Encode}

  @type t :: %__MODULE__{
          items: [V1.Value.t()],
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct items: [],
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
      Encode.repeated(0x0A, {:message, V1.Value}, message.items),
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
    %{message | items: [Decode.message(V1.Value, nil, raw, depth) | message.items]}
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
      | items: Enum.reverse(message.items),
        __unknown_fields__: Enum.reverse(message.__unknown_fields__)
    }
  end

  @doc false
  @impl true
  @spec __fields__() :: [RankBridge.Protobuf.Message.field()]
  def __fields__ do
    [
      {1, :items, {:message, V1.Value}, :repeated}
    ]
  end
end

defmodule RankBridge.Proto.V1.TupleValue do
  @moduledoc """
  A sequence of fixed length: Python's and Elixir's tuple.

  ## Fields

    * `items` - In order. Empty: the empty tuple.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.{Decode, Encode}

  @type t :: %__MODULE__{
          items: [V1.Value.t()],
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct items: [],
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
      Encode.repeated(0x0A, {:message, V1.Value}, message.items),
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
    %{message | items: [Decode.message(V1.Value, nil, raw, depth) | message.items]}
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
      | items: Enum.reverse(message.items),
        __unknown_fields__: Enum.reverse(message.__unknown_fields__)
    }
  end

  @doc false
  @impl true
  @spec __fields__() :: [RankBridge.Protobuf.Message.field()]
  def __fields__ do
    [
      {1, :items, {:message, V1.Value}, :repeated}
    ]
  end
end

defmodule RankBridge.Proto.V1.MapEntry do
  @moduledoc """
  One entry of a map.

  ## Fields

    * `key` - Any value; no two entries of a map have equal keys.
    * `value` - Any value.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.{Decode, Encode}

  @type t :: %__MODULE__{
          key: V1.Value.t() | nil,
          value: V1.Value.t() | nil,
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct key: nil,
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
      Encode.optional(0x0A, {:message, V1.Value}, message.key),
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
  def __put__(message, 1, 2, raw, depth) do
    %{message | key: Decode.message(V1.Value, message.key, raw, depth)}
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
      {1, :key, {:message, V1.Value}, :optional},
      {2, :value, {:message, V1.Value}, :optional}
    ]
  end
end

defmodule RankBridge.Proto.V1.MapValue do
  @moduledoc """
  A map with keys of any kind: Python's dict, Elixir's map.

  ## Fields

    * `entries` - In insertion order. Empty: the empty map.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.{Decode, Encode}

  @type t :: %__MODULE__{
          entries: [V1.MapEntry.t()],
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct entries: [],
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
      Encode.repeated(0x0A, {:message, V1.MapEntry}, message.entries),
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
    %{message | entries: [Decode.message(V1.MapEntry, nil, raw, depth) | message.entries]}
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
      | entries: Enum.reverse(message.entries),
        __unknown_fields__: Enum.reverse(message.__unknown_fields__)
    }
  end

  @doc false
  @impl true
  @spec __fields__() :: [RankBridge.Protobuf.Message.field()]
  def __fields__ do
    [
      {1, :entries, {:message, V1.MapEntry}, :repeated}
    ]
  end
end

defmodule RankBridge.Proto.V1.Value do
  @moduledoc """
  A value of no particular language. Integers stay integers and none is none. Nothing set is refused.

  ## Fields

    * `none` - No value: what barrier gives, or gather to a rank that is not its destination.
    * `bool` - True or false.
    * `int` - A whole number of at most 64 bits.
    * `big_int` - A whole number of more than 64 bits: two's complement, little-endian, as short as it goes.
    * `float` - A binary64 number; NaN and infinities included.
    * `text` - Unicode text.
    * `bytes` - Bytes.
    * `list` - A list.
    * `tuple` - A tuple.
    * `map` - A map.
    * `tensor` - A tensor by value.
    * `ref` - A value that stays on its rank.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.{Decode, Encode}

  @type kind ::
          {:none, V1.NoneValue.t()}
          | {:bool, boolean()}
          | {:int, integer()}
          | {:big_int, iodata()}
          | {:float, RankBridge.Protobuf.float_value()}
          | {:text, String.t()}
          | {:bytes, iodata()}
          | {:list, V1.ListValue.t()}
          | {:tuple, V1.TupleValue.t()}
          | {:map, V1.MapValue.t()}
          | {:tensor, V1.Tensor.t()}
          | {:ref, V1.Ref.t()}

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

  defp encode_kind({:none, value}) do
    Encode.always(0x0A, {:message, V1.NoneValue}, value)
  end

  defp encode_kind({:bool, value}) do
    Encode.always(0x10, :bool, value)
  end

  defp encode_kind({:int, value}) do
    Encode.always(0x18, :sint64, value)
  end

  defp encode_kind({:big_int, value}) do
    Encode.always(0x22, :bytes, value)
  end

  defp encode_kind({:float, value}) do
    Encode.always(0x29, :double, value)
  end

  defp encode_kind({:text, value}) do
    Encode.always(0x32, :string, value)
  end

  defp encode_kind({:bytes, value}) do
    Encode.always(0x3A, :bytes, value)
  end

  defp encode_kind({:list, value}) do
    Encode.always(0x42, {:message, V1.ListValue}, value)
  end

  defp encode_kind({:tuple, value}) do
    Encode.always(0x4A, {:message, V1.TupleValue}, value)
  end

  defp encode_kind({:map, value}) do
    Encode.always(0x52, {:message, V1.MapValue}, value)
  end

  defp encode_kind({:tensor, value}) do
    Encode.always(0x5A, {:message, V1.Tensor}, value)
  end

  defp encode_kind({:ref, value}) do
    Encode.always(0x62, {:message, V1.Ref}, value)
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
    held = Decode.held(message.kind, :none)
    %{message | kind: {:none, Decode.message(V1.NoneValue, held, raw, depth)}}
  end

  def __put__(message, 2, 0, raw, _depth) do
    %{message | kind: {:bool, Decode.value(:bool, raw)}}
  end

  def __put__(message, 3, 0, raw, _depth) do
    %{message | kind: {:int, Decode.value(:sint64, raw)}}
  end

  def __put__(message, 4, 2, raw, _depth) do
    %{message | kind: {:big_int, Decode.value(:bytes, raw)}}
  end

  def __put__(message, 5, 1, raw, _depth) do
    %{message | kind: {:float, Decode.value(:double, raw)}}
  end

  def __put__(message, 6, 2, raw, _depth) do
    %{message | kind: {:text, Decode.value(:string, raw)}}
  end

  def __put__(message, 7, 2, raw, _depth) do
    %{message | kind: {:bytes, Decode.value(:bytes, raw)}}
  end

  def __put__(message, 8, 2, raw, depth) do
    held = Decode.held(message.kind, :list)
    %{message | kind: {:list, Decode.message(V1.ListValue, held, raw, depth)}}
  end

  def __put__(message, 9, 2, raw, depth) do
    held = Decode.held(message.kind, :tuple)
    %{message | kind: {:tuple, Decode.message(V1.TupleValue, held, raw, depth)}}
  end

  def __put__(message, 10, 2, raw, depth) do
    held = Decode.held(message.kind, :map)
    %{message | kind: {:map, Decode.message(V1.MapValue, held, raw, depth)}}
  end

  def __put__(message, 11, 2, raw, depth) do
    held = Decode.held(message.kind, :tensor)
    %{message | kind: {:tensor, Decode.message(V1.Tensor, held, raw, depth)}}
  end

  def __put__(message, 12, 2, raw, depth) do
    held = Decode.held(message.kind, :ref)
    %{message | kind: {:ref, Decode.message(V1.Ref, held, raw, depth)}}
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
      {1, :none, {:message, V1.NoneValue}, {:oneof, :kind}},
      {2, :bool, :bool, {:oneof, :kind}},
      {3, :int, :sint64, {:oneof, :kind}},
      {4, :big_int, :bytes, {:oneof, :kind}},
      {5, :float, :double, {:oneof, :kind}},
      {6, :text, :string, {:oneof, :kind}},
      {7, :bytes, :bytes, {:oneof, :kind}},
      {8, :list, {:message, V1.ListValue}, {:oneof, :kind}},
      {9, :tuple, {:message, V1.TupleValue}, {:oneof, :kind}},
      {10, :map, {:message, V1.MapValue}, {:oneof, :kind}},
      {11, :tensor, {:message, V1.Tensor}, {:oneof, :kind}},
      {12, :ref, {:message, V1.Ref}, {:oneof, :kind}}
    ]
  end
end
