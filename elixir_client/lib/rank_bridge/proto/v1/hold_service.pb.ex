# Generated from rankbridge/v1/hold_service.proto by protoc-gen-rankbridge-elixir. Do not edit.

defmodule RankBridge.Proto.V1.Caller do
  @moduledoc """
  Who calls.

  Numbers without a name stay integers.

  ## Values

    * `:CALLER_UNSPECIFIED` - Whoever: a condition that is not said. Never sent by ranks.
    * `:CALLER_CONTROLLER` - A controller, by an operation.
    * `:CALLER_SCRIPT` - The user's own code, by torch.distributed: a function on the rank, or the script of the job to which it is attached.
  """

  @type t :: :CALLER_UNSPECIFIED | :CALLER_CONTROLLER | :CALLER_SCRIPT | integer()

  @doc "The number of each name."
  @spec mapping() :: %{atom() => integer()}
  def mapping do
    %{
      CALLER_UNSPECIFIED: 0,
      CALLER_CONTROLLER: 1,
      CALLER_SCRIPT: 2
    }
  end

  @doc "The number of a name; a number is its own."
  @spec value(t()) :: integer()
  def value(:CALLER_UNSPECIFIED), do: 0
  def value(:CALLER_CONTROLLER), do: 1
  def value(:CALLER_SCRIPT), do: 2
  def value(number) when is_integer(number), do: number

  @doc "The name of a number, or the number where it has none."
  @spec key(integer()) :: t()
  def key(0), do: :CALLER_UNSPECIFIED
  def key(1), do: :CALLER_CONTROLLER
  def key(2), do: :CALLER_SCRIPT
  def key(number) when is_integer(number), do: number
end

defmodule RankBridge.Proto.V1.Action do
  @moduledoc """
  How a call is let go.

  Numbers without a name stay integers.

  ## Values

    * `:ACTION_UNSPECIFIED` - Not said. Refused.
    * `:ACTION_CONTINUE` - It goes on.
    * `:ACTION_STEP` - It goes on, and the rank's next call is held, whichever that is.
    * `:ACTION_SKIP` - It is not made: an operation fails with CANCELLED, having done nothing; the user's own code goes on with its tensors as they
      are. Other members may wait for it: skip it on all.
    * `:ACTION_FAIL` - It is not made, and raises: an operation fails with ABORTED, having done nothing; the user's own code gets an exception,
      `rankbridge_server.BreakpointError`.
  """

  @type t ::
          :ACTION_UNSPECIFIED
          | :ACTION_CONTINUE
          | :ACTION_STEP
          | :ACTION_SKIP
          | :ACTION_FAIL
          | integer()

  @doc "The number of each name."
  @spec mapping() :: %{atom() => integer()}
  def mapping do
    %{
      ACTION_UNSPECIFIED: 0,
      ACTION_CONTINUE: 1,
      ACTION_STEP: 2,
      ACTION_SKIP: 3,
      ACTION_FAIL: 4
    }
  end

  @doc "The number of a name; a number is its own."
  @spec value(t()) :: integer()
  def value(:ACTION_UNSPECIFIED), do: 0
  def value(:ACTION_CONTINUE), do: 1
  def value(:ACTION_STEP), do: 2
  def value(:ACTION_SKIP), do: 3
  def value(:ACTION_FAIL), do: 4
  def value(number) when is_integer(number), do: number

  @doc "The name of a number, or the number where it has none."
  @spec key(integer()) :: t()
  def key(0), do: :ACTION_UNSPECIFIED
  def key(1), do: :ACTION_CONTINUE
  def key(2), do: :ACTION_STEP
  def key(3), do: :ACTION_SKIP
  def key(4), do: :ACTION_FAIL
  def key(number) when is_integer(number), do: number
end

