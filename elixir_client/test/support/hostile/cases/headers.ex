defmodule RankBridge.Test.Hostile.Cases.Headers do
  @moduledoc "Headers and trailers that HTTP does not allow, and HTTP's own answers (RFC 9113, section 8; gRPC, \"HTTP status\")."

  import RankBridge.Test.Hostile.{Bytes, Case}

  alias RankBridge.Test.Hostile.Case

  @doc "The cases."
  @spec all() :: [Case.t()]
  def all, do: malformed() ++ trailers_malformed() ++ allowed() ++ interim() ++ http()

  defp malformed do
    for {name, section, headers} <- [
          {"no :status", "8.3.2", [{"content-type", "application/grpc"}]},
          {":status after other headers", "8.3", [{"a", "b"}, {":status", "200"}]},
          {"two :status", "8.3", [{":status", "200"} | good_headers()]},
          {":path in a response", "8.3", good_headers([{":path", "/"}])},
          {":method before :status", "8.3", [{":method", "GET"} | good_headers()]},
          {"a pseudo-header that nobody knows", "8.3", good_headers([{":foo", "x"}])},
          {"a name that is only a colon", "8.3", good_headers([{":", "x"}])},
          {"an empty :status", "8.3.2", [{":status", ""}]},
          {":status of two digits", "8.3.2", [{":status", "20"}]},
          {":status of four digits", "8.3.2", [{":status", "2000"}]},
          {":status that is no number", "8.3.2", [{":status", "2OO"}]},
          {":status of bytes", "8.3.2", [{":status", <<0xFF, 0xFE, 0xFD>>}]},
          {":status below 100", "8.3.2", [{":status", "099"}]},
          {"a name in upper case", "8.2.1", good_headers([{"Name", "x"}])},
          {"a name with a space", "8.2.1", good_headers([{"na me", "x"}])},
          {"a name with a colon", "8.2.1", good_headers([{"na:me", "x"}])},
          {"a name with a line break", "8.2.1", good_headers([{"a\r\nb", "x"}])},
          {"a name of bytes", "8.2.1", good_headers([{<<0xC3, 0xA9>>, "x"}])},
          {"a name with DEL", "8.2.1", good_headers([{"a\d", "x"}])},
          {"a value with NUL", "8.2.1", good_headers([{"a", <<0>>}])},
          {"a value with CR", "8.2.1", good_headers([{"a", "b\rc"}])},
          {"a value with LF", "8.2.1", good_headers([{"a", "b\nc: d"}])},
          {"a value that begins with a space", "8.2.1", good_headers([{"a", " b"}])},
          {"a value that ends with a tab", "8.2.1", good_headers([{"a", "b\t"}])},
          {"connection", "8.2.2", good_headers([{"connection", "close"}])},
          {"keep-alive", "8.2.2", good_headers([{"keep-alive", "timeout=5"}])},
          {"proxy-connection", "8.2.2", good_headers([{"proxy-connection", "close"}])},
          {"transfer-encoding", "8.2.2", good_headers([{"transfer-encoding", "chunked"}])},
          {"upgrade", "8.2.2", good_headers([{"upgrade", "h3"}])}
        ] do
      stream("headers: #{name}", "9113 " <> section, :protocol_error, [headers(headers)])
    end
  end

  defp trailers_malformed do
    for {name, section, trailers} <- [
          {":status", "8.1", [{":status", "200"}, {"grpc-status", "0"}]},
          {":path", "8.1", [{"grpc-status", "0"}, {":path", "/"}]},
          {"a name in upper case", "8.2.1", [{"Grpc-Status", "0"}]},
          {"connection", "8.2.2", [{"grpc-status", "0"}, {"connection", "close"}]},
          {"a value with a line break", "8.2.1", [{"grpc-status", "0"}, {"a", "b\n"}]}
        ] do
      stream("trailers: #{name}", "9113 " <> section, :protocol_error, [
        headers(),
        message("fine"),
        trailers(trailers)
      ])
    end
  end

  defp allowed do
    [
      ignored("a value of any bytes", "9113 8.2.1", [
        headers(good_headers([{"a", <<0x80, 0xFF, 1>>}])),
        rest()
      ]),
      ignored("an empty value", "9113 8.2.1", [headers(good_headers([{"a", ""}])), rest()]),
      ignored("a name twice", "9113 8.2", [
        headers(good_headers([{"a", "1"}, {"a", "2"}])),
        rest()
      ]),
      ignored("a thousand headers", "9113 8.2", [
        headers(good_headers(for n <- 1..1_000, do: {"a#{n}", ""})),
        rest()
      ]),
      ignored("a content-length that is not so", "9113 8.1.1", [
        headers(good_headers([{"content-length", "1"}])),
        rest()
      ])
    ]
  end

  defp interim do
    [
      ignored("100 first", "9113 8.1", [headers([{":status", "100"}]), fine()]),
      ignored("103 with headers first", "9113 8.1", [
        headers([{":status", "103"}, {"link", "</a>"}]),
        headers([{":status", "103"}]),
        fine()
      ]),
      stream("101", "9113 8.6", :protocol_error, [headers([{":status", "101"}]), fine()]),
      stream("100 that ends the stream", "9113 8.1", :protocol_error, [
        headers([{":status", "100"}], [:end_stream])
      ]),
      stream("100 after the headers", "9113 8.1", :protocol_error, [
        headers(),
        headers([{":status", "100"}])
      ]),
      stream("DATA after 100", "9113 8.1", :protocol_error, [
        headers([{":status", "100"}]),
        message("fine")
      ])
    ]
  end

  @http [
    {"204", :unknown},
    {"301", :unknown},
    {"400", :internal},
    {"401", :unauthenticated},
    {"403", :permission_denied},
    {"404", :unimplemented},
    {"418", :unknown},
    {"429", :unavailable},
    {"500", :unknown},
    {"502", :unavailable},
    {"503", :unavailable},
    {"504", :unavailable},
    {"999", :unknown}
  ]

  defp http do
    for({status, code} <- @http) do
      status("HTTP status #{status}", "gRPC HTTP status", code, [
        headers([{":status", status}, {"content-type", "text/html"}], [:end_stream])
      ])
    end ++
      [
        status("HTTP status 503 with a body", "gRPC HTTP status", :unavailable, [
          headers([{":status", "503"}, {"content-type", "text/html"}]),
          frame(:data, [], 1, "<html>"),
          frame(:data, [:end_stream], 1, "</html>")
        ]),
        status("HTTP status 404 with a gRPC status", "gRPC HTTP status", :not_found, [
          headers(
            [{":status", "404"}, {"content-type", "application/grpc"}, {"grpc-status", "5"}],
            [:end_stream]
          )
        ])
      ]
  end
end
