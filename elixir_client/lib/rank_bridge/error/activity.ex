defmodule RankBridge.Error.Activity do
  @moduledoc false
  # What a missing rank did, as its sidecar said, while others waited for it.
  #
  # `doing` is `:idle` (it has no call), `:waiting` (for others, in another operation), `:running` (another operation, in the
  # backend), `:function` (it runs one), `:stopped` (its process is), `:silent` (it did not say in time; it may be busy, and
  # is not known to be dead), `:held` (at a breakpoint) or `:unspecified`. `group`, `operation`, `operation_id` and `site` are
  # of what it waits for, runs or is held at; of `:function`, `operation` is its name, and `where` the innermost line of the user's own code at which it is.
  # `for_ms` says for how long, of `:silent` how long others waited for its answer.

  alias RankBridge.Proto.V1

  @type doing ::
          :idle | :waiting | :running | :function | :stopped | :silent | :held | :unspecified

  @type t :: %__MODULE__{
          doing: doing(),
          group: String.t(),
          operation: String.t(),
          operation_id: String.t(),
          site: String.t(),
          for_ms: non_neg_integer(),
          where: String.t()
        }

  @enforce_keys [:doing]
  defstruct [:doing, group: "", operation: "", operation_id: "", site: "", for_ms: 0, where: ""]

  @doings %{
    DOING_IDLE: :idle,
    DOING_WAITING: :waiting,
    DOING_RUNNING: :running,
    DOING_FUNCTION: :function,
    DOING_STOPPED: :stopped,
    DOING_SILENT: :silent,
    DOING_HELD: :held
  }

  @doc "The activity that a rank's leader sent."
  @spec from_proto(V1.Activity.t()) :: t()
  def from_proto(%V1.Activity{} = activity) do
    %__MODULE__{
      doing: Map.get(@doings, activity.doing, :unspecified),
      group: activity.group,
      operation: activity.operation,
      operation_id: activity.operation_id,
      site: activity.site,
      for_ms: activity.for_ms,
      where: activity.where
    }
  end
end
