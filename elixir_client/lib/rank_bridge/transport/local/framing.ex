defmodule RankBridge.Transport.Local.Framing do
  @moduledoc false
  # Messages of a local stream as bytes: the length, 4 bytes in network order, and what is that long. A rank's last message is
  # of no bytes: the stream has ended in order.

  # What gRPC streams take, too.
  @longest 268_435_456

  @head 4

  # Bytes that have come and are in no message yet, the last first; how many; and how many are to be there before it is worth
  # while to look.
  defstruct chunks: [], size: 0, next: @head

  @type t :: %__MODULE__{chunks: [binary()], size: non_neg_integer(), next: pos_integer()}

  @typedoc "What follows the messages: more, the end in order, or what is longer than a message may be."
  @type rest :: {:more, t()} | :over | {:too_large, pos_integer()}

  @doc "The bytes of a message."
  @spec encode(iodata()) :: binary()
  def encode(message), do: IO.iodata_to_binary([<<IO.iodata_length(message)::32>>, message])

  @doc """
  The messages that are whole with these bytes, the first one first, and what follows them. What has come is put together once,
  when a message is whole.
  """
  @spec decode(t(), binary()) :: {[binary()], rest()}
  def decode(%__MODULE__{} = framing, bytes) do
    framing = %{
      framing
      | chunks: [bytes | framing.chunks],
        size: framing.size + byte_size(bytes)
    }

    if framing.size < framing.next,
      do: {[], {:more, framing}},
      else: split(whole(framing.chunks), [])
  end

  defp whole([only]), do: only
  defp whole(chunks), do: chunks |> Enum.reverse() |> IO.iodata_to_binary()

  defp split(<<0::32, _rest::binary>>, messages), do: {Enum.reverse(messages), :over}

  defp split(<<length::32, _message::binary>>, messages) when length > @longest,
    do: {Enum.reverse(messages), {:too_large, @longest}}

  defp split(<<length::32, message::binary-size(length), rest::binary>>, messages),
    do: split(rest, [message | messages])

  defp split(rest, messages), do: {Enum.reverse(messages), {:more, awaiting(rest)}}

  defp awaiting(""), do: %__MODULE__{}

  defp awaiting(<<length::32, _partial::binary>> = rest), do: awaiting(rest, @head + length)
  defp awaiting(rest), do: awaiting(rest, @head)

  # What is kept does not keep the messages before it.
  defp awaiting(rest, next),
    do: %__MODULE__{chunks: [:binary.copy(rest)], size: byte_size(rest), next: next}
end
