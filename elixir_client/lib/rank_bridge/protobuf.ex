defmodule RankBridge.Protobuf do
  @moduledoc false
  # Protocol buffers for the modules under `RankBridge.Proto`.
  #
  # The structs follow the conventions of the elixir-protobuf package: a oneof is `{:field, value}` or nil, absent
  # sub-messages and `optional` fields are nil, enums are upper-case atoms (integers where the number has no
  # name), and what a newer peer adds is kept in `__unknown_fields__` and written again. NaN and the infinities
  # are `:nan`, `:infinity` and `:negative_infinity`; the sign and payload of a NaN are not kept.
  #
  # Fields of type `bytes` take iodata; `encode_to_iodata/1` does not copy it. Decoded bytes are parts of the
  # binary that was decoded.

  alias RankBridge.Protobuf.DecodeError

  @typedoc "A floating-point number, or what Elixir's floats cannot be."
  @type float_value :: float() | :nan | :infinity | :negative_infinity

  @typedoc """
  A field that its message does not declare: number, wire type, and the varint as an integer, or the bytes. Of a
  group (wire type 3), the bytes reach to its end tag, which is among them.
  """
  @type unknown_field :: {pos_integer(), 0..5, non_neg_integer() | binary()}

  @doc """
  Decodes a message. `module.decode/1` does the same and raises.

      iex> alias RankBridge.Proto.V1.Call
      iex> binary = Call.encode(%Call{group: "tp", timeout_ms: 500})
      iex> {:ok, call} = RankBridge.Protobuf.decode(Call, binary)
      iex> {call.group, call.timeout_ms, call.operation_id}
      {"tp", 500, ""}
      iex> {:error, error} = RankBridge.Protobuf.decode(Call, <<0x0A, 200>>)
      iex> Exception.message(error)
      "malformed protobuf: the input ends inside a varint"
  """
  @spec decode(module(), binary()) :: {:ok, struct()} | {:error, DecodeError.t()}
  def decode(module, binary) do
    {:ok, module.decode(binary)}
  rescue
    error in DecodeError -> {:error, error}
  end
end