defmodule RankBridge.Proto.V1.Breakpoint do
  @moduledoc """
  Which calls are held. All that is said must be true of a call.

  ## Fields

    * `group` - Name of its group. Empty: any.
    * `operation` - Its kind: "all_reduce", "call_function". Empty: any.
    * `number` - Its number in its group, from 1, as HeldCall has it. 0: any.
    * `site` - The line of code that calls, a library's or the script's: the end of a path, with the line: "train.py:88". Empty: any.
    * `function` - Name of the user's function that it calls. Empty: any call, and no function.
    * `caller` - Who calls. Unspecified: whoever.
    * `nan` - True: NaN is in an input. With several of `nan`, `inf` and `above`, one of them is enough.
    * `inf` - True: an infinite element is in an input.
    * `above` - An element's absolute value is more than this in an input. Not set: not asked.
    * `mismatch` - True: the rank is held after a call whose members did not agree: an operation of a controller, or a call of the user's own code
      that raises because of that. With `mismatch` and `slower_us`, one of them is enough.
    * `slower_us` - The rank is held after a call that took longer than this, in microseconds, until it was over for its caller. 0: not asked.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.{Decode, Encode}

  @type t :: %__MODULE__{
          group: String.t(),
          operation: String.t(),
          number: non_neg_integer(),
          site: String.t(),
          function: String.t(),
          caller: V1.Caller.t(),
          nan: boolean(),
          inf: boolean(),
          above: RankBridge.Protobuf.float_value() | nil,
          mismatch: boolean(),
          slower_us: non_neg_integer(),
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct group: "",
            operation: "",
            number: 0,
            site: "",
            function: "",
            caller: :CALLER_UNSPECIFIED,
            nan: false,
            inf: false,
            above: nil,
            mismatch: false,
            slower_us: 0,
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
      Encode.implicit(0x12, :string, message.operation),
      Encode.implicit(0x18, :uint64, message.number),
      Encode.implicit(0x22, :string, message.site),
      Encode.implicit(0x2A, :string, message.function),
      Encode.implicit(0x30, {:enum, V1.Caller}, message.caller),
      Encode.implicit(0x38, :bool, message.nan),
      Encode.implicit(0x40, :bool, message.inf),
      Encode.optional(0x49, :double, message.above),
      Encode.implicit(0x50, :bool, message.mismatch),
      Encode.implicit(0x58, :uint64, message.slower_us),
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
    %{message | operation: Decode.value(:string, raw)}
  end

  def __put__(message, 3, 0, raw, _depth) do
    %{message | number: Decode.value(:uint64, raw)}
  end

  def __put__(message, 4, 2, raw, _depth) do
    %{message | site: Decode.value(:string, raw)}
  end

  def __put__(message, 5, 2, raw, _depth) do
    %{message | function: Decode.value(:string, raw)}
  end

  def __put__(message, 6, 0, raw, _depth) do
    %{message | caller: Decode.value({:enum, V1.Caller}, raw)}
  end

  def __put__(message, 7, 0, raw, _depth) do
    %{message | nan: Decode.value(:bool, raw)}
  end

  def __put__(message, 8, 0, raw, _depth) do
    %{message | inf: Decode.value(:bool, raw)}
  end

  def __put__(message, 9, 1, raw, _depth) do
    %{message | above: Decode.value(:double, raw)}
  end

  def __put__(message, 10, 0, raw, _depth) do
    %{message | mismatch: Decode.value(:bool, raw)}
  end

  def __put__(message, 11, 0, raw, _depth) do
    %{message | slower_us: Decode.value(:uint64, raw)}
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
      {2, :operation, :string, :implicit},
      {3, :number, :uint64, :implicit},
      {4, :site, :string, :implicit},
      {5, :function, :string, :implicit},
      {6, :caller, {:enum, V1.Caller}, :implicit},
      {7, :nan, :bool, :implicit},
      {8, :inf, :bool, :implicit},
      {9, :above, :double, :optional},
      {10, :mismatch, :bool, :implicit},
      {11, :slower_us, :uint64, :implicit}
    ]
  end
end

defmodule RankBridge.Proto.V1.BreakRequest do
  @moduledoc """
  Sets a breakpoint.

  ## Fields

    * `breakpoint` - Which calls are held.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.{Decode, Encode}

  @type t :: %__MODULE__{
          breakpoint: V1.Breakpoint.t() | nil,
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct breakpoint: nil,
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
      Encode.optional(0x0A, {:message, V1.Breakpoint}, message.breakpoint),
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
    %{message | breakpoint: Decode.message(V1.Breakpoint, message.breakpoint, raw, depth)}
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
      {1, :breakpoint, {:message, V1.Breakpoint}, :optional}
    ]
  end
