defmodule RankBridge.NamedTensors.Comparison do
  @moduledoc """
  A tensor whose replicas differ (`RankBridge.NamedTensors.compare/3`).

  * `name` - its name
  * `reference` - the lowest of the ranks that have the tensor which most ranks have
  * `differing` - by rank, how its tensor differs from that of the reference; nil: the rank has no tensor of this name, or one of
    another dtype or shape
  """

  alias RankBridge.NamedTensors.{Difference, Summary}

  @type t :: %__MODULE__{
          name: String.t(),
          reference: non_neg_integer(),
          differing: %{non_neg_integer() => Difference.t() | nil}
        }

  @enforce_keys [:name, :reference, :differing]
  defstruct @enforce_keys

  @doc "The place of the first member that has what most members have. `summaries`: of each member, nil if it has no such tensor."
  @spec reference([Summary.t() | nil]) :: non_neg_integer()
  def reference(summaries) do
    counts = summaries |> hashes() |> Enum.reject(&is_nil/1) |> Enum.frequencies()
    most = counts |> Map.values() |> Enum.max()
    summaries |> hashes() |> Enum.find_index(&(counts[&1] == most))
  end

  @doc "Whether all members have equal tensors."
  @spec alike?([Summary.t() | nil]) :: boolean()
  def alike?(summaries), do: match?([_hash], summaries |> hashes() |> Enum.uniq())

  @doc "Whether all members have a tensor of one dtype and shape, so that their elements can be compared."
  @spec comparable?([Summary.t() | nil]) :: boolean()
  def comparable?(summaries) do
    kinds = for it <- summaries, do: it && {it.dtype, it.shape}
    match?([{_dtype, _shape}], Enum.uniq(kinds))
  end

  @doc "The comparison. `members`, `summaries` and `differences` are in group order."
  @spec new(String.t(), [non_neg_integer()], [Summary.t() | nil], [Difference.t() | nil]) :: t()
  def new(name, members, summaries, differences) do
    place = reference(summaries)
    own = hashes(summaries)
    expected = Enum.at(own, place)

    differing =
      for {rank, hash, difference} <- Enum.zip([members, own, differences]),
          hash != expected,
          into: %{},
          do: {rank, difference}

    %__MODULE__{name: name, reference: Enum.at(members, place), differing: differing}
  end

  defp hashes(summaries), do: for(it <- summaries, do: it && it.hash)
end
