defmodule RankBridge.Transport.RequestsTest do
  @moduledoc "Requests and responses, against a server that the test plays by hand."

  use ExUnit.Case, async: true

  import RankBridge.Test.FakeServer

  alias RankBridge.Transport
  alias RankBridge.Transport.HTTP2.{Frame, HPACK, HPACKTable}

  @path "/test.Test/Echo"
  @initial_window_size 4
  @max_frame_size 5

  setup do
    {listener, target} = listen()
    %{listener: listener, target: target}
  end

  describe "a request" do
    test "has the headers that gRPC asks for, in order", context do
      {channel, socket} = connect(context)
      unary(channel, "hi", timeout: 2_000, metadata: [{"key", "value"}, {"x-bin", <<0, 255>>}])
      {:headers, 1, block, false, true} = next(socket, :headers)
      {:ok, headers, %{max_size: 0}} = HPACK.decode(block, HPACKTable.new(), 65_536)

      assert [
               {":method", "POST"},
               {":scheme", "http"},
               {":authority", authority},
               {":path", @path},
               {"te", "trailers"},
               {"content-type", "application/grpc"},
               {"user-agent", "grpc-elixir-rankbridge/" <> _},
               {"grpc-accept-encoding", "identity,gzip"},
               {"grpc-timeout", "2000m"},
               {"key", "value"},
               {"x-bin", "AP8"}
             ] = headers

      assert authority == context.target
      assert {:data, 1, <<0, 2::32, "hi">>, true, 7} = next(socket)
    end

    test "with large metadata goes on in CONTINUATION", context do
      {channel, socket} = connect(context)
      call = unary(channel, "hi", metadata: [{"large", :binary.copy("v", 40_000)}])
      assert {:headers, 1, _, false, false} = next(socket, :headers)
      assert {:continuation, 1, _, false} = next(socket)
      assert {:continuation, 1, _, true} = next(socket)
      assert {:data, 1, _, true, _} = next(socket)
      respond(socket, 1, "ok")
      assert {:ok, "ok"} = Transport.await(call)
    end

    test "keeps to the server's windows, frame size and later settings", context do
      {channel, socket} = connect(context, settings: [{@initial_window_size, 0}])
      call = unary(channel, :binary.copy("d", 70_000))
      assert {:headers, 1, _, false, true} = next(socket, :headers)

      # The acknowledgement precedes what uses the new window.
      write(socket, Frame.settings([{@initial_window_size, 10}, {@max_frame_size, 20_000}]))
      assert :settings_ack = next(socket)
      assert {:data, 1, _, false, 10} = next(socket)

      write(socket, Frame.window_update(1, 30_000))
      assert {:data, 1, _, false, 20_000} = next(socket)
      assert {:data, 1, _, false, 10_000} = next(socket)

      # 30,010 bytes are out. A window of 4 instead of 10 leaves -6; 6 more make it 0, 7 make it 1.
      write(socket, Frame.settings([{@initial_window_size, 4}]))
      assert :settings_ack = next(socket)
      write(socket, [Frame.window_update(1, 6), Frame.ping("sentinel", false)])
      assert {:ping, "sentinel", true} = next(socket)
      write(socket, Frame.window_update(1, 1))
      assert {:data, 1, _, false, 1} = next(socket)

      # Now the connection's window of 65,535 is the limit.
      write(socket, Frame.window_update(1, 1_000_000))
      assert 65_535 - 30_011 == data_bytes(socket, 2)
      write(socket, Frame.window_update(0, 1_000_000))
      drain_rest(socket)
      respond(socket, 1, "ok")
      assert {:ok, "ok"} = Transport.await(call)
    end

    defp data_bytes(socket, frames) do
      for _ <- 1..frames, reduce: 0 do
        sum ->
          {:data, 1, _, false, bytes} = next(socket)
          sum + bytes
      end
    end

    defp drain_rest(socket) do
      case next(socket) do
        {:data, 1, _, true, _} -> :ok
        {:data, 1, _, false, _} -> drain_rest(socket)
      end
    end
  end

  describe "a response" do
    test "may have padding, priorities, unknown frames, 1xx, and cuts anywhere", context do
      {channel, socket} = connect(context)
      call = unary(channel)
      id = request(socket)
      half = div(byte_size(headers_block()), 2)
      <<one::binary-size(half), two::binary>> = headers_block()

      response = [
        # PRIORITY, an unknown frame, 103
        <<5::24, 2, 0, id::32, 0::40>>,
        <<3::24, 0xEE, 0xFF, id::32, "???">>,
        Frame.headers(id, HPACK.encode([{":status", "103"}, {"link", "x"}]), false, 16_384),
        # HEADERS with padding and priority fields, then CONTINUATION, the last of it empty
        <<half + 9::24, 1, 0x28, id::32, 3, 0::40, one::binary, 0::24>>,
        <<byte_size(two)::24, 9, 0, id::32, two::binary>>,
        <<0::24, 9, 4, id::32>>,
        # DATA, empty, and with padding
        <<0::24, 0, 0, id::32>>,
        <<11::24, 0, 8, id::32, 4, 0, 2::32, "o", 0::32>>,
        <<1::24, 0, 0, id::32, "k">>,
        trailers(id)
      ]

      for <<byte <- IO.iodata_to_binary(response)>>, do: write(socket, <<byte>>)
      assert {:ok, "ok"} = Transport.await(call)
    end

    test "uses a dynamic table, which headers of cancelled calls change too", context do
      {channel, socket} = connect(context)
      cancelled = unary(channel)
      first = request(socket)
      Transport.cancel(cancelled)
      assert {:rst_stream, ^first, :cancel} = next(socket, :rst_stream)

      # Indexed as 62: content-type. It arrives for a stream that is over.
      block = <<0x88, 0x5F, 16, "application/grpc">>
      write(socket, Frame.headers(first, block, false, 16_384))

      call = unary(channel)
      id = request(socket)

      write(socket, [
        Frame.headers(id, <<0x88, 0xBE>>, false, 16_384),
        message(id, "ok"),
        trailers(id)
      ])

      assert {:ok, "ok"} = Transport.await(call)
    end

    test "that comes early ends the request", context do
      {channel, socket} = connect(context, settings: [{@initial_window_size, 5}])
      call = unary(channel, "more than the window")
      assert {:headers, 1, _, false, true} = next(socket, :headers)
      respond(socket, 1, "enough")
      assert {:ok, "enough"} = Transport.await(call)
      assert {:rst_stream, 1, :no_error} = next(socket, :rst_stream)
    end

    test "without gRPC is mapped from its HTTP status", context do
      {channel, socket} = connect(context)
      call = unary(channel)
      id = request(socket)

      write(
        socket,
        Frame.headers(
          id,
          HPACK.encode([{":status", "404"}, {"content-type", "text/html"}]),
          false,
          16_384
        )
      )

      assert {:error, %{code: :unimplemented, message: message}} = Transport.await(call)
      assert message =~ "404"
      assert {:rst_stream, ^id, :cancel} = next(socket, :rst_stream)
    end

    test "larger than allowed is refused, and the rest of it not awaited", context do
      {channel, socket} = connect(context, max_receive_message_bytes: 10)
      call = unary(channel)
      id = request(socket)
      write(socket, [headers(id), message(id, "01234567890")])
      assert {:error, %{code: :resource_exhausted}} = Transport.await(call)
      assert {:rst_stream, ^id, :cancel} = next(socket, :rst_stream)
    end

    test "of two messages or of none is no answer to a unary call", context do
      {channel, socket} = connect(context)
      call = unary(channel)
      id = request(socket)
      write(socket, [headers(id), message(id, "1"), message(id, "2"), trailers(id)])
      assert {:error, %{code: :internal}} = Transport.await(call)

      call = unary(channel)
      id = request(socket)
      write(socket, [headers(id), trailers(id)])
      assert {:error, %{code: :internal}} = Transport.await(call)
    end
  end
end