end

defmodule RankBridge.Proto.V1.BreakResponse do
  @moduledoc """
  What happens at the breakpoint.

  ## Fields

    * `set` - The first response: it is set.
    * `held` - A call is held.
    * `let_go` - A call was let go.
    * `error` - It cannot be set. The last response.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.{Decode, Encode}

  @type outcome ::
          {:set, V1.BreakpointSet.t()}
          | {:held, V1.HeldCall.t()}
          | {:let_go, V1.LetGo.t()}
          | {:error, V1.Error.t()}

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

  defp encode_outcome({:set, value}) do
    Encode.always(0x0A, {:message, V1.BreakpointSet}, value)
  end

  defp encode_outcome({:held, value}) do
    Encode.always(0x12, {:message, V1.HeldCall}, value)
  end

  defp encode_outcome({:let_go, value}) do
    Encode.always(0x1A, {:message, V1.LetGo}, value)
  end

  defp encode_outcome({:error, value}) do
    Encode.always(0x22, {:message, V1.Error}, value)
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
    held = Decode.held(message.outcome, :set)
    %{message | outcome: {:set, Decode.message(V1.BreakpointSet, held, raw, depth)}}
  end

  def __put__(message, 2, 2, raw, depth) do
    held = Decode.held(message.outcome, :held)
    %{message | outcome: {:held, Decode.message(V1.HeldCall, held, raw, depth)}}
  end

  def __put__(message, 3, 2, raw, depth) do
    held = Decode.held(message.outcome, :let_go)
    %{message | outcome: {:let_go, Decode.message(V1.LetGo, held, raw, depth)}}
  end

  def __put__(message, 4, 2, raw, depth) do
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
      {1, :set, {:message, V1.BreakpointSet}, {:oneof, :outcome}},
      {2, :held, {:message, V1.HeldCall}, {:oneof, :outcome}},
      {3, :let_go, {:message, V1.LetGo}, {:oneof, :outcome}},
      {4, :error, {:message, V1.Error}, {:oneof, :outcome}}
    ]
  end
end

defmodule RankBridge.Proto.V1.BreakpointSet do
  @moduledoc """
  A breakpoint that is set.

  ## Fields

    * `rank` - Rank in the gang.
    * `number` - Its number on the rank, from 1.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Protobuf.{Decode, Encode}

  @type t :: %__MODULE__{
          rank: non_neg_integer(),
          number: non_neg_integer(),
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct rank: 0,
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
      Encode.implicit(0x08, :uint32, message.rank),
      Encode.implicit(0x10, :uint64, message.number),
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
      {2, :number, :uint64, :implicit}
    ]
  end
end

