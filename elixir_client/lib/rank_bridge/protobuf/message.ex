defmodule RankBridge.Protobuf.Message do
  @moduledoc false
  # What every generated message module does.

  alias RankBridge.Protobuf.Encode

  @typedoc "Number, name, type and presence of one field."
  @type field ::
          {pos_integer(), atom(), Encode.type(),
           :implicit | :optional | :repeated | {:oneof, atom()}}

  @doc "The message's bytes. Raises `RankBridge.Protobuf.EncodeError`."
  @callback encode(struct()) :: binary()

  @doc "The message's bytes; `bytes` fields are in it as they are. Raises `RankBridge.Protobuf.EncodeError`."
  @callback encode_to_iodata(struct()) :: iodata()

  @doc "The message of these bytes. Raises `RankBridge.Protobuf.DecodeError`."
  @callback decode(binary()) :: struct()

  @doc "Adds one field as it was read: number, wire type, varint or bytes. `depth` is this message's own."
  @callback __put__(struct(), pos_integer(), 0..5, term(), integer()) :: struct()

  @doc "The fields, by number."
  @callback __fields__() :: [field()]

  @doc "Turns every list round."
  @callback __flip__(struct()) :: struct()
end
