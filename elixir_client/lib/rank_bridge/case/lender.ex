defmodule RankBridge.Case.Lender do
  @moduledoc false
  # Lends the ranks of each size and backend to one test after another. Starts them when a test wants them first.

  use GenServer

  alias RankBridge.Case.{Lent, Wanted}
  alias RankBridge.Gang

  @gangs RankBridge.Case.Gangs

  @doc "Waits until no other test has the ranks that are wanted, and lends them. `test`: the process that has them."
  @spec lend(pid(), Wanted.t()) :: Lent.t()
  def lend(test, wanted) do
    case GenServer.call(lender(), {:lend, test, wanted}, :infinity) do
      {:ok, lent} -> lent
      {:error, error} -> raise error
    end
  end

  @doc "What a test has; nil: nothing."
  @spec lent(pid()) :: Lent.t() | nil
  def lent(test), do: GenServer.call(lender(), {:lent, test})

  @doc "Keeps what is known of what a test has."
  @spec note(pid(), Lent.t()) :: :ok
  def note(test, lent), do: GenServer.call(lender(), {:note, test, lent})

  @doc "Takes the ranks from a test; `:drop`: they cannot be used any more."
  @spec take_back(pid(), :keep | :drop) :: :ok
  def take_back(test, what), do: GenServer.call(lender(), {:take_back, test, what})

  @doc "Starts a gang for a test, which ends with the VM at the latest."
  @spec start_gang(keyword()) :: DynamicSupervisor.on_start_child()
  def start_gang(opts) do
    child = Supervisor.child_spec({Gang, opts}, restart: :temporary)
    DynamicSupervisor.start_child(@gangs, child)
  end

  @doc "Ends a gang of a test; its session is closed."
  @spec end_gang(pid()) :: :ok
  def end_gang(gang) do
    _gone = DynamicSupervisor.terminate_child(@gangs, gang)
    :ok
  end

  # The library starts it with the first test: a program that tests nothing has none.
  defp lender do
    case Supervisor.start_child(RankBridge.Supervisor, __MODULE__) do
      {:ok, pid} -> pid
      {:error, {:already_started, pid}} -> pid
    end
  end

  @doc "Starts it, without ranks."
  @spec start_link(term()) :: GenServer.on_start()
  def start_link(_opts), do: GenServer.start_link(__MODULE__, nil, name: __MODULE__)

  @impl true
  def init(nil) do
    # Gangs that end, and that others shall not end with.
    Process.flag(:trap_exit, true)
    {:ok, _supervisor} = DynamicSupervisor.start_link(name: @gangs)
    {:ok, %{pools: %{}, lent: %{}, waiting: []}}
  end

  @impl true
  def handle_call({:lend, test, wanted}, from, state),
    do: {:noreply, lend_next(%{state | waiting: state.waiting ++ [{test, wanted, from}]})}

  def handle_call({:lent, test}, _from, state), do: {:reply, state.lent[test], state}

  def handle_call({:note, test, lent}, _from, state),
    do: {:reply, :ok, %{state | lent: Map.replace!(state.lent, test, lent)}}

  def handle_call({:take_back, test, what}, _from, state) do
    waiting = Enum.reject(state.waiting, fn {other, _wanted, _from} -> other == test end)
    {lent, others} = Map.pop(state.lent, test)
    if lent && what == :drop, do: Process.exit(lent.ranks, :shutdown)
    {:reply, :ok, lend_next(%{drop(state, lent, what) | lent: others, waiting: waiting})}
  end

  defp drop(state, lent, what) do
    if lent && what == :drop,
      do: %{state | pools: Map.reject(state.pools, fn {_key, gang} -> gang == lent.ranks end)},
      else: state
  end

  @impl true
  def handle_info({:EXIT, gang, _reason}, state),
    do: {:noreply, %{state | pools: Map.reject(state.pools, fn {_key, it} -> it == gang end)}}

  # Whoever waits for what nobody has gets it, in the order of coming.
  defp lend_next(state) do
    taken = for {_test, lent} <- state.lent, do: Wanted.options(lent.wanted)

    case Enum.find(state.waiting, fn {_test, it, _from} -> Wanted.options(it) not in taken end) do
      nil -> state
      {test, wanted, from} = first -> lend(first, test, wanted, from, state)
    end
  end

  defp lend(first, test, wanted, from, state) do
    state = %{state | waiting: List.delete(state.waiting, first)}
    key = Wanted.options(wanted)

    with :error <- Map.fetch(state.pools, key),
         {:error, error} <- Gang.start_link(key) do
      GenServer.reply(from, {:error, error})
      lend_next(state)
    else
      {:ok, gang} ->
        lent = %Lent{wanted: wanted, ranks: gang}
        GenServer.reply(from, {:ok, lent})
        pools = Map.put(state.pools, key, gang)
        lend_next(%{state | pools: pools, lent: Map.put(state.lent, test, lent)})
    end
  end
end