defmodule RankBridge.Proto.V1.HeldCall do
  @moduledoc """
  A call that a rank holds.

  ## Fields

    * `held_id` - Its number among what the rank has held, from 1.
    * `breakpoint` - Number of the breakpoint.
    * `rank` - Rank in the gang.
    * `caller` - Who calls.
    * `operation` - Its kind.
    * `group` - Name of its group.
    * `number` - Its number in its group, from 1: equal on all members. Of operations, those that were admitted count; of the user's own calls,
      those that torch counts. 0: it has none.
    * `contract` - What its members must agree on: "all_reduce dtype=float32 shape=[4] op=sum".
    * `site` - The line of code that calls. Empty: not said.
    * `function` - Name of the user's function that it calls. Empty: none.
    * `operation_id` - Its operation id. Empty: it has none.
    * `why` - What holds it: "breakpoint", "step", "NaN in input 0", "it took 1.203 s".
    * `after` - True: the rank is held after it; SKIP and FAIL are refused.
    * `since_us` - Since when, by the clock of the rank's host: microseconds since 1970 in UTC.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.{Decode, Encode}

  @type t :: %__MODULE__{
          held_id: non_neg_integer(),
          breakpoint: non_neg_integer(),
          rank: non_neg_integer(),
          caller: V1.Caller.t(),
          operation: String.t(),
          group: String.t(),
          number: non_neg_integer(),
          contract: String.t(),
          site: String.t(),
          function: String.t(),
          operation_id: String.t(),
          why: String.t(),
          after: boolean(),
          since_us: non_neg_integer(),
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct held_id: 0,
            breakpoint: 0,
            rank: 0,
            caller: :CALLER_UNSPECIFIED,
            operation: "",
            group: "",
            number: 0,
            contract: "",
            site: "",
            function: "",
            operation_id: "",
            why: "",
            after: false,
            since_us: 0,
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
      Encode.implicit(0x08, :uint64, message.held_id),
      Encode.implicit(0x10, :uint64, message.breakpoint),
      Encode.implicit(0x18, :uint32, message.rank),
      Encode.implicit(0x20, {:enum, V1.Caller}, message.caller),
      Encode.implicit(0x2A, :string, message.operation),
      Encode.implicit(0x32, :string, message.group),
      Encode.implicit(0x38, :uint64, message.number),
      Encode.implicit(0x42, :string, message.contract),
      Encode.implicit(0x4A, :string, message.site),
      Encode.implicit(0x52, :string, message.function),
      Encode.implicit(0x5A, :string, message.operation_id),
      Encode.implicit(0x62, :string, message.why),
      Encode.implicit(0x68, :bool, message.after),
      Encode.implicit(0x70, :uint64, message.since_us),
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
    %{message | held_id: Decode.value(:uint64, raw)}
  end

  def __put__(message, 2, 0, raw, _depth) do
    %{message | breakpoint: Decode.value(:uint64, raw)}
  end

  def __put__(message, 3, 0, raw, _depth) do
    %{message | rank: Decode.value(:uint32, raw)}
  end

  def __put__(message, 4, 0, raw, _depth) do
    %{message | caller: Decode.value({:enum, V1.Caller}, raw)}
  end

  def __put__(message, 5, 2, raw, _depth) do
    %{message | operation: Decode.value(:string, raw)}
  end

  def __put__(message, 6, 2, raw, _depth) do
    %{message | group: Decode.value(:string, raw)}
  end

  def __put__(message, 7, 0, raw, _depth) do
    %{message | number: Decode.value(:uint64, raw)}
  end

  def __put__(message, 8, 2, raw, _depth) do
    %{message | contract: Decode.value(:string, raw)}
  end

  def __put__(message, 9, 2, raw, _depth) do
    %{message | site: Decode.value(:string, raw)}
  end

  def __put__(message, 10, 2, raw, _depth) do
    %{message | function: Decode.value(:string, raw)}
  end

  def __put__(message, 11, 2, raw, _depth) do
    %{message | operation_id: Decode.value(:string, raw)}
  end

  def __put__(message, 12, 2, raw, _depth) do
    %{message | why: Decode.value(:string, raw)}
  end

  def __put__(message, 13, 0, raw, _depth) do
    %{message | after: Decode.value(:bool, raw)}
  end

  def __put__(message, 14, 0, raw, _depth) do
    %{message | since_us: Decode.value(:uint64, raw)}
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
      {1, :held_id, :uint64, :implicit},
      {2, :breakpoint, :uint64, :implicit},
      {3, :rank, :uint32, :implicit},
      {4, :caller, {:enum, V1.Caller}, :implicit},
      {5, :operation, :string, :implicit},
      {6, :group, :string, :implicit},
      {7, :number, :uint64, :implicit},
      {8, :contract, :string, :implicit},
      {9, :site, :string, :implicit},
      {10, :function, :string, :implicit},
      {11, :operation_id, :string, :implicit},
      {12, :why, :string, :implicit},
      {13, :after, :bool, :implicit},
      {14, :since_us, :uint64, :implicit}
    ]
  end
end

defmodule RankBridge.Proto.V1.LetGo do
  @moduledoc """
  A call that was let go.

  ## Fields

    * `held_id` - Its number.
    * `action` - How. CONTINUE also if its caller has given it up, or the generation has ended.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.{Decode, Encode}

  @type t :: %__MODULE__{
          held_id: non_neg_integer(),
          action: V1.Action.t(),
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct held_id: 0,
            action: :ACTION_UNSPECIFIED,
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
      Encode.implicit(0x08, :uint64, message.held_id),
      Encode.implicit(0x10, {:enum, V1.Action}, message.action),
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
    %{message | held_id: Decode.value(:uint64, raw)}
  end

  def __put__(message, 2, 0, raw, _depth) do
    %{message | action: Decode.value({:enum, V1.Action}, raw)}
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
      {1, :held_id, :uint64, :implicit},
      {2, :action, {:enum, V1.Action}, :implicit}
    ]
  end
