# Generated from rankbridge/v1/collective_service.proto by protoc-gen-rankbridge-elixir. Do not edit.

defmodule RankBridge.Proto.V1.ReduceOp do
  @moduledoc """
  How elements are combined.

  Numbers without a name stay integers.

  ## Values

    * `:REDUCE_OP_UNSPECIFIED` - Sum, as in every system that this API follows.
    * `:REDUCE_OP_SUM` - Sum. Of bool: logical or.
    * `:REDUCE_OP_PRODUCT` - Product. Not of complex. Of bool: logical and.
    * `:REDUCE_OP_MIN` - Smallest. Not of complex.
    * `:REDUCE_OP_MAX` - Largest. Not of complex.
    * `:REDUCE_OP_AVG` - Sum divided by the group's size. Of floating-point and complex dtypes only.
    * `:REDUCE_OP_BAND` - Bitwise and. Of integers and bool only.
    * `:REDUCE_OP_BOR` - Bitwise or. Of integers and bool only.
    * `:REDUCE_OP_BXOR` - Bitwise exclusive or. Of integers and bool only.
  """

  @type t ::
          :REDUCE_OP_UNSPECIFIED
          | :REDUCE_OP_SUM
          | :REDUCE_OP_PRODUCT
          | :REDUCE_OP_MIN
          | :REDUCE_OP_MAX
          | :REDUCE_OP_AVG
          | :REDUCE_OP_BAND
          | :REDUCE_OP_BOR
          | :REDUCE_OP_BXOR
          | integer()

  @doc "The number of each name."
  @spec mapping() :: %{atom() => integer()}
  def mapping do
    %{
      REDUCE_OP_UNSPECIFIED: 0,
      REDUCE_OP_SUM: 1,
      REDUCE_OP_PRODUCT: 2,
      REDUCE_OP_MIN: 3,
      REDUCE_OP_MAX: 4,
      REDUCE_OP_AVG: 5,
      REDUCE_OP_BAND: 6,
      REDUCE_OP_BOR: 7,
      REDUCE_OP_BXOR: 8
    }
  end

  @doc "The number of a name; a number is its own."
  @spec value(t()) :: integer()
  def value(:REDUCE_OP_UNSPECIFIED), do: 0
  def value(:REDUCE_OP_SUM), do: 1
  def value(:REDUCE_OP_PRODUCT), do: 2
  def value(:REDUCE_OP_MIN), do: 3
  def value(:REDUCE_OP_MAX), do: 4
  def value(:REDUCE_OP_AVG), do: 5
  def value(:REDUCE_OP_BAND), do: 6
  def value(:REDUCE_OP_BOR), do: 7
  def value(:REDUCE_OP_BXOR), do: 8
  def value(number) when is_integer(number), do: number

  @doc "The name of a number, or the number where it has none."
  @spec key(integer()) :: t()
  def key(0), do: :REDUCE_OP_UNSPECIFIED
  def key(1), do: :REDUCE_OP_SUM
  def key(2), do: :REDUCE_OP_PRODUCT
  def key(3), do: :REDUCE_OP_MIN
  def key(4), do: :REDUCE_OP_MAX
  def key(5), do: :REDUCE_OP_AVG
  def key(6), do: :REDUCE_OP_BAND
  def key(7), do: :REDUCE_OP_BOR
  def key(8), do: :REDUCE_OP_BXOR
  def key(number) when is_integer(number), do: number
end

defmodule RankBridge.Proto.V1.GatherLayout do
  @moduledoc """
  How gathered tensors are put together.

  Numbers without a name stay integers.

  ## Values

    * `:GATHER_LAYOUT_UNSPECIFIED` - Concatenated.
    * `:GATHER_LAYOUT_CONCATENATED` - One tensor: the members' side by side along `dim`, which all of them have.
    * `:GATHER_LAYOUT_STACKED` - One tensor with one dimension more: along it, at place `dim`, the members' one after another.
    * `:GATHER_LAYOUT_LIST` - A tensor for each member.
  """

  @type t ::
          :GATHER_LAYOUT_UNSPECIFIED
          | :GATHER_LAYOUT_CONCATENATED
          | :GATHER_LAYOUT_STACKED
          | :GATHER_LAYOUT_LIST
          | integer()

  @doc "The number of each name."
  @spec mapping() :: %{atom() => integer()}
  def mapping do
    %{
      GATHER_LAYOUT_UNSPECIFIED: 0,
      GATHER_LAYOUT_CONCATENATED: 1,
      GATHER_LAYOUT_STACKED: 2,
      GATHER_LAYOUT_LIST: 3
    }
  end

  @doc "The number of a name; a number is its own."
  @spec value(t()) :: integer()
  def value(:GATHER_LAYOUT_UNSPECIFIED), do: 0
  def value(:GATHER_LAYOUT_CONCATENATED), do: 1
  def value(:GATHER_LAYOUT_STACKED), do: 2
  def value(:GATHER_LAYOUT_LIST), do: 3
  def value(number) when is_integer(number), do: number

  @doc "The name of a number, or the number where it has none."
  @spec key(integer()) :: t()
  def key(0), do: :GATHER_LAYOUT_UNSPECIFIED
  def key(1), do: :GATHER_LAYOUT_CONCATENATED
  def key(2), do: :GATHER_LAYOUT_STACKED
  def key(3), do: :GATHER_LAYOUT_LIST
  def key(number) when is_integer(number), do: number
