defmodule Transformer.Killer do
  @moduledoc """
  Plays the world: kills ranks by SIGKILL, at moments that are drawn from a seed.

  It kills only processes that `RankBridge.status/2` names as the gang's ranks.
  """

  use GenServer

  @typedoc "After this step, after so many milliseconds each, this rank, and then another."
  @type strike ::
          {step :: pos_integer(), [{delay :: non_neg_integer(), rank :: non_neg_integer()}]}

  @ranks 4
  # Milliseconds: a step takes about as long; a gang may be whole again after as long.
  @in_step 30
  @in_recovery 500
  @pause 20
  # And for a rank to answer: one that is busy is not passed over.
  @patience 10_000

  @doc """
  So many kills in so many steps: some of one rank alone, some of another one while the gang is being made whole. None in the last
  tenth of the steps.

      iex> plan = Transformer.Killer.plan(5, 200, 1)
      iex> {plan == Transformer.Killer.plan(5, 200, 1), plan |> Enum.map(fn {_step, kills} -> length(kills) end) |> Enum.sum()}
      {true, 5}
  """
  @spec plan(non_neg_integer(), pos_integer(), integer()) :: [strike()]
  def plan(kills, steps, seed) do
    _state = :rand.seed(:exsss, {seed, kills, steps})
    sizes = sizes(kills)
    at = 1..max(1, steps - div(steps, 10)) |> Enum.take_random(length(sizes)) |> Enum.sort()
    for {step, size} <- Enum.zip(at, sizes), do: {step, strike(size)}
  end

  defp sizes(kills) when kills < 2, do: List.duplicate(1, kills)

  defp sizes(kills) do
    size = if :rand.uniform() < 0.3, do: 2, else: 1
    [size | sizes(kills - size)]
  end

  defp strike(size) do
    for place <- 1..size do
      longest = if place == 1, do: @in_step, else: @in_recovery
      {:rand.uniform(longest + 1) - 1, :rand.uniform(@ranks) - 1}
    end
  end

  @doc "Starts one for a plan. It sends the calling process `{:killed, kill}`, whose `at` is in monotonic milliseconds."
  @spec start_link([strike()]) :: GenServer.on_start()
  def start_link(plan), do: GenServer.start_link(__MODULE__, {plan, self()})

  @doc "A step is done."
  @spec step(pid(), pos_integer()) :: :ok
  def step(killer, step), do: GenServer.cast(killer, {:step, step})

  @impl true
  def init({plan, observer}), do: {:ok, %{plan: plan, observer: observer, due: [], killed: []}}

  @impl true
  def handle_cast({:step, step}, %{due: [], plan: [{at, kills} | plan]} = state) when step >= at,
    do:
      {:noreply,
       next(%{state | plan: plan, due: for({delay, rank} <- kills, do: {delay, rank, step})})}

  def handle_cast({:step, _step}, state), do: {:noreply, state}

  @impl true
  def handle_info(:kill, %{due: [{_delay, rank, step} | due]} = state) do
    case kill(rank, state.killed) do
      nil ->
        Process.send_after(self(), :kill, @pause)
        {:noreply, state}

      kill ->
        send(state.observer, {:killed, Map.put(kill, :step, step)})
        {:noreply, next(%{state | due: due, killed: [kill.pid | state.killed]})}
    end
  end

  defp next(%{due: [{delay, _rank, _step} | _others]} = state) do
    Process.send_after(self(), :kill, delay)
    state
  end

  defp next(state), do: state

  # That rank, or one after it that is alive; nil: none is as it should be yet.
  defp kill(rank, killed) do
    with {:ok, statuses} <-
           RankBridge.status(Transformer.Gang, timeout: @patience, unready: :fail),
         alive = for(%{error: nil} = it <- statuses, it.pid not in killed, do: it),
         [chosen | _] <- Enum.sort_by(alive, &rem(@ranks + &1.rank - rank, @ranks)),
         at = System.monotonic_time(:millisecond),
         {_output, 0} <- System.cmd("kill", ["-KILL", "#{chosen.pid}"], stderr_to_stdout: true) do
      %{rank: chosen.rank, pid: chosen.pid, at: at}
    else
      _not_there -> nil
    end
  end
end
