defmodule RankBridge.Gang.Channels do
  @moduledoc false
  # The channels to a gang's ranks: a row of a table for each, so that a call on one rank copies one.
  #
  # A set of channels never changes. A gang that shrinks has another set, of the same table; who still has the former one reaches
  # those ranks by the numbers that they had.

  alias RankBridge.Transport

  @enforce_keys [:table, :set, :size]
  defstruct @enforce_keys

  @typedoc "`set` - the number of the set in its table; `size` - how many ranks are in it, numbered from 0."
  @type t :: %__MODULE__{table: :ets.table(), set: integer(), size: non_neg_integer()}

  @typedoc "A channel, and the target that it was opened with."
  @type row :: {Transport.channel(), target :: String.t()}

  @doc "A table for the channels of a gang, for as long as the calling process lives."
  @spec table() :: :ets.table()
  def table, do: :ets.new(:rank_bridge_channels, [:public, read_concurrency: true])

  @doc "A set of these channels, of ranks 0, 1, ..."
  @spec put(:ets.table(), [row()]) :: t()
  def put(table, rows) do
    set = System.unique_integer([:positive])

    rows =
      for {{channel, target}, rank} <- Enum.with_index(rows), do: {{set, rank}, target, channel}

    true = :ets.insert(table, rows)
    %__MODULE__{table: table, set: set, size: length(rows)}
  end

  @doc "The channel to a rank. `:gone`: the gang has ended."
  @spec fetch(t(), non_neg_integer()) :: {:ok, Transport.channel()} | :gone
  def fetch(channels, rank) do
    {:ok, :ets.lookup_element(channels.table, {channels.set, rank}, 3)}
  rescue
    ArgumentError -> :gone
  end

  @doc "The target that leads to a rank; empty: the gang has ended."
  @spec target(t(), non_neg_integer()) :: String.t()
  def target(channels, rank) do
    :ets.lookup_element(channels.table, {channels.set, rank}, 2)
  rescue
    ArgumentError -> ""
  end

  @doc "All channels and targets, by rank. By the gang's own processes."
  @spec rows(t()) :: [row()]
  def rows(%__MODULE__{size: size} = channels) do
    for rank <- 0..(size - 1)//1 do
      [{_key, target, channel}] = :ets.lookup(channels.table, {channels.set, rank})
      {channel, target}
    end
  end

  @doc "A set of some ranks of another, ascending, which become 0, 1, ..."
  @spec only(t(), [non_neg_integer()]) :: t()
  def only(channels, ranks) do
    rows = List.to_tuple(rows(channels))
    put(channels.table, for(rank <- ranks, do: elem(rows, rank)))
  end

  @doc "Forgets a set that nobody was given."
  @spec drop(t()) :: :ok
  def drop(channels) do
    :ets.match_delete(channels.table, {{channels.set, :_}, :_, :_})
    :ok
  end
end
