defmodule RankBridge.Transport.HTTP2.Channel do
  @moduledoc false
  # The process behind a channel: it keeps one connection ready for new calls, connects again with growing
  # pauses when it is lost, and holds calls that came while there was none.
  #
  # Callers find the current connection in a table and bypass this process. Without one they send it
  # `{:open, ref, request}` as they would to a connection. A call that may not wait (see `wait_for_ready`)
  # fails as soon as the last attempt to connect has failed, and until one succeeds; before that it waits.
  #
  # The process is a child of `RankBridge.Transport.Supervisor`, and not linked to its maker. With `:owner` it ends with that
  # process.

  use GenServer

  alias RankBridge.{Hidden, Transport}
  alias RankBridge.Transport.HTTP2.{Connection, Request, Writer}
  alias RankBridge.Transport.Target

  # Milliseconds after which a lost connection does not count as a failed attempt.
  @stable 1_000
  # Connections in a row that may be drained before they are ready.
  @patience 5
  # That connections have to end.
  @ending 1_000
  @growth 1.6
  @jitter 0.2

  defstruct [
    :target,
    :opts,
    :table,
    :owner,
    :current,
    :connecting,
    :ready_at,
    :failure,
    :timer,
    attempt: 0,
    connections: %{},
    asking: [],
    waiting: %{},
    order: :queue.new()
  ]

  @doc "Starts a channel and its first attempt to connect. Options: see `RankBridge.Transport.connect/2`."
  @spec start(Target.t(), keyword()) :: {:ok, pid(), :ets.table()}
  def start(target, opts) do
    child = child_spec({target, opts, self()})
    {:ok, pid} = Transport.Supervisor.start_channel(opts[:supervisor], child)
    {:ok, pid, GenServer.call(pid, :table)}
  end

  @doc false
  @spec start_link({Target.t(), keyword(), maker :: pid()}) :: GenServer.on_start()
  def start_link(arguments), do: GenServer.start_link(__MODULE__, arguments)

  @doc "Waits for the first connection, or for the first failure, which is for people."
  @spec await_ready(pid()) :: :ok | {:error, String.t()}
  def await_ready(pid), do: GenServer.call(pid, :await_ready, :infinity)

  @doc "Ends all calls, connections and the channel. Closing twice is no error."
  @spec stop(pid()) :: :ok
  def stop(pid) do
    GenServer.stop(pid, :normal, :infinity)
  catch
    :exit, _gone -> :ok
  end

  @doc "The connection for new calls, or the channel itself, which finds one; `:closed` if it is gone."
  @spec server(pid(), :ets.table()) :: pid() | :closed
  def server(pid, table) do
    case :ets.lookup(table, :current) do
      # A connection that was killed could not take itself out.
      [{:current, connection}] -> if Process.alive?(connection), do: connection, else: pid
      [] -> pid
    end
  rescue
    ArgumentError -> :closed
  end

  @impl GenServer
  def init({target, opts, maker}) do
    # Callers that wait are refused when the supervisor ends this process.
    Process.flag(:trap_exit, true)
    # Public, so that a connection can take itself out before anyone else knows that it must.
    table = :ets.new(__MODULE__, [:set, :public, read_concurrency: true])
    # A caller that waits for the first connection may die before it has the channel to close.
    owner = opts[:owner] || if opts[:lazy], do: nil, else: maker
    owner = owner && Process.monitor(owner)
    {:ok, connect(%__MODULE__{target: target, opts: opts, table: table, owner: owner})}
  end

  @impl GenServer
  def handle_call(:table, _from, state), do: {:reply, state.table, state}

  def handle_call(:await_ready, _from, %{current: pid} = state) when pid != nil,
    do: {:reply, :ok, release_maker(state)}

  def handle_call(:await_ready, _from, %{failure: why} = state) when why != nil,
    do: {:reply, {:error, why}, state}

  def handle_call(:await_ready, from, state),
    do: {:noreply, %{state | asking: [from | state.asking]}}

  @impl GenServer
  def handle_info({:open, ref, request}, state) do
    cond do
      state.current != nil ->
        pass_on(ref, request, state.current)
        {:noreply, state}

      state.failure != nil and not request.wait_for_ready? ->
        refuse(ref, {:unavailable, state.failure})
        {:noreply, state}

      true ->
        monitor = Process.monitor(request.caller)
        waiting = Map.put(state.waiting, ref, {request, monitor})
        {:noreply, %{state | waiting: waiting, order: :queue.in(ref, state.order)}}
    end
  end

  def handle_info({:cancel, ref, code}, state) do
    case Map.pop(state.waiting, ref) do
      {nil, _waiting} ->
        for {_monitor, connection} <- state.connections,
            do: send(connection, {:cancel, ref, code})

        {:noreply, state}

      {{_request, monitor}, waiting} ->
        Process.demonitor(monitor, [:flush])
        {:noreply, %{state | waiting: waiting}}
    end
  end

  def handle_info({:ready, pid}, %{connecting: pid} = state) do
    :ets.insert(state.table, {:current, pid})
    for from <- state.asking, do: GenServer.reply(from, :ok)
    state = if state.asking == [], do: state, else: release_maker(state)
    state = %{state | current: pid, connecting: nil, ready_at: now(), failure: nil, asking: []}
    {:noreply, pass_all_on(state)}
  end

  def handle_info({:ready, _other}, state), do: {:noreply, state}

  # As gRFC A8 has it: later connections ask half as often. The next one is no sooner than after a failed attempt.
  def handle_info(:too_many_pings, %{opts: opts} = state) do
    keepalive = if is_integer(opts[:keepalive]), do: 2 * opts[:keepalive], else: opts[:keepalive]
    {:noreply, %{state | opts: Keyword.put(opts, :keepalive, keepalive), ready_at: now()}}
  end

  def handle_info({:draining, pid}, %{current: pid} = state), do: {:noreply, replace(state)}

  # The server is there, and asks for another connection. It may not go on like that.
  def handle_info({:draining, pid}, %{connecting: pid, attempt: attempt} = state)
      when attempt <= @patience,
      do: {:noreply, connect_later(%{state | connecting: nil})}

  def handle_info({:draining, _other}, state), do: {:noreply, state}

  def handle_info({:DOWN, owner, :process, _pid, _why}, %{owner: owner} = state),
    do: {:stop, :normal, state}

  def handle_info({:DOWN, monitor, :process, _pid, why}, state) do
    case Map.pop(state.connections, monitor) do
      {nil, _} ->
        {:noreply, forget_caller(state, monitor)}

      {pid, connections} ->
        {:noreply, connection_down(%{state | connections: connections}, pid, why)}
    end
  end

  def handle_info({:timeout, timer, :connect}, %{timer: timer} = state),
    do: {:noreply, connect(%{state | timer: nil})}

  def handle_info(_message, state), do: {:noreply, state}

  @impl GenServer
  def terminate(reason, state) do
    # The connections end their calls themselves.
    for {_monitor, pid} <- state.connections, do: Process.exit(pid, :shutdown)
    for {ref, _} <- state.waiting, do: refuse(ref, {:shutdown, "the channel was closed"})
    for from <- state.asking, do: GenServer.reply(from, {:error, "the channel was closed"})
    # Their supervisor ends next, and would log those that end by themselves meanwhile.
    if reason == :shutdown, do: await_down(state.connections)
  end

  defp await_down(connections) when connections == %{}, do: :ok

  defp await_down(connections) do
    receive do
      {:DOWN, monitor, :process, _pid, _why} when is_map_key(connections, monitor) ->
        await_down(Map.delete(connections, monitor))
    after
      @ending -> :ok
    end
  end

  # Before Elixir 1.17 it is a callback of OTP alone.
  if {:format_status, 1} in GenServer.behaviour_info(:callbacks), do: @impl(GenServer)
  @doc false
  @spec format_status(map()) :: map()
  def format_status(status),
    do: Hidden.format_status(status, &%{&1 | waiting: Map.keys(&1.waiting)})

  defp connect(state) do
    {:ok, writer} = start_child(Writer, state)
    {:ok, pid} = start_child({Connection, connection(state, writer)}, state)
    connections = Map.put(state.connections, Process.monitor(pid), pid)
    # Not before it is monitored: of one that has failed by then, the monitor would not say why.
    send(pid, :connect)
    %{state | connecting: pid, attempt: state.attempt + 1, connections: connections}
  end

  defp connection(state, writer) do
    %{
      channel: self(),
      table: state.table,
      target: state.target,
      opts: state.opts,
      writer: writer
    }
  end

  defp start_child(child, state) do
    child = Supervisor.child_spec(child, [])
    Transport.Supervisor.start_connection(state.opts[:supervisor], child)
  end

  defp release_maker(%{opts: opts, owner: owner} = state) do
    if opts[:owner] == nil and owner != nil do
      Process.demonitor(owner, [:flush])
      %{state | owner: nil}
    else
      state
    end
  end

  defp connection_down(%{connecting: pid} = state, pid, why) do
    state = %{state | connecting: nil, failure: describe(why)}
    for from <- state.asking, do: GenServer.reply(from, {:error, state.failure})
    connect_later(fail_impatient(%{state | asking: []}))
  end

  defp connection_down(%{current: pid} = state, pid, _why), do: replace(state)
  defp connection_down(state, _drained, _why), do: state

  # A connection that lasted is replaced at once; one that did not, after the first pause.
  defp replace(state) do
    :ets.delete(state.table, :current)
    attempt = if now() - state.ready_at >= @stable, do: 0, else: 1
    connect_later(%{state | current: nil, attempt: attempt})
  end

  defp connect_later(%{attempt: 0} = state), do: connect(state)

  defp connect_later(state) do
    {first, longest} = state.opts[:backoff]
    pause = min(first * :math.pow(@growth, min(state.attempt - 1, 50)), longest)
    pause = round(pause * (1 + @jitter * (2 * :rand.uniform() - 1)))
    %{state | timer: :erlang.start_timer(pause, self(), :connect)}
  end

  defp fail_impatient(state) do
    {patient, impatient} =
      Enum.split_with(state.waiting, fn {_ref, {request, _}} ->
        request.wait_for_ready? and not expired?(request)
      end)

    patient = Map.new(patient)

    for {ref, {request, monitor}} <- impatient do
      Process.demonitor(monitor, [:flush])
      refuse(ref, if(request.wait_for_ready?, do: :deadline, else: {:unavailable, state.failure}))
    end

    %{state | waiting: patient, order: :queue.filter(&is_map_key(patient, &1), state.order)}
  end

  defp pass_all_on(state) do
    for ref <- :queue.to_list(state.order), entry = state.waiting[ref] do
      {request, monitor} = entry
      Process.demonitor(monitor, [:flush])
      pass_on(ref, request, state.current)
    end

    %{state | waiting: %{}, order: :queue.new()}
  end

  # The caller learns of its connection before the connection can say anything.
  @spec pass_on(reference(), Request.t(), pid()) :: :ok
  defp pass_on(ref, request, connection) do
    send(ref, {ref, [{:at, connection}]})
    send(connection, {:open, ref, request})
    :ok
  end

  defp refuse(ref, reason), do: send(ref, {ref, [{:closed, reason, false}]})

  defp forget_caller(state, monitor) do
    waiting =
      for {ref, {_, m} = entry} <- state.waiting, m != monitor, into: %{}, do: {ref, entry}

    %{state | waiting: waiting}
  end

  defp expired?(%{deadline: :infinity}), do: false
  defp expired?(%{deadline: deadline}), do: deadline < now()

  defp describe({:shutdown, why}) when is_binary(why), do: why
  defp describe(why), do: inspect(why)

  defp now, do: System.monotonic_time(:millisecond)
end
