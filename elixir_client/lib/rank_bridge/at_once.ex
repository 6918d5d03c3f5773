defmodule RankBridge.AtOnce do
  @moduledoc false
  # Runs a function on several items at once, each in a process linked to the caller.
  #
  # As many run as there are items: with fewer, calls that wait for each other would never end. There is no time
  # limit of its own: the function must have one. Large binaries are shared with the processes, not copied.

  @doc "The results, in the order of the items. Leaves no message behind in a caller that traps exits."
  @spec map([item], (item -> result)) :: [result] when item: term(), result: term()
  def map([], _fun), do: []
  def map([only], fun), do: [fun.(only)]

  def map(items, fun) do
    tasks = Enum.map(items, fn item -> Task.async(fn -> fun.(item) end) end)
    results = Task.await_many(tasks, :infinity)
    Enum.each(tasks, &forget/1)
    results
  end

  @doc """
  As `map/2`, but also one item's function runs in a process of its own; and of a process that was ended otherwise, it gives
  the reason, if the caller traps exits.
  """
  @spec apart([item], (item -> result)) :: [{:ok, result} | {:exit, term()}]
        when item: term(), result: term()
  def apart(items, fun) do
    tasks = Enum.map(items, fn item -> Task.async(fn -> fun.(item) end) end)
    ended = Enum.map(tasks, &Task.yield(&1, :infinity))
    Enum.each(tasks, &forget/1)
    ended
  end

  defp forget(task) do
    Process.unlink(task.pid)

    receive do
      {:EXIT, pid, _reason} when pid == task.pid -> :ok
    after
      0 -> :ok
    end
  end
end
