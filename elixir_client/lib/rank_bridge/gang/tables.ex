defmodule RankBridge.Gang.Tables do
  @moduledoc false
  # Owns the tables of a gang, which callers read and write by themselves: the channels to its ranks, who is in which group, and
  # the memory that ranks share with this host.

  use GenServer

  alias RankBridge.Gang.{Channels, Children, Settings}
  alias RankBridge.SharedMemory.Segments

  @typedoc "`memory` - nil: the gang shares none."
  @type t :: %{channels: :ets.table(), groups: :ets.table(), memory: :ets.table() | nil}

  @doc "Starts the owner of a gang's tables."
  @spec start_link({pid(), Settings.t()}) :: GenServer.on_start()
  def start_link({gang, settings}),
    do: GenServer.start_link(__MODULE__, settings, name: Children.name(gang, :tables))

  @doc "The tables of a gang."
  @spec fetch(pid()) :: t()
  def fetch(gang), do: GenServer.call(Children.name(gang, :tables), :fetch)

  @impl true
  def init(settings) do
    {:ok,
     %{
       channels: Channels.table(),
       groups: :ets.new(:rank_bridge_groups, [:public, read_concurrency: true]),
       memory: if(settings.session and settings.shared_memory, do: Segments.new())
     }}
  end

  @impl true
  def handle_call(:fetch, _from, tables), do: {:reply, tables, tables}
end