end

defmodule RankBridge.Proto.V1.BarrierRequest do
  @moduledoc """
  Waits for all members.

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

defmodule RankBridge.Proto.V1.BarrierResponse do
  @moduledoc """
  Outcome of Barrier.

  ## Fields

    * `value` - None.
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

defmodule RankBridge.Proto.V1.BroadcastRequest do
  @moduledoc """
  Sends one member's tensor to all.

  ## Fields

    * `call` - Group, identity, timeout.
    * `ref_id` - Id of this rank's tensor. At the source: what is sent. Elsewhere: a tensor of equal dtype and shape, which
      says what is expected.
    * `src_rank_in_group` - Rank in the group whose tensor is sent, 0 to the group's size - 1.
    * `in_place` - True: the result takes the place of the input, under the same ref. False: it gets a new ref.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.{Decode, Encode}

  @type t :: %__MODULE__{
          call: V1.Call.t() | nil,
          ref_id: String.t(),
          src_rank_in_group: non_neg_integer(),
          in_place: boolean(),
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct call: nil,
            ref_id: "",
            src_rank_in_group: 0,
            in_place: false,
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
      Encode.implicit(0x12, :string, message.ref_id),
      Encode.implicit(0x18, :uint32, message.src_rank_in_group),
      Encode.implicit(0x20, :bool, message.in_place),
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
    %{message | ref_id: Decode.value(:string, raw)}
  end

  def __put__(message, 3, 0, raw, _depth) do
    %{message | src_rank_in_group: Decode.value(:uint32, raw)}
  end

  def __put__(message, 4, 0, raw, _depth) do
    %{message | in_place: Decode.value(:bool, raw)}
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
      {1, :call, {:message, V1.Call}, :optional},
      {2, :ref_id, :string, :implicit},
      {3, :src_rank_in_group, :uint32, :implicit},
      {4, :in_place, :bool, :implicit}
    ]
  end
end

defmodule RankBridge.Proto.V1.BroadcastResponse do
  @moduledoc """
  Outcome of Broadcast.

  ## Fields

    * `value` - A ref on the result.
    * `error` - What failed. RANK_OUT_OF_RANGE: there is no such source; MISMATCH: the members' dtypes, shapes or sources
      differ.
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

