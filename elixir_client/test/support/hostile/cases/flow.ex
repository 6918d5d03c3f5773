defmodule RankBridge.Test.Hostile.Cases.Flow do
  @moduledoc "SETTINGS, PING, windows, and floods that stay within bounds (RFC 9113, sections 5.2, 6.5, 6.7, 6.9, 10.5)."

  import RankBridge.Test.Hostile.{Bytes, Case}

  alias RankBridge.Test.Hostile.Case

  @max 2_147_483_647

  @doc "The cases."
  @spec all() :: [Case.t()]
  def all, do: settings() ++ pings() ++ windows() ++ floods() ++ endless()

  defp settings(pairs), do: frame(:settings, [], 0, for({k, v} <- pairs, do: <<k::16, v::32>>))

  defp settings do
    [
      ignored("SETTINGS that nobody knows", "9113 6.5.2", [
        settings([{0, 1}, {0x10, 7}, {0xFFFF, 4_294_967_295}]),
        fine()
      ]),
      ignored("extended CONNECT and no priorities", "8441 3", [settings([{8, 1}, {9, 1}]), fine()]),
      ignored("a setting twice", "9113 6.5.3", [settings([{5, 16_384}, {5, 20_000}]), fine()]),
      ignored("HEADER_TABLE_SIZE of 0", "9113 6.5.2", [settings([{1, 0}]), fine()]),
      ignored("HEADER_TABLE_SIZE of 2^32-1", "9113 6.5.2", [
        settings([{1, 4_294_967_295}]),
        fine()
      ]),
      ignored("ENABLE_PUSH of 0", "9113 6.5.2", [settings([{2, 0}]), fine()]),
      connection("ENABLE_PUSH of 1", "9113 6.5.2", :protocol_error, [settings([{2, 1}])]),
      connection("ENABLE_PUSH of 2", "9113 6.5.2", :protocol_error, [settings([{2, 2}])]),
      ignored("MAX_CONCURRENT_STREAMS of 0, for a while", "9113 5.1.2", [
        settings([{3, 0}]),
        settings([{3, 1}]),
        fine()
      ]),
      ignored("INITIAL_WINDOW_SIZE of 0, for a while", "9113 6.9.2", [
        settings([{4, 0}]),
        settings([{4, 65_535}]),
        fine()
      ]),
      ignored("INITIAL_WINDOW_SIZE of 2^31-1", "9113 6.5.2", [settings([{4, @max}]), fine()]),
      connection("INITIAL_WINDOW_SIZE of 2^31", "9113 6.5.2", :flow_control_error, [
        settings([{4, @max + 1}])
      ]),
      connection("INITIAL_WINDOW_SIZE of 2^32-1", "9113 6.5.2", :flow_control_error, [
        settings([{4, 4_294_967_295}])
      ]),
      connection("INITIAL_WINDOW_SIZE beyond a window", "9113 6.9.2", :flow_control_error, [
        frame(:window_update, [], 1, <<@max - 65_535::32>>),
        settings([{4, 65_600}])
      ]),
      ignored("MAX_FRAME_SIZE of 2^24-1", "9113 6.5.2", [settings([{5, 16_777_215}]), fine()]),
      connection("MAX_FRAME_SIZE of 16,383", "9113 6.5.2", :protocol_error, [
        settings([{5, 16_383}])
      ]),
      connection("MAX_FRAME_SIZE of 2^24", "9113 6.5.2", :protocol_error, [
        settings([{5, 16_777_216}])
      ]),
      connection("MAX_FRAME_SIZE of 0", "9113 6.5.2", :protocol_error, [settings([{5, 0}])]),
      ignored("MAX_HEADER_LIST_SIZE of 0, for a while", "9113 6.5.2", [
        settings([{6, 0}]),
        settings([{6, 100_000}]),
        fine()
      ]),
      ignored("SETTINGS ACK that nobody waits for", "9113 6.5.3", [
        frame(:settings, [:ack], 0),
        frame(:settings, [:ack], 0),
        fine()
      ]),
      ignored(
        "SETTINGS in small windows, from the first",
        "9113 6.9.2",
        [fine()],
        begin: [
          greeting([{4, 1}]),
          {:await, :headers},
          for(_ <- 1..20, do: frame(:window_update, [], 1, <<1::32>>)),
          settings([{4, 65_535}])
        ]
      ),
      connection(
        "SETTINGS that are never acknowledged",
        "9113 6.5.3",
        :settings_timeout,
        [],
        begin: [settings([])],
        opts: [connect_timeout: 2_000]
      )
    ]
  end

  defp pings do
    [
      ignored("PING is answered", "9113 6.7", [frame(:ping, [], 0, <<0, 255, 0::48>>), fine()],
        sees: {:ping, <<0, 255, 0::48>>, true}
      ),
      ignored("an answer to no PING", "9113 6.7", [frame(:ping, [:ack], 0, "12345678"), fine()])
    ]
  end

  defp windows do
    [
      connection("a connection WINDOW_UPDATE of 0", "9113 6.9", :protocol_error, [
        frame(:window_update, [], 0, <<0::32>>)
      ]),
      stream("a WINDOW_UPDATE of 0", "9113 6.9", :protocol_error, [
        frame(:window_update, [], 1, <<0::32>>)
      ]),
      stream("a WINDOW_UPDATE of 0 with the reserved bit", "9113 6.9", :protocol_error, [
        frame(:window_update, [], 1, <<0x8000_0000::32>>)
      ]),
      connection("a connection window above 2^31-1", "9113 6.9.1", :flow_control_error, [
        frame(:window_update, [], 0, <<@max::32>>)
      ]),
      connection(
        "a connection window above 2^31-1, in two steps",
        "9113 6.9.1",
        :flow_control_error,
        [
          frame(:window_update, [], 0, <<@max - 70_000::32>>),
          frame(:window_update, [], 0, <<70_000::32>>)
        ]
      ),
      stream("a window above 2^31-1", "9113 6.9.1", :flow_control_error, [
        frame(:window_update, [], 1, <<@max::32>>)
      ]),
      ignored("a window of almost 2^31-1", "9113 6.9.1", [
        frame(:window_update, [], 1, <<@max - 65_535::32>>),
        frame(:window_update, [], 0, <<@max - 65_535::32>>),
        fine()
      ]),
      stream(
        "more than the window",
        "9113 6.9",
        :flow_control_error,
        [headers(), frame(:data, [], 1, :binary.copy("x", 101))],
        opts: [stream_window: 100]
      ),
      stream(
        "more than the window, by padding",
        "9113 6.9",
        :flow_control_error,
        [headers(), frame(:data, [:padded], 1, [<<99>>, "x", <<0::792>>])],
        opts: [stream_window: 100]
      ),
      ignored(
        "as much as the window",
        "9113 6.9",
        [
          headers(),
          frame(:data, [:padded], 1, [<<90>>, framed("fine"), <<0::720>>]),
          trailers()
        ],
        opts: [stream_window: 100]
      ),
      connection(
        "more than the connection's window",
        "9113 6.9",
        :flow_control_error,
        [headers(), frame(:data, [], 1, :binary.copy("x", 65_536))],
        opts: [connection_window: 65_535, max_frame_size: 100_000]
      )
    ]
  end

  defp floods do
    for {name, count, bytes} <- [
          {"PING", 1_000, frame(:ping, [], 0, "12345678")},
          {"SETTINGS", 1_000, settings([{3, 100}])},
          {"empty DATA", 5_000, frame(:data, [], 1)},
          {"PRIORITY", 5_000, frame(:priority, [], 1, <<0::40>>)},
          {"WINDOW_UPDATE", 5_000, frame(:window_update, [], 1, <<1::32>>)},
          {"frames of unknown types", 5_000, frame(0x42, 0, 0)}
        ] do
      ignored("#{count} times #{name}", "9113 10.5", [
        headers(),
        :binary.copy(bytes, count),
        rest()
      ])
    end ++
      [
        ignored("2,000 interim responses", "9113 8.1", [
          :binary.copy(headers([{":status", "103"}]), 2_000),
          fine()
        ]),
        ignored("1,000 RST_STREAM of a stream that is over", "9113 10.5", [
          fine(),
          :binary.copy(frame(:rst_stream, [], 1, <<8::32>>), 1_000)
        ])
      ]
  end

  # What goes on and on holds nothing but the deadline.
  defp endless do
    for {name, first, bytes} <- [
          {"nothing", "", nil},
          {"headers and then nothing", headers(), nil},
          {"a message and then nothing", [headers(), message("fine")], nil},
          {"interim responses without end", "",
           headers([{":status", "100"}, {"a", String.duplicate("b", 8_000)}])},
          {"DATA of padding without end", headers(),
           frame(:data, [:padded], 1, [<<255>>, <<0::2040>>])},
          {"frames of unknown types without end", headers(),
           frame(0x42, 0, 1, :binary.copy("?", 16_000))}
        ] do
      flood = if bytes, do: [{:forever, :binary.copy(bytes, 4)}], else: []

      status(name, "gRPC timeout", :deadline_exceeded, [first | flood],
        # Only what comes after the handshake is in the timeout, so that the call is sent in any case.
        opts: [lazy: false],
        timeout: 150,
        wire: if(bytes, do: :any, else: {:stream, :cancel})
      )
    end
  end
end
