defmodule RankBridge.Test.Hostile.Cases.GRPC do
  @moduledoc "Well-formed HTTP/2 that is no gRPC (gRPC over HTTP/2, \"Responses\", and its status codes)."

  import RankBridge.Test.Hostile.{Bytes, Case}

  alias RankBridge.Test.Hostile.Case

  @doc "The cases."
  @spec all() :: [Case.t()]
  def all, do: types() ++ statuses() ++ metadata() ++ messages() ++ compression()

  defp types do
    for {type, call} <- [
          {"text/html", {:error, :unknown, true}},
          {"application/grpc-web", {:error, :unknown, true}},
          {"application/grpcx", {:error, :unknown, true}},
          {"", {:error, :unknown, true}},
          {"application/grpc+proto", {:ok, "fine"}},
          {"application/grpc;charset=utf-8", {:ok, "fine"}}
        ] do
      ignored(
        "content-type #{inspect(type)}",
        "gRPC responses",
        [headers([{":status", "200"}, {"content-type", type}]), rest()],
        call: call
      )
    end ++
      [
        status("no content-type", "gRPC responses", :unknown, [
          headers([{":status", "200"}]),
          rest()
        ]),
        status("a content-type of bytes", "gRPC responses", :unknown, [
          headers([{":status", "200"}, {"content-type", <<0xFF, 0xFE>>}]),
          rest()
        ])
      ]
  end

  defp statuses do
    for {value, code} <- [
          {"", :unknown},
          {"abc", :unknown},
          {"-1", :unknown},
          {"17", :unknown},
          {"99999999999999999999", :unknown},
          {"0x5", :unknown},
          {"1", :cancelled},
          {"16", :unauthenticated}
        ] do
      status("grpc-status #{inspect(value)}", "gRPC responses", code, [
        headers(),
        message("fine"),
        trailers([{"grpc-status", value}])
      ])
    end ++
      [
        status("no grpc-status", "gRPC HTTP status", :unknown, [
          headers(),
          message("fine"),
          trailers([{"a", "b"}])
        ]),
        status("empty trailers", "gRPC HTTP status", :unknown, [
          headers(),
          message("fine"),
          trailers("")
        ]),
        status("no trailers", "gRPC HTTP status", :unknown, [
          headers(),
          message("fine", [:end_stream])
        ]),
        status("headers that end the stream without grpc-status", "gRPC responses", :unknown, [
          headers(good_headers(), [:end_stream])
        ]),
        status("grpc-status in the headers only", "gRPC responses", :unknown, [
          headers(good_headers([{"grpc-status", "0"}])),
          message("fine", [:end_stream])
        ]),
        status("grpc-status 5 first and 0 then", "gRPC responses", :not_found, [
          headers(),
          message("fine"),
          trailers([{"grpc-status", "5"}, {"grpc-status", "0"}])
        ]),
        status("an error at once", "gRPC responses", :failed_precondition, [
          headers(good_headers([{"grpc-status", "9"}, {"grpc-message", "no"}]), [:end_stream])
        ]),
        status("an error after the message", "gRPC responses", :data_loss, [
          headers(),
          message("fine"),
          trailers([{"grpc-status", "15"}])
        ])
      ]
  end

  defp metadata do
    for {name, message} <- [
          {"a percent sign without digits", "%"},
          {"a percent sign with one digit", "%4"},
          {"a percent sign with wrong digits", "%zz%-1"},
          {"percent-encoding of bytes that are no text", "%FF%FE"},
          {"bytes that are no text", <<0xFF, 0xFE>>},
          {"half a character", <<"%E2%82">>},
          {"64 KiB", :binary.copy("m", 65_536)}
        ] do
      status("grpc-message: #{name}", "gRPC responses", :aborted, [
        headers(),
        trailers_in_parts([{"grpc-status", "10"}, {"grpc-message", message}])
      ])
    end ++
      [
        ignored("binary metadata that is not base64", "gRPC responses", [
          headers(good_headers([{"a-bin", "!!"}, {"-bin", "="}, {"b-bin", <<0xFF>>}])),
          message("fine"),
          trailers([{"grpc-status", "0"}, {"grpc-status-details-bin", "%%"}])
        ])
      ]
  end

  # A block may be larger than a frame.
  defp trailers_in_parts(trailers) do
    [first | parts] = cut(block(trailers))
    {middle, [last]} = Enum.split([first | parts], -1)

    case middle do
      [] ->
        headers(last, [:end_stream])

      [first | middle] ->
        frame(:headers, [:end_stream], 1, first) <>
          IO.iodata_to_binary(for part <- middle, do: frame(:continuation, [], 1, part)) <>
          frame(:continuation, [:end_headers], 1, last)
    end
  end

  defp cut(<<part::binary-size(16_384), rest::binary>>), do: [part | cut(rest)]
  defp cut(rest), do: [rest]

  defp messages do
    [
      status("no message", "gRPC responses", :internal, [headers(), trailers()]),
      status("no message, and trailers only", "gRPC responses", :internal, [
        headers(good_headers([{"grpc-status", "0"}]), [:end_stream])
      ]),
      status("two messages", "gRPC responses", :internal, [
        headers(),
        message("fine"),
        message("fine"),
        trailers()
      ]),
      status("two messages in one frame", "gRPC responses", :internal, [
        headers(),
        frame(:data, [], 1, [framed("fine"), framed("fine")]),
        trailers()
      ]),
      status("a message that is cut off", "gRPC messages", :internal, [
        headers(),
        frame(:data, [], 1, <<0, 4::32, "fin">>),
        trailers()
      ]),
      status("a prefix that is cut off", "gRPC messages", :internal, [
        headers(),
        frame(:data, [], 1, <<0, 0, 0>>),
        trailers()
      ]),
      status("a message and a byte", "gRPC messages", :internal, [
        headers(),
        frame(:data, [], 1, [framed("fine"), 0]),
        trailers()
      ]),
      ignored("an empty message", "gRPC messages", [headers(), message(""), trailers()],
        call: {:ok, ""}
      ),
      status(
        "a message above the limit",
        "gRPC messages",
        :resource_exhausted,
        [headers(), frame(:data, [], 1, <<0, 101::32>>)],
        opts: [max_receive_message_bytes: 100]
      ),
      status("a message of 4 GiB", "gRPC messages", :resource_exhausted, [
        headers(),
        frame(:data, [], 1, <<0, 4_294_967_295::32>>)
      ]),
      status("an unknown compression flag", "gRPC messages", :internal, [
        headers(),
        frame(:data, [], 1, framed("fine", 2)),
        trailers()
      ])
    ]
  end

  defp compression do
    zipped = :zlib.gzip("fine")

    gzip = fn bytes ->
      [
        headers(good_headers([{"grpc-encoding", "gzip"}])),
        frame(:data, [], 1, framed(bytes, 1)),
        trailers()
      ]
    end

    [
      ignored("gzip", "gRPC messages", gzip.(zipped)),
      ignored("gzip as encoding, and a message that is not compressed", "gRPC messages", [
        headers(good_headers([{"grpc-encoding", "gzip"}])),
        rest()
      ]),
      ignored("an encoding that nobody knows, and a message without it", "gRPC messages", [
        headers(good_headers([{"grpc-encoding", "snail"}])),
        rest()
      ]),
      status("a compressed message and no encoding", "gRPC messages", :internal, [
        headers(),
        frame(:data, [], 1, framed(zipped, 1)),
        trailers()
      ]),
      status("a compressed message and the encoding identity", "gRPC messages", :internal, [
        headers(good_headers([{"grpc-encoding", "identity"}])),
        frame(:data, [], 1, framed(zipped, 1)),
        trailers()
      ]),
      status("an encoding that nobody knows", "gRPC messages", :internal, [
        headers(good_headers([{"grpc-encoding", "snail"}])),
        frame(:data, [], 1, framed(zipped, 1)),
        trailers()
      ]),
      status("gzip of nothing that is gzip", "gRPC messages", :internal, gzip.("fine")),
      status("gzip of no byte", "gRPC messages", :internal, gzip.("")),
      status(
        "gzip that is cut off",
        "gRPC messages",
        :internal,
        gzip.(binary_part(zipped, 0, byte_size(zipped) - 4))
      ),
      status(
        "gzip with a wrong checksum",
        "gRPC messages",
        :internal,
        gzip.(binary_part(zipped, 0, byte_size(zipped) - 8) <> <<0::64>>)
      ),
      status(
        "zlib's format as gzip",
        "gRPC messages",
        :internal,
        gzip.(:zlib.compress("fine"))
      ),
      status(
        "a small message that stands for a large one",
        "gRPC messages",
        :resource_exhausted,
        gzip.(:zlib.gzip(:binary.copy(<<0>>, 1_000_000))),
        opts: [max_receive_message_bytes: 10_000]
      )
    ]
  end
end
