defmodule RankBridge.Gang.Subscribers do
  @moduledoc "Who is told of a gang's events: processes, by the gang's name or pid, until they end."

  alias RankBridge.Gang
  alias RankBridge.Gang.Event

  @registry __MODULE__

  @doc "The process that knows them."
  @spec child_spec(term()) :: Supervisor.child_spec()
  def child_spec(_opts), do: Registry.child_spec(keys: :duplicate, name: @registry)

  @doc "Tells the calling process of events from now on. Once more changes nothing."
  @spec add(Gang.gang()) :: :ok
  def add(gang) do
    _ = self() in pids(gang) or Registry.register(@registry, gang, nil)
    :ok
  end

  @doc "Tells the calling process nothing more."
  @spec remove(Gang.gang()) :: :ok
  def remove(gang), do: Registry.unregister(@registry, gang)

  @doc "Whether there is anyone under any of these names."
  @spec any?([Gang.gang()]) :: boolean()
  def any?(names), do: Enum.any?(names, &(pids(&1) != []))

  @doc "Tells everyone under these names, each by the one that it used."
  @spec tell([Gang.gang()], Event.t()) :: :ok
  def tell(names, event) do
    for name <- names, pid <- pids(name), do: send(pid, {:rank_bridge, name, event})
    :ok
  end

  defp pids(gang), do: for({pid, _value} <- Registry.lookup(@registry, gang), do: pid)
end