end

defmodule RankBridge.Proto.V1.ListHeldRequest do
  @moduledoc """
  Asks for what is held.
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

defmodule RankBridge.Proto.V1.ListHeldResponse do
  @moduledoc """
  What is held.

  ## Fields

    * `calls` - The calls, the oldest first.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.{Decode, Encode}

  @type t :: %__MODULE__{
          calls: [V1.HeldCall.t()],
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct calls: [],
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
      Encode.repeated(0x0A, {:message, V1.HeldCall}, message.calls),
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
    %{message | calls: [Decode.message(V1.HeldCall, nil, raw, depth) | message.calls]}
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
      | calls: Enum.reverse(message.calls),
        __unknown_fields__: Enum.reverse(message.__unknown_fields__)
    }
  end

  @doc false
  @impl true
  @spec __fields__() :: [RankBridge.Protobuf.Message.field()]
  def __fields__ do
    [
      {1, :calls, {:message, V1.HeldCall}, :repeated}
    ]
  end
end

defmodule RankBridge.Proto.V1.InspectRequest do
  @moduledoc """
  Asks for a look at a call.

  ## Fields

    * `held_id` - Its number. 0: the oldest that the rank holds.
    * `start` - The first element of each input whose value is given, in row-major order.
    * `count` - How many, at most 65,536. 0: none.
    * `brief` - True: elements alone, without what is computed of all of them, and without frames.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Protobuf.{Decode, Encode}

  @type t :: %__MODULE__{
          held_id: non_neg_integer(),
          start: non_neg_integer(),
          count: non_neg_integer(),
          brief: boolean(),
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct held_id: 0,
            start: 0,
            count: 0,
            brief: false,
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
      Encode.implicit(0x08, :uint64, message.held_id),
      Encode.implicit(0x10, :uint64, message.start),
      Encode.implicit(0x18, :uint32, message.count),
      Encode.implicit(0x20, :bool, message.brief),
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
    %{message | held_id: Decode.value(:uint64, raw)}
  end

  def __put__(message, 2, 0, raw, _depth) do
    %{message | start: Decode.value(:uint64, raw)}
  end

  def __put__(message, 3, 0, raw, _depth) do
    %{message | count: Decode.value(:uint32, raw)}
  end

  def __put__(message, 4, 0, raw, _depth) do
    %{message | brief: Decode.value(:bool, raw)}
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
      {1, :held_id, :uint64, :implicit},
      {2, :start, :uint64, :implicit},
      {3, :count, :uint32, :implicit},
      {4, :brief, :bool, :implicit}
    ]
  end
end

defmodule RankBridge.Proto.V1.InspectResponse do
  @moduledoc """
  A look at a call.

  ## Fields

    * `inspection` - What is there.
    * `error` - UNKNOWN_OPERATION: it is not held.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.{Decode, Encode}

  @type outcome :: {:inspection, V1.Inspection.t()} | {:error, V1.Error.t()}

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

  defp encode_outcome({:inspection, value}) do
    Encode.always(0x0A, {:message, V1.Inspection}, value)
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
    held = Decode.held(message.outcome, :inspection)
    %{message | outcome: {:inspection, Decode.message(V1.Inspection, held, raw, depth)}}
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
      {1, :inspection, {:message, V1.Inspection}, {:oneof, :outcome}},
      {2, :error, {:message, V1.Error}, {:oneof, :outcome}}
    ]
  end
