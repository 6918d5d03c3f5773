defmodule RankBridge.Gang.Tables do
  @moduledoc false
  # Owns the tables of a gang, which callers read and write by themselves: the channels to its ranks, and who is in which group.

  use GenServer

  alias RankBridge.Gang.{Channels, Children}

  @type t :: %{channels: :ets.table(), groups: :ets.table()}

  @doc "Starts the owner of a gang's tables."
  @spec start_link(pid()) :: GenServer.on_start()
  def start_link(gang),
    do: GenServer.start_link(__MODULE__, nil, name: Children.name(gang, :tables))

  @doc "The tables of a gang."
  @spec fetch(pid()) :: t()
  def fetch(gang), do: GenServer.call(Children.name(gang, :tables), :fetch)

  @impl true
  def init(nil) do
    {:ok,
     %{
       channels: Channels.table(),
       groups: :ets.new(:rank_bridge_groups, [:public, read_concurrency: true])
     }}
  end

  @impl true
  def handle_call(:fetch, _from, tables), do: {:reply, tables, tables}
end
