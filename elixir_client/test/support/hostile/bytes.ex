defmodule RankBridge.Test.Hostile.Bytes do
  @moduledoc "Bytes of servers, right and wrong: frames of any type, flags, stream and length, and header blocks."

  alias RankBridge.Transport.HTTP2.{Frame, HPACK}

  @types %{
    data: 0,
    headers: 1,
    priority: 2,
    rst_stream: 3,
    settings: 4,
    push_promise: 5,
    ping: 6,
    goaway: 7,
    window_update: 8,
    continuation: 9
  }
  @flags %{end_stream: 1, ack: 1, end_headers: 4, padded: 8, priority: 0x20}

  @good [{":status", "200"}, {"content-type", "application/grpc"}]

  @doc "A frame of a type, by name or number, with flags, by name or number."
  @spec frame(atom() | byte(), [atom()] | byte(), non_neg_integer(), iodata()) :: binary()
  def frame(type, flags, id, payload \\ "") do
    payload = IO.iodata_to_binary(payload)
    header(byte_size(payload), type, flags, id) <> payload
  end

  @doc "A frame's header, with any length."
  @spec header(non_neg_integer(), atom() | byte(), [atom()] | byte(), non_neg_integer()) ::
          binary()
  def header(length, type, flags, id) do
    type = if is_atom(type), do: @types[type], else: type
    flags = if is_list(flags), do: flags |> Enum.map(&@flags[&1]) |> Enum.sum(), else: flags
    <<length::24, type, flags, id::32>>
  end

  @doc "SETTINGS and the acknowledgement of the client's."
  @spec greeting([{non_neg_integer(), non_neg_integer()}]) :: binary()
  def greeting(pairs \\ []), do: Frame.settings(pairs) <> Frame.settings_ack()

  @doc "A header block."
  @spec block([{binary(), binary()}]) :: binary()
  def block(headers), do: HPACK.encode(headers)

  @doc "Headers of a response that goes well, and more."
  @spec good_headers([{binary(), binary()}]) :: [{binary(), binary()}]
  def good_headers(more \\ []), do: @good ++ more

  @doc "HEADERS of a response; by default of one that goes well."
  @spec headers([{binary(), binary()}] | binary(), [atom()]) :: binary()
  def headers(headers \\ @good, flags \\ []), do: headers_of(1, headers, flags)

  @doc "HEADERS of any stream."
  @spec headers_of(non_neg_integer(), [{binary(), binary()}] | binary(), [atom()]) :: binary()
  def headers_of(id, headers \\ @good, flags \\ [])

  def headers_of(id, headers, flags) when is_list(headers),
    do: headers_of(id, block(headers), flags)

  def headers_of(id, block, flags), do: frame(:headers, [:end_headers | flags], id, block)

  @doc "Trailers."
  @spec trailers([{binary(), binary()}] | binary()) :: binary()
  def trailers(headers \\ [{"grpc-status", "0"}]), do: headers(headers, [:end_stream])

  @doc "A gRPC message in a DATA frame."
  @spec message(binary(), [atom()]) :: binary()
  def message(message, flags \\ []), do: frame(:data, flags, 1, framed(message))

  @doc "A gRPC message: its compression flag, its length, itself."
  @spec framed(binary(), byte()) :: binary()
  def framed(message, flag \\ 0), do: <<flag, byte_size(message)::32, message::binary>>

  @doc "A whole response that goes well."
  @spec response(pos_integer(), binary()) :: binary()
  def response(id, message) do
    headers_of(id) <>
      frame(:data, [], id, framed(message)) <>
      headers_of(id, [{"grpc-status", "0"}], [:end_stream])
  end

  @doc "The whole response of the first request, with the message that cases expect."
  @spec fine() :: binary()
  def fine, do: response(1, "fine")

  @doc "What follows the HEADERS of such a response."
  @spec rest() :: binary()
  def rest, do: message("fine") <> trailers()

  @doc "An HPACK string that is not Huffman-coded, of fewer than 127 bytes."
  @spec string(binary()) :: binary()
  def string(text) when byte_size(text) < 127, do: <<byte_size(text), text::binary>>
end
