defmodule RankBridge.Error.RankDetail do
  @moduledoc false
  # One rank's part in a failure.
  #
  # `state` is `:arrived` (it called, and agreed), `:missing` (it did not call in time), `:disagrees` (it called
  # for something else than the first to arrive), `:lost` (dead or out of reach), `:failed` (by itself; `detail`
  # says how) or `:unspecified`. `site` is the line of code that asked for it, as "lib/train.ex:88"; empty: not said.
  # `activity` is what a missing rank did instead; nil: it was not asked.

  alias RankBridge.Error.Activity
  alias RankBridge.Proto.V1

  @type state :: :arrived | :missing | :disagrees | :lost | :failed | :unspecified

  @type t :: %__MODULE__{
          rank: non_neg_integer(),
          rank_in_group: non_neg_integer(),
          state: state(),
          detail: String.t(),
          site: String.t(),
          activity: Activity.t() | nil
        }

  @enforce_keys [:rank, :rank_in_group, :state]
  defstruct [:rank, :rank_in_group, :state, detail: "", site: "", activity: nil]

  @states %{
    RANK_STATE_ARRIVED: :arrived,
    RANK_STATE_MISSING: :missing,
    RANK_STATE_DISAGREES: :disagrees,
    RANK_STATE_LOST: :lost,
    RANK_STATE_FAILED: :failed
  }

  @doc "The detail that a rank sent."
  @spec from_proto(V1.RankDetail.t()) :: t()
  def from_proto(%V1.RankDetail{} = detail) do
    %__MODULE__{
      rank: detail.rank,
      rank_in_group: detail.rank_in_group,
      state: Map.get(@states, detail.state, :unspecified),
      detail: detail.detail,
      site: detail.site,
      activity: detail.activity && Activity.from_proto(detail.activity)
    }
  end

  @doc """
  A line for each distinct part, in the order of the first rank that has it.

      iex> alias RankBridge.Error.RankDetail
      iex> detail = %RankDetail{rank: 0, rank_in_group: 0, state: :arrived, detail: "op=sum"}
      iex> missing = %RankDetail{rank: 3, rank_in_group: 3, state: :missing, detail: ""}
      iex> RankDetail.lines([detail, %{detail | rank: 1}, missing])
      ["ranks 0-1 arrived: op=sum", "rank 3 missing"]
  """
  @spec lines([t()]) :: [String.t()]
  def lines(details) do
    for {state, text} <- Enum.uniq(Enum.map(details, &{&1.state, &1.detail})) do
      ranks = for %{state: ^state, detail: ^text, rank: rank} <- details, do: rank
      "#{intervals(ranks)} #{state}" <> if(text == "", do: "", else: ": #{text}")
    end
  end

  defp intervals(ranks) do
    runs = Enum.chunk_while(Enum.sort(ranks), nil, &run/2, &{:cont, &1, nil})
    named = Enum.map_join(runs, ", ", fn {a, z} -> if a == z, do: "#{a}", else: "#{a}-#{z}" end)
    if length(ranks) == 1, do: "rank #{named}", else: "ranks #{named}"
  end

  defp run(rank, nil), do: {:cont, {rank, rank}}
  defp run(rank, {first, last}) when rank == last + 1, do: {:cont, {first, rank}}
  defp run(rank, run), do: {:cont, run, {rank, rank}}

  defimpl String.Chars do
    def to_string(%{detail: ""} = detail), do: "rank #{detail.rank} #{detail.state}"
    def to_string(detail), do: "rank #{detail.rank} #{detail.state} (#{detail.detail})"
  end
end