defmodule RankBridge.Proto.V1.GatherRequest do
  @moduledoc """
  Concatenates all members' tensors at one of them.

  ## Fields

    * `call` - Group, identity, timeout.
    * `ref_id` - Id of this rank's tensor; equal dtype and shape on all members but for `sizes`, one dimension or more.
    * `dst_rank_in_group` - Rank in the group that receives, 0 to the group's size - 1.
    * `dim` - Dimension along which to concatenate; negative counts from the last. Absent: -1, the last. Of a stack: the place of
      the new dimension, 0 if absent. Of a list, nothing is laid out along it.
    * `sizes` - Size of every member's tensor along `dim`, by rank in group, each 0 or more; this rank's own is its tensor's. The
      same on all members. Empty: all tensors are alike.
    * `layout` - How the tensors are put together: `concatenated` (one tensor, the members' side by side along `dim`), `stacked` (one
      with one dimension more, at place `dim`, along which they follow one another) or `list` (one for each member).
      Unspecified: `concatenated`.
    * `ragged` - True: shapes may differ, as far as the layout allows, and the members exchange them; `sizes` must be empty.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.{Decode, Encode}

  @type t :: %__MODULE__{
          call: V1.Call.t() | nil,
          ref_id: String.t(),
          dst_rank_in_group: non_neg_integer(),
          dim: integer() | nil,
          sizes: [integer()],
          layout: V1.GatherLayout.t(),
          ragged: boolean(),
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct call: nil,
            ref_id: "",
            dst_rank_in_group: 0,
            dim: nil,
            sizes: [],
            layout: :GATHER_LAYOUT_UNSPECIFIED,
            ragged: false,
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
      Encode.implicit(0x12, :string, message.ref_id),
      Encode.implicit(0x18, :uint32, message.dst_rank_in_group),
      Encode.optional(0x20, :sint32, message.dim),
      Encode.packed(0x2A, :int64, message.sizes),
      Encode.implicit(0x30, {:enum, V1.GatherLayout}, message.layout),
      Encode.implicit(0x38, :bool, message.ragged),
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
    %{message | ref_id: Decode.value(:string, raw)}
  end

  def __put__(message, 3, 0, raw, _depth) do
    %{message | dst_rank_in_group: Decode.value(:uint32, raw)}
  end

  def __put__(message, 4, 0, raw, _depth) do
    %{message | dim: Decode.value(:sint32, raw)}
  end

  def __put__(message, 5, 0, raw, _depth) do
    %{message | sizes: [Decode.value(:int64, raw) | message.sizes]}
  end

  def __put__(message, 5, 2, raw, _depth) do
    %{message | sizes: Decode.packed(:int64, raw, message.sizes)}
  end

  def __put__(message, 6, 0, raw, _depth) do
    %{message | layout: Decode.value({:enum, V1.GatherLayout}, raw)}
  end

  def __put__(message, 7, 0, raw, _depth) do
    %{message | ragged: Decode.value(:bool, raw)}
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
      {1, :call, {:message, V1.Call}, :optional},
      {2, :ref_id, :string, :implicit},
      {3, :dst_rank_in_group, :uint32, :implicit},
      {4, :dim, :sint32, :optional},
      {5, :sizes, :int64, :repeated},
      {6, :layout, {:enum, V1.GatherLayout}, :implicit},
      {7, :ragged, :bool, :implicit}
    ]
  end
end

defmodule RankBridge.Proto.V1.GatherResponse do
  @moduledoc """
  Outcome of Gather.

  ## Fields

    * `value` - At the destination a ref on the result, or of a list a list of refs by rank in group; elsewhere none.
    * `error` - What failed. INVALID_ARGUMENT: the tensors have no such dimension, or a member's is not of its size;
      RANK_OUT_OF_RANGE: there is no such destination; MISMATCH: the members' dtypes, shapes, dims, sizes, layouts or
      destinations differ.
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

defmodule RankBridge.Proto.V1.AllReduceRequest do
  @moduledoc """
  Reduces all members' tensors, element by element.

  ## Fields

    * `call` - Group, identity, timeout.
    * `ref_id` - Id of this rank's tensor; equal dtype and shape on all members.
    * `op` - How elements are combined: `sum` (of bool: or), `product` (of bool: and), `min`, `max`, `avg` (no integers), or of
      the bits of integers and bools `band`, `bor`, `bxor`. Unspecified: `sum`.
    * `in_place` - True: the result takes the place of the input, under the same ref. False: it gets a new ref.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.{Decode, Encode}

  @type t :: %__MODULE__{
          call: V1.Call.t() | nil,
          ref_id: String.t(),
          op: V1.ReduceOp.t(),
          in_place: boolean(),
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct call: nil,
            ref_id: "",
            op: :REDUCE_OP_UNSPECIFIED,
            in_place: false,
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
      Encode.implicit(0x12, :string, message.ref_id),
      Encode.implicit(0x18, {:enum, V1.ReduceOp}, message.op),
      Encode.implicit(0x20, :bool, message.in_place),
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
    %{message | ref_id: Decode.value(:string, raw)}
  end

  def __put__(message, 3, 0, raw, _depth) do
    %{message | op: Decode.value({:enum, V1.ReduceOp}, raw)}
  end

  def __put__(message, 4, 0, raw, _depth) do
    %{message | in_place: Decode.value(:bool, raw)}
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
      {1, :call, {:message, V1.Call}, :optional},
      {2, :ref_id, :string, :implicit},
      {3, :op, {:enum, V1.ReduceOp}, :implicit},
      {4, :in_place, :bool, :implicit}
    ]
  end
end

defmodule RankBridge.Proto.V1.AllReduceResponse do
  @moduledoc """
  Outcome of AllReduce.

  ## Fields

    * `value` - A ref on the result.
    * `error` - What failed. UNSUPPORTED_DTYPE: the backend has no such reduction; MISMATCH: the members' dtypes, shapes or ops
      differ.
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

