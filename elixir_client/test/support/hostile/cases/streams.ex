defmodule RankBridge.Test.Hostile.Cases.Streams do
  @moduledoc "Frames at the wrong time: resets, ends, header blocks, GOAWAY (RFC 9113, sections 5.1, 6.2, 6.4, 6.8, 6.10)."

  import RankBridge.Test.Hostile.{Bytes, Case}

  alias RankBridge.Test.Hostile.Case

  @doc "The cases."
  @spec all() :: [Case.t()]
  def all, do: order() ++ blocks() ++ resets() ++ goaway()

  defp order do
    [
      stream("DATA before HEADERS", "9113 8.1", :protocol_error, [message("fine")]),
      stream("trailers that do not end the stream", "9113 8.1", :protocol_error, [
        headers(),
        message("fine"),
        headers([{"grpc-status", "0"}])
      ]),
      stream("headers again", "9113 8.1", :protocol_error, [headers(), headers()]),
      ignored("DATA after the end", "9113 5.1", [fine(), message("more")]),
      ignored("HEADERS after the end", "9113 5.1", [fine(), headers()]),
      ignored("trailers after the end", "9113 5.1", [fine(), trailers()]),
      ignored("WINDOW_UPDATE after the end", "9113 5.1", [
        fine(),
        frame(:window_update, [], 1, <<1::32>>)
      ]),
      ignored("WINDOW_UPDATE of 0 after the end", "9113 5.1", [
        fine(),
        frame(:window_update, [], 1, <<0::32>>)
      ]),
      ignored("RST_STREAM after the end", "9113 5.1", [
        fine(),
        frame(:rst_stream, [], 1, <<0::32>>)
      ]),
      ignored(
        "a header block after the end that cannot be decoded",
        "9113 4.3",
        [fine(), headers(<<0x80>>)],
        wire: {:connection, :compression_error}
      ),
      ignored("empty DATA before the message", "9113 6.1", [
        headers(),
        frame(:data, [], 1),
        rest()
      ]),
      ignored("a response a byte at a time", "9113 4.1", [{:drip, fine()}]),
      ignored("a message a byte a frame", "gRPC messages", [
        headers(),
        for(<<byte <- framed("fine")>>, do: frame(:data, [], 1, <<byte>>)),
        trailers()
      ])
    ]
  end

  @open_block <<1::24, 1, 0, 1::32, 0x88>>

  defp blocks do
    block = block(good_headers())

    [
      ignored("a header block a byte a frame", "9113 6.10", [
        frame(:headers, [], 1),
        for(<<byte <- block>>, do: frame(:continuation, [], 1, <<byte>>)),
        frame(:continuation, [:end_headers], 1),
        rest()
      ]),
      ignored("a hundred empty CONTINUATION", "9113 6.10", [
        frame(:headers, [], 1, block),
        :binary.copy(frame(:continuation, [], 1), 100),
        frame(:continuation, [:end_headers], 1),
        rest()
      ]),
      ignored("trailers in CONTINUATION", "9113 6.10", [
        headers(),
        message("fine"),
        frame(:headers, [:end_stream], 1),
        frame(:continuation, [:end_headers], 1, block([{"grpc-status", "0"}]))
      ]),
      connection("CONTINUATION without HEADERS", "9113 6.10", :protocol_error, [
        frame(:continuation, [:end_headers], 1)
      ]),
      connection("CONTINUATION after the end of a block", "9113 6.10", :protocol_error, [
        headers(),
        frame(:continuation, [:end_headers], 1)
      ]),
      connection("CONTINUATION of another stream", "9113 6.10", :protocol_error, [
        @open_block,
        frame(:continuation, [:end_headers], 3)
      ]),
      connection(
        "a header block of empty frames without end",
        "9113 10.5",
        :enhance_your_calm,
        [
          @open_block,
          :binary.copy(frame(:continuation, [], 1), 41_000)
        ],
        opts: [max_header_list: 10_000]
      ),
      connection("a header block without end", "9113 10.5", :enhance_your_calm, [
        @open_block,
        :binary.copy(frame(:continuation, [], 1, <<0::131_072>>), 65)
      ])
    ] ++
      for {name, bytes} <- [
            {"DATA", message("fine")},
            {"HEADERS", headers()},
            {"PRIORITY", frame(:priority, [], 1, <<0::40>>)},
            {"RST_STREAM", frame(:rst_stream, [], 1, <<8::32>>)},
            {"SETTINGS", frame(:settings, [], 0)},
            {"SETTINGS ACK", frame(:settings, [:ack], 0)},
            {"PING", frame(:ping, [], 0, "12345678")},
            {"GOAWAY", frame(:goaway, [], 0, <<0::64>>)},
            {"WINDOW_UPDATE", frame(:window_update, [], 0, <<1::32>>)},
            {"a frame of an unknown type", frame(0x42, 0, 1)}
          ] do
        connection("#{name} within a header block", "9113 6.10", :protocol_error, [
          @open_block,
          bytes
        ])
      end
  end

  # gRPC over HTTP/2, "Errors".
  @resets [
    {0, :internal},
    {1, :internal},
    {2, :internal},
    {3, :internal},
    {4, :internal},
    {5, :internal},
    {6, :internal},
    {8, :cancelled},
    {9, :internal},
    {10, :internal},
    {11, :resource_exhausted},
    {12, :permission_denied},
    {13, :internal},
    {14, :internal},
    {4_294_967_295, :internal}
  ]

  defp resets do
    for({number, code} <- @resets) do
      status("RST_STREAM with code #{number}", "gRPC errors", code, [
        frame(:rst_stream, [], 1, <<number::32>>)
      ])
    end ++
      [
        ignored(
          "RST_STREAM with REFUSED_STREAM, once",
          "gRPC errors",
          [frame(:rst_stream, [], 1, <<7::32>>)],
          call: {:ok, "good on 1"}
        ),
        status("REFUSED_STREAM after headers", "9113 8.7", :unavailable, [
          headers(),
          frame(:rst_stream, [], 1, <<7::32>>)
        ]),
        status("REFUSED_STREAM after a message", "9113 8.7", :unavailable, [
          headers(),
          message("fine"),
          frame(:rst_stream, [], 1, <<7::32>>)
        ]),
        status("RST_STREAM within a message", "gRPC errors", :internal, [
          headers(),
          frame(:data, [], 1, <<0, 4::32, "f">>),
          frame(:rst_stream, [], 1, <<2::32>>)
        ]),
        status("RST_STREAM with NO_ERROR before trailers", "gRPC errors", :internal, [
          headers(),
          message("fine"),
          frame(:rst_stream, [], 1, <<0::32>>)
        ]),
        status("RST_STREAM twice", "9113 5.1", :cancelled, [
          frame(:rst_stream, [], 1, <<8::32>>),
          frame(:rst_stream, [], 1, <<2::32>>)
        ])
      ]
  end

  defp goaway(last_id, code \\ 0, debug \\ ""),
    do: frame(:goaway, [], 0, <<last_id::32, code::32, debug::binary>>)

  defp goaway do
    [
      ignored("GOAWAY before the call was processed", "9113 6.8", [goaway(0)],
        call: {:ok, "good on 2"},
        wire: :replaced
      ),
      ignored("GOAWAY while the call goes on", "9113 6.8", [goaway(1), fine()], wire: :replaced),
      ignored("GOAWAY with the reserved bit", "9113 6.8", [goaway(0x8000_0001), fine()],
        wire: :replaced
      ),
      ignored(
        "GOAWAY of all streams, then of this",
        "9113 6.8",
        [goaway(2_147_483_647), headers(), goaway(1), rest()],
        wire: :replaced
      ),
      ignored(
        "GOAWAY whose last stream grows",
        "9113 6.8",
        [goaway(1), goaway(2_147_483_647), fine()],
        wire: :replaced
      ),
      ignored("GOAWAY with a stream of the server's", "9113 6.8", [goaway(2), fine()],
        wire: :replaced
      ),
      ignored(
        "GOAWAY a thousand times",
        "9113 6.8",
        [
          :binary.copy(goaway(1), 1_000),
          fine()
        ],
        wire: :replaced
      ),
      ignored(
        "GOAWAY with an error while the call goes on",
        "9113 6.8",
        [
          goaway(1, 2),
          fine()
        ],
        wire: :replaced
      ),
      ignored(
        "GOAWAY with a code that nobody knows",
        "9113 7",
        [
          goaway(1, 0xFFFF_FFFF),
          fine()
        ],
        wire: :replaced
      ),
      ignored(
        "GOAWAY with 16 KiB of words that are no text",
        "9113 6.8",
        [
          goaway(1, 0, :binary.copy(<<0xFF>>, 16_376)),
          fine()
        ],
        wire: :replaced
      ),
      ignored(
        "GOAWAY with bytes that are no text, before the call",
        "9113 6.8",
        [goaway(0, 2, <<0xFF, 0, 7>>)],
        call: {:ok, "good on 2"},
        wire: :replaced
      ),
      ignored(
        "GOAWAY for too many pings",
        "gRPC keepalive",
        [
          goaway(1, 11, "too_many_pings"),
          fine()
        ],
        wire: :replaced
      ),
      lost("GOAWAY and then the end", "9113 6.8", [goaway(1), :close]),
      lost("GOAWAY and then the end, within the response", "9113 6.8", [
        goaway(1),
        headers(),
        :close
      ]),
      lost("GOAWAY that takes a call back which had headers", "9113 6.8", [
        headers(),
        goaway(0),
        :close
      ]),
      ignored("GOAWAY after the end", "9113 6.8", [fine(), goaway(1)], wire: :any),
      ignored(
        "GOAWAY before the call was processed, on every connection",
        "9113 6.8",
        [goaway(0)],
        repeat: 1_000,
        call: {:error, :unavailable, false},
        wire: :any
      )
    ]
  end
end