end

defmodule RankBridge.Proto.V1.Inspection do
  @moduledoc """
  A call that is held, with what it brings.

  ## Fields

    * `call` - The call.
    * `inputs` - The tensors that it reads. None: it reads none, or the breakpoint was set after the operation had come.
    * `frames` - Where the thread is that made it, the innermost call of the user's code first. None: no code of the user's made it.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.{Decode, Encode}

  @type t :: %__MODULE__{
          call: V1.HeldCall.t() | nil,
          inputs: [V1.InputSummary.t()],
          frames: [V1.FrameVariables.t()],
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct call: nil,
            inputs: [],
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
      Encode.optional(0x0A, {:message, V1.HeldCall}, message.call),
      Encode.repeated(0x12, {:message, V1.InputSummary}, message.inputs),
      Encode.repeated(0x1A, {:message, V1.FrameVariables}, message.frames),
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
    %{message | call: Decode.message(V1.HeldCall, message.call, raw, depth)}
  end

  def __put__(message, 2, 2, raw, depth) do
    %{message | inputs: [Decode.message(V1.InputSummary, nil, raw, depth) | message.inputs]}
  end

  def __put__(message, 3, 2, raw, depth) do
    %{message | frames: [Decode.message(V1.FrameVariables, nil, raw, depth) | message.frames]}
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
      | inputs: Enum.reverse(message.inputs),
        frames: Enum.reverse(message.frames),
        __unknown_fields__: Enum.reverse(message.__unknown_fields__)
    }
  end

  @doc false
  @impl true
  @spec __fields__() :: [RankBridge.Protobuf.Message.field()]
  def __fields__ do
    [
      {1, :call, {:message, V1.HeldCall}, :optional},
      {2, :inputs, {:message, V1.InputSummary}, :repeated},
      {3, :frames, {:message, V1.FrameVariables}, :repeated}
    ]
  end
end

defmodule RankBridge.Proto.V1.InputSummary do
  @moduledoc """
  What a tensor is like. Of the finite elements, of complex ones by their absolute values.

  ## Fields

    * `spec` - Dtype and shape, as torch writes them: "float32[4, 4]".
    * `elements` - Number of elements.
    * `norm` - Euclidean norm. 0: without elements.
    * `min` - The least. Not set: there is no finite element.
    * `max` - The largest.
    * `mean` - The mean.
    * `nans` - How many are NaN.
    * `infs` - How many are infinite.
    * `hash` - Equal exactly if dtype, shape and all elements are, bit for bit. Empty: it was not asked for, or the tensor has no summary,
      as sparse ones.
    * `slice` - The elements that were asked for, if the dtype is one of the bridge's.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.{Decode, Encode}

  @type t :: %__MODULE__{
          spec: String.t(),
          elements: non_neg_integer(),
          norm: RankBridge.Protobuf.float_value(),
          min: RankBridge.Protobuf.float_value() | nil,
          max: RankBridge.Protobuf.float_value() | nil,
          mean: RankBridge.Protobuf.float_value() | nil,
          nans: non_neg_integer(),
          infs: non_neg_integer(),
          hash: String.t(),
          slice: V1.Tensor.t() | nil,
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct spec: "",
            elements: 0,
            norm: 0.0,
            min: nil,
            max: nil,
            mean: nil,
            nans: 0,
            infs: 0,
            hash: "",
            slice: nil,
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
      Encode.implicit(0x0A, :string, message.spec),
      Encode.implicit(0x10, :uint64, message.elements),
      Encode.implicit(0x19, :double, message.norm),
      Encode.optional(0x21, :double, message.min),
      Encode.optional(0x29, :double, message.max),
      Encode.optional(0x31, :double, message.mean),
      Encode.implicit(0x38, :uint64, message.nans),
      Encode.implicit(0x40, :uint64, message.infs),
      Encode.implicit(0x4A, :string, message.hash),
      Encode.optional(0x52, {:message, V1.Tensor}, message.slice),
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
    %{message | spec: Decode.value(:string, raw)}
  end

  def __put__(message, 2, 0, raw, _depth) do
    %{message | elements: Decode.value(:uint64, raw)}
  end

  def __put__(message, 3, 1, raw, _depth) do
    %{message | norm: Decode.value(:double, raw)}
  end

  def __put__(message, 4, 1, raw, _depth) do
    %{message | min: Decode.value(:double, raw)}
  end

  def __put__(message, 5, 1, raw, _depth) do
    %{message | max: Decode.value(:double, raw)}
  end

  def __put__(message, 6, 1, raw, _depth) do
    %{message | mean: Decode.value(:double, raw)}
  end

  def __put__(message, 7, 0, raw, _depth) do
    %{message | nans: Decode.value(:uint64, raw)}
  end

  def __put__(message, 8, 0, raw, _depth) do
    %{message | infs: Decode.value(:uint64, raw)}
  end

  def __put__(message, 9, 2, raw, _depth) do
    %{message | hash: Decode.value(:string, raw)}
  end

  def __put__(message, 10, 2, raw, depth) do
    %{message | slice: Decode.message(V1.Tensor, message.slice, raw, depth)}
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
      {1, :spec, :string, :implicit},
      {2, :elements, :uint64, :implicit},
      {3, :norm, :double, :implicit},
      {4, :min, :double, :optional},
      {5, :max, :double, :optional},
      {6, :mean, :double, :optional},
      {7, :nans, :uint64, :implicit},
      {8, :infs, :uint64, :implicit},
      {9, :hash, :string, :implicit},
      {10, :slice, {:message, V1.Tensor}, :optional}
    ]
  end
