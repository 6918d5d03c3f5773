defmodule RankBridge.Transport.FailuresTest do
  @moduledoc "Servers that stop, die, go away and come back."

  use ExUnit.Case, async: true

  alias RankBridge.Test.{Certificates, GRPCServer}
  alias RankBridge.Transport

  defp connect(server, opts \\ []) do
    {:ok, channel} =
      Transport.connect(server.address, Keyword.merge([owner: self(), backoff: {20, 100}], opts))

    channel
  end

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
        assert took in 400..700
      end

      {took, result} =
        elapsed(fn ->
          chunks = Stream.repeatedly(fn -> :binary.copy("c", 1_048_576) end)
          Transport.client_stream(channel, "/test.Test/Count", chunks, timeout: 400)
        end)

      assert {:error, %{code: :deadline_exceeded}} = result
      assert took in 400..900
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

      %{session: session, calls: calls} = :sys.get_state(connection)
      assert map_size(calls) == 1
      assert map_size(session.streams) == 1
      assert :queue.len(session.opens) == 0
      # The cap of 2 MiB, exceeded by no more than one turn.
      assert session.unwritten < 2_097_152 + 200_000
    end

    test "is given up by keepalive", %{server: server} do
      GRPCServer.signal(server, "CONT")
      channel = connect(server, keepalive: 100)
      GRPCServer.signal(server, "STOP")

      {took, result} =
        elapsed(fn -> Transport.unary(channel, "/test.Test/Echo", "x", timeout: 20_000) end)

      assert {:error, %{code: :unavailable, sent?: true}} = result
      assert took < 2_000
    end

    test "cannot be connected to for longer than allowed", %{server: server} do
      {took, result} = elapsed(fn -> Transport.connect(server.address, connect_timeout: 300) end)
      assert {:error, %{code: :unavailable, sent?: false}} = result
      assert took in 290..1_000
    end
  end

  @tag :tmp_dir
  test "a stopped server delays neither deadlines nor closing under TLS", %{tmp_dir: dir} do
    files = Certificates.make(dir)
    server = GRPCServer.start(tls: %{"key" => files.server_key, "cert" => files.server_cert})
    channel = connect(server, tls: [cacertfile: files.ca_cert])
    assert {:ok, "x"} = Transport.unary(channel, "/test.Test/Echo", "x", timeout: 5_000)
    GRPCServer.signal(server, "STOP")
    on_exit(fn -> System.cmd("kill", ["-KILL", "#{server.os_pid}"], stderr_to_stdout: true) end)

    for message <- [:binary.copy("l", 67_108_864), "small"] do
      {took, result} =
        elapsed(fn -> Transport.unary(channel, "/test.Test/Echo", message, timeout: 400) end)

      assert {:error, %{code: :deadline_exceeded}} = result
      assert took in 400..1_000
    end

    [{:current, connection}] = :ets.lookup(channel.table, :current)
    monitor = Process.monitor(connection)
    assert :ok = Transport.close(channel)
    assert_receive {:DOWN, ^monitor, :process, _, _}, 2_000
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

  test "a killed server fails its calls at once, and later ones fast" do
    server = GRPCServer.start()
    channel = connect(server)
    call = Transport.start_unary(channel, "/test.Test/Hang", "x", timeout: 60_000)
    {:ok, stream} = Transport.open_stream(channel, "/test.Test/Chat", timeout: 60_000)
    assert GRPCServer.line(server, "hanging") == "hanging x"
    GRPCServer.kill(server)

    {took, result} = elapsed(fn -> Transport.await(call) end)
    assert {:error, %{code: :unavailable, sent?: true}} = result
    assert took < 2_000
    assert {:error, %{code: :unavailable}} = Transport.recv_message(stream)

    {took, result} =
      elapsed(fn -> Transport.unary(channel, "/test.Test/Echo", "x", timeout: 60_000) end)

    assert {:error, %{code: :unavailable, sent?: false, message: message}} = result
    assert message =~ "refused"
    assert took < 2_000

    assert {:error, %{code: :unavailable, sent?: false}} =
             Transport.open_stream(channel, "/test.Test/Chat", timeout: 60_000)
  end

  test "a restarted server is found again, by patient calls at once" do
    first = GRPCServer.start()
    channel = connect(first)
    assert {:ok, "x"} = Transport.unary(channel, "/test.Test/Echo", "x", timeout: 5_000)
    GRPCServer.kill(first)

    patient = [timeout: 30_000, wait_for_ready: true]

    waiting =
      for n <- 1..10, do: Transport.start_unary(channel, "/test.Test/Echo", "#{n}", patient)

    stream =
      Task.async(fn ->
        collect = fn message, acc -> {:cont, acc + byte_size(message)} end

        Transport.server_stream(
          channel,
          "/test.Test/Stream",
          ~s({"count": 2, "size": 10}),
          0,
          collect,
          patient
        )
      end)

    GRPCServer.start(address: first.address)
    assert Enum.map(waiting, &Transport.await/1) == for(n <- 1..10, do: {:ok, "#{n}"})
    assert Task.await(stream, 30_000) == {:ok, 20}
    assert {:ok, "x"} = Transport.unary(channel, "/test.Test/Echo", "x", timeout: 5_000)
  end

  test "a patient call keeps its deadline, and an abandoned one is forgotten" do
    server = GRPCServer.start()
    channel = connect(server)
    GRPCServer.kill(server)

    {took, result} =
      elapsed(fn ->
        Transport.unary(channel, "/test.Test/Echo", "x", timeout: 300, wait_for_ready: true)
      end)

    assert {:error, %{code: :deadline_exceeded}} = result
    assert took in 300..600

    parent = self()

    {caller, monitor} =
      spawn_monitor(fn ->
        Transport.start_unary(channel, "/test.Test/Echo", "x", wait_for_ready: true)
        send(parent, {:waiting, map_size(:sys.get_state(channel.pid).waiting)})
        Process.sleep(:infinity)
      end)

    assert_receive {:waiting, 1}, 5_000
    Process.exit(caller, :kill)
    assert_receive {:DOWN, ^monitor, :process, ^caller, :killed}
    assert map_size(:sys.get_state(channel.pid).waiting) == 0
  end

  test "a server that stops gracefully ends running calls, and later ones fail or wait" do
    first = GRPCServer.start()
    channel = connect(first)

    running =
      Transport.start_unary(channel, "/test.Test/HangUntilTold", "running", timeout: 30_000)

    assert GRPCServer.line(first, "waiting") == "waiting running"
    GRPCServer.command(first, "stop 20")
    assert GRPCServer.line(first, "stopping") == "stopping"

    # It no longer listens, so another can take its place before it is gone.
    second = GRPCServer.start(address: first.address)

    assert {:ok, "x"} =
             Transport.unary(channel, "/test.Test/Echo", "x",
               timeout: 10_000,
               wait_for_ready: true
             )

    _ = second

    GRPCServer.command(first, "release")
    assert {:ok, "running"} = Transport.await(running)
    assert GRPCServer.line(first, "stopped") == "stopped"
    assert {:ok, "y"} = Transport.unary(channel, "/test.Test/Echo", "y", timeout: 10_000)
  end

  test "a server that closes connections by age loses no call" do
    server =
      GRPCServer.start(
        options: %{
          "grpc.max_connection_age_ms" => 100,
          "grpc.max_connection_age_grace_ms" => 5_000
        }
      )

    channel = connect(server)
    over = System.monotonic_time(:millisecond) + 1_500
    calls = call_until(channel, over, 0)
    assert calls > 50
  end

  defp call_until(channel, over, calls) do
    if System.monotonic_time(:millisecond) < over do
      batch =
        for n <- 1..5,
            do: {n, Transport.start_unary(channel, "/test.Test/Echo", "#{n}", timeout: 10_000)}

      for {n, call} <- batch, do: assert(Transport.await(call) == {:ok, "#{n}"})
      call_until(channel, over, calls + 5)
    else
      calls
    end
  end

  test "a connection killed from inside fails its calls, and is replaced" do
    server = GRPCServer.start()
    channel = connect(server)
    call = Transport.start_unary(channel, "/test.Test/Hang", "x", timeout: 20_000)
    assert GRPCServer.line(server, "hanging") == "hanging x"
    [{:current, connection}] = :ets.lookup(channel.table, :current)
    Process.exit(connection, :kill)
    assert {:error, %{code: :unavailable, sent?: true}} = Transport.await(call)

    assert {:ok, "y"} =
             Transport.unary(channel, "/test.Test/Echo", "y", timeout: 5_000, wait_for_ready: true)
  end

  test "a call that met a connection in its last moment goes to the next one" do
    server = GRPCServer.start()
    channel = connect(server)

    for last_moment <- [
          fn -> exit({:shutdown, "it had ended before it read its mail"}) end,
          fn -> exit(:normal) end
        ] do
      ending = spawn(fn -> receive do: ({:open, _ref, _request} -> last_moment.()) end)
      table = :ets.new(:stale, [:public])
      :ets.insert(table, {:current, ending})
      stale = %{channel | table: table}
      assert {:ok, "x"} = Transport.unary(stale, "/test.Test/Echo", "x", timeout: 5_000)
    end
  end

  describe "closing" do
    test "ends running and waiting calls as cancelled, and leaves no process" do
      server = GRPCServer.start()
      {:ok, channel} = Transport.connect(server.address)
      [{:current, connection}] = :ets.lookup(channel.table, :current)
      writer = :sys.get_state(connection).writer
      monitors = for pid <- [channel.pid, connection, writer], do: Process.monitor(pid)

      call = Transport.start_unary(channel, "/test.Test/Hang", "x", timeout: 20_000)
      assert GRPCServer.line(server, "hanging") == "hanging x"
      assert :ok = Transport.close(channel)
      assert {:error, %{code: :cancelled, sent?: true}} = Transport.await(call)
      for monitor <- monitors, do: assert_receive({:DOWN, ^monitor, :process, _, _}, 5_000)
      assert GRPCServer.line(server, "cancelled") == "cancelled x"

      assert :ok = Transport.close(channel)

      assert {:error, %{code: :cancelled, sent?: false}} =
               Transport.unary(channel, "/test.Test/Echo", "x")

      {:ok, lazy} = Transport.connect(server.address, lazy: true)
      Transport.close(lazy)
      assert {:error, %{code: :cancelled}} = Transport.open_stream(lazy, "/test.Test/Chat")
    end

    test "happens with the owner's end, and with no one else's" do
      server = GRPCServer.start()
      parent = self()

      owner =
        spawn(fn ->
          {:ok, owned} = Transport.connect(server.address, owner: self())
          {:ok, free} = Transport.connect(server.address)
          send(parent, {owned, free})
          receive do: (:stop -> :ok)
        end)

      assert_receive {owned, free}, 10_000
      monitor = Process.monitor(owned.pid)
      assert {:ok, "x"} = Transport.unary(owned, "/test.Test/Echo", "x", timeout: 5_000)
      send(owner, :stop)
      assert_receive {:DOWN, ^monitor, :process, _, :normal}, 5_000
      assert {:ok, "x"} = Transport.unary(free, "/test.Test/Echo", "x", timeout: 5_000)
      Transport.close(free)
    end
  end

  test "a channel whose maker dies while it connects is not left behind" do
    # Accepts, and says nothing.
    {:ok, listener} = :gen_tcp.listen(0, [:binary, active: false, ip: {127, 0, 0, 1}])
    {:ok, port} = :inet.port(listener)
    maker = spawn(fn -> Transport.connect("127.0.0.1:#{port}", connect_timeout: 60_000) end)
    {:ok, socket} = :gen_tcp.accept(listener, 5_000)
    assert {:ok, _preface} = :gen_tcp.recv(socket, 24, 5_000)
    Process.exit(maker, :kill)
    assert closed?(socket)
  end

  defp closed?(socket) do
    case :gen_tcp.recv(socket, 0, 5_000) do
      {:ok, _settings_and_goaway} -> closed?(socket)
      {:error, reason} -> reason == :closed
    end
  end

  test "a target without a server is unavailable" do
    for target <- ["127.0.0.1:1", "unix:///nowhere/at/all.sock", "no-such-host.invalid:80"] do
      assert {:error, %{code: :unavailable, sent?: false}} = Transport.connect(target)
    end
  end
end
