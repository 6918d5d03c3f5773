defmodule RankBridge.Place do
  @moduledoc false
  # Where a rank runs: the name of its `host`, and its `local_rank` there.

  @type t :: %__MODULE__{host: String.t(), local_rank: non_neg_integer()}

  @enforce_keys [:host, :local_rank]
  defstruct [:host, :local_rank]

  @doc """
  The ranks on each host, in their order; hosts in the order of their first ranks.

      iex> RankBridge.Place.by_host([3, 1, 0], ["b", "a", "b"])
      [{"b", [3, 0]}, {"a", [1]}]
  """
  @spec by_host([rank], [String.t()]) :: [{String.t(), [rank]}] when rank: non_neg_integer()
  def by_host(ranks, hosts) do
    there = Enum.group_by(Enum.zip(hosts, ranks), &elem(&1, 0), &elem(&1, 1))
    for host <- Enum.uniq(hosts), do: {host, there[host]}
  end
end
