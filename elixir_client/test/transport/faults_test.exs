defmodule RankBridge.Transport.FaultsTest do
  @moduledoc "What a server may not do, to a connection with several calls. All that it may not do is in `test/transport/hostile`."

  use ExUnit.Case, async: true

  import RankBridge.Test.FakeServer

  alias RankBridge.Transport
  alias RankBridge.Transport.HTTP2.Frame

  setup do
    {listener, target} = listen()
    %{listener: listener, target: target}
  end

  defp goaway(socket) do
    {:goaway, _last_id, code, _message} = next(socket, :goaway)
    code
  end

  # What the peer does wrong, in bytes, with the code that must answer it.
  faults = [
    {"CONTINUATION without HEADERS", :protocol_error, quote(do: <<0::24, 9, 4, 1::32>>)},
    {"a connection window that overflows", :flow_control_error,
     quote(do: Frame.window_update(0, 2_147_483_647))},
    {"a frame above the maximal size", :frame_size_error, quote(do: <<16_385::24, 0, 0, 1::32>>)},
    {"a header block that cannot be decoded", :compression_error,
     quote(do: <<1::24, 1, 4, 1::32, 0x80>>)}
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
