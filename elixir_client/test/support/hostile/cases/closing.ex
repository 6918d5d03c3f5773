defmodule RankBridge.Test.Hostile.Cases.Closing do
  @moduledoc "Servers that close, or that are no HTTP/2 at all (RFC 9113, sections 3.4 and 9)."

  import RankBridge.Test.Hostile.{Bytes, Case}

  alias RankBridge.Test.Hostile.Case

  @doc "The cases."
  @spec all() :: [Case.t()]
  def all, do: closing() ++ strangers() ++ handshakes() ++ tls()

  defp closing do
    for {where, bytes} <- [
          {"before headers", ""},
          {"within a frame's header", binary_part(headers(), 0, 5)},
          {"within headers", binary_part(headers(), 0, 12)},
          {"after headers", headers()},
          {"within a header block", frame(:headers, [], 1, <<0x88>>)},
          {"within a message", [headers(), binary_part(message("fine"), 0, 16)]},
          {"after the message", [headers(), message("fine")]},
          {"within trailers", [headers(), message("fine"), binary_part(trailers(), 0, 11)]}
        ],
        {how, step} <- [{"closes", :close}, {"resets the connection", :reset}] do
      lost("the server #{how} #{where}", "9113 9.1", [bytes, step])
    end
  end

  # What answers instead of HTTP/2.
  defp strangers do
    for {name, bytes} <- [
          {"HTTP/1.1", "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n"},
          {"SSH", "SSH-2.0-OpenSSH_9.2\r\n"},
          {"a TLS alert", <<0x15, 3, 1, 0, 2, 2, 70>>},
          {"a TLS handshake", <<0x16, 3, 3, 0, 4, 2, 0, 0, 0>>},
          {"zeros", <<0::2_000>>},
          {"ones", :binary.copy(<<0xFF>>, 100)},
          {"nothing, and closes", ""}
        ] do
      unopened("a server that speaks #{name}", "9113 3.4", :raw, play: [bytes, :close])
    end ++
      [
        unopened("a server that speaks HTTP/1.1, and stays", "9113 3.4", :raw,
          play: ["HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"]
        ),
        unopened("a server that says nothing", "9113 3.4", :raw, opts: [connect_timeout: 2_000])
      ]
  end

  defp handshakes do
    [
      ignored("SETTINGS a byte at a time", "9113 3.4", [fine()],
        begin: [{:drip, greeting([{3, 100}, {4, 65_535}])}]
      )
      | for {name, bytes, code} <- [
              {"SETTINGS ACK first", frame(:settings, [:ack], 0), :protocol_error},
              {"PING first", frame(:ping, [], 0, "12345678"), :protocol_error},
              {"WINDOW_UPDATE first", frame(:window_update, [], 0, <<1::32>>), :protocol_error},
              {"HEADERS first", headers(), :protocol_error},
              {"GOAWAY first", frame(:goaway, [], 0, <<0::64>>), :protocol_error},
              {"a frame of an unknown type first", frame(0x42, 0, 0), :protocol_error},
              {"SETTINGS of 5 bytes first", frame(:settings, [], 0, <<0::40>>),
               :frame_size_error},
              {"SETTINGS of 18,000 bytes first", header(18_000, :settings, [], 0),
               :frame_size_error},
              {"SETTINGS with push first", frame(:settings, [], 0, <<2::16, 1::32>>),
               :protocol_error},
              {"SETTINGS with a wrong window first",
               frame(:settings, [], 0, <<4::16, 0xFFFF_FFFF::32>>), :flow_control_error}
            ] do
          unopened(name, "9113 3.4", [bytes], wire: {:connection, code})
        end
    ] ++
      [
        unopened("SETTINGS that are cut off", "9113 3.4", [binary_part(greeting(), 0, 8), :close]),
        unopened("the end after the client's preface", "9113 3.4", [:close]),
        unopened("a reset after the client's preface", "9113 3.4", [:reset]),
        lost("the end after SETTINGS", "9113 9.1", [],
          begin: [frame(:settings, [], 0), {:await, :headers}, :close]
        )
      ]
  end

  defp tls do
    for {name, steps} <- [
          {"SETTINGS in plain text", [greeting()]},
          {"HTTP/1.1 in plain text", ["HTTP/1.1 400 Bad Request\r\n\r\n", :close]},
          {"an alert", [<<0x15, 3, 3, 0, 2, 2, 40>>, :close]},
          {"an alert of one byte", [<<0x15, 3, 3, 0, 1, 2>>]},
          {"a record above the limit", [<<0x16, 3, 3, 0xFF, 0xFF>>, :binary.copy("x", 65_535)]},
          {"a ServerHello that is cut off", [<<0x16, 3, 3, 0, 80, 2, 0, 0, 76, 3, 3>>, :close]},
          {"a record of an unknown type", [<<0x42, 3, 3, 0, 1, 0>>]},
          {"the end", [:close]},
          {"nothing", []}
        ] do
      unopened("TLS: the server answers with #{name}", "9113 3.2", :raw,
        play: steps,
        wire: :any,
        opts: [tls: [verify: :verify_none], connect_timeout: 300]
      )
    end
  end
end
