defmodule RankBridge.Test.Hostile.Cases.Framing do
  @moduledoc "Frames of wrong lengths, types, flags and streams (RFC 9113, sections 4, 5.1, 5.5 and 6)."

  import RankBridge.Test.Hostile.{Bytes, Case}

  alias RankBridge.Test.Hostile.Case

  @doc "The cases."
  @spec all() :: [Case.t()]
  def all, do: unknown() ++ lengths() ++ streams() ++ padding() ++ priority() ++ push()

  defp unknown do
    [
      ignored("a frame of an unknown type on stream 0", "9113 5.5", [
        frame(0x0B, 0, 0, "?"),
        fine()
      ]),
      ignored("a frame of an unknown type on the call's stream", "9113 5.5", [
        headers(),
        frame(0xFF, 0xFF, 1, "?"),
        rest()
      ]),
      ignored("a frame of an unknown type on a stream that never was", "9113 5.5", [
        frame(0x20, 0, 99, "?"),
        fine()
      ]),
      ignored("a frame of an unknown type on a stream of the server's", "9113 5.5", [
        frame(0x20, 0, 2, "?"),
        fine()
      ]),
      ignored("the largest frame of an unknown type", "9113 5.5", [
        frame(0x42, 0, 0, :binary.copy("x", 16_384)),
        fine()
      ]),
      ignored("ALTSVC, ORIGIN and PRIORITY_UPDATE", "9113 5.5", [
        frame(0x0A, 0, 0, <<0::16>>),
        frame(0x0C, 0, 0, ""),
        frame(0x10, 0, 0, <<1::32, "u=1">>),
        fine()
      ]),
      ignored("DATA with flags that mean nothing", "9113 4.1", [
        headers(),
        frame(:data, 0xF6, 1, framed("fine")),
        trailers()
      ]),
      ignored("HEADERS with flags that mean nothing", "9113 4.1", [
        frame(:headers, 0xD6, 1, block(good_headers())),
        rest()
      ]),
      ignored("SETTINGS with flags that mean nothing", "9113 4.1", [
        frame(:settings, 0xFE, 0, ""),
        fine()
      ]),
      ignored(
        "PING with flags that mean nothing is answered",
        "9113 4.1",
        [frame(:ping, 0xFE, 0, "12345678"), fine()],
        sees: {:ping, "12345678", true}
      ),
      ignored("WINDOW_UPDATE with flags", "9113 4.1", [
        frame(:window_update, 0xFF, 1, <<5::32>>),
        fine()
      ]),
      status("RST_STREAM with flags", "9113 4.1", :cancelled, [
        frame(:rst_stream, 0xFF, 1, <<8::32>>)
      ]),
      ignored("CONTINUATION with flags that mean nothing", "9113 4.1", [
        frame(:headers, 0, 1, block(good_headers())),
        frame(:continuation, 0xFF, 1, ""),
        rest()
      ]),
      ignored("the reserved bit of HEADERS and DATA", "9113 4.1", [
        frame(:headers, [:end_headers], 0x8000_0001, block(good_headers())),
        frame(:data, [], 0x8000_0001, framed("fine")),
        trailers()
      ]),
      ignored("the reserved bit of an increment", "9113 6.9", [
        frame(:window_update, [], 0, <<0x8000_0001::32>>),
        fine()
      ]),
      ignored("the reserved bit of SETTINGS", "9113 4.1", [
        frame(:settings, [], 0x8000_0000, ""),
        fine()
      ])
    ]
  end

  defp lengths do
    for {name, bytes} <- [
          {"DATA of 16,385 bytes", frame(:data, [], 1, :binary.copy("x", 16_385))},
          {"HEADERS of 16,385 bytes", header(16_385, :headers, [:end_headers], 1)},
          {"a frame of an unknown type and 16,385 bytes", header(16_385, 0x42, [], 0)},
          {"a frame of 2^24-1 bytes", header(16_777_215, :data, [], 1)},
          {"PADDED DATA without a byte", frame(:data, [:padded], 1)},
          {"PADDED HEADERS without a byte", frame(:headers, [:end_headers, :padded], 1)},
          {"HEADERS too short for a priority",
           frame(:headers, [:end_headers, :priority], 1, <<0::32>>)},
          {"HEADERS whose padding leaves no priority",
           frame(:headers, [:end_headers, :priority, :padded], 1, <<2, 0::40>>)},
          {"RST_STREAM of 3 bytes", frame(:rst_stream, [], 1, <<0::24>>)},
          {"RST_STREAM of 5 bytes", frame(:rst_stream, [], 1, <<0::40>>)},
          {"an empty RST_STREAM", frame(:rst_stream, [], 1)},
          {"SETTINGS of 5 bytes", frame(:settings, [], 0, <<0::40>>)},
          {"SETTINGS of 7 bytes", frame(:settings, [], 0, <<0::56>>)},
          {"SETTINGS ACK with a payload", frame(:settings, [:ack], 0, <<0::48>>)},
          {"SETTINGS ACK of one byte", frame(:settings, [:ack], 0, <<0>>)},
          {"PING of 7 bytes", frame(:ping, [], 0, <<0::56>>)},
          {"PING of 9 bytes", frame(:ping, [], 0, <<0::72>>)},
          {"an empty PING", frame(:ping, [], 0)},
          {"GOAWAY of 7 bytes", frame(:goaway, [], 0, <<0::56>>)},
          {"WINDOW_UPDATE of 3 bytes", frame(:window_update, [], 0, <<0::24>>)},
          {"WINDOW_UPDATE of 5 bytes", frame(:window_update, [], 1, <<0::40>>)}
        ] do
      connection(name, "9113 4.2", :frame_size_error, [bytes])
    end
  end

  # Streams on which a frame may not be.
  defp streams do
    for {name, section, bytes} <- [
          {"DATA on stream 0", "6.1", frame(:data, [], 0, "x")},
          {"HEADERS on stream 0", "6.2", headers_of(0)},
          {"PRIORITY on stream 0", "6.3", frame(:priority, [], 0, <<0::40>>)},
          {"RST_STREAM on stream 0", "6.4", frame(:rst_stream, [], 0, <<8::32>>)},
          {"SETTINGS on a stream", "6.5", frame(:settings, [], 1)},
          {"SETTINGS ACK on a stream", "6.5", frame(:settings, [:ack], 1)},
          {"PING on a stream", "6.7", frame(:ping, [], 1, "12345678")},
          {"GOAWAY on a stream", "6.8", frame(:goaway, [], 1, <<0::64>>)},
          {"CONTINUATION on stream 0", "6.10", frame(:continuation, [:end_headers], 0)},
          {"DATA on a stream that never was", "5.1", frame(:data, [], 99, "x")},
          {"HEADERS on a stream that never was", "5.1", headers_of(99)},
          {"RST_STREAM on a stream that never was", "5.1", frame(:rst_stream, [], 99, <<8::32>>)},
          {"WINDOW_UPDATE on a stream that never was", "5.1",
           frame(:window_update, [], 99, <<1::32>>)},
          {"DATA on a stream of the server's", "5.1.1", frame(:data, [], 2, "x")},
          {"HEADERS on a stream of the server's", "5.1.1", headers_of(2)},
          {"RST_STREAM on a stream of the server's", "5.1", frame(:rst_stream, [], 2, <<8::32>>)},
          {"WINDOW_UPDATE on a stream of the server's", "5.1",
           frame(:window_update, [], 2, <<1::32>>)},
          {"HEADERS on the largest stream", "5.1", headers_of(2_147_483_647)}
        ] do
      connection(name, "9113 " <> section, :protocol_error, [bytes])
    end
  end

  defp padding do
    [
      ignored("padding of 255 bytes", "9113 6.1", [
        headers(),
        frame(:data, [:padded], 1, [<<255>>, framed("fine"), <<0::2040>>]),
        trailers()
      ]),
      ignored("padding that is not zero", "9113 6.1", [
        headers(),
        frame(:data, [:padded], 1, [<<3>>, framed("fine"), "abc"]),
        trailers()
      ]),
      ignored("nothing but padding", "9113 6.1", [
        headers(),
        frame(:data, [:padded], 1, <<7, 0::56>>),
        rest()
      ]),
      ignored("PADDED of 0 bytes", "9113 6.1", [
        frame(:headers, [:end_headers, :padded], 1, [<<0>>, block(good_headers())]),
        frame(:data, [:padded], 1, [<<0>>, framed("fine")]),
        trailers()
      ]),
      ignored("HEADERS with padding and priority", "9113 6.2", [
        frame(:headers, [:end_headers, :padded, :priority], 1, [
          <<4, 0::40>>,
          block(good_headers()),
          <<0::32>>
        ]),
        rest()
      ]),
      connection("DATA with padding of its whole length", "9113 6.1", :protocol_error, [
        headers(),
        frame(:data, [:padded], 1, <<2, 0>>)
      ]),
      connection("DATA with padding beyond its length", "9113 6.1", :protocol_error, [
        headers(),
        frame(:data, [:padded], 1, <<255, 0::64>>)
      ]),
      connection("HEADERS with padding beyond their length", "9113 6.2", :protocol_error, [
        frame(:headers, [:end_headers, :padded], 1, <<9, 0x88>>)
      ])
    ]
  end

  defp priority do
    [
      ignored("PRIORITY", "9113 6.3", [frame(:priority, [], 1, <<3::32, 7>>), fine()]),
      ignored("PRIORITY of a stream that never was", "9113 5.1", [
        frame(:priority, [], 99, <<1::32, 7>>),
        fine()
      ]),
      ignored("PRIORITY of a stream of the server's", "9113 5.1", [
        frame(:priority, [], 2, <<1::32, 7>>),
        fine()
      ]),
      ignored("PRIORITY of a stream that is over", "9113 5.1", [
        fine(),
        frame(:priority, [], 1, <<0::32, 7>>)
      ]),
      ignored("a stream that depends on itself", "9113 5.3.2", [
        frame(:priority, [], 1, <<1::32, 7>>),
        frame(:headers, [:end_headers, :priority], 1, [<<1::32, 0>>, block(good_headers())]),
        rest()
      ]),
      stream("PRIORITY of 4 bytes", "9113 6.3", :frame_size_error, [
        frame(:priority, [], 1, <<0::32>>)
      ]),
      ignored("PRIORITY of 4 bytes on a stream that is over", "9113 6.3", [
        fine(),
        frame(:priority, [], 1, <<0::32>>)
      ]),
      connection(
        "PRIORITY of 4 bytes on a stream that never was",
        "9113 6.3",
        :frame_size_error,
        [
          frame(:priority, [], 99, <<0::32>>)
        ]
      )
    ]
  end

  defp push do
    for {name, bytes} <- [
          {"PUSH_PROMISE", frame(:push_promise, [:end_headers], 1, <<2::32, 0x88>>)},
          {"PUSH_PROMISE on stream 0", frame(:push_promise, [:end_headers], 0, <<2::32>>)},
          {"PUSH_PROMISE on a stream that never was",
           frame(:push_promise, [:end_headers], 99, <<2::32>>)},
          {"an empty PUSH_PROMISE", frame(:push_promise, [], 1)}
        ] do
      connection(name, "9113 8.4", :protocol_error, [bytes])
    end
  end
end
