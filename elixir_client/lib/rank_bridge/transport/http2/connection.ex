defmodule RankBridge.Transport.HTTP2.Connection do
  @moduledoc false
  # The process of one HTTP/2 connection. It owns the socket and runs a `Protocol`; it never blocks on the
  # peer and does none of the callers' work.
  #
  # Callers send it `{:open, ref, request}`, `{:send, ref, data, bytes, fin?}`, `{:consume, ref, bytes}` and
  # `{:cancel, ref, code}`, and get `{ref, events}` through the alias `ref`, see `Protocol`; and
  # `{ref, [{:at, pid}]}` when the call has moved to another process. The channel is told `{:ready, pid}` and
  # `{:draining, pid}`. The exit reason is `{:shutdown, why}`, with `why` for people; every call that was
  # received has had its last event by then.

  use GenServer, restart: :temporary

  alias RankBridge.Hidden
  alias RankBridge.Transport.HTTP2.{Protocol, Writer}
  alias RankBridge.Transport.{Socket, Target}

  # Milliseconds that a broken connection has to say why, and that a last write may take.
  @last_words 500
  @last_write 100
  # Milliseconds before a refused call is opened a second time again, and at most. Doubles each time.
  @first_pause 10
  @longest_pause 1_000

  defstruct [
    :channel,
    :table,
    :target,
    :opts,
    :socket,
    :writer,
    :protocol,
    :handshake,
    :keepalive,
    status: :handshake,
    calls: %{},
    callers: %{},
    refused: %{},
    alive?: true,
    pinged?: false
  ]

  @doc """
  Starts a connection of a channel, which connects when the channel sends it `:connect`. `table` holds `{:current, pid}` while
  new calls may go to a connection, which takes itself out. Options: those of `RankBridge.Transport.connect/2`. `writer` ends
  with the connection.
  """
  @spec start_link(%{
          channel: pid(),
          table: :ets.table(),
          target: Target.t(),
          opts: keyword(),
          writer: pid()
        }) :: GenServer.on_start()
  def start_link(arguments), do: GenServer.start_link(__MODULE__, arguments)

  @impl GenServer
  def init(arguments) do
    Process.link(arguments.writer)
    Process.monitor(arguments.channel)
    {:ok, struct!(__MODULE__, arguments)}
  end

  @impl GenServer
  def handle_info(:connect, %{opts: opts} = state) do
    timeout = opts[:connect_timeout]
    started = now()

    with {:ok, socket} <- Socket.connect(state.target, Hidden.reveal(opts[:tls]), timeout),
         :ok <- Socket.activate(socket) do
      # From here on callers have their last event, and the peer its last frame, when the supervisor ends this process; while it
      # connects it ends at once.
      Process.flag(:trap_exit, true)
      protocol = Protocol.new(opts)
      :ok = Writer.attach(state.writer, socket, min(65_536, div(protocol.write_cap, 4) + 1))
      handshake = :erlang.start_timer(max(timeout - (now() - started), 0), self(), :handshake)

      state = %{
        state
        | socket: socket,
          handshake: handshake,
          keepalive: opts[:keepalive]
      }

      schedule_keepalive(state)
      step(state, protocol)
    else
      {:error, why} when is_binary(why) -> {:stop, {:shutdown, why}, state}
      {:error, why} -> {:stop, {:shutdown, inspect(why)}, state}
    end
  end

  def handle_info(
        {:DOWN, _monitor, :process, channel, _why},
        %{channel: channel, socket: nil} = state
      ),
      do: {:stop, {:shutdown, "the channel was closed"}, state}

  def handle_info({:open, ref, request}, %{protocol: protocol} = state) do
    monitor = Process.monitor(request.caller)
    calls = Map.put(state.calls, ref, {monitor, deadline_timer(ref, request.deadline)})
    state = %{state | calls: calls, callers: Map.put(state.callers, monitor, ref)}
    step(state, Protocol.open(protocol, ref, request))
  end

  def handle_info({:send, ref, data, bytes, fin?}, state),
    do: step(state, Protocol.send_data(state.protocol, ref, data, bytes, fin?))

  def handle_info({:consume, ref, bytes}, state),
    do: step(state, Protocol.consume(state.protocol, ref, bytes))

  def handle_info({:written, bytes}, state),
    do: step(state, Protocol.written(state.protocol, bytes))

  def handle_info({:cancel, ref, code}, state), do: cancel(state, ref, code)

  def handle_info({:DOWN, _monitor, :process, channel, _why}, %{channel: channel} = state),
    do: channel_closed(state)

  def handle_info({:EXIT, channel, _why}, %{channel: channel} = state), do: channel_closed(state)

  def handle_info({:DOWN, monitor, :process, _pid, _why}, state) do
    case state.callers do
      %{^monitor => ref} -> cancel(state, ref, :cancel)
      _ -> {:noreply, state}
    end
  end

  # The caller watches its deadline itself. This is for those that forget their calls.
  def handle_info({:timeout, _timer, {:deadline, ref}}, state), do: cancel(state, ref, :cancel)

  def handle_info({:timeout, timer, :handshake}, %{handshake: timer} = state),
    do: lost(state, "no SETTINGS from the server within #{state.opts[:connect_timeout]} ms")

  def handle_info({:timeout, _timer, {:again, ref}}, state) do
    case Map.pop(state.refused, ref) do
      {nil, _refused} ->
        {:noreply, state}

      {request, refused} ->
        step(%{state | refused: refused}, Protocol.open(state.protocol, ref, request))
    end
  end

  def handle_info({:timeout, _timer, :settings_ack}, state),
    do: step(state, Protocol.require_settings_ack(state.protocol))

  def handle_info({:timeout, _timer, :keepalive}, state), do: keepalive(state)
  def handle_info({:timeout, _timer, {:broken, why}}, state), do: lost(state, why)

  def handle_info({:EXIT, writer, why}, %{writer: writer} = state),
    do: lost(state, "the writer has ended: #{inspect(why)}")

  # The peer may have said why, which is still to be read. Nothing new is sent on this connection.
  def handle_info({:write_failed, reason}, state) do
    _ = :erlang.start_timer(@last_words, self(), {:broken, "writing failed: #{inspect(reason)}"})

    if state.status == :open,
      do: step(state, Protocol.drain(state.protocol)),
      else: {:noreply, state}
  end

  def handle_info(message, state) do
    case Socket.message(state.socket, message) do
      {:data, data} -> step(%{state | alive?: true}, Protocol.receive_bytes(state.protocol, data))
      :passive -> reactivate(state)
      {:closed, why} -> lost(state, why <> hint(state))
      nil -> {:noreply, state}
    end
  end

  @impl GenServer
  def terminate(_reason, state) do
    state = closed(state)
    withdraw(state.table)
    for {ref, request} <- state.refused, do: forward(state.channel, ref, request)
    forward_late_calls(state.channel)

    if state.socket do
      flushed? = Writer.flush(state.writer, @last_write)
      monitor = Process.monitor(state.writer)
      Process.exit(state.writer, :shutdown)
      receive do: ({:DOWN, ^monitor, :process, _pid, _why} -> :ok)
      Socket.close(state.socket, not flushed?)
    end
  end

  # Its supervisor may end it while calls are running.
  defp closed(%{socket: nil} = state), do: state
  defp closed(%{protocol: %{status: :closed}} = state), do: state

  defp closed(state) do
    {:stop, _reason, state} = channel_closed(state)
    state
  end

  defp channel_closed(state),
    do: step(state, Protocol.terminate(state.protocol, {:shutdown, "the channel was closed"}))

  # Before Elixir 1.17 it is a callback of OTP alone.
  if {:format_status, 1} in GenServer.behaviour_info(:callbacks), do: @impl(GenServer)
  @doc false
  @spec format_status(map()) :: map()
  def format_status(status), do: Hidden.format_status(status, &shown/1)

  # What calls send and receive is in the protocol.
  defp shown(%__MODULE__{} = state) do
    streams = if state.protocol, do: Protocol.stream_count(state.protocol), else: 0
    %{state | protocol: "#{streams} streams", refused: Map.keys(state.refused)}
  end

  defp reactivate(state) do
    case Socket.activate(state.socket) do
      :ok -> {:noreply, state}
      {:error, _closed} -> lost(state, "the server closed the connection")
    end
  end

  # How it looks when a server accepts the connection and then shows this client out.
  defp hint(%{status: :handshake}), do: "; does it speak TLS, or demand a certificate?"
  defp hint(_state), do: ""

  defp lost(state, why), do: step(state, Protocol.terminate(state.protocol, {:lost, why}))

  defp cancel(state, ref, code) do
    protocol = Protocol.cancel(state.protocol, ref, code)
    state |> release(ref) |> step(protocol)
  end

  # After every change: writes the output, delivers the events, and goes on or stops.
  defp step(state, protocol) do
    {out, bytes, events, protocol} = Protocol.take(protocol)
    if bytes > 0, do: Writer.write(state.writer, out, bytes)
    state = %{state | protocol: protocol} |> announce(protocol.status) |> deliver(events)

    case protocol do
      %{status: :closed, error: {_code, why}} -> {:stop, {:shutdown, why}, state}
      %{status: :draining} -> end_if_idle(state)
      _ -> {:noreply, state}
    end
  end

  defp end_if_idle(state) do
    if Protocol.stream_count(state.protocol) == 0,
      do: lost(state, "the connection was drained"),
      else: {:noreply, state}
  end

  # Before any event of the same step, so that calls that move away do not come back.
  defp announce(%{status: status} = state, status), do: state

  defp announce(state, :open) do
    _ = :erlang.cancel_timer(state.handshake)
    send(state.channel, {:ready, self()})
    _ = :erlang.start_timer(state.opts[:connect_timeout], self(), :settings_ack)
    # A timer that fired before it was cancelled is not this one any more.
    %{state | status: :open, handshake: nil}
  end

  # A connection that never was ready says by its end why.
  defp announce(%{status: :handshake} = state, :closed), do: %{state | status: :closed}

  defp announce(state, status) do
    withdraw(state.table)

    if status == :draining and state.protocol.too_many_pings?,
      do: send(state.channel, :too_many_pings)

    send(state.channel, {:draining, self()})
    %{state | status: status}
  end

  defp withdraw(table) do
    :ets.delete_object(table, {:current, self()})
  rescue
    # The table is the channel's, which may be gone.
    ArgumentError -> true
  end

  defp deliver(state, []), do: state

  defp deliver(state, [{ref, {:moved, request}} | events]) do
    forward(state.channel, ref, request)
    state |> release(ref) |> deliver(events)
  end

  defp deliver(state, [{ref, {:again, request}} | events]) do
    pause = min(@first_pause * 2 ** (request.refusals - 2), @longest_pause)
    _ = :erlang.start_timer(pause, self(), {:again, ref})
    deliver(%{state | refused: Map.put(state.refused, ref, request)}, events)
  end

  defp deliver(state, [{ref, event} | events]) do
    {batch, last, events} = run(ref, event, events, [])
    send(ref, {ref, batch})
    state = if final?(last), do: release(state, ref), else: state
    deliver(state, events)
  end

  # Consecutive events of one call go in one message.
  defp run(ref, event, [{ref, next} | events], done), do: run(ref, next, events, [event | done])
  defp run(_ref, event, events, done), do: {Enum.reverse([event | done]), event, events}

  defp final?({:closed, _reason, _sent?}), do: true
  defp final?({:data, _data, end?}), do: end?
  defp final?({:headers, _headers, end?}), do: end?
  defp final?({:sent, _bytes}), do: false

  defp release(state, ref) do
    case Map.pop(state.calls, ref) do
      {nil, _calls} ->
        state

      {{monitor, timer}, calls} ->
        Process.demonitor(monitor, [:flush])
        _ = timer && :erlang.cancel_timer(timer)

        %{
          state
          | calls: calls,
            callers: Map.delete(state.callers, monitor),
            refused: Map.delete(state.refused, ref)
        }
    end
  end

  defp deadline_timer(_ref, :infinity), do: nil

  defp deadline_timer(ref, deadline),
    do: :erlang.start_timer(deadline, self(), {:deadline, ref}, abs: true)

  defp schedule_keepalive(%{keepalive: :infinity}), do: :ok

  defp schedule_keepalive(%{keepalive: interval}) do
    _ = :erlang.start_timer(interval, self(), :keepalive)
    :ok
  end

  defp keepalive(%{alive?: false, pinged?: true} = state),
    do: lost(state, "no answer to a keepalive ping within #{state.keepalive} ms")

  defp keepalive(state) do
    schedule_keepalive(state)
    needed? = Protocol.stream_count(state.protocol) > 0 or state.opts[:keepalive_without_calls]

    if not state.alive? and needed?,
      do: step(%{state | pinged?: true}, Protocol.ping(state.protocol, "rankping")),
      else: {:noreply, %{state | alive?: false, pinged?: false}}
  end

  # Calls that were sent here before the table said otherwise.
  defp forward_late_calls(channel) do
    receive do
      {:open, ref, %{fin?: true} = request} ->
        forward(channel, ref, request)
        forward_late_calls(channel)

      {:open, ref, _request} ->
        send(ref, {ref, [{:closed, {:refused, "the connection is closing"}, false}]})
        forward_late_calls(channel)
    after
      0 -> :ok
    end
  end

  # The channel finds another connection for it.
  defp forward(channel, ref, request) do
    send(ref, {ref, [{:at, channel}]})
    send(channel, {:open, ref, request})
  end

  defp now, do: System.monotonic_time(:millisecond)
end