defmodule RankBridge.Proto.V1.AllGatherRequest do
  @moduledoc """
  Concatenates all members' tensors at all of them.

  ## Fields

    * `call` - Group, identity, timeout.
    * `ref_id` - Id of this rank's tensor; equal dtype and shape on all members but for `sizes`, one dimension or more.
    * `dim` - Dimension along which to concatenate; negative counts from the last. Absent: -1, the last. Of a stack: the place of
      the new dimension, 0 if absent. Of a list, nothing is laid out along it.
    * `sizes` - Size of every member's tensor along `dim`, by rank in group, each 0 or more; this rank's own is its tensor's. The
      same on all members. Empty: all tensors are alike.
    * `layout` - How the tensors are put together: `concatenated` (one tensor, the members' side by side along `dim`), `stacked` (one
      with one dimension more, at place `dim`, along which they follow one another) or `list` (one for each member).
      Unspecified: `concatenated`.
    * `ragged` - True: shapes may differ, as far as the layout allows, and the members exchange them; `sizes` must be empty.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.{Decode, Encode}

  @type t :: %__MODULE__{
          call: V1.Call.t() | nil,
          ref_id: String.t(),
          dim: integer() | nil,
          sizes: [integer()],
          layout: V1.GatherLayout.t(),
          ragged: boolean(),
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct call: nil,
            ref_id: "",
            dim: nil,
            sizes: [],
            layout: :GATHER_LAYOUT_UNSPECIFIED,
            ragged: false,
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
      Encode.implicit(0x12, :string, message.ref_id),
      Encode.optional(0x18, :sint32, message.dim),
      Encode.packed(0x22, :int64, message.sizes),
      Encode.implicit(0x28, {:enum, V1.GatherLayout}, message.layout),
      Encode.implicit(0x30, :bool, message.ragged),
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
    %{message | ref_id: Decode.value(:string, raw)}
  end

  def __put__(message, 3, 0, raw, _depth) do
    %{message | dim: Decode.value(:sint32, raw)}
  end

  def __put__(message, 4, 0, raw, _depth) do
    %{message | sizes: [Decode.value(:int64, raw) | message.sizes]}
  end

  def __put__(message, 4, 2, raw, _depth) do
    %{message | sizes: Decode.packed(:int64, raw, message.sizes)}
  end

  def __put__(message, 5, 0, raw, _depth) do
    %{message | layout: Decode.value({:enum, V1.GatherLayout}, raw)}
  end

  def __put__(message, 6, 0, raw, _depth) do
    %{message | ragged: Decode.value(:bool, raw)}
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
      {1, :call, {:message, V1.Call}, :optional},
      {2, :ref_id, :string, :implicit},
      {3, :dim, :sint32, :optional},
      {4, :sizes, :int64, :repeated},
      {5, :layout, {:enum, V1.GatherLayout}, :implicit},
      {6, :ragged, :bool, :implicit}
    ]
  end
end

defmodule RankBridge.Proto.V1.AllGatherResponse do
  @moduledoc """
  Outcome of AllGather.

  ## Fields

    * `value` - A ref on the result, or of a list a list of refs by rank in group.
    * `error` - What failed. INVALID_ARGUMENT: the tensors have no such dimension, or a member's is not of its size; MISMATCH:
      the members' dtypes, shapes, dims, sizes or layouts differ.
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

