defmodule RankBridge.Transport.FailuresTest do
  @moduledoc "Servers that die, go away and come back; channels that are closed."

  use ExUnit.Case, async: true

  import RankBridge.Test.Soon

  alias RankBridge.Test.GRPCServer
  alias RankBridge.Transport

  # Milliseconds for what must come by itself, on a busy machine: less than the timeouts of calls that must not wait for them.
  @late 20_000

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

  test "a killed server fails its calls at once, and later ones fast" do
    server = GRPCServer.start()
    channel = connect(server)
    call = Transport.start_unary(channel, "/test.Test/Hang", "x", timeout: 60_000)
    {:ok, stream} = Transport.open_stream(channel, "/test.Test/Chat", timeout: 60_000)
    assert GRPCServer.line(server, "hanging") == "hanging x"
    GRPCServer.kill(server)

    {took, result} = elapsed(fn -> Transport.await(call) end)
    assert {:error, %{code: :unavailable, sent?: true}} = result
    assert took < @late
    assert {:error, %{code: :unavailable}} = Transport.recv_message(stream)

    {took, result} =
      elapsed(fn -> Transport.unary(channel, "/test.Test/Echo", "x", timeout: 60_000) end)

    assert {:error, %{code: :unavailable, sent?: false, message: message}} = result
    assert message =~ "refused"
    assert took < @late

    assert {:error, %{code: :unavailable, sent?: false}} =
             Transport.open_stream(channel, "/test.Test/Chat", timeout: 60_000)
  end

  test "a restarted server is found again, by patient calls at once" do
    first = GRPCServer.start()
    channel = connect(first)
    assert {:ok, "x"} = Transport.unary(channel, "/test.Test/Echo", "x", timeout: 5_000)
    call = Transport.start_unary(channel, "/test.Test/Hang", "x", timeout: 60_000)
    assert GRPCServer.line(first, "hanging") == "hanging x"
    GRPCServer.kill(first)
    # What is begun before the connection is known to be lost is sent on it.
    assert {:error, %{code: :unavailable}} = Transport.await(call)

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
    call = Transport.start_unary(channel, "/test.Test/HangUntilTold", "x", timeout: 30_000)
    assert GRPCServer.line(server, "waiting") == "waiting x"
    GRPCServer.kill(server)
    # What is begun before the connection is known to be lost is sent on it.
    assert {:error, %{code: :unavailable}} = Transport.await(call)

    {took, result} =
      elapsed(fn ->
        Transport.unary(channel, "/test.Test/Echo", "x", timeout: 300, wait_for_ready: true)
      end)

    assert {:error, %{code: :deadline_exceeded}} = result
    assert took in 300..@late

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
    # Who else watches the caller hears of its end in its own time.
    assert_soon(0, fn -> map_size(:sys.get_state(channel.pid).waiting) end)
  end

  test "a server that stops gracefully ends running calls, and later ones fail or wait" do
    first = GRPCServer.start()
    channel = connect(first)

    running =
      Transport.start_unary(channel, "/test.Test/HangUntilTold", "running", timeout: 120_000)

    assert GRPCServer.line(first, "waiting") == "waiting running"
    GRPCServer.command(first, "stop 120")
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
    call_until(channel, over, 0)
  end

  # A busy machine may need longer for so many calls that they meet connections of every age.
  defp call_until(channel, over, calls) do
    if calls < 50 or System.monotonic_time(:millisecond) < over do
      batch =
        for n <- 1..5,
            do: {n, Transport.start_unary(channel, "/test.Test/Echo", "#{n}", timeout: 10_000)}

      for {n, call} <- batch, do: assert(Transport.await(call) == {:ok, "#{n}"})
      call_until(channel, over, calls + 5)
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
