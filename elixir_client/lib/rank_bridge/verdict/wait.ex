defmodule RankBridge.Verdict.Wait do
  @moduledoc """
  A rank that waits, in a `RankBridge.Verdict`.

  * `rank` - rank in the gang
  * `call` - the call that it is in: "all_reduce world"
  * `waits_for` - ranks for which it waits
  * `waited_us` - for how long, in microseconds; nil: not known
  * `site` - the line of code that made the call: "training.ex:88"; empty: not known
  """

  alias RankBridge.Proto.V1

  @type t :: %__MODULE__{
          rank: non_neg_integer(),
          call: String.t(),
          waits_for: [non_neg_integer()],
          waited_us: non_neg_integer() | nil,
          site: String.t()
        }

  @fields [:rank, :call, :waits_for, :waited_us, :site]

  @enforce_keys @fields
  defstruct @fields

  @doc "The wait that a rank sent."
  @spec from_proto(V1.VerdictWait.t()) :: t()
  def from_proto(%V1.VerdictWait{} = it), do: struct!(__MODULE__, Map.take(it, @fields))
end
