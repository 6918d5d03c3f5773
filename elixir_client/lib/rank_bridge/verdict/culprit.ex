defmodule RankBridge.Verdict.Culprit do
  @moduledoc """
  A rank that others have to blame, in a `RankBridge.Verdict`.

  * `rank` - rank in the gang
  * `confidence` - how sure that is: 0.0 to 1.0
  * `condition` - what it does; see `t:condition/0`
  * `why` - the same in words
  * `pid` - its process id, on its host; 0: not known
  * `host` - its host; empty: not known
  * `stack` - where the thread that runs the user's code is, the innermost call first; empty: not known, or it runs none
  """

  alias RankBridge.Proto.V1
  alias RankBridge.{ShortNames, ThreadStack}

  @typedoc """
  What a rank does instead of what others wait for.

  * `:asleep` - it sleeps until a time
  * `:spinning` - it runs, and calls no collective
  * `:blocked_read` - it waits for input: of a file, a pipe, a socket
  * `:lock` - it waits for a lock
  * `:gil_held` - a thread of it holds Python's lock, and waits
  * `:stopped` - it is stopped by a signal or a debugger
  * `:dead`, `:exited` - it has ended: by a signal or with a failure, or normally
  * `:teardown` - it is on its way out
  * `:waiting_for_child` - it waits for a process that it has started
  * `:starved` - it is ready to run, and has no CPU
  * `:in_collective` - it is in a collective
  * `:idle` - it has no call: its controller has not called it
  * `:silent` - it does not answer, and what it does cannot be seen from outside
  * `:held` - a breakpoint holds it
  * `:unknown` - it is not known
  * `:unspecified` - one that a newer rank knows, and this client does not
  """
  @type condition ::
          :asleep
          | :spinning
          | :blocked_read
          | :lock
          | :gil_held
          | :stopped
          | :dead
          | :exited
          | :teardown
          | :waiting_for_child
          | :starved
          | :in_collective
          | :idle
          | :silent
          | :held
          | :unknown
          | :unspecified

  @type t :: %__MODULE__{
          rank: non_neg_integer(),
          confidence: float(),
          condition: condition(),
          why: String.t(),
          pid: non_neg_integer(),
          host: String.t(),
          stack: [ThreadStack.frame()]
        }

  @copied [:rank, :confidence, :why, :pid, :host]

  @enforce_keys [:condition, :stack | @copied]
  defstruct @enforce_keys

  @conditions ShortNames.of(V1.Condition, "CONDITION_")

  @doc "The culprit that a rank sent."
  @spec from_proto(V1.Culprit.t()) :: t()
  def from_proto(%V1.Culprit{} = it) do
    condition = Map.get(@conditions, it.condition, :unspecified)
    fields = %{condition: condition, stack: Enum.map(it.stack, &ThreadStack.frame/1)}
    struct!(__MODULE__, Map.merge(Map.take(it, @copied), fields))
  end
end
