defmodule RankBridge.Transport.Local.Framing do
  @moduledoc """
  Messages of a local stream as bytes: the length, 4 bytes in network order, and what is that long. A rank's last message is
  of no bytes: the stream has ended in order.
  """

  # What gRPC streams take, too.
  @longest 268_435_456

  @typedoc "What follows the messages: bytes of the next, the end in order, or what is longer than a message may be."
  @type rest :: {:more, binary()} | :over | {:too_large, pos_integer()}

  @doc "The bytes of a message."
  @spec encode(iodata()) :: binary()
  def encode(message), do: IO.iodata_to_binary([<<IO.iodata_length(message)::32>>, message])

  @doc "The messages that bytes hold, the first one first, and what follows them."
  @spec split(binary()) :: {[binary()], rest()}
  def split(bytes), do: split(bytes, [])

  defp split(<<0::32, _nothing::binary>>, messages), do: {Enum.reverse(messages), :over}

  defp split(<<length::32, _message::binary>>, messages) when length > @longest,
    do: {Enum.reverse(messages), {:too_large, @longest}}

  defp split(<<length::32, message::binary-size(length), rest::binary>>, messages),
    do: split(rest, [message | messages])

  defp split(rest, messages), do: {Enum.reverse(messages), {:more, rest}}
end
