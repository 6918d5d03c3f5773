defmodule RankBridge.Verdict.Side do
  @moduledoc """
  Ranks that asked for the same, in a `RankBridge.Verdict`.

  * `ranks` - ranks in the gang
  * `what` - what they asked for: "all_reduce dtype=float32 shape=[4] op=sum"
  * `sites` - the lines of code that did: "training.ex:88"
  """

  alias RankBridge.Proto.V1

  @type t :: %__MODULE__{ranks: [non_neg_integer()], what: String.t(), sites: [String.t()]}

  @fields [:ranks, :what, :sites]

  @enforce_keys @fields
  defstruct @fields

  @doc "The side that a rank sent."
  @spec from_proto(V1.VerdictSide.t()) :: t()
  def from_proto(%V1.VerdictSide{} = it), do: struct!(__MODULE__, Map.take(it, @fields))
end
