defmodule RankBridge.Transport.StoppedServerTest do
  @moduledoc "A server that is there, and does nothing: it was sent SIGSTOP."

  use ExUnit.Case, async: true

  alias RankBridge.Test.{Certificates, GRPCServer}
  alias RankBridge.Transport

  defp connect(server, opts \\ []) do
    {:ok, channel} =
      Transport.connect(server.address, Keyword.merge([owner: self(), backoff: {20, 100}], opts))

    channel
  end

  # Milliseconds that a busy machine may need beyond a deadline. What is not kept would last for ever.
  @late 20_000

  defp elapsed(fun) do
    started = System.monotonic_time(:millisecond)
    result = fun.()
    {System.monotonic_time(:millisecond) - started, result}
  end

  describe "a stopped server (SIGSTOP)" do
    setup do
      server = GRPCServer.start()
      channel = connect(server)
      assert {:ok, "x"} = Transport.unary(channel, "/test.Test/Echo", "x", timeout: 5_000)
      GRPCServer.signal(server, "STOP")
      on_exit(fn -> System.cmd("kill", ["-KILL", "#{server.os_pid}"], stderr_to_stdout: true) end)
      %{server: server, channel: channel}
    end

    test "does not delay deadlines, however much is to be sent", %{channel: channel} do
      large = :binary.copy("l", 67_108_864)

      for message <- ["small", large, "small again"] do
        {took, result} =
          elapsed(fn -> Transport.unary(channel, "/test.Test/Echo", message, timeout: 400) end)

        assert {:error, %{code: :deadline_exceeded}} = result
        assert took in 400..@late
      end

      {took, result} =
        elapsed(fn ->
          chunks = Stream.repeatedly(fn -> :binary.copy("c", 1_048_576) end)
          Transport.client_stream(channel, "/test.Test/Count", chunks, timeout: 400)
        end)

      assert {:error, %{code: :deadline_exceeded}} = result
      assert took in 400..@late
    end

    test "goes on as before when it is continued", %{server: server, channel: channel} do
      large = :binary.copy("l", 33_554_432)
      call = Transport.start_unary(channel, "/test.Test/Upload", large, timeout: 30_000)
      assert {:error, _} = Transport.unary(channel, "/test.Test/Echo", "x", timeout: 100)
      GRPCServer.signal(server, "CONT")
      assert {:ok, "33554432"} = Transport.await(call)
      assert {:ok, "x"} = Transport.unary(channel, "/test.Test/Echo", "x", timeout: 5_000)
    end

    test "collects no bytes of calls that come and go meanwhile", %{channel: channel} do
      {:ok, open} = Transport.open_stream(channel, "/test.Test/Count", timeout: 60_000)
      _open = fill(open)
      [{:current, connection}] = :ets.lookup(channel.table, :current)

      for _ <- 1..300 do
        assert {:error, %{code: :deadline_exceeded}} =
                 Transport.unary(channel, "/test.Test/Echo", :binary.copy("x", 100_000),
                   timeout: 1
                 )
      end

      %{protocol: protocol, calls: calls} = :sys.get_state(connection)
      assert map_size(calls) == 1
      assert map_size(protocol.streams) == 1
      assert :queue.len(protocol.opens) == 0
      # The cap of 2 MiB, exceeded by no more than one turn.
      assert protocol.unwritten < 2_097_152 + 200_000
    end

    test "is given up by keepalive", %{server: server} do
      GRPCServer.signal(server, "CONT")
      channel = connect(server, keepalive: 100)
      GRPCServer.signal(server, "STOP")

      # Without keepalive its deadline would end it, with another code.
      assert {:error, %{code: :unavailable, sent?: true}} =
               Transport.unary(channel, "/test.Test/Echo", "x", timeout: 20_000)
    end

    test "cannot be connected to for longer than allowed", %{server: server} do
      {took, result} = elapsed(fn -> Transport.connect(server.address, connect_timeout: 300) end)
      assert {:error, %{code: :unavailable, sent?: false}} = result
      assert took in 290..@late
    end
  end

  test "a stopped server delays neither deadlines nor closing under TLS" do
    files = Certificates.make()
    server = GRPCServer.start(tls: %{"key" => files.server_key, "cert" => files.server_cert})
    channel = connect(server, tls: [cacertfile: files.ca_cert])
    assert {:ok, "x"} = Transport.unary(channel, "/test.Test/Echo", "x", timeout: 5_000)
    GRPCServer.signal(server, "STOP")
    on_exit(fn -> System.cmd("kill", ["-KILL", "#{server.os_pid}"], stderr_to_stdout: true) end)

    for message <- [:binary.copy("l", 67_108_864), "small"] do
      {took, result} =
        elapsed(fn -> Transport.unary(channel, "/test.Test/Echo", message, timeout: 400) end)

      assert {:error, %{code: :deadline_exceeded}} = result
      assert took in 400..@late
    end

    [{:current, connection}] = :ets.lookup(channel.table, :current)
    monitor = Process.monitor(connection)
    assert :ok = Transport.close(channel)
    assert_receive {:DOWN, ^monitor, :process, _, _}, @late
  end

  # Sends until nothing more is taken: the windows, the sockets and the cap are full.
  defp fill(call) do
    task_deadline = System.monotonic_time(:millisecond) + 500
    fill(%{call | deadline: task_deadline}, :binary.copy("f", 262_144))
  end

  defp fill(call, chunk) do
    if call.unwritten < call.write_cap do
      {:ok, call} = Transport.send_message(call, chunk)
      fill(call, chunk)
    else
      call
    end
  end
end