defmodule RankBridge.Proto.V1.ReduceRequest do
  @moduledoc """
  Reduces all members' tensors at one of them, element by element.

  ## Fields

    * `call` - Group, identity, timeout.
    * `ref_id` - Id of this rank's tensor; equal dtype and shape on all members.
    * `op` - How elements are combined: `sum` (of bool: or), `product` (of bool: and), `min`, `max`, `avg` (no integers), or of
      the bits of integers and bools `band`, `bor`, `bxor`. Unspecified: `sum`.
    * `dst_rank_in_group` - Rank in the group that receives, 0 to the group's size - 1.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.{Decode, Encode}

  @type t :: %__MODULE__{
          call: V1.Call.t() | nil,
          ref_id: String.t(),
          op: V1.ReduceOp.t(),
          dst_rank_in_group: non_neg_integer(),
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct call: nil,
            ref_id: "",
            op: :REDUCE_OP_UNSPECIFIED,
            dst_rank_in_group: 0,
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
      Encode.implicit(0x12, :string, message.ref_id),
      Encode.implicit(0x18, {:enum, V1.ReduceOp}, message.op),
      Encode.implicit(0x20, :uint32, message.dst_rank_in_group),
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
    %{message | ref_id: Decode.value(:string, raw)}
  end

  def __put__(message, 3, 0, raw, _depth) do
    %{message | op: Decode.value({:enum, V1.ReduceOp}, raw)}
  end

  def __put__(message, 4, 0, raw, _depth) do
    %{message | dst_rank_in_group: Decode.value(:uint32, raw)}
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
      {1, :call, {:message, V1.Call}, :optional},
      {2, :ref_id, :string, :implicit},
      {3, :op, {:enum, V1.ReduceOp}, :implicit},
      {4, :dst_rank_in_group, :uint32, :implicit}
    ]
  end
end

defmodule RankBridge.Proto.V1.ReduceResponse do
  @moduledoc """
  Outcome of Reduce.

  ## Fields

    * `value` - At the destination a ref on the result, elsewhere none.
    * `error` - What failed. UNSUPPORTED_DTYPE: the backend has no such reduction; RANK_OUT_OF_RANGE: there is no such
      destination; MISMATCH: the members' dtypes, shapes, ops or destinations differ.
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

defmodule RankBridge.Proto.V1.ScatterRequest do
  @moduledoc """
  Divides one member's tensor among all.

  ## Fields

    * `call` - Group, identity, timeout.
    * `ref_id` - Id of this rank's tensor. At the source: the whole, whose size along `dim` is a multiple of the group's size, or the
      sum of `sizes`. Elsewhere: a tensor of the part's dtype and shape, which says what is expected. They stay as they
      are.
    * `src_rank_in_group` - Rank in the group whose tensor is divided, 0 to the group's size - 1.
    * `dim` - Dimension along which to divide; negative counts from the last. 0: the first.
    * `sizes` - Size of every member's part along `dim`, by rank in group, each 0 or more; their sum is the size of the source's
      tensor along `dim`. The same on all members. Empty: equal parts.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.{Decode, Encode}

  @type t :: %__MODULE__{
          call: V1.Call.t() | nil,
          ref_id: String.t(),
          src_rank_in_group: non_neg_integer(),
          dim: integer(),
          sizes: [integer()],
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct call: nil,
            ref_id: "",
            src_rank_in_group: 0,
            dim: 0,
            sizes: [],
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
      Encode.implicit(0x12, :string, message.ref_id),
      Encode.implicit(0x18, :uint32, message.src_rank_in_group),
      Encode.implicit(0x20, :sint32, message.dim),
      Encode.packed(0x2A, :int64, message.sizes),
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
    %{message | ref_id: Decode.value(:string, raw)}
  end

  def __put__(message, 3, 0, raw, _depth) do
    %{message | src_rank_in_group: Decode.value(:uint32, raw)}
  end

  def __put__(message, 4, 0, raw, _depth) do
    %{message | dim: Decode.value(:sint32, raw)}
  end

  def __put__(message, 5, 0, raw, _depth) do
    %{message | sizes: [Decode.value(:int64, raw) | message.sizes]}
  end

  def __put__(message, 5, 2, raw, _depth) do
    %{message | sizes: Decode.packed(:int64, raw, message.sizes)}
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
      {1, :call, {:message, V1.Call}, :optional},
      {2, :ref_id, :string, :implicit},
      {3, :src_rank_in_group, :uint32, :implicit},
      {4, :dim, :sint32, :implicit},
      {5, :sizes, :int64, :repeated}
    ]
  end
end

defmodule RankBridge.Proto.V1.ScatterResponse do
  @moduledoc """
  Outcome of Scatter.

  ## Fields

    * `value` - A ref on this rank's part.
    * `error` - What failed. INVALID_ARGUMENT: the source's tensor cannot be divided equally along `dim`, or not into `sizes`, or
      a member's is not of its size; RANK_OUT_OF_RANGE: there is no such source; MISMATCH: a member expects a part of
      another dtype or shape, or the dims, sources or sizes differ.
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

