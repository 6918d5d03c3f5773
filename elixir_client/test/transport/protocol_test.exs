defmodule RankBridge.Transport.ProtocolTest do
  @moduledoc "HTTP/2 against a server that the test plays by hand."

  use ExUnit.Case, async: true

  import RankBridge.Test.FakeServer

  alias RankBridge.Transport
  alias RankBridge.Transport.HTTP2.{Frame, HPACK, HPACKTable}

  @path "/test.Test/Echo"
  @max_concurrent_streams 3
  @initial_window_size 4
  @max_frame_size 5

  setup do
    {listener, target} = listen()
    %{listener: listener, target: target}
  end

  # A channel and the server's end of its connection.
  defp connect(context, opts \\ []) do
    {settings, opts} = Keyword.pop(opts, :settings, [])
    {:ok, channel} = Transport.connect(context.target, [lazy: true, owner: self()] ++ opts)
    {channel, serve(context.listener, settings)}
  end

  defp unary(channel, message \\ "hi", opts \\ []),
    do: Transport.start_unary(channel, @path, message, Keyword.put_new(opts, :timeout, 10_000))

  defp goaway(socket) do
    {:goaway, _last_id, code, _message} = next(socket, :goaway)
    code
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

  describe "the connection" do
    test "begins with push disabled and wide windows", context do
      {:ok, _channel} = Transport.connect(context.target, lazy: true, owner: self())
      {socket, settings} = accept(context.listener)
      assert {2, 0} in settings
      assert {@initial_window_size, 4_194_304} in settings
      assert {:window_update, 0, increment} = next(socket)
      assert increment + 65_535 == 67_108_864
    end

    test "answers PING", context do
      {_channel, socket} = connect(context)
      write(socket, Frame.ping("01234567", false))
      assert {:ping, "01234567", true} = next(socket, :ping)
    end

    test "does not answer SETTINGS ACK or PING ACK", context do
      {_channel, socket} = connect(context)

      write(socket, [
        Frame.settings_ack(),
        Frame.ping("unasked?", true),
        Frame.ping("sentinel", false)
      ])

      assert {:ping, "sentinel", true} = next(socket, :ping)
    end

    test "replenishes both windows", context do
      {channel, socket} = connect(context, stream_window: 100, connection_window: 65_535)
      call = unary(channel)
      id = request(socket)
      write(socket, [headers(id), Frame.data(id, <<0, 60::32, 0::480>>, 65, false)])
      assert {:window_update, ^id, 65} = next(socket, :window_update)
      write(socket, trailers(id))
      assert {:ok, <<0::480>>} = Transport.await(call)
    end

    test "waits no longer than asked for a server that says nothing", context do
      started = System.monotonic_time(:millisecond)

      assert {:error, %{code: :unavailable, sent?: false}} =
               Transport.connect(context.target, connect_timeout: 200)

      assert (System.monotonic_time(:millisecond) - started) in 190..1_500
    end

    test "with a server of another protocol is refused", context do
      {:ok, channel} = Transport.connect(context.target, lazy: true, owner: self())
      call = unary(channel)
      {socket, _} = accept(context.listener)
      write(socket, "HTTP/1.1 400 Bad Request\r\n\r\n")
      assert {:error, %{code: :unavailable, sent?: false}} = Transport.await(call)
    end

    test "is given up when pings are not answered, and kept while they are", context do
      {channel, socket} = connect(context, keepalive: 250)
      call = unary(channel)
      request(socket)

      for _ <- 1..5 do
        assert {:ping, opaque, false} = next(socket, :ping)
        write(socket, Frame.ping(opaque, true))
      end

      assert {:ping, _, false} = next(socket, :ping)

      assert {:error, %{code: :unavailable, message: message, sent?: true}} =
               Transport.await(call)

      assert message =~ "keepalive"
    end
  end

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
    {"a header block of empty frames without end", :enhance_your_calm,
     quote(do: [<<1::24, 1, 0, 1::32, 0x88>>, :binary.copy(<<0::24, 9, 0, 1::32>>, 270_000)])},
    {"a header block without end", :enhance_your_calm,
     quote(
       do: [
         <<1::24, 1, 0, 1::32, 0x88>>,
         for(_ <- 1..20, do: <<16_384::24, 9, 0, 1::32, 0::131_072>>)
       ]
     )}
  ]

  for {name, code, bytes} <- faults do
    test "#{name} ends the connection with #{code}, and every call with an error", context do
      {channel, socket} = connect(context)
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

  describe "a refused stream" do
    test "is sent again if its request is complete", context do
      {channel, socket} = connect(context)
      call = unary(channel, "again")
      assert 1 = request(socket)
      write(socket, Frame.rst_stream(1, :refused_stream))
      assert {:headers, 3, _, false, true} = next(socket, :headers)
      assert {:data, 3, <<_::40, "again">>, true, _} = next(socket)
      respond(socket, 3, "ok")
      assert {:ok, "ok"} = Transport.await(call)
    end

    test "is not sent again for ever", context do
      {channel, socket} = connect(context)
      call = unary(channel)
      for _ <- 1..6, do: write(socket, Frame.rst_stream(request(socket), :refused_stream))
      assert {:error, %{code: :unavailable, sent?: false}} = Transport.await(call)
    end

    test "fails as not sent if more might have followed", context do
      {channel, socket} = connect(context)
      {:ok, call} = Transport.open_stream(channel, @path, timeout: 5_000)
      {:headers, id, _, false, true} = next(socket, :headers)
      write(socket, Frame.rst_stream(id, :refused_stream))
      assert {:error, %{code: :unavailable, sent?: false}} = Transport.recv_message(call)
    end
  end

  describe "GOAWAY" do
    test "lets streams end, and moves those beyond the last id and new calls", context do
      {channel, socket} = connect(context)
      goes_on = unary(channel)
      beyond = unary(channel)
      {:ok, open} = Transport.open_stream(channel, @path, timeout: 5_000)
      assert 1 = request(socket)
      assert 3 = request(socket)
      assert {:headers, 5, _, false, true} = next(socket, :headers)
      write(socket, Frame.goaway(1, :no_error, "bye"))

      assert {:error, %{code: :unavailable, sent?: false, message: message}} =
               Transport.recv_message(open)

      assert message =~ "bye"

      new = unary(channel)
      second = serve(context.listener)
      assert 1 = request(second)
      assert 3 = request(second)
      respond(second, 1, "from the second")
      respond(second, 3, "from the second, too")
      assert {:ok, "from the second"} = Transport.await(beyond)
      assert {:ok, "from the second, too"} = Transport.await(new)

      respond(socket, 1, "from the first")
      assert {:ok, "from the first"} = Transport.await(goes_on)
      # Nothing is left to do on the first connection.
      assert {:goaway, 0, :no_error, ""} = next(socket, :goaway)
      assert :closed = next(socket)
    end

    test "with the very first SETTINGS leads to another connection, and fails no call", context do
      {:ok, channel} = Transport.connect(context.target, lazy: true, owner: self())
      call = unary(channel)
      {first, _} = accept(context.listener)
      write(first, [Frame.settings([]), Frame.goaway(0, :no_error, "")])
      second = serve(context.listener)
      respond(second, request(second), "ok")
      assert {:ok, "ok"} = Transport.await(call)
    end

    test "in two steps, as servers do it gracefully, loses no call", context do
      {channel, socket} = connect(context)
      call = unary(channel)
      assert 1 = request(socket)
      write(socket, Frame.goaway(2_147_483_647, :no_error, ""))
      write(socket, Frame.goaway(1, :no_error, ""))
      respond(socket, 1, "ok")
      assert {:ok, "ok"} = Transport.await(call)
    end

    test "moves complete calls that were queued, and refuses open ones", context do
      {channel, socket} = connect(context, settings: [{@max_concurrent_streams, 1}])
      running = unary(channel)
      assert 1 = request(socket)
      queued = unary(channel)
      {:ok, open} = Transport.open_stream(channel, @path, timeout: 5_000)
      write(socket, Frame.goaway(1, :no_error, ""))
      assert {:error, %{code: :unavailable, sent?: false}} = Transport.recv_message(open)

      second = serve(context.listener)
      assert 1 = request(second)
      respond(second, 1, "moved")
      assert {:ok, "moved"} = Transport.await(queued)
      respond(socket, 1, "ok")
      assert {:ok, "ok"} = Transport.await(running)
    end

    test "for too many pings ends the calls with the server's word", context do
      {channel, socket} = connect(context)
      {:ok, call} = Transport.open_stream(channel, @path, timeout: 5_000)
      next(socket, :headers)
      write(socket, Frame.goaway(0, :enhance_your_calm, "too_many_pings"))
      assert {:error, %{code: :unavailable, message: message}} = Transport.recv_message(call)
      assert message =~ "ENHANCE_YOUR_CALM: too_many_pings"
    end
  end

  describe "limits of the server" do
    test "MAX_CONCURRENT_STREAMS queues calls, and cancelled ones are never sent", context do
      {channel, socket} = connect(context, settings: [{@max_concurrent_streams, 1}])
      [first, second, third] = for text <- ~w(first second third), do: unary(channel, text)
      assert 1 = request(socket)
      Transport.cancel(second)
      write(socket, Frame.ping("sentinel", false))
      assert {:ping, "sentinel", true} = next(socket)

      respond(socket, 1, "one")
      assert {:ok, "one"} = Transport.await(first)
      assert {:headers, 3, _, false, true} = next(socket)
      assert {:data, 3, <<_::40, "third">>, true, _} = next(socket)
      respond(socket, 3, "three")
      assert {:ok, "three"} = Transport.await(third)
    end

    test "MAX_CONCURRENT_STREAMS may be raised later", context do
      {channel, socket} = connect(context, settings: [{@max_concurrent_streams, 0}])
      call = unary(channel)
      write(socket, Frame.ping("sentinel", false))
      assert {:ping, "sentinel", true} = next(socket, :ping)
      write(socket, Frame.settings([{@max_concurrent_streams, 1}]))
      assert 1 = request(socket)
      respond(socket, 1, "ok")
      assert {:ok, "ok"} = Transport.await(call)
    end

    test "exhausted stream ids lead to another connection", context do
      {channel, socket} = connect(context, first_stream_id: 2_147_483_645)
      calls = for _ <- 1..3, do: unary(channel)
      assert 2_147_483_645 = request(socket)
      assert 2_147_483_647 = request(socket)
      second = serve(context.listener)
      assert 2_147_483_645 = request(second)
      respond(second, 2_147_483_645, "third")
      respond(socket, 2_147_483_647, "second")
      respond(socket, 2_147_483_645, "first")

      assert [{:ok, "first"}, {:ok, "second"}, {:ok, "third"}] =
               Enum.map(calls, &Transport.await/1)
    end
  end
end
