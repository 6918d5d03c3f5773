defmodule RankBridge.Error.RankDetail do
  @moduledoc """
  One rank's part in a failure.

  `state` is `:arrived` (it called, and agreed), `:missing` (it did not call in time), `:disagrees` (it called
  for something else than the first to arrive), `:lost` (dead or out of reach), `:failed` (by itself; `detail`
  says how) or `:unspecified`.
  """

  alias RankBridge.Proto.V1

  @type state :: :arrived | :missing | :disagrees | :lost | :failed | :unspecified

  @type t :: %__MODULE__{
          rank: non_neg_integer(),
          rank_in_group: non_neg_integer(),
          state: state(),
          detail: String.t()
        }

  @enforce_keys [:rank, :rank_in_group, :state]
  defstruct [:rank, :rank_in_group, :state, detail: ""]

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
      detail: detail.detail
    }
  end

  defimpl String.Chars do
    def to_string(%{detail: ""} = detail), do: "rank #{detail.rank} #{detail.state}"
    def to_string(detail), do: "rank #{detail.rank} #{detail.state} (#{detail.detail})"
  end
end