defmodule RankBridge.Proto.V1.ReduceScatterRequest do
  @moduledoc """
  Reduces all members' tensors, element by element, and divides the result among them.

  ## Fields

    * `call` - Group, identity, timeout.
    * `ref_id` - Id of this rank's tensor; equal dtype and shape on all members, one dimension or more.
    * `op` - How elements are combined: `sum` (of bool: or), `product` (of bool: and), `min`, `max`, `avg` (no integers), or of
      the bits of integers and bools `band`, `bor`, `bxor`. Unspecified: `sum`.
    * `dim` - Dimension along which to divide; negative counts from the last. Absent: -1, the last.
    * `sizes` - Size of every member's part along `dim`, by rank in group, each 0 or more; their sum is the tensor's size along
      `dim`. The same on all members. Empty: equal parts.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.{Decode, Encode}

  @type t :: %__MODULE__{
          call: V1.Call.t() | nil,
          ref_id: String.t(),
          op: V1.ReduceOp.t(),
          dim: integer() | nil,
          sizes: [integer()],
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct call: nil,
            ref_id: "",
            op: :REDUCE_OP_UNSPECIFIED,
            dim: nil,
            sizes: [],
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
      Encode.implicit(0x12, :string, message.ref_id),
      Encode.implicit(0x18, {:enum, V1.ReduceOp}, message.op),
      Encode.optional(0x20, :sint32, message.dim),
      Encode.packed(0x2A, :int64, message.sizes),
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
    %{message | ref_id: Decode.value(:string, raw)}
  end

  def __put__(message, 3, 0, raw, _depth) do
    %{message | op: Decode.value({:enum, V1.ReduceOp}, raw)}
  end

  def __put__(message, 4, 0, raw, _depth) do
    %{message | dim: Decode.value(:sint32, raw)}
  end

  def __put__(message, 5, 0, raw, _depth) do
    %{message | sizes: [Decode.value(:int64, raw) | message.sizes]}
  end

  def __put__(message, 5, 2, raw, _depth) do
    %{message | sizes: Decode.packed(:int64, raw, message.sizes)}
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
      {1, :call, {:message, V1.Call}, :optional},
      {2, :ref_id, :string, :implicit},
      {3, :op, {:enum, V1.ReduceOp}, :implicit},
      {4, :dim, :sint32, :optional},
      {5, :sizes, :int64, :repeated}
    ]
  end
end

defmodule RankBridge.Proto.V1.ReduceScatterResponse do
  @moduledoc """
  Outcome of ReduceScatter.

  ## Fields

    * `value` - A ref on this rank's part.
    * `error` - What failed. INVALID_ARGUMENT: the tensors cannot be divided equally along `dim`, or not into `sizes`;
      UNSUPPORTED_DTYPE: the backend has no such reduction; MISMATCH: the members' dtypes, shapes, ops, dims or sizes
      differ.
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

defmodule RankBridge.Proto.V1.AllToAllRequest do
  @moduledoc """
  Sends every member its part of every member's tensor.

  ## Fields

    * `call` - Group, identity, timeout.
    * `ref_id` - Id of this rank's tensor, one dimension or more; equal dtype on all members, and equal shape but for the sizes.
    * `dim` - Dimension along which to divide and to concatenate; negative counts from the last. 0: the first.
    * `input_sizes` - Size along `dim` of what this rank sends to each member, by rank in group, each 0 or more; they add up to
      the tensor's. Empty: equal parts, of tensors that are all alike.
    * `output_sizes` - Size along `dim` of what this rank gets from each member, by rank in group, each 0 or more: what that member's
      `input_sizes` say of this rank. Empty if `input_sizes` is.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.{Decode, Encode}

  @type t :: %__MODULE__{
          call: V1.Call.t() | nil,
          ref_id: String.t(),
          dim: integer(),
          input_sizes: [integer()],
          output_sizes: [integer()],
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct call: nil,
            ref_id: "",
            dim: 0,
            input_sizes: [],
            output_sizes: [],
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
      Encode.implicit(0x12, :string, message.ref_id),
      Encode.implicit(0x18, :sint32, message.dim),
      Encode.packed(0x22, :int64, message.input_sizes),
      Encode.packed(0x2A, :int64, message.output_sizes),
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
    %{message | ref_id: Decode.value(:string, raw)}
  end

  def __put__(message, 3, 0, raw, _depth) do
    %{message | dim: Decode.value(:sint32, raw)}
  end

  def __put__(message, 4, 0, raw, _depth) do
    %{message | input_sizes: [Decode.value(:int64, raw) | message.input_sizes]}
  end

  def __put__(message, 4, 2, raw, _depth) do
    %{message | input_sizes: Decode.packed(:int64, raw, message.input_sizes)}
  end

  def __put__(message, 5, 0, raw, _depth) do
    %{message | output_sizes: [Decode.value(:int64, raw) | message.output_sizes]}
  end

  def __put__(message, 5, 2, raw, _depth) do
    %{message | output_sizes: Decode.packed(:int64, raw, message.output_sizes)}
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
      | input_sizes: Enum.reverse(message.input_sizes),
        output_sizes: Enum.reverse(message.output_sizes),
        __unknown_fields__: Enum.reverse(message.__unknown_fields__)
    }
  end

  @doc false
  @impl true
  @spec __fields__() :: [RankBridge.Protobuf.Message.field()]
  def __fields__ do
    [
      {1, :call, {:message, V1.Call}, :optional},
      {2, :ref_id, :string, :implicit},
      {3, :dim, :sint32, :implicit},
      {4, :input_sizes, :int64, :repeated},
      {5, :output_sizes, :int64, :repeated}
    ]
  end
end

defmodule RankBridge.Proto.V1.AllToAllResponse do
  @moduledoc """
  Outcome of AllToAll.

  ## Fields

    * `value` - A ref on what this rank got.
    * `error` - What failed. INVALID_ARGUMENT: a member's tensor cannot be divided so; MISMATCH: the members' dtypes, shapes or
      dims differ, or one expects another size than the other sends: every member gets both sides, and nothing has
      moved.
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

