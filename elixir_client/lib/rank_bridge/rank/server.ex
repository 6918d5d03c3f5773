defmodule RankBridge.Rank.Server do
  @moduledoc false
  # The process in charge of the requests to one rank: gang calls, and the rank's own parts of operations.
  #
  # They go by the rank's stream (`RankBridge.Rank.Stream`), which the first request opens, and so does the first request after
  # its end. A request that the stream cannot take, or that was not begun on it, goes as a unary call
  # (`RankBridge.Rank.Unary`); a push waits for the stream instead (`RankBridge.Rank.Requests`). It also owns the
  # table of the memory that the rank shares (`RankBridge.Rank.Memory`), by which large tensors go. The process ends with its
  # gang, or after a minute without use, if no memory was used.

  use GenServer, restart: :temporary

  alias RankBridge.Gang.{Children, View}
  alias RankBridge.Rank.{Memory, Requests, Stream, Unary}
  alias RankBridge.Transport
  alias RankBridge.Transport.Status

  # Milliseconds without use until the end.
  @idle 60_000
  # Milliseconds that `receive` can wait.
  @longest 0xFFFF_FFFF

  @enforce_keys [:gang, :stream, :memory]
  defstruct [:gang, :stream, :memory, used?: true, requests: %Requests{}, unary: %{}]

  @typedoc "What a caller asks for, as in `t:RankBridge.Rank.Requests.request/0`."
  @type request :: %{
          required(:kind) => :call | :part,
          required(:bytes) => iodata(),
          required(:id) => String.t(),
          required(:stream) => reference() | nil,
          optional(:until) => integer(),
          optional(:deadline) => pos_integer()
        }

  @typedoc "The process, or `:gone`, which never answers."
  @type server :: pid() | :gone

  @typedoc "The bytes of an `ExecuteResponse`, or what happened otherwise."
  @type answer :: Requests.answer()

  @doc "The process of a rank; starts one if there is none. `:gone`: the gang has ended."
  @spec of(View.t(), non_neg_integer()) :: server()
  def of(view, rank) do
    key = key(view, rank)

    with :undefined <- Registry.whereis_name({RankBridge.Registry, key}),
         {:ok, channel} <- View.channel(view, rank) do
      child = {__MODULE__, {channel, view.gang, key}}

      case DynamicSupervisor.start_child(Children.name(view.gang, :ranks), child) do
        {:ok, server} -> server
        {:error, {:already_started, server}} -> server
      end
    end
  catch
    :exit, _over -> :gone
  end

  @doc false
  @spec start_link({Transport.channel(), pid(), term()}) :: GenServer.on_start()
  def start_link({channel, gang, key}) do
    name = {:via, Registry, {RankBridge.Registry, key}}
    GenServer.start_link(__MODULE__, {channel, gang, key}, name: name)
  end

  defp key(view, rank), do: {__MODULE__, view.gang, View.target(view, rank)}

  @doc "Opens a stream for a process. It ends with the process."
  @spec open(server(), pid(), timeout()) :: {:ok, reference()} | {:error, Status.t()}
  def open(:gone, _owner, _timeout), do: {:error, gone(:noproc)}

  def open(server, owner, timeout) do
    GenServer.call(server, {:open, owner}, timeout)
  catch
    :exit, {:timeout, _call} ->
      {:error,
       Status.new(:deadline_exceeded, "no stream could be opened in #{timeout} ms", false)}

    :exit, {why, _call} ->
      {:error, gone(why)}
  end

  @doc "Ends a stream once all its pushes are answered. Ending twice is no error."
  @spec close(pid(), reference()) :: :ok
  def close(server, stream) do
    GenServer.call(server, {:close, stream}, :infinity)
  catch
    :exit, _over -> :ok
  end

  @doc "Sends a request for the calling process, which awaits it."
  @spec push(server(), request()) :: reference()
  def push(:gone, _request), do: make_ref()

  def push(server, request) do
    ref = :erlang.monitor(:process, server, alias: :reply_demonitor)

    send(
      server,
      {:push, self(), Map.merge(request, %{ref: ref, monitor: nil, number: nil, timer: nil})}
    )

    ref
  end

  @doc """
  Waits for the answer, once; for so many milliseconds. `:late`: it did not come, and the request was withdrawn; `:never`: the
  process did not receive the request before its end.
  """
  @spec await(server(), reference(), timeout()) :: answer() | :late | :never
  def await(:gone, _ref, _timeout), do: :never

  def await(server, ref, timeout) do
    receive do
      {^ref, answer} -> answer
      {:DOWN, ^ref, :process, _pid, why} when why in [:noproc, :normal] -> :never
      {:DOWN, ^ref, :process, _pid, why} -> {:error, gone(why)}
    after
      min(timeout, @longest) ->
        Process.demonitor(ref, [:flush])
        withdraw(server, ref)
        last_word(ref)
    end
  end

  # Nothing comes after the monitor's end.
  defp last_word(ref) do
    receive do
      {^ref, answer} -> answer
    after
      0 -> :late
    end
  end

  # A process that ends in order has answered all that it has received. This one it did not receive.
  defp gone(why),
    do: Status.new(:unavailable, "the stream is over", why not in [:noproc, :normal])

  @doc "Withdraws a request. If a process waits for the answer, it gets one all the same."
  @spec withdraw(pid(), reference()) :: :ok
  def withdraw(server, ref) do
    send(server, {:withdraw, ref})
    :ok
  end

  @doc "The table of the memory that a rank shares; starts the rank's process if there is none. `:gone`: the gang has ended."
  @spec memory(View.t(), non_neg_integer()) :: {:ok, Memory.table()} | :gone
  def memory(view, rank) do
    case Registry.lookup(RankBridge.Registry, key(view, rank)) do
      [{_server, {:memory, table}}] ->
        {:ok, table}

      _none_or_starting ->
        with pid when is_pid(pid) <- of(view, rank), do: GenServer.call(pid, :memory)
    end
  catch
    :exit, _over -> :gone
  end

  @impl GenServer
  def init({channel, gang, key}) do
    # Answers that have come are passed on before the gang ends.
    Process.flag(:trap_exit, true)
    memory = Memory.new()
    # Callers find the table without asking this process.
    {_new, _old} =
      Registry.update_value(RankBridge.Registry, key, fn _none -> {:memory, memory} end)

    stream = %Stream{channel: channel}
    {:ok, look_later(%__MODULE__{gang: gang, stream: stream, memory: memory})}
  end

  @impl GenServer
  def handle_call({:open, owner}, _from, state) do
    state = without_ended(%{state | used?: true})

    case Stream.open(state.stream) do
      {:ok, stream} ->
        {call_stream, requests} = Requests.open(state.requests, owner)
        {:reply, {:ok, call_stream}, %{state | stream: stream, requests: requests}}

      {:error, status, stream} ->
        {:reply, {:error, status}, %{state | stream: stream}}
    end
  end

  def handle_call({:close, call_stream}, from, state),
    do: {:noreply, %{state | requests: Requests.close(state.requests, call_stream, from)}}

  def handle_call(:memory, _from, state), do: {:reply, {:ok, state.memory}, state}

  @impl GenServer
  def handle_info({:push, pid, %{stream: nil} = request}, state) do
    stream = opened(state.stream)
    {request, requests} = Requests.of_caller(state.requests, request, pid)
    state = %{state | used?: true, stream: stream, requests: requests}

    if Stream.open?(stream) and not Requests.full?(requests),
      do: {:noreply, proceed(%{state | requests: Requests.add(requests, request)})},
      else: {:noreply, unary(state, request)}
  end

  def handle_info({:push, pid, %{stream: call_stream, ref: ref} = request}, state) do
    case Requests.stream(state.requests, call_stream) do
      :open ->
        {request, requests} = Requests.of_caller(state.requests, request, pid)
        {:noreply, proceed(%{state | requests: Requests.add(requests, request)})}

      :closed ->
        send(ref, {ref, {:error, Status.new(:cancelled, "the stream was closed", false)}})
        {:noreply, state}

      :ended ->
        send(ref, {ref, :never})
        {:noreply, state}
    end
  end

  def handle_info({:withdraw, ref}, state), do: {:noreply, state |> give_up(ref) |> proceed()}

  def handle_info({:DOWN, monitor, :process, _pid, why} = message, state) do
    case state do
      %{requests: %{callers: %{^monitor => ref}}} ->
        {:noreply, state |> give_up(ref) |> proceed()}

      %{requests: %{streams: %{^monitor => _closing}} = requests} ->
        {:noreply, proceed(%{state | requests: Requests.ownerless(requests, monitor)})}

      %{unary: %{^monitor => request}} ->
        {:noreply, unary_ended(state, monitor, request, why)}

      _of_the_stream ->
        {:noreply, heard(state, message)}
    end
  end

  def handle_info({:timeout, _timer, {:late, number}}, state),
    do: {:noreply, proceed(%{state | requests: Requests.late(state.requests, number)})}

  def handle_info({:timeout, _timer, :idle}, state) do
    if state.used? or Requests.any?(state.requests) or Memory.used?(state.memory) do
      {:noreply, look_later(%{state | used?: false})}
    else
      {:stop, :normal, %{state | stream: Stream.cancel(state.stream)}}
    end
  end

  def handle_info(message, state), do: {:noreply, heard(state, message)}

  # --- the stream ---

  defp heard(state, message) do
    case Stream.hear(state.stream, message) do
      {:ok, stream} -> arrived(%{state | stream: stream}, :open)
      :unknown -> state
    end
  end

  defp opened(stream) do
    case Stream.open(stream) do
      {:ok, stream} -> stream
      {:error, _status, stream} -> stream
    end
  end

  # Sends the requests that can be sent, and handles the messages that have arrived.
  defp proceed(%{stream: stream, requests: requests} = state) do
    case Stream.room?(stream) && Requests.next(requests) do
      none when none in [nil, false] ->
        if Stream.open?(stream), do: arrived(state, :open), else: state

      request ->
        case Stream.send(stream, request, Requests.number(requests)) do
          {:ok, stream} ->
            proceed(%{state | stream: stream, requests: Requests.sent(requests, request)})

          {:closed, stream} ->
            arrived(%{state | stream: stream}, :closed)
        end
    end
  end

  defp arrived(state, way) do
    {answers, now, stream} = Stream.arrived(state.stream)

    requests =
      Enum.reduce(answers, state.requests, fn {number, bytes}, requests ->
        Requests.answered(requests, number, bytes)
      end)

    state = %{state | stream: stream, requests: requests}

    case now do
      {:over, status, said} -> over(state, status, said)
      :open when answers != [] -> proceed(state)
      # The stream may have more room by now.
      :open -> if way == :open and sendable?(state), do: proceed(state), else: state
    end
  end

  defp sendable?(state), do: Requests.next(state.requests) != nil and Stream.room?(state.stream)

  # No message says that it has ended.
  defp without_ended(state) do
    if Stream.ended_unused?(state.stream) do
      over(%{state | stream: Stream.cancel(state.stream)}, Stream.ended_by_rank(), nil)
    else
      state
    end
  end

  defp over(state, status, said) do
    {not_begun, requests} = Requests.over(state.requests, status, said)
    Enum.reduce(not_begun, %{state | requests: requests}, &unary(&2, &1))
  end

  # --- unary calls ---

  defp unary(state, request) do
    {process, monitor} = Unary.start(state.gang, state.stream.channel, request)
    %{state | unary: Map.put(state.unary, monitor, Map.put(request, :unary, process))}
  end

  # It has answered itself.
  defp unary_ended(state, monitor, request, :normal) do
    requests = Requests.forget(state.requests, request)
    %{state | unary: Map.delete(state.unary, monitor), requests: requests}
  end

  defp unary_ended(state, monitor, %{ref: ref} = request, why) do
    send(ref, {ref, {:error, gone(why)}})
    unary_ended(state, monitor, request, :normal)
  end

  defp give_up(state, ref) do
    with :unknown <- Requests.give_up(state.requests, ref),
         {monitor, request} <- Enum.find(state.unary, fn {_monitor, it} -> it.ref == ref end) do
      Process.demonitor(monitor, [:flush])
      :ok = Unary.withdraw(state.gang, state.stream.channel, request)
      withdrawn = {:error, Status.new(:cancelled, "it was withdrawn", true)}
      requests = Requests.finish(state.requests, request, withdrawn)
      %{state | unary: Map.delete(state.unary, monitor), requests: requests}
    else
      %Requests{} = requests -> %{state | requests: requests}
      nil -> state
    end
  end

  # --- time ---

  defp look_later(state) do
    _timer = :erlang.start_timer(@idle, self(), :idle)
    state
  end
end
