defmodule RankBridge.Transport.ConnectionTest do
  @moduledoc "The life of a connection, against a server that the test plays by hand."

  use ExUnit.Case, async: true

  import RankBridge.Test.FakeServer
  import RankBridge.Test.Soon

  alias RankBridge.Transport
  alias RankBridge.Transport.HTTP2.{Channel, Connection, Frame, Writer}
  alias RankBridge.Transport.Target

  @path "/test.Test/Echo"
  @max_concurrent_streams 3
  @initial_window_size 4

  setup do
    {listener, target} = listen()
    %{listener: listener, target: target}
  end

  describe "the connection" do
    test "begins with push disabled and wide windows", context do
      {:ok, _channel} = Transport.connect(context.target, lazy: true, owner: self())
      {socket, settings} = accept(context.listener)
      assert {2, 0} in settings
      assert {@initial_window_size, 4_194_304} in settings
      assert {:window_update, 0, increment} = next(socket)
      assert increment + 65_535 == 67_108_864
    end

    test "answers PING", context do
      {_channel, socket} = connect(context)
      write(socket, Frame.ping("01234567", false))
      assert {:ping, "01234567", true} = next(socket, :ping)
    end

    test "does not answer SETTINGS ACK or PING ACK", context do
      {_channel, socket} = connect(context)

      write(socket, [
        Frame.settings_ack(),
        Frame.ping("unasked?", true),
        Frame.ping("sentinel", false)
      ])

      assert {:ping, "sentinel", true} = next(socket, :ping)
    end

    test "replenishes both windows", context do
      {channel, socket} = connect(context, stream_window: 100, connection_window: 65_535)
      call = unary(channel)
      id = request(socket)
      write(socket, [headers(id), Frame.data(id, <<0, 60::32, 0::480>>, 65, false)])
      assert {:window_update, ^id, 65} = next(socket, :window_update)
      write(socket, trailers(id))
      assert {:ok, <<0::480>>} = Transport.await(call)
    end

    test "waits no longer than asked for a server that says nothing", context do
      started = System.monotonic_time(:millisecond)

      assert {:error, %{code: :unavailable, sent?: false}} =
               Transport.connect(context.target, connect_timeout: 200)

      # What a busy machine may need beyond that; otherwise it would be for ever.
      assert (System.monotonic_time(:millisecond) - started) in 190..20_000
    end

    test "fails no sooner than its channel can hear why" do
      connection = connection("unix:/nowhere/at/all.sock", self())
      # Whatever it does by itself is done before it answers.
      _state = :sys.get_state(connection)
      monitor = Process.monitor(connection)
      send(connection, :connect)
      assert_receive {:DOWN, ^monitor, :process, ^connection, {:shutdown, why}}
      assert why =~ "no such file or directory"
    end

    test "ends with a channel that has not begun it", context do
      channel = spawn(fn -> receive do: (:end -> :ok) end)
      connection = connection(context.target, channel)
      monitor = Process.monitor(connection)
      send(channel, :end)
      assert_receive {:DOWN, ^monitor, :process, ^connection, {:shutdown, _why}}
    end

    test "with a server of another protocol is refused", context do
      {:ok, channel} = Transport.connect(context.target, lazy: true, owner: self())
      call = unary(channel)
      {socket, _} = accept(context.listener)
      write(socket, "HTTP/1.1 400 Bad Request\r\n\r\n")
      assert {:error, %{code: :unavailable, sent?: false}} = Transport.await(call)
    end

    test "is given up when pings are not answered, and kept while they are", context do
      {channel, socket} = connect(context, keepalive: 3_600_000)
      call = unary(channel)
      request(socket)
      [{_monitor, connection}] = Map.to_list(:sys.get_state(channel.pid).connections)
      # The test ends each interval itself: no answer comes too late then.
      interval = fn -> send(connection, {:timeout, make_ref(), :keepalive}) end
      alive? = fn -> :sys.get_state(connection).alive? end

      for _ <- 1..5 do
        for _ <- 1..2, do: interval.()
        assert {:ping, opaque, false} = next(socket, :ping)
        write(socket, Frame.ping(opaque, true))
        assert_soon(true, alive?)
      end

      for _ <- 1..2, do: interval.()
      assert {:ping, _, false} = next(socket, :ping)
      interval.()

      assert {:error, %{code: :unavailable, message: message, sent?: true}} =
               Transport.await(call)

      assert message =~ "keepalive"
    end
  end

  defp connection(target, channel) do
    {:ok, target} = Target.parse(target)

    arguments = %{
      channel: channel,
      table: :ets.new(:current, [:public]),
      target: target,
      opts: [connect_timeout: 5_000],
      writer: start_supervised!({Writer, []})
    }

    start_supervised!({Connection, arguments})
  end

  describe "a host with several addresses" do
    # Nobody else on this host listens there, so that a port which is free at one is free at the other.
    @hole {127, 95, 0, 2}
    @other {127, 95, 0, 1}

    test "is reached at the second when the first swallows what is sent" do
      {:ok, hole} = :gen_tcp.listen(0, ip: @hole, backlog: 1, active: false)
      {:ok, port} = :inet.port(hole)
      waiting = fill(port, [])
      {:ok, listener} = :gen_tcp.listen(port, [:binary, active: false, ip: @other])
      :ok = :inet_db.add_host(@hole, [~c"two-addresses.test"])
      :ok = :inet_db.add_host(@other, [~c"two-addresses.test"])
      lookup = :inet_db.res_option(:lookup)
      :ok = :inet_db.set_lookup([:file | lookup])

      on_exit(fn ->
        :inet_db.set_lookup(lookup)
        for address <- [@hole, @other], do: :inet_db.del_host(address)
      end)

      assert {:ok, addresses} = :inet.getaddrs(~c"two-addresses.test", :inet)
      assert Enum.sort(addresses) == Enum.sort([@hole, @other])
      opts = [lazy: true, owner: self(), connect_timeout: 2_000]
      {:ok, _channel} = Transport.connect("two-addresses.test:#{port}", opts)
      assert {_socket, [_setting | _settings]} = accept(listener)
      Enum.each([hole | waiting], &:gen_tcp.close/1)
    end

    # A listener whose queue is full takes no notice of who comes.
    defp fill(port, sockets) do
      case :gen_tcp.connect(@hole, port, [active: false], 1_000) do
        {:ok, socket} when length(sockets) < 20 -> fill(port, [socket | sockets])
        {:error, :timeout} -> sockets
      end
    end
  end

  describe "what one caller or peer does wrong" do
    test "a timeout that is no whole number is its caller's error, and nobody else's", context do
      {channel, socket} = connect(context)
      call = unary(channel)
      id = request(socket)
      assert_raise ArgumentError, ~r/timeout: 0.5/, fn -> unary(channel, "x", timeout: 0.5) end
      respond(socket, id, "fine")
      assert {:ok, "fine"} = Transport.await(call)
    end

    test "a handshake's timer that fires as it is cancelled ends nothing", context do
      {:ok, channel} = Transport.connect(context.target, lazy: true, owner: self())
      {socket, _settings} = accept(context.listener)
      [{_monitor, connection}] = Map.to_list(:sys.get_state(channel.pid).connections)
      %{handshake: timer} = :sys.get_state(connection)
      write(socket, [Frame.settings([]), Frame.settings_ack()])
      assert :settings_ack = next(socket, :settings_ack)
      send(connection, {:timeout, timer, :handshake})
      call = unary(channel)
      respond(socket, request(socket), "fine")
      assert {:ok, "fine"} = Transport.await(call)
    end

    test "a server that does not acknowledge SETTINGS is left", context do
      {:ok, _channel} =
        Transport.connect(context.target, lazy: true, owner: self(), connect_timeout: 2_000)

      {socket, _settings} = accept(context.listener)
      write(socket, Frame.settings([]))
      assert {:goaway, _last_id, :settings_timeout, _debug} = next(socket, :goaway)
    end

    test "a call with more headers than the server takes is refused, and others go on", context do
      {channel, socket} = connect(context, settings: [{6, 1_000}])
      large = unary(channel, "x", metadata: [{"key", String.duplicate("v", 1_000)}])

      assert {:error, %{code: :resource_exhausted, sent?: false, message: message}} =
               Transport.await(large)

      assert message =~ "at most 1000"
      call = unary(channel)
      respond(socket, request(socket), "fine")
      assert {:ok, "fine"} = Transport.await(call)
    end

    test "calls after a failed write go to another connection", context do
      {channel, socket} = connect(context, backoff: {10, 10})
      [{_monitor, connection}] = Map.to_list(:sys.get_state(channel.pid).connections)
      # As the writer reports it, while the socket still looks well.
      send(connection, {:write_failed, :epipe})
      # Who waits for a call sends it again if the connection ended just before it came.
      call = Task.async(fn -> Transport.await(unary(channel, "elsewhere")) end)
      other = serve(context.listener)
      respond(other, request(other), "fine")
      assert {:ok, "fine"} = Task.await(call)
      :ok = :gen_tcp.close(socket)
    end

    test "a server that counts too many pings is asked half as often, and not again at once",
         context do
      {channel, socket} =
        connect(context, keepalive: 20_000, keepalive_without_calls: true, backoff: {300, 300})

      :ok = Channel.await_ready(channel.pid)
      # It has lasted, as far as the channel can know.
      :sys.replace_state(channel.pid, &%{&1 | ready_at: &1.ready_at - 60_000})
      closed = System.monotonic_time(:millisecond)
      write(socket, Frame.goaway(0, :enhance_your_calm, "too_many_pings"))
      {_other, _settings} = accept(context.listener)
      assert System.monotonic_time(:millisecond) - closed >= 200
      assert :sys.get_state(channel.pid).opts[:keepalive] == 40_000
    end
  end

  describe "a refused stream" do
    test "is sent again if its request is complete", context do
      {channel, socket} = connect(context)
      call = unary(channel, "again")
      assert 1 = request(socket)
      write(socket, Frame.rst_stream(1, :refused_stream))
      assert {:headers, 3, _, false, true} = next(socket, :headers)
      assert {:data, 3, <<_::40, "again">>, true, _} = next(socket)
      respond(socket, 3, "ok")
      assert {:ok, "ok"} = Transport.await(call)
    end

    test "is sent again at once one time, then after longer and longer pauses, and not for ever",
         context do
      {channel, socket} = connect(context)
      call = unary(channel)

      times =
        for _ <- 1..9 do
          id = request(socket)
          time = System.monotonic_time(:millisecond)
          write(socket, Frame.rst_stream(id, :refused_stream))
          time
        end

      assert {:error, %{code: :unavailable, sent?: false}} = Transport.await(call)

      [_at_once | pauses] = Enum.zip_with(tl(times), times, &-/2)
      least = [10, 20, 40, 80, 160, 320, 640]
      assert pauses |> Enum.zip(least) |> Enum.all?(fn {pause, least} -> pause >= least - 1 end)
      assert length(pauses) == length(least)
    end

    test "that waits to be sent again goes to another connection when its own ends", context do
      {channel, socket} = connect(context, backoff: {10, 10})
      call = unary(channel, "again")
      # The last pause is 640 ms.
      for _ <- 1..8, do: write(socket, Frame.rst_stream(request(socket), :refused_stream))
      :ok = :gen_tcp.close(socket)
      socket = serve(context.listener)
      respond(socket, request(socket), "ok")
      assert {:ok, "ok"} = Transport.await(call)
    end

    test "that waits to be sent again ends with its caller and its deadline", context do
      {channel, socket} = connect(context)
      server = Task.async(fn -> refuse_until(socket, "last") end)
      # To be refused for the last time takes 1,270 ms.
      late = unary(channel, "late", timeout: 500)
      assert {:error, %{code: :deadline_exceeded}} = Transport.await(late)
      last = unary(channel, "last")
      respond(socket, Task.await(server), "ok")
      assert {:ok, "ok"} = Transport.await(last)
    end

    # Refuses every request up to the one with this message, and returns that one's stream.
    defp refuse_until(socket, message) do
      {:headers, id, _, false, true} = next(socket, :headers)
      {:data, ^id, <<_::40, text::binary>>, true, _} = next(socket, :data)

      if text == message do
        id
      else
        write(socket, Frame.rst_stream(id, :refused_stream))
        refuse_until(socket, message)
      end
    end

    test "fails as not sent if more might have followed", context do
      {channel, socket} = connect(context)
      {:ok, call} = Transport.open_stream(channel, @path, timeout: 5_000)
      {:headers, id, _, false, true} = next(socket, :headers)
      write(socket, Frame.rst_stream(id, :refused_stream))
      assert {:error, %{code: :unavailable, sent?: false}} = Transport.recv_message(call)
    end
  end

  describe "GOAWAY" do
    test "lets streams end, and moves those beyond the last id and new calls", context do
      {channel, socket} = connect(context)
      goes_on = unary(channel)
      beyond = unary(channel)
      {:ok, open} = Transport.open_stream(channel, @path, timeout: 5_000)
      assert 1 = request(socket)
      assert 3 = request(socket)
      assert {:headers, 5, _, false, true} = next(socket, :headers)
      write(socket, Frame.goaway(1, :no_error, "bye"))

      assert {:error, %{code: :unavailable, sent?: false, message: message}} =
               Transport.recv_message(open)

      assert message =~ "bye"

      new = unary(channel)
      second = serve(context.listener)
      assert 1 = request(second)
      assert 3 = request(second)
      respond(second, 1, "from the second")
      respond(second, 3, "from the second, too")
      assert {:ok, "from the second"} = Transport.await(beyond)
      assert {:ok, "from the second, too"} = Transport.await(new)

      respond(socket, 1, "from the first")
      assert {:ok, "from the first"} = Transport.await(goes_on)
      # Nothing is left to do on the first connection.
      assert {:goaway, 0, :no_error, ""} = next(socket, :goaway)
      assert :closed = next(socket)
    end

    test "with the very first SETTINGS leads to another connection, and fails no call", context do
      {:ok, channel} = Transport.connect(context.target, lazy: true, owner: self())
      call = unary(channel)
      {first, _} = accept(context.listener)
      write(first, [Frame.settings([]), Frame.goaway(0, :no_error, "")])
      second = serve(context.listener)
      respond(second, request(second), "ok")
      assert {:ok, "ok"} = Transport.await(call)
    end

    test "in two steps, as servers do it gracefully, loses no call", context do
      {channel, socket} = connect(context)
      call = unary(channel)
      assert 1 = request(socket)
      write(socket, Frame.goaway(2_147_483_647, :no_error, ""))
      write(socket, Frame.goaway(1, :no_error, ""))
      respond(socket, 1, "ok")
      assert {:ok, "ok"} = Transport.await(call)
    end

    test "moves complete calls that were queued, and refuses open ones", context do
      {channel, socket} = connect(context, settings: [{@max_concurrent_streams, 1}])
      running = unary(channel)
      assert 1 = request(socket)
      queued = unary(channel)
      {:ok, open} = Transport.open_stream(channel, @path, timeout: 5_000)
      write(socket, Frame.goaway(1, :no_error, ""))
      assert {:error, %{code: :unavailable, sent?: false}} = Transport.recv_message(open)

      second = serve(context.listener)
      assert 1 = request(second)
      respond(second, 1, "moved")
      assert {:ok, "moved"} = Transport.await(queued)
      respond(socket, 1, "ok")
      assert {:ok, "ok"} = Transport.await(running)
    end

    test "for too many pings ends the calls with the server's word", context do
      {channel, socket} = connect(context)
      {:ok, call} = Transport.open_stream(channel, @path, timeout: 5_000)
      next(socket, :headers)
      write(socket, Frame.goaway(0, :enhance_your_calm, "too_many_pings"))
      assert {:error, %{code: :unavailable, message: message}} = Transport.recv_message(call)
      assert message =~ "ENHANCE_YOUR_CALM: too_many_pings"
    end
  end

  describe "limits of the server" do
    test "MAX_CONCURRENT_STREAMS queues calls, and cancelled ones are never sent", context do
      {channel, socket} = connect(context, settings: [{@max_concurrent_streams, 1}])
      [first, second, third] = for text <- ~w(first second third), do: unary(channel, text)
      assert 1 = request(socket)
      Transport.cancel(second)
      # The channel passes it on, before it answers this.
      _state = :sys.get_state(channel.pid)
      write(socket, Frame.ping("sentinel", false))
      assert {:ping, "sentinel", true} = next(socket)

      respond(socket, 1, "one")
      assert {:ok, "one"} = Transport.await(first)
      assert {:headers, 3, _, false, true} = next(socket)
      assert {:data, 3, <<_::40, "third">>, true, _} = next(socket)
      respond(socket, 3, "three")
      assert {:ok, "three"} = Transport.await(third)
    end

    test "MAX_CONCURRENT_STREAMS may be raised later", context do
      {channel, socket} = connect(context, settings: [{@max_concurrent_streams, 0}])
      call = unary(channel)
      write(socket, Frame.ping("sentinel", false))
      assert {:ping, "sentinel", true} = next(socket, :ping)
      write(socket, Frame.settings([{@max_concurrent_streams, 1}]))
      assert 1 = request(socket)
      respond(socket, 1, "ok")
      assert {:ok, "ok"} = Transport.await(call)
    end

    test "exhausted stream ids lead to another connection", context do
      {channel, socket} = connect(context, first_stream_id: 2_147_483_645)
      calls = for _ <- 1..3, do: unary(channel)
      assert 2_147_483_645 = request(socket)
      assert 2_147_483_647 = request(socket)
      second = serve(context.listener)
      assert 2_147_483_645 = request(second)
      respond(second, 2_147_483_645, "third")
      respond(socket, 2_147_483_647, "second")
      respond(socket, 2_147_483_645, "first")

      assert [{:ok, "first"}, {:ok, "second"}, {:ok, "third"}] =
               Enum.map(calls, &Transport.await/1)
    end
  end
end
