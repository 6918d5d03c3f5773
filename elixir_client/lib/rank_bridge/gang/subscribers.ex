defmodule RankBridge.Gang.Subscribers do
  @moduledoc false
  # The processes that get a gang's events, by the gang's name or pid, until they end.

  alias RankBridge.Gang
  alias RankBridge.Gang.Event

  @registry __MODULE__

  @doc "The registry of the subscribers."
  @spec child_spec(term()) :: Supervisor.child_spec()
  def child_spec(_opts), do: Registry.child_spec(keys: :duplicate, name: @registry)

  @doc "Subscribes the calling process. A second time changes nothing."
  @spec add(Gang.gang()) :: :ok
  def add(gang) do
    _ = self() in pids(gang) or Registry.register(@registry, gang, nil)
    :ok
  end

  @doc "Ends the subscription of the calling process."
  @spec remove(Gang.gang()) :: :ok
  def remove(gang), do: Registry.unregister(@registry, gang)

  @doc "Whether any of these names has a subscriber."
  @spec any?([Gang.gang()]) :: boolean()
  def any?(names), do: Enum.any?(names, &(pids(&1) != []))

  @doc "Sends an event to the subscribers of these names, each with the name it subscribed to."
  @spec tell([Gang.gang()], Event.t()) :: :ok
  def tell(names, event) do
    for name <- names, pid <- pids(name), do: send(pid, {:rank_bridge, name, event})
    :ok
  end

  defp pids(gang), do: for({pid, _value} <- Registry.lookup(@registry, gang), do: pid)
end