defmodule RankBridge.Proto.V1.ScanRequest do
  @moduledoc """
  Reduces the tensors of the members so far, element by element.

  ## Fields

    * `call` - Group, identity, timeout.
    * `ref_id` - Id of this rank's tensor; equal dtype and shape on all members.
    * `op` - How elements are combined: any reduce op of AllReduce except `avg`. Unspecified: `sum`.
    * `exclusive` - True: of members 0 to m - 1, for member 0 zeros; of sums only. False: of members 0 to m.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.{Decode, Encode}

  @type t :: %__MODULE__{
          call: V1.Call.t() | nil,
          ref_id: String.t(),
          op: V1.ReduceOp.t(),
          exclusive: boolean(),
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct call: nil,
            ref_id: "",
            op: :REDUCE_OP_UNSPECIFIED,
            exclusive: false,
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
      Encode.implicit(0x12, :string, message.ref_id),
      Encode.implicit(0x18, {:enum, V1.ReduceOp}, message.op),
      Encode.implicit(0x20, :bool, message.exclusive),
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
    %{message | ref_id: Decode.value(:string, raw)}
  end

  def __put__(message, 3, 0, raw, _depth) do
    %{message | op: Decode.value({:enum, V1.ReduceOp}, raw)}
  end

  def __put__(message, 4, 0, raw, _depth) do
    %{message | exclusive: Decode.value(:bool, raw)}
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
      {1, :call, {:message, V1.Call}, :optional},
      {2, :ref_id, :string, :implicit},
      {3, :op, {:enum, V1.ReduceOp}, :implicit},
      {4, :exclusive, :bool, :implicit}
    ]
  end
end

defmodule RankBridge.Proto.V1.ScanResponse do
  @moduledoc """
  Outcome of Scan.

  ## Fields

    * `value` - A ref on the result.
    * `error` - What failed. UNSUPPORTED_OPERATION: the backend has no scan; UNSUPPORTED_DTYPE: it has no such scan;
      INVALID_ARGUMENT: an average, or an exclusive scan of anything but sums; MISMATCH: the members' dtypes, shapes
      or ops differ.
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

