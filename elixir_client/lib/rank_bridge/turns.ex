defmodule RankBridge.Turns do
  @moduledoc false
  # One process at a time, of those on this node that name the same key, in the order in which they asked.
  #
  # A process that ends has had its turn.

  use GenServer

  @doc "Starts the one process of this node's application that gives turns."
  @spec start_link(keyword()) :: GenServer.on_start()
  def start_link(_opts), do: GenServer.start_link(__MODULE__, nil, name: __MODULE__)

  @doc "Waits for the turn, and gives what `fun` gives."
  @spec take(term(), (() -> result)) :: result when result: term()
  def take(key, fun) do
    turn = GenServer.call(__MODULE__, {:take, key}, :infinity)

    try do
      fun.()
    after
      GenServer.cast(__MODULE__, {:over, turn})
    end
  end

  # By key the processes' monitors and who waits, the first of which has the turn.
  @impl GenServer
  def init(nil), do: {:ok, %{}}

  @impl GenServer
  def handle_call({:take, key}, {pid, _tag} = from, turns) do
    monitor = Process.monitor(pid)
    waiting = Map.get(turns, key, []) ++ [{monitor, from}]
    if match?([_only], waiting), do: GenServer.reply(from, monitor)
    {:noreply, Map.put(turns, key, waiting)}
  end

  @impl GenServer
  def handle_cast({:over, turn}, turns) do
    Process.demonitor(turn, [:flush])
    {:noreply, without(turns, turn)}
  end

  @impl GenServer
  def handle_info({:DOWN, monitor, :process, _pid, _why}, turns),
    do: {:noreply, without(turns, monitor)}

  defp without(turns, monitor) do
    case Enum.find(turns, fn {_key, waiting} -> List.keymember?(waiting, monitor, 0) end) do
      {key, [{first, _from} | _others] = waiting} ->
        others = List.keydelete(waiting, monitor, 0)

        with [{next, from} | _later] when first == monitor <- others,
             do: GenServer.reply(from, next)

        if others == [], do: Map.delete(turns, key), else: Map.put(turns, key, others)

      nil ->
        turns
    end
  end
end