end

defmodule RankBridge.Proto.V1.FrameVariables do
  @moduledoc """
  A call in a stack, and its variables.

  ## Fields

    * `frame` - The call.
    * `variables` - Its variables, by name, at most 64.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.{Decode, Encode}

  @type t :: %__MODULE__{
          frame: V1.StackFrame.t() | nil,
          variables: [V1.Variable.t()],
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct frame: nil,
            variables: [],
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
      Encode.optional(0x0A, {:message, V1.StackFrame}, message.frame),
      Encode.repeated(0x12, {:message, V1.Variable}, message.variables),
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
    %{message | frame: Decode.message(V1.StackFrame, message.frame, raw, depth)}
  end

  def __put__(message, 2, 2, raw, depth) do
    %{message | variables: [Decode.message(V1.Variable, nil, raw, depth) | message.variables]}
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
      | variables: Enum.reverse(message.variables),
        __unknown_fields__: Enum.reverse(message.__unknown_fields__)
    }
  end

  @doc false
  @impl true
  @spec __fields__() :: [RankBridge.Protobuf.Message.field()]
  def __fields__ do
    [
      {1, :frame, {:message, V1.StackFrame}, :optional},
      {2, :variables, {:message, V1.Variable}, :repeated}
    ]
  end
end

defmodule RankBridge.Proto.V1.Variable do
  @moduledoc """
  A variable of the user's code.

  ## Fields

    * `name` - Its name.
    * `value` - Numbers, texts, and lists and maps of them, as Python writes them, cut off after 200 characters; of tensors, dtype and shape;
      of all else, the type.
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

