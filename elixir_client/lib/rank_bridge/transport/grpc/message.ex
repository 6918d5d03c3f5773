defmodule RankBridge.Transport.GRPC.Message do
  @moduledoc false
  # The framing of gRPC messages: a byte that says whether it is compressed, 4 bytes of length, the message.
  #
  # The decoder takes chunks cut anywhere. Chunks of a message are kept as they are and joined once, when it
  # is whole. Messages that were sent uncompressed in one chunk are not copied, unless they would hold on
  # to a much larger buffer.

  @max_length 4_294_967_295

  defstruct chunks: [],
            have: 0,
            need: 5,
            compressed?: false,
            in_header?: true,
            limit: :infinity,
            gzip?: false

  @typedoc "`limit` in bytes, for the message after decompression too."
  @type t :: %__MODULE__{
          chunks: [binary()],
          have: non_neg_integer(),
          need: non_neg_integer(),
          compressed?: boolean(),
          in_header?: boolean(),
          limit: pos_integer() | :infinity,
          gzip?: boolean()
        }

  @type error :: :too_large | :unknown_compression | :bad_compression | :bad_flag

  @doc "A framed message as binaries, and their size. Raises `ArgumentError` for 4 GiB and more."
  @spec encode(iodata()) :: {[binary()], non_neg_integer()}
  def encode(message) do
    bytes = :erlang.iolist_size(message)

    if bytes > @max_length,
      do: raise(ArgumentError, "a message of #{bytes} bytes; gRPC allows #{@max_length}")

    {:erlang.iolist_to_iovec([<<0, bytes::32>> | message]), bytes + 5}
  end

  @doc "A decoder of messages up to `limit` bytes."
  @spec decoder(pos_integer() | :infinity) :: t()
  def decoder(limit), do: %__MODULE__{limit: limit}

  @doc "Allows compressed messages: `grpc-encoding` was gzip."
  @spec allow_gzip(t()) :: t()
  def allow_gzip(decoder), do: %{decoder | gzip?: true}

  @doc "Adds a chunk."
  @spec push(t(), binary()) :: t()
  def push(decoder, ""), do: decoder

  def push(decoder, chunk),
    do: %{decoder | chunks: [chunk | decoder.chunks], have: decoder.have + byte_size(chunk)}

  @doc "Whether a message has begun and is not whole."
  @spec partial?(t()) :: boolean()
  def partial?(decoder), do: decoder.have > 0 or not decoder.in_header?

  @doc "The next whole message."
  @spec pull(t()) :: {:ok, binary(), t()} | {:more, t()} | {:error, error()}
  def pull(%{have: have, need: need} = decoder) when have < need, do: {:more, decoder}

  def pull(%{in_header?: true} = decoder) do
    case join(decoder) do
      <<flag, length::32, rest::binary>> when flag in [0, 1] ->
        if within?(length, decoder.limit) do
          chunks = if rest == "", do: [], else: [rest]
          have = byte_size(rest)

          pull(%{
            decoder
            | chunks: chunks,
              have: have,
              need: length,
              compressed?: flag == 1,
              in_header?: false
          })
        else
          {:error, :too_large}
        end

      _ ->
        {:error, :bad_flag}
    end
  end

  def pull(%{need: need} = decoder) do
    {message, rest} =
      case join(decoder) do
        <<message::binary-size(need)>> -> {message, []}
        <<message::binary-size(need), rest::binary>> -> {message, [rest]}
      end

    next = %{decoder | chunks: rest, have: decoder.have - need, need: 5, in_header?: true}

    with {:ok, message} <- decompress(message, decoder), do: {:ok, message, next}
  end

  defp join(%{chunks: [chunk]}), do: chunk
  defp join(%{chunks: chunks}), do: chunks |> Enum.reverse() |> IO.iodata_to_binary()

  defp within?(_length, :infinity), do: true
  defp within?(length, limit), do: length <= limit

  defp decompress(message, %{compressed?: false}) do
    # A sub-binary keeps the whole read alive that it came with.
    if :binary.referenced_byte_size(message) > 2 * byte_size(message) + 64,
      do: {:ok, :binary.copy(message)},
      else: {:ok, message}
  end

  defp decompress(_message, %{gzip?: false}), do: {:error, :unknown_compression}
  defp decompress(message, %{limit: limit}), do: gunzip(message, limit)

  # In steps, as a small message may stand for more than there is memory.
  defp gunzip(message, limit) do
    zlib = :zlib.open()

    try do
      :ok = :zlib.inflateInit(zlib, 31)
      inflate(zlib, :zlib.safeInflate(zlib, message), [], 0, limit)
    rescue
      ErlangError -> {:error, :bad_compression}
    after
      :zlib.close(zlib)
    end
  end

  defp inflate(zlib, {step, output}, done, bytes, limit) do
    bytes = bytes + IO.iodata_length(output)

    cond do
      not within?(bytes, limit) ->
        {:error, :too_large}

      step == :continue ->
        inflate(zlib, :zlib.safeInflate(zlib, []), [done, output], bytes, limit)

      true ->
        :ok = :zlib.inflateEnd(zlib)
        {:ok, IO.iodata_to_binary([done, output])}
    end
  end
end
