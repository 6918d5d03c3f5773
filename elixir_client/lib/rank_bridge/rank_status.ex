defmodule RankBridge.RankStatus do
  @moduledoc """
  The status that one rank reports of itself.

  If the rank cannot be reached, `error` says why, and the other fields are empty. `generation_error` says why the
  generation is over. `device` is the default device of tensors: "cpu", "cuda:0". `fs_local_rank` is the rank among those
  that share its file system, and `local_world_size` the number of ranks on its host (0: not said), as its launcher says.
  `generation_since_us` is when the generation was formed, or was over if it is, by the clock of the rank's host: microseconds
  since 1970 in UTC (0: neither). `sessions` are `{session_id, refs, bytes}`, the shared one (an empty id) first.

  `abilities` are what the rank's backend can do, as far as this client knows it; nil where the rank's version does not report
  them: `collectives`, the names of its operations; `dtypes` of the tensors that it can hold, all of which every collective moves
  that does not reduce; `reductions`, for each reduce op the dtypes that `reduce`, `all_reduce` and `reduce_scatter` do it on.
  """

  alias RankBridge.{Abilities, Error, Group}
  alias RankBridge.Proto.V1

  @type t :: %__MODULE__{
          rank: non_neg_integer(),
          world_size: non_neg_integer(),
          local_rank: non_neg_integer(),
          local_world_size: non_neg_integer(),
          fs_local_rank: non_neg_integer(),
          pid: non_neg_integer(),
          host: String.t(),
          device: String.t(),
          backend: String.t(),
          generation: non_neg_integer(),
          generation_state: :none | :prepared | :formed | :over | :unspecified,
          generation_error: Error.t() | nil,
          generation_since_us: non_neg_integer(),
          groups: [Group.t()],
          sessions: [{String.t(), non_neg_integer(), non_neg_integer()}],
          pending_operations: non_neg_integer(),
          endpoints: [String.t()],
          version: String.t(),
          abilities: Abilities.t() | nil,
          error: Error.t() | nil
        }

  @enforce_keys [:rank]
  # The others can be many, or long.
  @derive {Inspect,
           only: [:rank, :host, :generation, :generation_state, :pending_operations, :error]}
  defstruct [
    :rank,
    world_size: 0,
    local_rank: 0,
    local_world_size: 0,
    fs_local_rank: 0,
    pid: 0,
    host: "",
    device: "",
    backend: "",
    generation: 0,
    generation_state: :unspecified,
    generation_error: nil,
    generation_since_us: 0,
    groups: [],
    sessions: [],
    pending_operations: 0,
    endpoints: [],
    version: "",
    abilities: nil,
    error: nil
  ]

  @states %{
    GENERATION_STATE_NONE: :none,
    GENERATION_STATE_PREPARED: :prepared,
    GENERATION_STATE_FORMED: :formed,
    GENERATION_STATE_OVER: :over
  }

  @copied [:rank, :world_size, :local_rank, :pid, :host, :backend, :generation] ++
            [:local_world_size, :fs_local_rank, :device] ++
            [:pending_operations, :endpoints, :version, :generation_since_us]

  @doc "The status that a rank sent."
  @spec from_proto(V1.DescribeRankResponse.t()) :: t()
  def from_proto(%V1.DescribeRankResponse{} = rank) do
    struct!(
      struct!(__MODULE__, Map.take(rank, @copied)),
      generation_state: Map.get(@states, rank.generation_state, :unspecified),
      generation_error: rank.generation_error && Error.from_proto(rank.generation_error),
      groups: Enum.map(rank.groups, &Group.from_proto/1),
      sessions: Enum.map(rank.sessions, &{&1.session_id, &1.refs, &1.bytes}),
      abilities: rank.abilities && Abilities.from_proto(rank.abilities)
    )
  end
end
