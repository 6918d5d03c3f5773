defmodule Trainer.Killer do
  @moduledoc """
  Plays the world: kills ranks by SIGKILL, at moments that are drawn from a seed.

  It kills only processes that the gang tells as its ranks' (`RankBridge.status/2`).
  """

  use GenServer

  @typedoc "In this step, after so many milliseconds, this rank, or all at once; each delay begins with the kill before it."
  @type strike ::
          {step :: non_neg_integer(),
           [{delay :: non_neg_integer(), rank :: non_neg_integer() | :all}]}

  # Milliseconds: a step takes about as long; a gang may be whole again after as long.
  @in_step 15
  @in_recovery 300
  @pause 20
  # And for a rank to answer: one that is busy is not passed over.
  @patience 10_000

  @doc """
  So many kills in so many steps: some of one rank alone, some of another one while the gang is being made whole.

      iex> plan = Trainer.Killer.plan(10, 200, 1)
      iex> {plan == Trainer.Killer.plan(10, 200, 1), plan |> Enum.map(fn {_step, kills} -> length(kills) end) |> Enum.sum()}
      {true, 10}
  """
  @spec plan(non_neg_integer(), pos_integer(), integer()) :: [strike()]
  def plan(kills, steps, seed) do
    _state = :rand.seed(:exsss, {seed, kills, steps})
    sizes = sizes(kills)
    at = 0..(steps - 1) |> Enum.take_random(length(sizes)) |> Enum.sort()
    for {step, size} <- Enum.zip(at, sizes), do: {step, strike(size)}
  end

  defp sizes(0), do: []
  defp sizes(1), do: [1]

  defp sizes(kills) do
    size = if :rand.uniform() < 0.3, do: 2, else: 1
    [size | sizes(kills - size)]
  end

  defp strike(size) do
    for place <- 1..size do
      longest = if place == 1, do: @in_step, else: @in_recovery
      {:rand.uniform(longest + 1) - 1, :rand.uniform(Trainer.Step.ranks()) - 1}
    end
  end

  @doc "Starts one for a plan. It tells the calling process `{:killed, kill}`, whose `at` is in monotonic milliseconds."
  @spec start_link([strike()]) :: GenServer.on_start()
  def start_link(plan), do: GenServer.start_link(__MODULE__, {plan, self()})

  @doc "A step begins. Returns when the kills of those before it have happened: none is left over when the training ends."
  @spec before_step(pid(), non_neg_integer()) :: :ok
  def before_step(killer, step), do: GenServer.call(killer, {:before_step, step}, :infinity)

  @impl true
  def init({plan, observer}) do
    {:ok, %{plan: Map.new(plan), observer: observer, strike: nil, waiting: nil, killed: []}}
  end

  @impl true
  def handle_call({:before_step, step}, from, state),
    do: {:noreply, begin(%{state | waiting: {from, step}})}

  @impl true
  def handle_info(:kill, %{strike: {step, [{_delay, rank} | others]}} = state) do
    case kill(rank, state.killed) do
      [] ->
        Process.send_after(self(), :kill, @pause)
        {:noreply, state}

      kills ->
        for kill <- kills, do: send(state.observer, {:killed, Map.put(kill, :step, step)})
        killed = Enum.map(kills, & &1.pid) ++ state.killed
        {:noreply, next(%{state | strike: {step, others}, killed: killed})}
    end
  end

  defp next(%{strike: {_step, []}} = state), do: begin(%{state | strike: nil})

  defp next(%{strike: {_step, [{delay, _rank} | _others]}} = state) do
    Process.send_after(self(), :kill, delay)
    state
  end

  # The step that waits, unless it does so for a kill.
  defp begin(%{strike: nil, waiting: {from, step}} = state) do
    GenServer.reply(from, :ok)
    {kills, plan} = Map.pop(state.plan, step, [])
    state = %{state | plan: plan, waiting: nil}
    if kills == [], do: state, else: next(%{state | strike: {step, kills}})
  end

  defp begin(state), do: state

  # Those that were killed: none where none is as it should be yet.
  defp kill(which, killed) do
    with {:ok, statuses} <- RankBridge.status(Trainer.Gang, timeout: @patience) do
      alive =
        for {%{error: nil, pid: pid}, rank} <- Enum.with_index(statuses),
            pid not in killed,
            do: {rank, pid}

      which |> chosen(alive, length(statuses)) |> kill()
    else
      {:error, _not_there} -> []
    end
  end

  defp chosen(:all, alive, size), do: if(length(alive) == size, do: alive, else: [])

  # That rank, or one after it that is alive.
  defp chosen(rank, alive, size),
    do:
      alive
      |> Enum.sort_by(fn {other, _pid} -> rem(size + other - rank, size) end)
      |> Enum.take(1)

  defp kill([]), do: []

  defp kill(chosen) do
    at = System.monotonic_time(:millisecond)
    pids = for {_rank, pid} <- chosen, do: "#{pid}"

    case System.cmd("kill", ["-KILL" | pids], stderr_to_stdout: true) do
      {_output, 0} -> for {rank, pid} <- chosen, do: %{rank: rank, pid: pid, at: at}
      # One has ended meanwhile.
      {_output, _status} -> []
    end
  end
end
