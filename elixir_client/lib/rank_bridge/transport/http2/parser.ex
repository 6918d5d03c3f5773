defmodule RankBridge.Transport.HTTP2.Parser do
  @moduledoc false
  # Cuts a byte stream into frames, whatever the sizes in which the bytes arrive.
  #
  # Whole frames are sub-binaries of what arrived. Only a frame that spans two reads is copied, once.

  alias RankBridge.Transport.HTTP2.Frame

  @header_bytes 9

  defstruct pending: [], have: 0, need: @header_bytes, max_frame_size: 16_384

  @opaque t :: %__MODULE__{
            pending: [binary()],
            have: non_neg_integer(),
            need: pos_integer(),
            max_frame_size: pos_integer()
          }

  @doc "A parser of frames of at most `max_frame_size` payload bytes."
  @spec new(pos_integer()) :: t()
  def new(max_frame_size), do: %__MODULE__{max_frame_size: max_frame_size}

  @doc """
  Adds bytes: the frames that are now whole, in order. After an error the rest is not looked at; the
  frames before it are given with it. A stream's error is in the list, as `{:error, error}`.
  """
  @spec push(t(), binary()) ::
          {:ok, [Frame.t() | {:error, Frame.error()}], t()}
          | {:error, Frame.error(), [Frame.t() | {:error, Frame.error()}]}
  def push(parser, data), do: push(parser, data, [])

  defp push(%{have: 0} = parser, data, frames), do: scan(parser, data, frames)

  defp push(%{have: have, need: need} = parser, data, frames)
       when have + byte_size(data) < need do
    {:ok, Enum.reverse(frames),
     %{parser | pending: [data | parser.pending], have: have + byte_size(data)}}
  end

  defp push(%{have: have, need: need} = parser, data, frames) do
    missing = need - have
    <<head::binary-size(missing), rest::binary>> = data
    joined = IO.iodata_to_binary(Enum.reverse([head | parser.pending]))

    case joined do
      <<length::24, _::binary>> when need == @header_bytes and length > 0 ->
        cond do
          length > parser.max_frame_size ->
            too_large(length, frames)

          true ->
            push(%{parser | pending: [joined], have: need, need: need + length}, rest, frames)
        end

      _ ->
        with {:ok, frames, parser} <- scan_one(reset(parser), joined, frames) do
          scan(parser, rest, frames)
        end
    end
  end

  defp scan_one(parser, <<_length::24, type, flags, _::1, id::31, payload::binary>>, frames) do
    case Frame.decode(type, flags, id, payload) do
      {:ok, frame} -> {:ok, [frame | frames], parser}
      {:error, {:stream, _, _, _} = error} -> {:ok, [{:error, error} | frames], parser}
      {:error, error} -> {:error, error, Enum.reverse(frames)}
    end
  end

  defp scan(parser, <<length::24, _::binary>>, frames) when length > parser.max_frame_size,
    do: too_large(length, frames)

  defp scan(
         parser,
         <<length::24, type, flags, _::1, id::31, payload::binary-size(length), rest::binary>>,
         frames
       ) do
    case Frame.decode(type, flags, id, payload) do
      {:ok, frame} -> scan(parser, rest, [frame | frames])
      {:error, {:stream, _, _, _} = error} -> scan(parser, rest, [{:error, error} | frames])
      {:error, error} -> {:error, error, Enum.reverse(frames)}
    end
  end

  defp scan(parser, "", frames), do: {:ok, Enum.reverse(frames), reset(parser)}

  defp scan(parser, <<length::24, _::48, _::binary>> = rest, frames) do
    parser = %{parser | pending: [rest], have: byte_size(rest), need: @header_bytes + length}
    {:ok, Enum.reverse(frames), parser}
  end

  defp scan(parser, rest, frames) do
    parser = %{parser | pending: [rest], have: byte_size(rest), need: @header_bytes}
    {:ok, Enum.reverse(frames), parser}
  end

  defp reset(parser), do: %{parser | pending: [], have: 0, need: @header_bytes}

  defp too_large(length, frames) do
    {:error, {:connection, 0, :frame_size_error, "a frame of #{length} bytes"},
     Enum.reverse(frames)}
  end
end