defmodule RankBridge.Proto.V1.CollectiveService do
  @moduledoc """
  Collectives of a group. Call each on every member, on all at once; none runs before all members have
  called the same operation. Inputs are never changed before the operation has succeeded on this rank.
  A failure is in the response's `error`; a gRPC status other than OK means that the call was not
  understood or not delivered.
  """

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.Rpc

  @doc "Every method of the service."
  @spec methods() :: [Rpc.t()]
  def methods do
    [
      barrier(),
      broadcast(),
      gather(),
      all_reduce(),
      all_gather(),
      reduce(),
      scatter(),
      reduce_scatter(),
      all_to_all(),
      scan()
    ]
  end

  @doc """
  Returns when every member has called.
  """
  @spec barrier() :: Rpc.t()
  def barrier do
    %Rpc{
      path: "/rankbridge.v1.CollectiveService/Barrier",
      request: V1.BarrierRequest,
      response: V1.BarrierResponse,
      client_stream?: false,
      server_stream?: false
    }
  end

  @doc """
  Gives every member a tensor equal to the source's.
  """
  @spec broadcast() :: Rpc.t()
  def broadcast do
    %Rpc{
      path: "/rankbridge.v1.CollectiveService/Broadcast",
      request: V1.BroadcastRequest,
      response: V1.BroadcastResponse,
      client_stream?: false,
      server_stream?: false
    }
  end

  @doc """
  Gives the destination the members' tensors, put together in group order; the others none.

  With `ragged` and `dim` 0 this is torchgfn's `gather_distributed_data`.
  """
  @spec gather() :: Rpc.t()
  def gather do
    %Rpc{
      path: "/rankbridge.v1.CollectiveService/Gather",
      request: V1.GatherRequest,
      response: V1.GatherResponse,
      client_stream?: false,
      server_stream?: false
    }
  end

  @doc """
  Gives every member the element-wise reduction of all members' tensors.
  """
  @spec all_reduce() :: Rpc.t()
  def all_reduce do
    %Rpc{
      path: "/rankbridge.v1.CollectiveService/AllReduce",
      request: V1.AllReduceRequest,
      response: V1.AllReduceResponse,
      client_stream?: false,
      server_stream?: false
    }
  end

  @doc """
  Gives every member all members' tensors, put together in group order.

  As vLLM's `all_gather`, and with `sizes` its `all_gatherv`, but along every dimension: vLLM knows the first alone.
  As a list and `ragged` this is OLMo-core's `all_gather` of tensors of unequal shapes.
  """
  @spec all_gather() :: Rpc.t()
  def all_gather do
    %Rpc{
      path: "/rankbridge.v1.CollectiveService/AllGather",
      request: V1.AllGatherRequest,
      response: V1.AllGatherResponse,
      client_stream?: false,
      server_stream?: false
    }
  end

  @doc """
  Gives the destination the element-wise reduction of all members' tensors; the others none.

  As `torch.distributed.reduce`, but no input changes.
  """
  @spec reduce() :: Rpc.t()
  def reduce do
    %Rpc{
      path: "/rankbridge.v1.CollectiveService/Reduce",
      request: V1.ReduceRequest,
      response: V1.ReduceResponse,
      client_stream?: false,
      server_stream?: false
    }
  end

  @doc """
  Gives every member its part of the source's tensor, divided in group order.

  The parts are those of `torch.chunk`, as `torch.distributed.scatter` gives them: of [8, 3] and four members, [2, 3]
  along dimension 0. With `sizes` they are those of `torch.split`, as MPI's `Scatterv` gives them.
  """
  @spec scatter() :: Rpc.t()
  def scatter do
    %Rpc{
      path: "/rankbridge.v1.CollectiveService/Scatter",
      request: V1.ScatterRequest,
      response: V1.ScatterResponse,
      client_stream?: false,
      server_stream?: false
    }
  end

  @doc """
  Gives every member its part of the element-wise reduction of all members' tensors, divided in group order.

  As vLLM's `reduce_scatter`, and with `sizes` its `reduce_scatterv`: of [4, 8] on each of four members, [4, 2] along
  the last dimension. From the third dimension on vLLM divides in the wrong order; this does not.
  """
  @spec reduce_scatter() :: Rpc.t()
  def reduce_scatter do
    %Rpc{
      path: "/rankbridge.v1.CollectiveService/ReduceScatter",
      request: V1.ReduceScatterRequest,
      response: V1.ReduceScatterResponse,
      client_stream?: false,
      server_stream?: false
    }
  end

  @doc """
  Gives every member its parts of all members' tensors, concatenated in group order.

  As `torch.distributed.all_to_all_single`, but along any dimension: what each member gets is what it is sent first by
  the first member, then by the second, and so on.
  """
  @spec all_to_all() :: Rpc.t()
  def all_to_all do
    %Rpc{
      path: "/rankbridge.v1.CollectiveService/AllToAll",
      request: V1.AllToAllRequest,
      response: V1.AllToAllResponse,
      client_stream?: false,
      server_stream?: false
    }
  end

  @doc """
  Gives member m the element-wise reduction of the tensors of members 0 to m.

  As MPI's `Scan`, and exclusive its `Exscan`. Not every backend has it.
  """
  @spec scan() :: Rpc.t()
  def scan do
    %Rpc{
      path: "/rankbridge.v1.CollectiveService/Scan",
      request: V1.ScanRequest,
      response: V1.ScanResponse,
      client_stream?: false,
      server_stream?: false
    }
  end
end
