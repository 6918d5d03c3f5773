defmodule RankBridge.Transport.HTTP2.Frame do
  @moduledoc false
  # HTTP/2 frames (RFC 9113, section 4 and 6): bytes to tuples and back. No state, no processes.
  #
  # Error codes are atoms (`code/1` lists them by number); unknown codes stay integers.

  import Bitwise

  alias RankBridge.Transport.HTTP2.Error

  @type stream_id :: non_neg_integer()

  @typedoc """
  A decoded frame. `flow_bytes` of DATA is what flow control charges: the payload with its padding.
  """
  @type t ::
          {:data, stream_id(), binary(), end_stream? :: boolean(),
           flow_bytes :: non_neg_integer()}
          | {:headers, stream_id(), binary(), end_stream? :: boolean(), end_headers? :: boolean()}
          | {:priority, stream_id()}
          | {:rst_stream, stream_id(), Error.code()}
          | {:settings, [{non_neg_integer(), non_neg_integer()}]}
          | :settings_ack
          | {:push_promise, stream_id()}
          | {:ping, <<_::64>>, ack? :: boolean()}
          | {:goaway, stream_id(), Error.code(), binary()}
          | {:window_update, stream_id(), non_neg_integer()}
          | {:continuation, stream_id(), binary(), end_headers? :: boolean()}
          | {:unknown, byte(), stream_id()}

  @type error :: {:connection | :stream, stream_id(), Error.code(), String.t()}

  @data 0
  @headers 1
  @priority 2
  @rst_stream 3
  @settings 4
  @push_promise 5
  @ping 6
  @goaway 7
  @window_update 8
  @continuation 9

  @end_stream 0x1
  @ack 0x1
  @end_headers 0x4
  @padded 0x8
  @with_priority 0x20

  @doc "The bytes with which a client opens a connection, before its SETTINGS."
  @spec preface() :: binary()
  def preface, do: "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

  @doc "One frame from its header fields and payload. Errors say whether the stream or the connection must end."
  @spec decode(byte(), byte(), stream_id(), binary()) :: {:ok, t()} | {:error, error()}
  def decode(@data, _flags, 0, _payload), do: connection_error("DATA on stream 0")

  def decode(@data, flags, id, payload) do
    with {:ok, data} <- unpad(flags, payload, "DATA") do
      {:ok, {:data, id, data, flag?(flags, @end_stream), byte_size(payload)}}
    end
  end

  def decode(@headers, _flags, 0, _payload), do: connection_error("HEADERS on stream 0")

  def decode(@headers, flags, id, payload) do
    with {:ok, fragment} <- unpad(flags, payload, "HEADERS"),
         {:ok, fragment} <- drop_priority(flags, fragment) do
      {:ok, {:headers, id, fragment, flag?(flags, @end_stream), flag?(flags, @end_headers)}}
    end
  end

  def decode(@priority, _flags, 0, _payload), do: connection_error("PRIORITY on stream 0")
  def decode(@priority, _flags, id, <<_::40>>), do: {:ok, {:priority, id}}

  def decode(@priority, _flags, id, _payload),
    do: {:error, {:stream, id, :frame_size_error, "PRIORITY not of 5 bytes"}}

  def decode(@rst_stream, _flags, 0, _payload), do: connection_error("RST_STREAM on stream 0")

  def decode(@rst_stream, _flags, id, <<code::32>>),
    do: {:ok, {:rst_stream, id, Error.code(code)}}

  def decode(@rst_stream, _flags, _id, _payload), do: size_error("RST_STREAM not of 4 bytes")

  def decode(@settings, _flags, id, _payload) when id != 0,
    do: connection_error("SETTINGS on stream #{id}")

  def decode(@settings, flags, 0, payload) do
    cond do
      flag?(flags, @ack) and payload == "" -> {:ok, :settings_ack}
      flag?(flags, @ack) -> size_error("SETTINGS ACK with a payload")
      rem(byte_size(payload), 6) != 0 -> size_error("SETTINGS not of a multiple of 6 bytes")
      true -> {:ok, {:settings, for(<<key::16, value::32 <- payload>>, do: {key, value})}}
    end
  end

  def decode(@push_promise, _flags, id, _payload), do: {:ok, {:push_promise, id}}

  def decode(@ping, _flags, id, _payload) when id != 0,
    do: connection_error("PING on stream #{id}")

  def decode(@ping, flags, 0, <<opaque::binary-size(8)>>),
    do: {:ok, {:ping, opaque, flag?(flags, @ack)}}

  def decode(@ping, _flags, 0, _payload), do: size_error("PING not of 8 bytes")

  def decode(@goaway, _flags, id, _payload) when id != 0,
    do: connection_error("GOAWAY on stream #{id}")

  def decode(@goaway, _flags, 0, <<_::1, last_id::31, code::32, debug::binary>>),
    do: {:ok, {:goaway, last_id, Error.code(code), debug}}

  def decode(@goaway, _flags, 0, _payload), do: size_error("GOAWAY shorter than 8 bytes")

  def decode(@window_update, _flags, id, <<_::1, increment::31>>),
    do: {:ok, {:window_update, id, increment}}

  def decode(@window_update, _flags, _id, _payload),
    do: size_error("WINDOW_UPDATE not of 4 bytes")

  def decode(@continuation, _flags, 0, _payload), do: connection_error("CONTINUATION on stream 0")

  def decode(@continuation, flags, id, payload),
    do: {:ok, {:continuation, id, payload, flag?(flags, @end_headers)}}

  def decode(type, _flags, id, _payload), do: {:ok, {:unknown, type, id}}

  @doc "A DATA frame. The caller keeps the payload within the peer's frame size and windows."
  @spec data(stream_id(), iodata(), non_neg_integer(), boolean()) :: iodata()
  def data(id, payload, bytes, end_stream?) do
    [<<bytes::24, @data, if(end_stream?, do: @end_stream, else: 0), id::32>> | payload]
  end

  @doc "HEADERS, and CONTINUATION as far as `block` is larger than `max_frame_size`."
  @spec headers(stream_id(), binary(), boolean(), pos_integer()) :: iodata()
  def headers(id, block, end_stream?, max_frame_size) do
    flags = if end_stream?, do: @end_stream, else: 0
    fragments(@headers, flags, id, block, max_frame_size)
  end

  defp fragments(type, flags, id, block, max) when byte_size(block) <= max do
    [<<byte_size(block)::24, type, flags ||| @end_headers, id::32>>, block]
  end

  defp fragments(type, flags, id, block, max) do
    <<fragment::binary-size(max), rest::binary>> = block
    [<<max::24, type, flags, id::32>>, fragment | fragments(@continuation, 0, id, rest, max)]
  end

  @doc "RST_STREAM with an error code."
  @spec rst_stream(stream_id(), Error.code()) :: binary()
  def rst_stream(id, code), do: <<4::24, @rst_stream, 0, id::32, Error.number(code)::32>>

  @doc "SETTINGS from pairs of identifier and value."
  @spec settings([{non_neg_integer(), non_neg_integer()}]) :: binary()
  def settings(pairs) do
    payload = for {key, value} <- pairs, into: <<>>, do: <<key::16, value::32>>
    <<byte_size(payload)::24, @settings, 0, 0::32, payload::binary>>
  end

  @doc "The acknowledgement of the peer's SETTINGS."
  @spec settings_ack() :: binary()
  def settings_ack, do: <<0::24, @settings, @ack, 0::32>>

  @doc "PING with 8 opaque bytes, or its acknowledgement."
  @spec ping(<<_::64>>, boolean()) :: binary()
  def ping(opaque, ack?), do: <<8::24, @ping, if(ack?, do: @ack, else: 0), 0::32, opaque::binary>>

  @doc "GOAWAY: no stream of the peer above `last_id` was processed."
  @spec goaway(stream_id(), Error.code(), binary()) :: binary()
  def goaway(last_id, code, debug) do
    <<8 + byte_size(debug)::24, @goaway, 0, 0::32, last_id::32, Error.number(code)::32,
      debug::binary>>
  end

  @doc "WINDOW_UPDATE of a stream, or with id 0 of the connection."
  @spec window_update(stream_id(), pos_integer()) :: binary()
  def window_update(id, increment), do: <<4::24, @window_update, 0, id::32, increment::32>>

  defp unpad(flags, payload, name) do
    if flag?(flags, @padded) do
      case payload do
        <<pad, rest::binary>> when pad <= byte_size(rest) ->
          {:ok, binary_part(rest, 0, byte_size(rest) - pad)}

        "" ->
          size_error("#{name} without the length of its padding")

        _ ->
          connection_error("#{name} with more padding than payload")
      end
    else
      {:ok, payload}
    end
  end

  defp drop_priority(flags, fragment) do
    case {flag?(flags, @with_priority), fragment} do
      {false, _} -> {:ok, fragment}
      {true, <<_::40, rest::binary>>} -> {:ok, rest}
      {true, _} -> size_error("HEADERS too short for its priority fields")
    end
  end

  defp flag?(flags, flag), do: band(flags, flag) != 0

  defp connection_error(message), do: {:error, {:connection, 0, :protocol_error, message}}
  defp size_error(message), do: {:error, {:connection, 0, :frame_size_error, message}}
end
