# Generated from rankbridge/v1/call.proto by protoc-gen-rankbridge-elixir. Do not edit.

defmodule RankBridge.Proto.V1.Call do
  @moduledoc """
  The fields that every operation has: its group, identity, timeout and session.

  ## Fields

    * `group` - Name of the group. Empty: "world", all ranks of the gang.
    * `operation_id` - Id of the operation, chosen by the controller, the same on every rank and never used for another
      operation (a UUID is good), 1 to 128 bytes. A repeated id gets the first call's outcome and runs nothing.
      Empty: the call has no identity, cannot be repeated safely, and ids are not compared among ranks.
    * `timeout_ms` - Longest time from arrival to answer, in milliseconds. 0: the rank's default (30,000).
    * `session_id` - Session that owns the refs that the call uses and makes. Empty: the rank's shared session.
    * `generation` - Generation that the controller means. 0: the current one.
    * `traceparent` - The caller's place in a trace, as the header `traceparent` of W3C Trace Context has it: a rank that sends traces makes
      a span below it. Empty: none. Anything else is ignored.
    * `site` - The line of the caller's own code that makes the call, as "file:line": errors about several ranks show each one's.
      Nothing else is done with it. Of a longer text the last 256 bytes count. Empty: not said.
  """

  @behaviour RankBridge.Protobuf.Message

  alias RankBridge.Protobuf.{Decode, Encode}

  @type t :: %__MODULE__{
          group: String.t(),
          operation_id: String.t(),
          timeout_ms: non_neg_integer(),
          session_id: String.t(),
          generation: non_neg_integer(),
          traceparent: String.t(),
          site: String.t(),
          __unknown_fields__: [RankBridge.Protobuf.unknown_field()]
        }

  defstruct group: "",
            operation_id: "",
            timeout_ms: 0,
            session_id: "",
            generation: 0,
            traceparent: "",
            site: "",
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
      Encode.implicit(0x12, :string, message.operation_id),
      Encode.implicit(0x18, :uint32, message.timeout_ms),
      Encode.implicit(0x22, :string, message.session_id),
      Encode.implicit(0x28, :uint64, message.generation),
      Encode.implicit(0x32, :string, message.traceparent),
      Encode.implicit(0x3A, :string, message.site),
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
    %{message | operation_id: Decode.value(:string, raw)}
  end

  def __put__(message, 3, 0, raw, _depth) do
    %{message | timeout_ms: Decode.value(:uint32, raw)}
  end

  def __put__(message, 4, 2, raw, _depth) do
    %{message | session_id: Decode.value(:string, raw)}
  end

  def __put__(message, 5, 0, raw, _depth) do
    %{message | generation: Decode.value(:uint64, raw)}
  end

  def __put__(message, 6, 2, raw, _depth) do
    %{message | traceparent: Decode.value(:string, raw)}
  end

  def __put__(message, 7, 2, raw, _depth) do
    %{message | site: Decode.value(:string, raw)}
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
      {2, :operation_id, :string, :implicit},
      {3, :timeout_ms, :uint32, :implicit},
      {4, :session_id, :string, :implicit},
      {5, :generation, :uint64, :implicit},
      {6, :traceparent, :string, :implicit},
      {7, :site, :string, :implicit}
    ]
  end
end
