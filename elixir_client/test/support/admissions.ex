defmodule RankBridge.Test.Admissions do
  @moduledoc "What ranks say of the operations that members wait for in."

  alias RankBridge.Gang

  @doc "The ranks that have come to an operation, sorted; none before its leader knows of it."
  @spec arrived(Gang.gang(), String.t()) :: [non_neg_integer()]
  def arrived(gang, operation_id) do
    arrived =
      for pending <- RankBridge.pending!(gang),
          %{operation_id: ^operation_id} = it <- pending.admissions,
          {rank, _after_us} <- it.arrived,
          do: rank

    Enum.sort(arrived)
  end
end
