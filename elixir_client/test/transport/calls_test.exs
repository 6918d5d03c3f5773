defmodule RankBridge.Transport.CallsTest do
  @moduledoc "All kinds of call against a real server, on every kind of socket."

  use ExUnit.Case, async: true

  alias RankBridge.{Id, Transport}
  alias RankBridge.Test.{Certificates, GRPCServer, JSON}

  # Milliseconds for a handshake, on a busy machine.
  @patience 30_000

  # Servers by kind of socket: what to connect to, and how.
  defp serve(:tcp) do
    server = GRPCServer.start()
    {server, server.address, []}
  end

  defp serve(:unix) do
    # A unix socket's path has at most about 100 bytes.
    path = Path.join(System.tmp_dir!(), "rankbridge-#{Id.uuid()}.sock")
    ExUnit.Callbacks.on_exit(fn -> File.rm(path) end)
    server = GRPCServer.start(address: "unix:" <> path)
    {server, "unix://" <> path, []}
  end

  defp serve(:tls) do
    files = Certificates.make()
    server = GRPCServer.start(tls: %{"key" => files.server_key, "cert" => files.server_cert})
    {server, "localhost:#{server.tcp_port}", tls: [cacertfile: files.ca_cert]}
  end

  defp serve(:mutual_tls) do
    files = Certificates.make()

    server =
      GRPCServer.start(
        tls: %{
          "key" => files.server_key,
          "cert" => files.server_cert,
          "client_ca" => files.ca_cert
        }
      )

    {server, server.address,
     tls: [cacertfile: files.ca_cert, certfile: files.client_cert, keyfile: files.client_key]}
  end

  for kind <- [:tcp, :unix, :tls, :mutual_tls] do
    test "all four kinds of call work over #{kind}" do
      {_server, target, opts} = serve(unquote(kind))
      {:ok, channel} = Transport.connect(target, [owner: self()] ++ opts)
      timeout = [timeout: 20_000]

      assert {:ok, "hello"} = Transport.unary(channel, "/test.Test/Echo", ["he", "llo"], timeout)
      assert {:ok, ""} = Transport.unary(channel, "/test.Test/Echo", "", timeout)

      messages = for n <- 1..100, do: :binary.copy("m", n * 100)

      assert {:ok, ~s({"messages": 100, "bytes": 505000})} =
               Transport.client_stream(channel, "/test.Test/Count", messages, timeout)

      assert {:ok, ~s({"messages": 0, "bytes": 0})} =
               Transport.client_stream(channel, "/test.Test/Count", [], timeout)

      wish = ~s({"count": 100, "size": 10000})

      collect = fn <<number::64, rest::binary>>, acc ->
        {:cont, [{number, byte_size(rest)} | acc]}
      end

      assert {:ok, got} =
               Transport.server_stream(channel, "/test.Test/Stream", wish, [], collect, timeout)

      assert Enum.reverse(got) == for(n <- 0..99, do: {n, 9_992})

      {:ok, call} = Transport.open_stream(channel, "/test.Test/Chat", timeout)

      call =
        for n <- 1..20, reduce: call do
          call ->
            {:ok, call} = Transport.send_message(call, "message #{n}")
            expected = "re: message #{n}"
            assert {:ok, ^expected, call} = Transport.recv_message(call)
            call
        end

      {:ok, call} = Transport.half_close(call)
      assert {:done, []} = Transport.recv_message(call)
      assert :ok = Transport.close(channel)
    end

    test "messages of 64 MiB go both ways over #{kind}" do
      {_server, target, opts} = serve(unquote(kind))
      {:ok, channel} = Transport.connect(target, [owner: self()] ++ opts)
      large = :binary.copy(<<System.unique_integer([:positive])::64>>, 8 * 1_048_576)
      assert {:ok, back} = Transport.unary(channel, "/test.Test/Echo", large, timeout: 60_000)
      assert back == large
    end
  end

  describe "TLS" do
    test "refuses a server that the authority does not vouch for" do
      files = Certificates.make()
      server = GRPCServer.start(tls: %{"key" => files.server_key, "cert" => files.server_cert})

      for tls <- [[cacertfile: files.stranger_cert], [], true] do
        assert {:error, %{code: :unavailable, message: message, sent?: false}} =
                 Transport.connect(server.address, tls: tls)

        assert message =~ "TLS"
      end
    end

    test "refuses a server that has none but suites that RFC 9113 forbids" do
      files = Certificates.make()

      suites =
        :ssl.filter_cipher_suites(:ssl.cipher_suites(:all, :"tlsv1.2"),
          key_exchange: &(&1 in [:ecdhe_ecdsa, :ecdhe_rsa]),
          mac: &(&1 in [:sha256, :sha384])
        )

      for {options, expected} <- [{[ciphers: suites], ~r/TLS/}, {[], :connected}] do
        {:ok, listener} =
          :ssl.listen(
            0,
            [
              certfile: files.server_cert,
              keyfile: files.server_key,
              ip: {127, 0, 0, 1},
              active: false,
              versions: [:"tlsv1.2"],
              alpn_preferred_protocols: ["h2"],
              log_level: :none
            ] ++ options
          )

        {:ok, {_address, port}} = :ssl.sockname(listener)

        server =
          Task.async(fn ->
            {:ok, socket} = :ssl.transport_accept(listener, @patience)

            with {:ok, socket} <- :ssl.handshake(socket, @patience),
                 do: :ssl.negotiated_protocol(socket)
          end)

        connecting =
          Task.async(fn ->
            Transport.connect("localhost:#{port}",
              tls: [cacertfile: files.ca_cert],
              connect_timeout: @patience
            )
          end)

        if expected == :connected do
          assert Task.await(server, @patience) == {:ok, "h2"}
        else
          assert {:error, %{code: :unavailable, message: message}} =
                   Task.await(connecting, @patience)

          assert message =~ expected
          assert {:error, _no_shared_suite} = Task.await(server, @patience)
        end

        _ = Task.shutdown(connecting, :brutal_kill)
        :ok = :ssl.close(listener)
      end
    end

    test "refuses a server of another name, unless that name is expected" do
      files = Certificates.make()
      server = GRPCServer.start(tls: %{"key" => files.server_key, "cert" => files.server_cert})
      tls = [cacertfile: files.ca_cert]

      assert {:error, %{code: :unavailable}} =
               Transport.connect(server.address, tls: [{:server_name, "elsewhere"} | tls])

      assert {:ok, channel} =
               Transport.connect(server.address, tls: [{:server_name, "localhost"} | tls])

      assert {:ok, "x"} = Transport.unary(channel, "/test.Test/Echo", "x", timeout: 5_000)
      Transport.close(channel)
    end

    test "without a client certificate is refused where one is required" do
      {_server, target, opts} = serve(:mutual_tls)
      opts = put_in(opts, [:tls], Keyword.take(opts[:tls], [:cacertfile]))
      assert {:error, %{code: :unavailable, sent?: false}} = Transport.connect(target, opts)
    end

    test "is not spoken to a server of plain text, nor plain text to a server of TLS" do
      plain = GRPCServer.start()
      {_server, target, opts} = serve(:tls)

      assert {:error, %{code: :unavailable}} =
               Transport.connect(plain.address, opts ++ [connect_timeout: 1_000])

      assert {:error, %{code: :unavailable, message: message}} = Transport.connect(target, [])
      assert message =~ "does it speak TLS"
    end
  end

  describe "with one server" do
    setup do
      server = GRPCServer.start()
      {:ok, channel} = Transport.connect(server.address, owner: self())
      %{server: server, channel: channel}
    end

    test "a status comes with its text and its trailers", %{channel: channel} do
      wish =
        IO.iodata_to_binary(
          JSON.encode(%{"code" => "NOT_FOUND", "message" => "kein Gerät 100% “da”\n"})
        )

      assert {:error, status} = Transport.unary(channel, "/test.Test/Fail", wish, timeout: 5_000)
      assert %{code: :not_found, message: "kein Gerät 100% “da”\n", sent?: true} = status
      assert {"reason", "asked to"} in status.metadata
      assert {"detail-bin", :binary.list_to_bin(Enum.to_list(0..255))} in status.metadata
    end

    test "an unknown method is unimplemented", %{channel: channel} do
      assert {:error, %{code: :unimplemented}} =
               Transport.unary(channel, "/test.Test/Nothing", "", timeout: 5_000)
    end

    test "metadata and the timeout arrive", %{channel: channel} do
      bytes = :binary.list_to_bin(Enum.to_list(0..255))
      opts = [timeout: 40_000, metadata: [{"Key", "value"}, {"key", "again"}, {"x-bin", bytes}]]
      assert {:ok, text} = Transport.unary(channel, "/test.Test/Metadata", "", opts)
      %{"metadata" => seen} = JSON.decode!(Regex.replace(~r/, "remaining".*/, text, "}"))
      assert ["key", "value"] in seen
      assert ["key", "again"] in seen
      assert ["x-bin", Base.encode16(bytes, case: :lower)] in seen
      [remaining] = Regex.run(~r/"remaining": ([0-9.]+)/, text, capture: :all_but_first)
      assert String.to_float(remaining) > 20.0
      assert String.to_float(remaining) <= 40.0
    end

    test "compressed responses are understood", %{channel: channel} do
      assert {:ok, text} =
               Transport.unary(channel, "/test.Test/Compressed", "300000", timeout: 5_000)

      assert text == :binary.copy("z", 300_000)
    end

    test "an error after messages comes after them", %{channel: channel} do
      {:ok, _} = Agent.start_link(fn -> [] end, name: :seen_before_error)

      see = fn message, acc ->
        {:cont, Agent.update(:seen_before_error, &[message | &1]) && acc}
      end

      assert {:error, %{code: :aborted, message: "after one"}} =
               Transport.server_stream(channel, "/test.Test/FailAfterOne", "one", nil, see,
                 timeout: 5_000
               )

      assert Agent.get(:seen_before_error, & &1) == ["one"]
    end

    test "a call to many servers runs on all at once", %{channel: channel} do
      others = for _ <- 1..3, do: GRPCServer.start()

      channels = [
        channel
        | for(other <- others, do: elem(Transport.connect(other.address, owner: self()), 1))
      ]

      calls =
        for channel <- channels,
            do: Transport.start_unary(channel, "/test.Test/Echo", "x", timeout: 5_000)

      assert Enum.map(calls, &Transport.await/1) == List.duplicate({:ok, "x"}, 4)
    end

    test "unknown options raise, and change nothing", %{channel: channel} do
      assert_raise ArgumentError, fn ->
        Transport.unary(channel, "/test.Test/Echo", "", timout: 1)
      end

      assert_raise ArgumentError, fn -> Transport.connect("localhost:1", conect_timeout: 1) end
      assert {:error, %{code: :invalid_argument}} = Transport.connect("http://localhost")
    end
  end

  @tag sampled: RankBridge.Test.Sampled.part(__ENV__)
  test "a thousand calls run at the same time on one connection" do
    server = GRPCServer.start(workers: 1_000)
    {:ok, channel} = Transport.connect(server.address, owner: self())

    # The server answers none before all have arrived.
    calls =
      for _ <- 1..1_000,
          do: Transport.start_unary(channel, "/test.Test/Gather", "1000", timeout: 60_000)

    assert Enum.all?(calls, &(Transport.await(&1) == {:ok, "1000"}))
  end

  test "a server that allows few streams gets them one after another" do
    server = GRPCServer.start(options: %{"grpc.max_concurrent_streams" => 2})
    {:ok, channel} = Transport.connect(server.address, owner: self())

    calls =
      for n <- 1..100,
          do: {n, Transport.start_unary(channel, "/test.Test/Echo", "#{n}", timeout: 20_000)}

    for {n, call} <- calls, do: assert(Transport.await(call) == {:ok, "#{n}"})
  end
end
