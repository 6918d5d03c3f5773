defmodule RankBridge.Stream.Server do
  @moduledoc """
  The process behind a stream of gang calls, or of one rank's parts of operations: it sends what is pushed, and gives each its
  answer, in the order in which they were sent. It ends with its owner.

  The stream goes by a unix socket without gRPC (`RankBridge.Transport.Local`) where the rank has one and the channel leads to
  it, else by `GangService.Execute`.

  A rank that does not answer the oldest of its calls in time ends the stream, so that nobody waits without an end.
  """

  use GenServer, restart: :temporary

  alias RankBridge.Proto.V1
  alias RankBridge.Transport
  alias RankBridge.Transport.{Local, Status}

  # Calls that the rank is sent before it has answered them. What is pushed beyond waits here, and has its time from when
  # it is sent.
  @under_way 128

  @enforce_keys [:call, :owner]
  defstruct [
    :call,
    :owner,
    :timer,
    :closing,
    :idle,
    used?: true,
    latest: 0,
    sent: :queue.new(),
    under_way: 0,
    waiting: :queue.new(),
    pushers: %{}
  ]

  @typedoc """
  A gang call or a part: its bytes, an `ExecuteRequest`, and its operation id.

  * `deadline` - longest time until the answer, from when it is sent, in milliseconds
  * `behind` - which others may be answered first: `:any`; `:sooner`, those of which none may take longer; or `:none`. What
    would be behind others than these is not sent, but told to be `:behind`
  """
  @type request :: %{
          bytes: iodata(),
          id: String.t(),
          deadline: pos_integer(),
          behind: :any | :sooner | :none
        }

  @type answer :: {:ok, binary()} | {:error, Status.t()} | :behind

  @doc """
  Opens a stream on a channel, for a process with which it ends; and with having been `idle` for so many milliseconds.
  `timeout`: longest time to open it, in milliseconds, after which there is none.
  """
  @spec start(Transport.channel(), pid(), timeout(), timeout()) ::
          {:ok, pid()} | {:error, Status.t()}
  def start(channel, owner, idle, timeout) do
    case GenServer.start(__MODULE__, {channel, owner, idle}, timeout: timeout) do
      {:ok, server} ->
        {:ok, server}

      {:error, {:shutdown, %Status{} = status}} ->
        {:error, status}

      {:error, :timeout} ->
        {:error,
         Status.new(:deadline_exceeded, "no stream could be opened in #{timeout} ms", false)}
    end
  end

  @doc "Sends a call for the calling process, which awaits it."
  @spec push(pid(), request()) :: reference()
  def push(server, request) do
    ref = :erlang.monitor(:process, server, alias: :reply_demonitor)
    send(server, {:push, ref, self(), request})
    ref
  end

  @doc "Waits for the first answer to one of several calls, and tells to which: a key of the map."
  @spec await_any(%{reference() => term()}) :: {reference(), answer()}
  def await_any(refs) do
    receive do
      {ref, answer} when is_map_key(refs, ref) -> {ref, answer}
      {:DOWN, ref, :process, _pid, why} when is_map_key(refs, ref) -> {ref, {:error, gone(why)}}
    end
  end

  @doc "Waits for the answer, once."
  @spec await(reference()) :: answer()
  def await(ref) do
    receive do
      {^ref, answer} -> answer
      {:DOWN, ^ref, :process, _pid, why} -> {:error, gone(why)}
    end
  end

  # A process that ends in order has answered all that it has received. This one it did not receive.
  defp gone(why),
    do: Status.new(:unavailable, "the stream is over", why not in [:noproc, :normal])

  @doc "Withdraws a call. It is answered all the same."
  @spec withdraw(pid(), reference()) :: :ok
  def withdraw(server, ref) do
    send(server, {:withdraw, ref})
    :ok
  end

  @doc "Lets what was pushed be done and answered, and ends. Ending twice is no error."
  @spec close(pid()) :: :ok
  def close(server) do
    GenServer.call(server, :close, :infinity)
  catch
    :exit, _over -> :ok
  end

  @impl GenServer
  def init({channel, owner, idle}) do
    case open(channel) do
      {:ok, call} ->
        {:ok, look_later(%__MODULE__{call: call, owner: Process.monitor(owner), idle: idle})}

      {:error, status} ->
        {:stop, {:shutdown, status}}
    end
  end

  defp open(channel) do
    with :none <- Local.open(channel),
         do: Transport.open_stream(channel, V1.GangService.execute().path)
  end

  @impl GenServer
  def handle_call(:close, from, %{closing: closing} = state) when closing in [nil, :nobody],
    do: proceed(%{state | closing: from})

  # It was closed before, and is told once.
  def handle_call(:close, _from, state), do: {:noreply, state}

  @impl GenServer
  def handle_info({:push, ref, _pid, _request}, %{closing: from} = state) when from != nil do
    answer(ref, {:error, Status.new(:cancelled, "the stream was closed", false)})
    {:noreply, state}
  end

  def handle_info({:push, ref, pid, request}, state) do
    if next?(state, request) do
      monitor = Process.monitor(pid)
      pushed = Map.merge(request, %{ref: ref, monitor: monitor})
      pushers = Map.put(state.pushers, monitor, ref)
      waiting = :queue.in(pushed, state.waiting)
      proceed(%{state | waiting: waiting, pushers: pushers, used?: true})
    else
      answer(ref, :behind)
      {:noreply, state}
    end
  end

  def handle_info({:withdraw, ref}, state), do: give_up(state, ref)

  def handle_info({:DOWN, owner, :process, _pid, _why}, %{owner: owner} = state) do
    Transport.cancel(state.call)
    over(state, Status.new(:cancelled, "the owner of the stream has ended", true))
  end

  def handle_info({:DOWN, monitor, :process, _pid, _why}, %{pushers: pushers} = state)
      when is_map_key(pushers, monitor),
      do: give_up(state, pushers[monitor])

  def handle_info({:timeout, _timer, :idle}, state) do
    if state.used? or state.under_way > 0 or not :queue.is_empty(state.waiting),
      do: {:noreply, look_later(%{state | used?: false})},
      else: proceed(%{state | closing: :nobody})
  end

  def handle_info({:timeout, timer, :late}, %{timer: {timer, _at}} = state) do
    state = %{state | timer: nil}

    case :queue.peek(state.sent) do
      {:value, oldest} -> if oldest.deadline <= now(), do: late(state), else: noreply(state)
      :empty -> noreply(state)
    end
  end

  def handle_info(message, state) do
    case Transport.hear(state.call, message) do
      {:ok, call} -> arrived(%{state | call: call})
      :unknown -> {:noreply, state}
    end
  end

  # --- what goes ---

  # Whether it may be behind what there is: where that is not just anything, it is sent at once, and nothing that is answered
  # before it may take longer.
  defp next?(_state, %{behind: :any}), do: true
  defp next?(%{under_way: 0}, _request), do: true
  defp next?(_state, %{behind: :none}), do: false

  defp next?(state, request) do
    state.under_way < @under_way and Transport.room?(state.call) and
      :queue.is_empty(state.waiting) and now() + request.deadline >= state.latest
  end

  # Sends what can be sent, and takes in what has come.
  defp proceed(state) do
    if Transport.room?(state.call),
      do: send_next(state, :queue.out(state.waiting)),
      else: arrived(state)
  end

  defp send_next(state, {:empty, _none}), do: arrived(state)

  defp send_next(%{under_way: @under_way} = state, {{:value, %{ref: ref}}, _waiting})
       when ref != nil,
       do: arrived(state)

  defp send_next(state, {{:value, next}, waiting}) do
    case Transport.send_message(state.call, next.bytes) do
      {:ok, call} -> proceed(sent(%{state | call: call, waiting: waiting}, next))
      # It has ended, as what has come tells; this one was not sent.
      {:closed, call} -> arrived(%{state | call: call})
    end
  end

  defp sent(state, %{ref: nil}), do: state

  defp sent(state, pushed) do
    at = now() + pushed.deadline
    latest = if state.under_way == 0, do: at, else: max(at, state.latest)
    sent = :queue.in(%{pushed | bytes: [], deadline: at}, state.sent)
    %{state | sent: sent, under_way: state.under_way + 1, latest: latest}
  end

  defp give_up(state, ref) do
    case Enum.split_with(:queue.to_list(state.waiting), &(&1.ref == ref)) do
      {[pushed], others} ->
        state = forget(%{state | waiting: :queue.from_list(others)}, pushed)
        answer(ref, {:error, Status.new(:cancelled, "it was withdrawn", false)})
        proceed(state)

      {[], _all} ->
        case Enum.find(:queue.to_list(state.sent), &(&1.ref == ref)) do
          nil -> {:noreply, state}
          pushed -> proceed(%{state | waiting: :queue.in_r(withdrawal(pushed), state.waiting)})
        end
    end
  end

  # It overtakes what waits, and is not answered.
  defp withdrawal(pushed) do
    bytes = V1.ExecuteRequest.encode_to_iodata(%V1.ExecuteRequest{kind: {:withdraw, pushed.id}})
    %{ref: nil, bytes: bytes}
  end

  # --- what comes ---

  defp arrived(state) do
    case Transport.arrived(state.call) do
      {:ok, [], call} ->
        noreply(%{state | call: call})

      {:ok, messages, call} ->
        messages |> Enum.reduce(%{state | call: call}, &answered/2) |> proceed()

      {:done, messages, _} ->
        messages |> Enum.reduce(state, &answered/2) |> ended()

      {:error, messages, status} ->
        messages |> Enum.reduce(state, &answered/2) |> over(status)
    end
  end

  # What nobody has asked for is not taken for an answer.
  defp answered(message, state) do
    case :queue.out(state.sent) do
      {{:value, pushed}, sent} ->
        answer(pushed.ref, {:ok, message})
        forget(%{state | sent: sent, under_way: state.under_way - 1}, pushed)

      {:empty, _none} ->
        state
    end
  end

  # A rank that ends a stream in order has answered all that it has begun.
  defp ended(state),
    do: over(state, Status.new(:unavailable, "the rank has ended the stream", false))

  defp late(state) do
    Transport.cancel(state.call)
    over(state, Status.new(:deadline_exceeded, "the rank has not answered in time", true))
  end

  defp over(state, status) do
    for %{ref: ref} <- :queue.to_list(state.sent), do: answer(ref, {:error, status})
    unsent = %{status | sent?: false}

    for %{ref: ref} <- :queue.to_list(state.waiting),
        ref != nil,
        do: answer(ref, {:error, unsent})

    stop(state)
  end

  defp stop(state) do
    _ = state.closing not in [nil, :nobody] && GenServer.reply(state.closing, :ok)
    {:stop, :normal, state}
  end

  defp answer(ref, answer), do: send(ref, {ref, answer})

  defp forget(state, %{monitor: monitor}) do
    Process.demonitor(monitor, [:flush])
    %{state | pushers: Map.delete(state.pushers, monitor)}
  end

  # --- time ---

  defp look_later(%{idle: :infinity} = state), do: state

  defp look_later(state) do
    _timer = :erlang.start_timer(state.idle, self(), :idle)
    state
  end

  # All is answered, and nothing more will be asked: there is nothing to wait for.
  defp noreply(%{closing: from, under_way: 0} = state) when from != nil do
    if :queue.is_empty(state.waiting) do
      Transport.cancel(state.call)
      stop(state)
    else
      {:noreply, state}
    end
  end

  # The timer is for the oldest call; one that was set for an earlier one, and is earlier, is looked at when it ends.
  defp noreply(state) do
    case {:queue.peek(state.sent), state.timer} do
      {:empty, _timer} -> {:noreply, state}
      {{:value, %{deadline: at}}, {_timer, set}} when set <= at -> {:noreply, state}
      {{:value, %{deadline: at}}, timer} -> {:noreply, %{state | timer: set(timer, at)}}
    end
  end

  defp set(before, at) do
    with {timer, _set} <- before, do: :erlang.cancel_timer(timer)
    {:erlang.start_timer(at, self(), :late, abs: true), at}
  end

  defp now, do: System.monotonic_time(:millisecond)
end
