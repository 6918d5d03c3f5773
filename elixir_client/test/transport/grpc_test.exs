defmodule RankBridge.Transport.GRPCTest do
  use ExUnit.Case, async: true

  alias RankBridge.Transport.GRPC.{Message, Metadata, Outcome, Response}
  alias RankBridge.Transport.{Status, Target}

  defp pull_all(decoder) do
    case Message.pull(decoder) do
      {:ok, message, decoder} ->
        {messages, decoder} = pull_all(decoder)
        {[message | messages], decoder}

      {:more, decoder} ->
        {[], decoder}
    end
  end

  defp frame(message) do
    {data, bytes} = Message.encode(message)
    framed = IO.iodata_to_binary(data)
    ^bytes = byte_size(framed)
    framed
  end

  describe "messages" do
    test "survive any cutting, empty ones included" do
      seed = :rand.seed(:exsss, System.unique_integer([:positive]))
      message = "seed: #{inspect(:rand.export_seed_s(seed))}"

      for _ <- 1..200 do
        messages = for _ <- 1..:rand.uniform(10), do: :rand.bytes(Enum.random([0, 1, 70, 5_000]))
        bytes = Enum.map_join(messages, &frame/1)

        {got, decoder} =
          Enum.reduce(cuts(bytes), {[], Message.decoder(:infinity)}, fn chunk, {got, decoder} ->
            {more, decoder} = decoder |> Message.push(chunk) |> pull_all()
            {got ++ more, decoder}
          end)

        assert got == messages, message
        refute Message.partial?(decoder)
      end
    end

    test "are joined from iodata" do
      assert <<0, 6::32, "abcdef">> = frame(["ab", ?c, ["d", ["ef"]]])
    end

    test "above the limit are refused by their length alone" do
      decoder = Message.push(Message.decoder(10), <<0, 11::32>>)
      assert {:error, :too_large} = Message.pull(decoder)

      assert {:ok, "0123456789", _} =
               10 |> Message.decoder() |> Message.push(frame("0123456789")) |> Message.pull()
    end

    test "that are small do not keep a large buffer alive" do
      chunk =
        frame("small message of more than 64 bytes, so that it is not copied to the heap anyway") <>
          :binary.copy("x", 100_000)

      {:ok, message, _} = :infinity |> Message.decoder() |> Message.push(chunk) |> Message.pull()
      assert :binary.referenced_byte_size(message) == byte_size(message)
    end

    test "that are compressed are decompressed within the limit" do
      zipped = :zlib.gzip(:binary.copy("z", 1_000_000))
      framed = <<1, byte_size(zipped)::32, zipped::binary>>

      decoder = fn limit ->
        limit |> Message.decoder() |> Message.allow_gzip() |> Message.push(framed)
      end

      assert {:ok, text, _} = Message.pull(decoder.(1_000_000))
      assert text == :binary.copy("z", 1_000_000)
      assert {:error, :too_large} = Message.pull(decoder.(999_999))

      assert {:error, :unknown_compression} =
               :infinity |> Message.decoder() |> Message.push(framed) |> Message.pull()
    end

    test "with a bad flag or bad compression are errors" do
      assert {:error, :bad_flag} =
               :infinity |> Message.decoder() |> Message.push(<<2, 0::32>>) |> Message.pull()

      broken =
        :infinity
        |> Message.decoder()
        |> Message.allow_gzip()
        |> Message.push(<<1, 5::32, "nozip">>)

      assert {:error, :bad_compression} = Message.pull(broken)

      zipped = binary_part(:zlib.gzip("to be cut"), 0, 12)

      cut =
        :infinity
        |> Message.decoder()
        |> Message.allow_gzip()
        |> Message.push(<<1, 12::32, zipped::binary>>)

      assert {:error, :bad_compression} = Message.pull(cut)
    end
  end

  defp cuts(""), do: []

  defp cuts(bytes) do
    size = min(Enum.random([1, 2, 5, 100, 3_000]), byte_size(bytes))
    <<head::binary-size(size), rest::binary>> = bytes
    [head | cuts(rest)]
  end

  describe "metadata" do
    test "is lower case, with unpadded base64 for -bin" do
      assert [{"key", "v"}, {"x-bin", "AP8"}] =
               Metadata.encode(%{"Key" => "v", "x-bin" => <<0, 255>>})
    end

    test "that gRPC does not allow raises" do
      for pair <- [
            {"a b", "v"},
            {"grpc-timeout", "1S"},
            {"te", "x"},
            {"a", "ü"},
            {"a", "x\n"},
            {":path", "/"}
          ] do
        assert_raise ArgumentError, fn -> Metadata.encode([pair]) end
      end
    end

    test "is decoded with and without padding, and from joined values" do
      headers = [
        {":status", "200"},
        {"a", "b"},
        {"x-bin", "AP8="},
        {"x-bin", "AP8,AQ"},
        {"grpc-status", "0"},
        {"y-bin", "!"}
      ]

      assert Metadata.decode(headers) == [
               {"a", "b"},
               {"x-bin", <<0, 255>>},
               {"x-bin", <<0, 255>>},
               {"x-bin", <<1>>}
             ]

      assert [{"grpc-status-details-bin", "d"}] =
               Metadata.decode([{"grpc-status-details-bin", Base.encode64("d")}])
    end

    test "timeouts have at most 8 digits and are never shorter than asked for" do
      assert Metadata.timeout(1) == "1m"
      assert Metadata.timeout(99_999_999) == "99999999m"
      assert Metadata.timeout(100_000_000) == "100000S"
      assert Metadata.timeout(100_000_001) == "100001S"
      assert Metadata.timeout(100_000_000_000_000) == "27777778H"
    end

    test "percent-encoding is decoded, and bad encoding taken as it stands" do
      assert Metadata.percent_decode("caf%C3%A9 100%25") == "café 100%"
      assert Metadata.percent_decode("50% %zz %+1 %4") == "50% %zz %+1 %4"
      assert Metadata.percent_decode("%FF") == "%FF"
    end
  end

  describe "outcomes" do
    test "codes and numbers agree with gRPC" do
      assert Enum.map(Status.codes(), &Status.number/1) == Enum.to_list(0..16)
      for code <- Status.codes(), do: assert(code |> Status.number() |> Status.code() == code)
      assert Status.number(:unavailable) == 14
      assert Status.code(99) == :unknown
    end

    test "a status is read from trailers, whatever the HTTP status" do
      assert {:ok, [{"a", "b"}]} = Outcome.from_trailers([{"grpc-status", "0"}, {"a", "b"}])

      assert {:error, %{code: :not_found, message: "no é", sent?: true}} =
               Outcome.from_trailers([
                 {":status", "503"},
                 {"grpc-status", "5"},
                 {"grpc-message", "no %C3%A9"}
               ])

      for number <- ["17", "-1", "x", "00", ""] do
        assert {:error, %{code: :unknown}} = Outcome.from_trailers([{"grpc-status", number}])
      end
    end

    test "without grpc-status the HTTP status decides" do
      for {status, code} <- [
            {"400", :internal},
            {"401", :unauthenticated},
            {"403", :permission_denied},
            {"404", :unimplemented},
            {"429", :unavailable},
            {"502", :unavailable},
            {"503", :unavailable},
            {"504", :unavailable},
            {"500", :unknown},
            {"200", :unknown}
          ] do
        assert {:error, %{code: ^code}} = Outcome.from_trailers([{":status", status}])
      end
    end

    test "a reset stream is mapped by its code" do
      for {reset, code, sent?} <- [
            {:cancel, :cancelled, true},
            {:refused_stream, :unavailable, false},
            {:enhance_your_calm, :resource_exhausted, true},
            {:inadequate_security, :permission_denied, true},
            {:protocol_error, :internal, true},
            {:no_error, :internal, true},
            {99, :internal, true}
          ] do
        assert %{code: ^code, sent?: ^sent?} = Outcome.from_reason({:reset, reset}, true)
      end
    end

    test "a call that ends well within a message has not ended well" do
      response =
        :infinity
        |> Response.new()
        |> Response.feed(
          {:headers, [{":status", "200"}, {"content-type", "application/grpc"}], false}
        )
        |> Response.feed({:data, <<0, 9::32, "abc">>, false})

      assert {:more, response} = Response.pull(response)
      response = Response.feed(response, {:headers, [{"grpc-status", "0"}], true})
      assert {:error, %{code: :internal, message: message}, _} = Response.pull(response)
      assert message =~ "within a message"
    end

    test "a response that is not gRPC is an error at once" do
      response =
        Response.feed(
          Response.new(:infinity),
          {:headers, [{":status", "200"}, {"content-type", "text/html"}], false}
        )

      assert {:error, %{code: :unknown, message: message}, %{stream_over?: false}} =
               Response.pull(response)

      assert message =~ "text/html"
    end
  end

  describe "targets" do
    test "of every kind are read" do
      for {text, address, authority} <- [
            {"127.0.0.1:50051", {:tcp, "127.0.0.1", 50_051}, "127.0.0.1:50051"},
            {"localhost:1", {:tcp, "localhost", 1}, "localhost:1"},
            {"host", {:tcp, "host", 443}, "host:443"},
            {"[::1]:65535", {:tcp, "::1", 65_535}, "[::1]:65535"},
            {"[::1]", {:tcp, "::1", 443}, "[::1]:443"},
            {"::1", {:tcp, "::1", 443}, "[::1]:443"},
            {"dns:///a.b:7", {:tcp, "a.b", 7}, "a.b:7"},
            {"dns://8.8.8.8/a.b:7", {:tcp, "a.b", 7}, "a.b:7"},
            {"dns:a.b:7", {:tcp, "a.b", 7}, "a.b:7"},
            {"ipv4:1.2.3.4:5", {:tcp, "1.2.3.4", 5}, "1.2.3.4:5"},
            {"ipv6:[::1]:5", {:tcp, "::1", 5}, "[::1]:5"},
            {"unix:relative/path", {:unix, "relative/path"}, "localhost"},
            {"unix:/absolute", {:unix, "/absolute"}, "localhost"},
            {"unix:///absolute", {:unix, "/absolute"}, "localhost"},
            {"unix-abstract:name", {:unix, <<0, "name">>}, "localhost"}
          ] do
        assert {:ok, %Target{address: ^address, authority: ^authority}} = Target.parse(text)
      end
    end

    test "that are none are refused" do
      for text <- [
            "",
            ":1",
            "host:0",
            "host:65536",
            "host:x",
            "[::1",
            "[::1]x",
            "unix://relative",
            "unix:",
            "http://host:1",
            "dns://nothing"
          ] do
        assert {:error, message} = Target.parse(text)
        assert message =~ "not a gRPC target"
      end
    end

    test "a path that is too long for a socket is refused" do
      longest = "/" <> String.duplicate("x", 106)
      assert {:ok, %Target{address: {:unix, ^longest}}} = Target.parse("unix:" <> longest)

      for text <- ["unix:#{longest}x", "unix://#{longest}x", "unix-abstract:#{longest}x"] do
        assert {:error, message} = Target.parse(text)
        assert message =~ "at most 107 bytes, and this has 108"
      end
    end
  end
end
