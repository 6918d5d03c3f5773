defmodule RankBridge.Gang.EventBuffer do
  @moduledoc false
  # A subscriber to a gang's events that holds them for one reader, which takes them one by one.
  #
  # It is a process of its own: the reader's mailbox, and the reader's own subscription, stay as they are. It holds a limited
  # number of events. When there is one more, it drops the oldest, and the reader learns how many were dropped from an
  # event of kind `:missed` in their place. It ends with its reader.

  use GenServer

  alias RankBridge.Gang
  alias RankBridge.Gang.Event
  alias RankBridge.Waiting

  @enforce_keys [:gang, :reader, :monitor, :max_events]
  defstruct [:gang, :reader, :monitor, :max_events, :waiting] ++
              [events: :queue.new(), count: 0, missed: 0, ended?: false]

  @doc "Starts a buffer for the calling process, which has subscribed when this returns."
  @spec start(Gang.gang(), pos_integer()) :: pid()
  def start(gang, max_events) do
    # Not linked: its end would be a message to a reader that traps exits. It watches its reader instead.
    {:ok, buffer} = GenServer.start(__MODULE__, {gang, self(), max_events})
    buffer
  end

  @doc "The oldest event; waits for one. `:ended`: none came in `timeout` milliseconds, or the gang has ended for good."
  @spec take(pid(), timeout()) :: {:ok, Event.t()} | :ended
  def take(buffer, timeout), do: GenServer.call(buffer, {:take, timeout}, :infinity)

  @doc "Ends a buffer. Its subscription has ended when this returns."
  @spec stop(pid()) :: :ok
  def stop(buffer), do: GenServer.stop(buffer)

  @impl true
  def init({gang, reader, max_events}) do
    :ok = Gang.subscribe(gang)
    # A gang that is known by its name may start again; a process does not.
    monitor = if is_pid(gang), do: Process.monitor(gang)
    state = %__MODULE__{gang: gang, reader: nil, monitor: monitor, max_events: max_events}
    {:ok, %{state | reader: Process.monitor(reader)}}
  end

  @impl true
  def handle_call({:take, timeout}, from, state) do
    case oldest(state) do
      {:ok, event, state} -> {:reply, {:ok, event}, state}
      :none when state.ended? -> {:reply, :ended, state}
      :none -> {:noreply, %{state | waiting: Waiting.new(from, timeout)}}
    end
  end

  @impl true
  def handle_info({:rank_bridge, gang, %Event{} = event}, %{gang: gang} = state),
    do: {:noreply, state |> add(event) |> give()}

  def handle_info({:DOWN, reader, :process, _pid, _reason}, %{reader: reader} = state),
    do: {:stop, :normal, state}

  def handle_info({:DOWN, monitor, :process, _pid, _reason}, %{monitor: monitor} = state),
    do: {:noreply, give(%{state | ended?: true})}

  def handle_info({:timeout, timer, :late}, %{waiting: %{timer: timer}} = state),
    do: {:noreply, reply(state, :ended)}

  # The timer of an earlier call.
  def handle_info(_other, state), do: {:noreply, state}

  # The registry of subscribers hears of the end of a process only later.
  @impl true
  def terminate(_reason, state), do: Gang.unsubscribe(state.gang)

  # A reader that waits has taken everything: nothing is dropped.
  defp give(%{waiting: nil} = state), do: state

  defp give(state) do
    case oldest(state) do
      {:ok, event, state} -> reply(state, {:ok, event})
      :none when state.ended? -> reply(state, :ended)
      :none -> state
    end
  end

  defp reply(state, answer), do: %{state | waiting: Waiting.answer(state.waiting, answer)}

  defp add(%{count: count, max_events: count} = state, event) do
    events = :queue.in(event, :queue.drop(state.events))
    %{state | events: events, missed: state.missed + 1}
  end

  defp add(state, event),
    do: %{state | events: :queue.in(event, state.events), count: state.count + 1}

  defp oldest(%{missed: missed} = state) when missed > 0,
    do: {:ok, %Event{kind: :missed, missed: missed}, %{state | missed: 0}}

  defp oldest(%{count: 0}), do: :none

  defp oldest(state) do
    {{:value, event}, events} = :queue.out(state.events)
    {:ok, event, %{state | events: events, count: state.count - 1}}
  end
end
