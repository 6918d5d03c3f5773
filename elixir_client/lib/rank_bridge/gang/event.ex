defmodule RankBridge.Gang.Event do
  @moduledoc """
  An event of a gang. Subscribers get `{:rank_bridge, gang, %RankBridge.Gang.Event{}}`.

  | `kind` | when | what it has |
  | --- | --- | --- |
  | `:formed` | the gang is ready: first, and after each loss | `generation`, `world_size` |
  | `:rank_lost` | a rank has ended, or its links have | `rank`, `generation`, `reason` |
  | `:over` | the generation is over though no rank was lost: the backend has failed | `generation`, `reason` |
  | `:mismatch` | members did not agree about an operation | `group`, `operation`, `error` with every side |
  | `:peer_missing` | not all members came to an operation in time | `group`, `operation`, `ranks`: who did not, `error` |
  | `:straggler` | members are late for an operation, or were | `group`, `operation`, `operation_id`, `ranks`: who, `waited_us` |

  An event of `RankBridge.Gang.events/2` can also be of the kind `:missed`: its reader was too slow, and so many events,
  the number in `missed`, were dropped in its place. Subscribers never get one.

  A straggler is reported as soon as others have waited for it for as long as the ranks' setting `--straggler-after` says,
  and again once it has come: then `arrived?` is true. The group's leader reports a mismatch, once.
  """

  alias RankBridge.Error
  alias RankBridge.Proto.V1

  @type kind :: :formed | :rank_lost | :over | :mismatch | :peer_missing | :straggler | :missed

  @type t :: %__MODULE__{
          kind: kind(),
          generation: non_neg_integer(),
          world_size: non_neg_integer(),
          rank: non_neg_integer() | nil,
          reason: String.t(),
          group: String.t(),
          operation: String.t(),
          operation_id: String.t(),
          ranks: [non_neg_integer()],
          arrived?: boolean(),
          waited_us: non_neg_integer(),
          missed: non_neg_integer(),
          error: Error.t() | nil
        }

  @enforce_keys [:kind]
  defstruct [:kind, :rank, :error, generation: 0, world_size: 0, reason: "", group: ""] ++
              [
                operation: "",
                operation_id: "",
                ranks: [],
                arrived?: false,
                waited_us: 0,
                missed: 0
              ]

  @doc "The event that a rank reported; nil: of an unknown kind. `:over` names the lost ranks in `ranks`."
  @spec from_proto(V1.Event.t()) :: t() | nil
  def from_proto(%V1.Event{kind: nil}), do: nil

  def from_proto(%V1.Event{kind: {kind, event}, generation: generation}),
    do: %{of(kind, event) | generation: generation}

  defp of(:formed, formed), do: %__MODULE__{kind: :formed, world_size: formed.world_size}

  defp of(:straggler, straggler) do
    # Of the members that have arrived, those that did not arrive with the first.
    came =
      for arrival <- straggler.arrived, 2 * arrival.after_us > straggler.waited_us, do: arrival

    late = if straggler.missing == [], do: came, else: straggler.missing

    %__MODULE__{
      kind: :straggler,
      group: straggler.group,
      operation: straggler.operation,
      operation_id: straggler.operation_id,
      ranks: Enum.map(late, & &1.rank),
      arrived?: straggler.missing == [],
      waited_us: straggler.waited_us
    }
  end

  defp of(kind, proto) when kind in [:over, :mismatch, :peer_missing] do
    error = Error.from_proto(proto)

    %__MODULE__{
      kind: kind,
      error: error,
      reason: error.message,
      group: error.group,
      operation: error.operation,
      operation_id: error.operation_id,
      ranks: for(%{state: state, rank: rank} <- error.ranks, state in concerned(kind), do: rank)
    }
  end

  defp concerned(:over), do: [:lost]
  defp concerned(:peer_missing), do: [:missing, :lost]
  defp concerned(:mismatch), do: [:disagrees]
end
