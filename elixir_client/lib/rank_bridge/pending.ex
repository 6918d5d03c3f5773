defmodule RankBridge.Pending do
  @moduledoc """
  What one rank has accepted and not answered yet, and for whom the groups that it leads wait.

  `operations`, the oldest first: each with its `phase`, `:check` (queued behind others of its group), `:admission` (waiting for
  the other members) or `:data` (in the backend), with `waited_us` since the rank accepted it, and `remaining_us` until its
  deadline. `admissions` are those that some members keep waiting, of the groups of which the rank is the first member:
  `arrived` is `{rank, microseconds after the first}`, `missing` the ranks that have not come.

  If the rank cannot be reached, `error` says why, and the lists are empty.
  """

  alias RankBridge.Error
  alias RankBridge.Error.Codes
  alias RankBridge.Proto.V1

  @type operation :: %{
          operation: String.t(),
          group: String.t(),
          operation_id: String.t(),
          session_id: String.t(),
          phase: Error.phase(),
          waited_us: non_neg_integer(),
          remaining_us: non_neg_integer()
        }

  @type admission :: %{
          operation: String.t(),
          group: String.t(),
          operation_id: String.t(),
          arrived: [{non_neg_integer(), non_neg_integer()}],
          missing: [non_neg_integer()],
          waited_us: non_neg_integer()
        }

  @type t :: %__MODULE__{
          rank: non_neg_integer(),
          operations: [operation()],
          admissions: [admission()],
          error: Error.t() | nil
        }

  @enforce_keys [:rank]
  defstruct [:rank, operations: [], admissions: [], error: nil]

  @doc "What a rank sent."
  @spec from_proto(non_neg_integer(), V1.ListPendingResponse.t()) :: t()
  def from_proto(rank, %V1.ListPendingResponse{} = response) do
    %__MODULE__{
      rank: rank,
      operations: Enum.map(response.operations, &operation/1),
      admissions: Enum.map(response.admissions, &admission/1)
    }
  end

  defp operation(it) do
    it
    |> Map.take([:operation, :group, :operation_id, :session_id, :waited_us, :remaining_us])
    |> Map.put(:phase, Codes.phase(it.phase))
  end

  defp admission(it) do
    it
    |> Map.take([:operation, :group, :operation_id, :waited_us])
    |> Map.put(:arrived, for(member <- it.arrived, do: {member.rank, member.after_us}))
    |> Map.put(:missing, for(member <- it.missing, do: member.rank))
  end
end
