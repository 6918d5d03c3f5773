defmodule RankBridge.Hold.Keeper do
  @moduledoc false
  # Keeps a breakpoint set on its ranks for one process, and knows the calls that it holds.
  #
  # It is a process of its own, with one more for each rank, which reads what that rank says. All of them end with the process for
  # which the breakpoint was set: the streams break, and the ranks let go.

  use GenServer

  alias RankBridge.{Calls, Error, HeldCall, ShortNames, Telemetry, Transport}
  alias RankBridge.Gang.View
  alias RankBridge.Proto.V1
  alias RankBridge.Waiting

  @typedoc "What is waited for: that it is set everywhere, that so many ranks are held, or that these are."
  @type wanted :: :set | non_neg_integer() | [non_neg_integer()]

  @typedoc "A held call: the rank, and its number there."
  @type key :: {non_neg_integer(), pos_integer()}

  @typedoc "Why the breakpoint is set no more on a rank, by rank."
  @type ended :: %{non_neg_integer() => Error.t()}

  # * `numbers` - of the breakpoint, by rank
  # * `held` - calls by key, each with the time at which this process heard of it
  # * `heard` - the last call of each rank of which this process has heard
  # * `released` - keys of calls that were let go, of which the rank has not said so yet
  # * `waiting` - by timer: who waits, and for what
  @enforce_keys [:owner, :gang, :ranks]
  defstruct [:owner, :gang, :ranks] ++
              [numbers: %{}, held: %{}, heard: %{}, released: MapSet.new()] ++
              [ended: %{}, waiting: %{}]

  @actions ShortNames.of(V1.Action, "ACTION_")

  @doc """
  Sets a breakpoint on ranks for the calling process. Returns its number on each rank once it is set on all of them. Otherwise it
  is set nowhere.
  """
  @spec start(View.t(), [non_neg_integer()], V1.Breakpoint.t(), pos_integer()) ::
          {:ok, pid(), %{non_neg_integer() => pos_integer()}} | {:error, Error.t()}
  def start(view, ranks, breakpoint, timeout) do
    call = %Calls{
      rpc: V1.HoldService.break(),
      operation: "hold",
      deadline: timeout,
      changes?: false
    }

    with {:ok, bytes} <- Calls.encode(%V1.BreakRequest{breakpoint: breakpoint}, call) do
      # Not linked: its end would be a message to a process that traps exits. It watches that process instead.
      {:ok, keeper} = GenServer.start(__MODULE__, {view, ranks, bytes, call, self()})

      case ask(keeper, {:wait, :set, timeout}) do
        {:ok, numbers} ->
          {:ok, keeper, numbers}

        {:error, error} ->
          stop(keeper)
          {:error, error}
      end
    end
  end

  @doc """
  Waits at most `timeout` milliseconds until ranks are held, and gives the held calls, by rank. `:late`: they are not. An error:
  too few ranks are left on which the breakpoint is set.
  """
  @spec wait(pid(), wanted(), non_neg_integer()) ::
          {:ok | :late, [HeldCall.t()]} | {:error, Error.t()}
  def wait(keeper, wanted, timeout), do: ask(keeper, {:wait, wanted, timeout})

  @doc "Ranks on which the breakpoint is set no more, though it was not closed."
  @spec ended(pid()) :: {:ok, ended()} | {:error, Error.t()}
  def ended(keeper), do: ask(keeper, :ended)

  @doc "Notes that calls were let go. They count as held no more, although the ranks have not said so yet."
  @spec released(pid(), [key()]) :: :ok | {:error, Error.t()}
  def released(keeper, keys), do: ask(keeper, {:released, keys})

  @doc "Removes the breakpoint. Stopping twice is no error."
  @spec stop(pid()) :: :ok
  def stop(keeper) do
    GenServer.stop(keeper, :shutdown)
  catch
    :exit, _ended_already -> :ok
  end

  # Every wait has a timer of the keeper's.
  defp ask(keeper, question) do
    GenServer.call(keeper, question, :infinity)
  catch
    :exit, _ended -> {:error, Error.refusal(:unavailable, "the breakpoint is closed")}
  end

  @impl true
  def init({view, ranks, bytes, call, owner}) do
    keeper = self()

    for rank <- ranks,
        do: {:ok, _reader} = Task.start_link(fn -> read(keeper, view, rank, bytes, call) end)

    {:ok, %__MODULE__{owner: Process.monitor(owner), gang: view.known_as, ranks: ranks}}
  end

  @impl true
  def handle_call({:wait, wanted, timeout}, from, state) do
    case answer(wanted, state) do
      :none ->
        waiting = Waiting.new(from, timeout)
        {:noreply, put_in(state.waiting[waiting.timer], {waiting, wanted})}

      answer ->
        {:reply, answer, state}
    end
  end

  def handle_call(:ended, _from, state), do: {:reply, {:ok, state.ended}, state}

  def handle_call({:released, keys}, _from, state) do
    # Of what the rank has said already that it was let go, nothing is to be noted.
    unsaid =
      for {rank, held_id} = key <- keys,
          is_map_key(state.held, key) or held_id > Map.get(state.heard, rank, 0),
          do: key

    {:reply, :ok, %{state | released: MapSet.union(state.released, MapSet.new(unsaid))}}
  end

  @impl true
  def handle_info({:said, rank, said}, state), do: {:noreply, state |> take(rank, said) |> give()}

  def handle_info({:ended, rank, error}, state) do
    {theirs, held} = Enum.split_with(state.held, &match?({{^rank, _id}, _held}, &1))
    for {_key, held} <- theirs, do: tell_let_go(held, :continue, state)
    released = MapSet.reject(state.released, &match?({^rank, _id}, &1))
    ended = Map.put(state.ended, rank, error)
    {:noreply, give(%{state | held: Map.new(held), released: released, ended: ended})}
  end

  def handle_info({:DOWN, owner, :process, _pid, _reason}, %{owner: owner} = state),
    do: {:stop, :shutdown, state}

  def handle_info({:timeout, timer, :late}, state) do
    {waiting, others} = Map.pop(state.waiting, timer)
    # The timer of one that was answered meanwhile is nobody's.
    with {waiting, wanted} <- waiting, do: Waiting.answer(waiting, late(wanted, state))
    {:noreply, %{state | waiting: others}}
  end

  def handle_info(_other, state), do: {:noreply, state}

  # The end of the streams lets go.
  @impl true
  def terminate(_reason, state),
    do: for({_key, held} <- state.held, do: tell_let_go(held, :continue, state))

  defp take(state, rank, %V1.BreakpointSet{number: number}),
    do: put_in(state.numbers[rank], number)

  defp take(state, rank, %V1.HeldCall{} = it) do
    call = HeldCall.from_proto(it)
    :ok = Telemetry.held(state.gang, call)
    state = put_in(state.held[{rank, it.held_id}], {call, System.monotonic_time()})
    put_in(state.heard[rank], it.held_id)
  end

  defp take(state, rank, %V1.LetGo{held_id: held_id, action: action}) do
    {held, others} = Map.pop(state.held, {rank, held_id})
    if held, do: tell_let_go(held, Map.get(@actions, action, :unspecified), state)
    %{state | held: others, released: MapSet.delete(state.released, {rank, held_id})}
  end

  defp tell_let_go({call, since}, action, state),
    do: Telemetry.let_go(state.gang, call, action, System.monotonic_time() - since)

  # Answers those for whom something has changed.
  defp give(state) do
    left =
      for {timer, {waiting, wanted}} <- state.waiting, into: %{} do
        case answer(wanted, state) do
          :none -> {timer, {waiting, wanted}}
          answer -> {timer, Waiting.answer(waiting, answer)}
        end
      end

    %{state | waiting: Map.reject(left, &match?({_timer, nil}, &1))}
  end

  defp answer(:set, state) do
    heard = Map.merge(state.numbers, state.ended)
    silent = Enum.reject(state.ranks, &is_map_key(heard, &1))

    cond do
      silent != [] -> :none
      state.ended == %{} -> {:ok, state.numbers}
      true -> {:error, outcomes(state)}
    end
  end

  defp answer(wanted, state) do
    calls = calls(state)
    ranks = calls |> Enum.map(& &1.rank) |> Enum.uniq()

    cond do
      enough?(wanted, ranks) -> {:ok, calls}
      in_reach?(wanted, state) -> :none
      true -> {:error, outcomes(state)}
    end
  end

  defp enough?(count, held) when is_integer(count), do: length(held) >= count
  defp enough?(ranks, held), do: ranks -- held == []

  defp in_reach?(count, state) when is_integer(count),
    do: count <= length(state.ranks) - map_size(state.ended)

  defp in_reach?(ranks, state), do: not Enum.any?(ranks, &is_map_key(state.ended, &1))

  defp late(:set, state) do
    silent = for rank <- state.ranks, not is_map_key(state.numbers, rank), do: rank
    ended = Map.merge(Map.new(silent, &{&1, not_set(&1)}), state.ended)
    {:error, outcomes(%{state | ended: ended})}
  end

  defp late(_wanted, state), do: {:late, calls(state)}

  defp not_set(rank) do
    Error.refusal(:deadline_exceeded, "the rank did not say that the breakpoint is set",
      rank: rank,
      operation: "hold"
    )
  end

  defp outcomes(state),
    do: Error.combine(for(rank <- state.ranks, do: {rank, state.ended[rank] || :ok}), false)

  defp calls(state) do
    for {key, {call, _since}} <- Enum.sort_by(state.held, &elem(&1, 0)),
        key not in state.released,
        do: call
  end

  # --- in the process of a rank ---

  defp read(keeper, view, rank, bytes, call) do
    on_message = fn message, nil ->
      case Calls.understand(message, rank, call) do
        {:ok, said} -> {:cont, tell(keeper, {:said, rank, said})}
        {:error, error} -> {:halt, error}
      end
    end

    result =
      with {:ok, channel} <- View.channel(view, rank),
           do: Transport.server_stream(channel, call.rpc.path, bytes, nil, on_message)

    tell(keeper, {:ended, rank, why(result, rank, call)})
  end

  defp tell(keeper, message) do
    send(keeper, message)
    nil
  end

  defp why({:ok, nil}, rank, call) do
    fields = [rank: rank, operation: call.operation]
    Error.refusal(:unavailable, "the rank has stopped, and with it the breakpoint there", fields)
  end

  defp why({:ok, error}, _rank, _call), do: error
  defp why(:gone, rank, call), do: Calls.gone(rank, call)
  defp why({:error, status}, rank, call), do: Error.from_status(status, Calls.context(rank, call))
end
