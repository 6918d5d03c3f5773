defmodule RankBridge.HeldCall do
  @moduledoc """
  A call that a rank holds at a breakpoint, see `RankBridge.Hold`. As text (`to_string/1`) it is a line for people:
  "rank 2 is held before all_reduce world#1200 at train.py:88: NaN in input 0".

  * `held_id` - its number among what the rank has held
  * `breakpoint` - number of the breakpoint on the rank
  * `rank` - rank in the gang
  * `caller` - `:controller`: an operation; `:script`: the user's own code, by torch.distributed; `:unspecified`: one that a newer
    rank knows, and this client does not
  * `operation` - its kind: "all_reduce"
  * `group` - name of its group
  * `number` - its number in its group, from 1: equal on all members; 0: it has none
  * `contract` - what its members must agree on: "all_reduce dtype=float32 shape=[4] op=sum"
  * `site` - the line of code that calls: "train.py:88"; empty: not said
  * `function` - name of the user's function that it calls; empty: none
  * `operation_id` - empty: it has none
  * `why` - what holds it: "breakpoint", "step", "NaN in input 0", "it took 1.203 s"
  * `after?` - whether the rank is held after it, and not before
  * `since_us` - since when, by the clock of the rank's host: microseconds since 1970 in UTC
  """

  alias RankBridge.Proto.V1
  alias RankBridge.ShortNames

  @type t :: %__MODULE__{
          held_id: pos_integer(),
          breakpoint: pos_integer(),
          rank: non_neg_integer(),
          caller: :controller | :script | :unspecified,
          operation: String.t(),
          group: String.t(),
          number: non_neg_integer(),
          contract: String.t(),
          site: String.t(),
          function: String.t(),
          operation_id: String.t(),
          why: String.t(),
          after?: boolean(),
          since_us: non_neg_integer()
        }

  @copied [:held_id, :breakpoint, :rank, :operation, :group, :number, :contract, :site] ++
            [:function, :operation_id, :why, :since_us]

  @enforce_keys [:caller, :after? | @copied]
  defstruct @enforce_keys

  @callers ShortNames.of(V1.Caller, "CALLER_")

  @doc "The call that a rank sent."
  @spec from_proto(V1.HeldCall.t()) :: t()
  def from_proto(%V1.HeldCall{} = it) do
    fields = %{caller: Map.get(@callers, it.caller, :unspecified), after?: it.after}
    struct!(__MODULE__, Map.merge(Map.take(it, @copied), fields))
  end

  @doc "Where the rank is held, and why: \"held before all_reduce world#1200 at train.py:88: NaN in input 0\"."
  @spec what(t()) :: String.t()
  def what(%__MODULE__{} = call) do
    place = if call.after?, do: "after", else: "before"
    function = if call.function == "", do: "", else: " #{call.function}"
    number = if call.number == 0, do: "", else: "##{call.number}"
    site = if call.site == "", do: "", else: " at #{call.site}"
    "held #{place} #{call.operation}#{function} #{call.group}#{number}#{site}: #{call.why}"
  end

  defimpl String.Chars do
    def to_string(call), do: "rank #{call.rank} is #{RankBridge.HeldCall.what(call)}"
  end
end