defmodule RankBridge.Proto.V1.ReleaseRequest do
  @moduledoc """
  Lets a call go.

  ## Fields

    * `held_id` - Its number. 0: all that the rank holds.
    * `action` - How.
    * `message` - What is said in the error, with SKIP and FAIL, at most 4,096 bytes. Empty: nothing.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.{Decode, Encode}

  @type t :: %__MODULE__{
          held_id: non_neg_integer(),
          action: V1.Action.t(),
          message: String.t(),
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct held_id: 0,
            action: :ACTION_UNSPECIFIED,
            message: "",
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
      Encode.implicit(0x08, :uint64, message.held_id),
      Encode.implicit(0x10, {:enum, V1.Action}, message.action),
      Encode.implicit(0x1A, :string, message.message),
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
    %{message | held_id: Decode.value(:uint64, raw)}
  end

  def __put__(message, 2, 0, raw, _depth) do
    %{message | action: Decode.value({:enum, V1.Action}, raw)}
  end

  def __put__(message, 3, 2, raw, _depth) do
    %{message | message: Decode.value(:string, raw)}
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
      {1, :held_id, :uint64, :implicit},
      {2, :action, {:enum, V1.Action}, :implicit},
      {3, :message, :string, :implicit}
    ]
  end
end

defmodule RankBridge.Proto.V1.ReleaseResponse do
  @moduledoc """
  What was let go.

  ## Fields

    * `released` - It is done.
    * `error` - UNKNOWN_OPERATION: it is not held.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.{Decode, Encode}

  @type outcome :: {:released, V1.Released.t()} | {:error, V1.Error.t()}

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
    Encode.always(0x0A, {:message, V1.Released}, value)
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
    held = Decode.held(message.outcome, :released)
    %{message | outcome: {:released, Decode.message(V1.Released, held, raw, depth)}}
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
      {1, :released, {:message, V1.Released}, {:oneof, :outcome}},
      {2, :error, {:message, V1.Error}, {:oneof, :outcome}}
    ]
  end
end

defmodule RankBridge.Proto.V1.Released do
  @moduledoc """
  Calls that were let go.

  ## Fields

    * `calls` - How many.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Protobuf.{Decode, Encode}

  @type t :: %__MODULE__{
          calls: non_neg_integer(),
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct calls: 0,
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
      Encode.implicit(0x08, :uint32, message.calls),
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
    %{message | calls: Decode.value(:uint32, raw)}
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
      {1, :calls, :uint32, :implicit}
    ]
  end
end

defmodule RankBridge.Proto.V1.HoldService do
  @moduledoc """
  Breakpoints: they hold a rank before it enters a collective, an operation of a controller or a call of the user's own code, so
  that one can look at what it brings. A rank that is held counts as held, and not as lost: its sidecar answers, and its
  activity is HELD. Others that wait for it wait as long as their timeouts say.
  """

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.Rpc

  @doc "Every method of the service."
  @spec methods() :: [Rpc.t()]
  def methods do
    [
      break(),
      list_held(),
      inspect(),
      release()
    ]
  end

  @doc """
  Sets a breakpoint on the rank, and says what it holds. It is there as long as this call is: when the caller hangs up or dies,
  the breakpoint is removed, and what it holds goes on.
  """
  @spec break() :: Rpc.t()
  def break do
    %Rpc{
      path: "/rankbridge.v1.HoldService/Break",
      request: V1.BreakRequest,
      response: V1.BreakResponse,
      client_stream?: false,
      server_stream?: true
    }
  end

  @doc """
  Lists the calls that the rank holds.
  """
  @spec list_held() :: Rpc.t()
  def list_held do
    %Rpc{
      path: "/rankbridge.v1.HoldService/ListHeld",
      request: V1.ListHeldRequest,
      response: V1.ListHeldResponse,
      client_stream?: false,
      server_stream?: false
    }
  end

  @doc """
  Shows a call that is held: its inputs, and where the thread is that made it, with its variables. It changes nothing.
  """
  @spec inspect() :: Rpc.t()
  def inspect do
    %Rpc{
      path: "/rankbridge.v1.HoldService/Inspect",
      request: V1.InspectRequest,
      response: V1.InspectResponse,
      client_stream?: false,
      server_stream?: false
    }
  end

  @doc """
  Lets a call go.
  """
  @spec release() :: Rpc.t()
  def release do
    %Rpc{
      path: "/rankbridge.v1.HoldService/Release",
      request: V1.ReleaseRequest,
      response: V1.ReleaseResponse,
      client_stream?: false,
      server_stream?: false
    }
  end
end
