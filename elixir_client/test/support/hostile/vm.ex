defmodule RankBridge.Test.Hostile.VM do
  @moduledoc "What a test must leave as it was: processes, ports, tables, and a log without crashes."

  import ExUnit.Assertions
  import RankBridge.Test.Soon

  @doc """
  Runs a function, and then waits until no process, port or table is left that was not there before. Fails if a process with
  a name has ended, or an error was logged. Only for tests beside which no others run. The gangs that `RankBridge.Case` keeps for
  the next test may connect again at any time: what is theirs does not count.
  """
  @spec unharmed((() -> result)) :: result when result: term()
  def unharmed(fun) do
    :ok = :logger.add_handler(__MODULE__, __MODULE__, %{level: :error, config: %{pid: self()}})
    before = counts()
    named = named()
    result = fun.()
    assert_soon([], fn -> Enum.map(counts() -- before, &describe/1) end)
    assert named -- named() == []
    :ok = :logger.remove_handler(__MODULE__)
    refute_received {:logged, _event}
    result
  after
    :logger.remove_handler(__MODULE__)
  end

  @doc "A handler of `:logger`, which passes errors on."
  @spec log(:logger.log_event(), map()) :: term()
  def log(event, %{config: %{pid: pid}}), do: send(pid, {:logged, event})

  defp describe(pid) when is_pid(pid), do: {pid, Process.info(pid, [:initial_call, :dictionary])}
  defp describe(other), do: other

  defp counts do
    {lent, others} = Enum.split_with(Process.list(), &lent?/1)
    ports = Enum.reject(Port.list(), &owned?(Port.info(&1, :connected), lent))
    tables = Enum.reject(:ets.all(), &(:ets.info(&1, :owner) in lent))
    others ++ ports ++ tables
  end

  defp lent?(pid) do
    with {:dictionary, dictionary} <- Process.info(pid, :dictionary),
         {_key, ancestors} <- List.keyfind(dictionary, :"$ancestors", 0) do
      RankBridge.Case.Lender in ancestors
    else
      _none -> false
    end
  end

  defp owned?({:connected, pid}, lent), do: pid in lent
  defp owned?(nil, _lent), do: false

  defp named, do: for(name <- Process.registered(), do: {name, Process.whereis(name)})
end
