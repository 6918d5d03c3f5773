defmodule RankBridge.Transport.FaultsTest do
  @moduledoc "What a server may not do, and what answers it."

  use ExUnit.Case, async: true

  import RankBridge.Test.FakeServer

  alias RankBridge.Transport
  alias RankBridge.Transport.HTTP2.{Frame, HPACK}

  setup do
    {listener, target} = listen()
    %{listener: listener, target: target}
  end

  defp goaway(socket) do
    {:goaway, _last_id, code, _message} = next(socket, :goaway)
    code
  end

  defp response(headers), do: Frame.headers(1, HPACK.encode(headers), false, 16_384)
  defp trailing(headers), do: Frame.headers(1, HPACK.encode(headers), true, 16_384)

  # What the peer does wrong, in bytes, with the code that must answer it.
  faults = [
    {"DATA on stream 0", :protocol_error, quote(do: <<0::24, 0, 0, 0::32>>)},
    {"HEADERS on stream 0", :protocol_error, quote(do: <<0::24, 1, 4, 0::32>>)},
    {"HEADERS for a stream that was never opened", :protocol_error, quote(do: headers(99))},
    {"HEADERS for a stream of the server's", :protocol_error, quote(do: headers(2))},
    {"DATA for a stream that was never opened", :protocol_error, quote(do: message(99, "x"))},
    {"RST_STREAM for a stream that was never opened", :protocol_error,
     quote(do: Frame.rst_stream(99, :cancel))},
    {"WINDOW_UPDATE for a stream that was never opened", :protocol_error,
     quote(do: Frame.window_update(99, 1))},
    {"PUSH_PROMISE", :protocol_error, quote(do: <<5::24, 5, 4, 1::32, 2::32, 0x88>>)},
    {"CONTINUATION without HEADERS", :protocol_error, quote(do: <<0::24, 9, 4, 1::32>>)},
    {"a frame within a header block", :protocol_error,
     quote(do: [<<1::24, 1, 0, 1::32, 0x88>>, Frame.ping("12345678", false)])},
    {"CONTINUATION of another stream", :protocol_error,
     quote(do: [<<1::24, 1, 0, 1::32, 0x88>>, <<0::24, 9, 4, 3::32>>])},
    {"too much padding", :protocol_error, quote(do: <<2::24, 0, 8, 1::32, 2, 0>>)},
    {"a connection WINDOW_UPDATE of 0", :protocol_error,
     quote(do: <<4::24, 8, 0, 0::32, 0::32>>)},
    {"a connection window that overflows", :flow_control_error,
     quote(do: Frame.window_update(0, 2_147_483_647))},
    {"a WINDOW_UPDATE of 3 bytes", :frame_size_error, quote(do: <<3::24, 8, 0, 0::32, 0::24>>)},
    {"a frame above the maximal size", :frame_size_error, quote(do: <<16_385::24, 0, 0, 1::32>>)},
    {"SETTINGS of 5 bytes", :frame_size_error, quote(do: <<5::24, 4, 0, 0::32, 0::40>>)},
    {"SETTINGS ACK with a payload", :frame_size_error, quote(do: <<6::24, 4, 1, 0::32, 0::48>>)},
    {"SETTINGS on a stream", :protocol_error, quote(do: <<0::24, 4, 0, 1::32>>)},
    {"SETTINGS with push", :protocol_error, quote(do: Frame.settings([{2, 1}]))},
    {"SETTINGS with a window of 2^31", :flow_control_error,
     quote(do: Frame.settings([{4, 2_147_483_648}]))},
    {"SETTINGS with a small frame size", :protocol_error, quote(do: Frame.settings([{5, 100}]))},
    {"PING of 7 bytes", :frame_size_error, quote(do: <<7::24, 6, 0, 0::32, 0::56>>)},
    {"PING on a stream", :protocol_error, quote(do: <<8::24, 6, 0, 1::32, 0::64>>)},
    {"RST_STREAM of 3 bytes", :frame_size_error, quote(do: <<3::24, 3, 0, 1::32, 0::24>>)},
    {"GOAWAY of 7 bytes", :frame_size_error, quote(do: <<7::24, 7, 0, 0::32, 0::56>>)},
    {"a header block that cannot be decoded", :compression_error,
     quote(do: <<1::24, 1, 4, 1::32, 0x80>>)},
    {"a header block of empty frames without end", :enhance_your_calm,
     quote(do: [<<1::24, 1, 0, 1::32, 0x88>>, :binary.copy(<<0::24, 9, 0, 1::32>>, 70_000)])},
    {"a header block without end", :enhance_your_calm,
     quote(
       do: [
         <<1::24, 1, 0, 1::32, 0x88>>,
         for(_ <- 1..5, do: <<16_384::24, 9, 0, 1::32, 0::131_072>>)
       ]
     )}
  ]

  for {name, code, bytes} <- faults do
    test "#{name} ends the connection with #{code}, and every call with an error", context do
      {channel, socket} = connect(context, max_header_list: 16_384)
      calls = for _ <- 1..2, do: unary(channel)
      for _ <- 1..2, do: request(socket)
      write(socket, unquote(bytes))
      assert goaway(socket) == unquote(code)

      for call <- calls do
        assert {:error, %{code: :unavailable, sent?: true}} = Transport.await(call)
      end
    end
  end

  describe "a fault on one stream" do
    for {name, code, bytes} <- [
          {"DATA before HEADERS", :protocol_error, quote(do: message(1, "x"))},
          {"a response without :status", :protocol_error,
           quote(do: Frame.headers(1, HPACK.encode([{"a", "b"}]), false, 16_384))},
          {"trailers that do not end", :protocol_error, quote(do: [headers(1), headers(1)])},
          {"a status after other headers", :protocol_error,
           quote(do: response([{"a", "b"}, {":status", "200"}]))},
          {"two statuses", :protocol_error,
           quote(do: response([{":status", "200"}, {":status", "200"}]))},
          {"a pseudo-header of requests", :protocol_error,
           quote(do: response([{":status", "200"}, {":path", "/"}]))},
          {"a name in upper case", :protocol_error,
           quote(do: response([{":status", "200"}, {"Content-Type", "application/grpc"}]))},
          {"a header of the connection", :protocol_error,
           quote(do: response([{":status", "200"}, {"connection", "close"}]))},
          {"a line break in a value", :protocol_error,
           quote(do: response([{":status", "200"}, {"a", "b\r\nc: d"}]))},
          {"a status in trailers", :protocol_error,
           quote(do: [headers(1), trailing([{"grpc-status", "0"}, {":status", "200"}])])},
          {"a header list above the limit", :enhance_your_calm,
           quote(
             do: [
               Frame.headers(
                 1,
                 headers_block() <>
                   <<0x40, 1, "a", 0x7F, 0xA1, 0x1E, :binary.copy("v", 4_000)::binary>>,
                 false,
                 16_384
               ),
               Frame.headers(1, :binary.copy(<<0xBE>>, 100), true, 16_384)
             ]
           )},
          {"a WINDOW_UPDATE of 0", :protocol_error, quote(do: <<4::24, 8, 0, 1::32, 0::32>>)},
          {"a window that overflows", :flow_control_error,
           quote(do: Frame.window_update(1, 2_147_483_647))},
          {"PRIORITY of 4 bytes", :frame_size_error, quote(do: <<4::24, 2, 0, 1::32, 0::32>>)},
          {"more data than its window", :flow_control_error,
           quote(do: [headers(1), Frame.data(1, :binary.copy("x", 101), 101, false)])}
        ] do
      test "(#{name}) ends that call only", context do
        {channel, socket} = connect(context, stream_window: 100)
        bad = unary(channel)
        good = unary(channel)
        assert 1 = request(socket)
        assert 3 = request(socket)
        write(socket, unquote(bytes))
        assert {:rst_stream, 1, unquote(code)} = next(socket, :rst_stream)
        assert {:error, %{code: :internal, sent?: true}} = Transport.await(bad)
        respond(socket, 3, "fine")
        assert {:ok, "fine"} = Transport.await(good)
      end
    end

    test "(RST_STREAM) ends that call, too", context do
      {channel, socket} = connect(context)

      for {reset, code} <- [{:cancel, :cancelled}, {:internal_error, :internal}] do
        call = unary(channel)
        id = request(socket)
        write(socket, Frame.rst_stream(id, reset))
        assert {:error, %{code: ^code, sent?: true}} = Transport.await(call)
      end
    end
  end
end
