defmodule RankBridge.Rank.Server do
  @moduledoc false
  # The process in charge of the requests to one rank: gang calls, and the rank's own parts of operations.
  #
  # They go by the rank's stream (`RankBridge.Rank.Stream`), which the first request opens, and so does the first request after
  # its end. A request that the stream cannot take, or that was not begun on it, goes as a unary call
  # (`RankBridge.Rank.Unary`); a push waits for the stream instead (`RankBridge.Rank.Requests`). It also hands out the memory that
  # the rank shares (`RankBridge.Rank.Memory`), by which large tensors go. The process ends with its gang, or after a minute
  # without use, if no memory was used.

  use GenServer, restart: :temporary

  alias RankBridge.Gang.{Children, View}
  alias RankBridge.Proto.V1
  alias RankBridge.Rank.{Memory, Requests, Stream, Unary}
  alias RankBridge.Transport
  alias RankBridge.Transport.Status

  # Milliseconds without use until the end.
  @idle 60_000
  # Milliseconds that `receive` can wait.
  @longest 0xFFFF_FFFF

  @enforce_keys [:gang, :stream]
  defstruct [:gang, :stream, used?: true, requests: %Requests{}, unary: %{}, memory: %Memory{}]

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
    name = {RankBridge.Registry, {__MODULE__, view.gang, View.target(view, rank)}}

    with :undefined <- Registry.whereis_name(name),
         {:ok, channel} <- View.channel(view, rank) do
      child = {__MODULE__, {channel, view.gang, {:via, Registry, name}}}

      case DynamicSupervisor.start_child(Children.name(view.gang, :ranks), child) do
        {:ok, server} -> server
        {:error, {:already_started, server}} -> server
      end
    end
  catch
    :exit, _over -> :gone
  end

  @doc false
  @spec start_link({Transport.channel(), pid(), GenServer.name()}) :: GenServer.on_start()
  def start_link({channel, gang, name}),
    do: GenServer.start_link(__MODULE__, {channel, gang}, name: name)

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

  # --- shared memory: see the functions of the same names in `RankBridge.Rank.Memory` ---

  @doc "Takes a segment for the calling process. `:gone`: the process has ended, or does not answer in so many milliseconds."
  @spec take(server(), pos_integer(), timeout()) ::
          {:ok, Memory.segment()} | {:none, [String.t()]} | {:off, String.t()} | :gone
  def take(server, bytes, timeout), do: memory(server, {:take, bytes}, timeout)

  @doc "Takes the ids of all segments that are not in use, for the calling process."
  @spec take_unused(server()) :: [String.t()]
  def take_unused(server) do
    with :gone <- memory(server, :take_unused, :infinity), do: []
  end

  @doc "Keeps a segment that the rank has given to the calling process."
  @spec keep(server(), V1.SharedMemory.t()) :: :ok
  def keep(server, memory), do: cast(server, {:keep, memory})

  @doc "Says what has become of segments of the calling process."
  @spec done(server(), [String.t()], Memory.fate()) :: :ok
  def done(server, ids, fate), do: cast(server, {:done, ids, fate})

  @doc "Ends the use of shared memory with this rank, for a reason."
  @spec turn_off(server(), String.t()) :: :ok
  def turn_off(server, reason), do: cast(server, {:turn_off, reason})

  @doc "Counts a large tensor."
  @spec count(server(), String.t() | nil) :: :ok
  def count(server, reason), do: cast(server, {:count, reason})

  @doc "What was counted."
  @spec counts(server()) :: {:ok, Memory.counts()} | :gone
  def counts(server), do: memory(server, :counts, :infinity)

  defp cast(:gone, _request), do: :ok
  # Sent by the process that holds the segments, before it ends.
  defp cast(server, request), do: GenServer.cast(server, {:memory, self(), request})

  defp memory(:gone, _request, _timeout), do: :gone

  defp memory(server, request, timeout) do
    GenServer.call(server, {:memory, request}, timeout)
  catch
    :exit, _reason -> :gone
  end

  @impl GenServer
  def init({channel, gang}) do
    # Answers that have come are passed on before the gang ends.
    Process.flag(:trap_exit, true)
    {:ok, look_later(%__MODULE__{gang: gang, stream: %Stream{channel: channel}})}
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

  def handle_call({:memory, request}, {holder, _tag}, state) do
    {reply, memory} =
      case request do
        {:take, bytes} -> Memory.take(state.memory, bytes, holder)
        :take_unused -> Memory.take_unused(state.memory, holder)
        :counts -> {{:ok, state.memory.counts}, state.memory}
      end

    {:reply, reply, %{state | memory: memory}}
  end

  @impl GenServer
  def handle_cast({:memory, holder, request}, %{memory: memory} = state) do
    memory =
      case request do
        {:keep, segment} -> Memory.keep(memory, segment, holder)
        {:done, ids, fate} -> Memory.done(memory, ids, fate)
        {:turn_off, reason} -> Memory.turn_off(memory, reason)
        {:count, reason} -> Memory.count(memory, reason)
      end

    {:noreply, %{state | memory: memory}}
  end

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

      %{memory: %{holders: %{^monitor => _ids}} = memory} ->
        {:noreply, %{state | memory: Memory.holder_ended(memory, monitor)}}

      _of_the_stream ->
        {:noreply, heard(state, message)}
    end
  end

  def handle_info({:timeout, _timer, {:late, number}}, state),
    do: {:noreply, proceed(%{state | requests: Requests.late(state.requests, number)})}

  def handle_info({:timeout, _timer, :idle}, state) do
    if state.used? or Requests.any?(state.requests) or state.memory != %Memory{} do
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
