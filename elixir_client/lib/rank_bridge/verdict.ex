defmodule RankBridge.Verdict do
  @moduledoc """
  What is wrong with a gang, see `RankBridge.Doctor`. As text (`to_string/1`) it is a page for people.

  * `kind` - what is wrong; see `t:kind/0`
  * `summary` - the verdict in one sentence, which names ranks, call and reason
  * `confidence` - how sure it is: 0.0 to 1.0
  * `culprits` - the ranks that are to blame (`RankBridge.Verdict.Culprit`); empty: nobody is, or it is not known who
  * `call` - the call that it is about: "all_reduce world"; empty: none
  * `sides` - what ranks asked for, if they differ (`RankBridge.Verdict.Side`)
  * `waits` - what each waiting rank waits for, those first that have waited longest (`RankBridge.Verdict.Wait`)
  * `cycle` - ranks that wait for each other in a circle, each for the next, the last for the first
  * `advice` - what to do next; empty: nothing is known
  * `evidence` - what was seen, if the kind is `:unknown`
  * `notes` - what was not seen, and what would show it
  * `world_size` - ranks in the gang
  * `page` - the page
  """

  alias RankBridge.Proto.V1
  alias RankBridge.{ShortNames, Verdict}

  @typedoc """
  What is wrong.

  * `:healthy` - nobody waits for long, and nothing has failed
  * `:never_called` - others wait for a rank that has not called; its condition says why
  * `:mismatch_kind`, `:mismatch_shape`, `:mismatch_dtype`, `:mismatch_op`, `:mismatch_root`, `:mismatch_terms` - members asked for
    different operations, shapes or sizes, dtypes, reduce ops, roots, or differ in something else that they must agree on
  * `:membership` - ranks know a group by one name with different members
  * `:order` - ranks called the same in another order
  * `:order_inversion` - ranks wait for each other in a circle
  * `:p2p_unmatched` - a send and a receive that do not meet
  * `:rendezvous` - a rank does not come to the beginning of the job
  * `:slow` - the gang moves, and one rank keeps the others waiting
  * `:network` - the network between ranks
  * `:unknown` - nothing is certain; what was seen is in `evidence`
  * `:unspecified` - one that a newer rank knows, and this client does not
  """
  @type kind ::
          :healthy
          | :never_called
          | :mismatch_kind
          | :mismatch_shape
          | :mismatch_dtype
          | :mismatch_op
          | :mismatch_root
          | :mismatch_terms
          | :membership
          | :order
          | :order_inversion
          | :p2p_unmatched
          | :rendezvous
          | :slow
          | :network
          | :unknown
          | :unspecified

  @type t :: %__MODULE__{
          kind: kind(),
          summary: String.t(),
          confidence: float(),
          culprits: [Verdict.Culprit.t()],
          call: String.t(),
          sides: [Verdict.Side.t()],
          waits: [Verdict.Wait.t()],
          cycle: [non_neg_integer()],
          advice: String.t(),
          evidence: [String.t()],
          notes: [String.t()],
          world_size: pos_integer(),
          page: String.t()
        }

  @copied [:summary, :confidence, :call, :cycle, :advice, :evidence, :notes, :world_size, :page]

  @enforce_keys [:kind, :culprits, :sides, :waits | @copied]
  @derive {Inspect, except: [:page]}
  defstruct @enforce_keys

  @kinds ShortNames.of(V1.VerdictKind, "VERDICT_KIND_")

  @doc "Whether nobody waits for long, and nothing has failed."
  @spec healthy?(t()) :: boolean()
  def healthy?(%__MODULE__{kind: kind}), do: kind == :healthy

  @doc "The verdict that a rank sent."
  @spec from_proto(V1.Verdict.t()) :: t()
  def from_proto(%V1.Verdict{} = it) do
    fields = %{
      kind: Map.get(@kinds, it.kind, :unspecified),
      culprits: Enum.map(it.culprits, &Verdict.Culprit.from_proto/1),
      sides: Enum.map(it.sides, &Verdict.Side.from_proto/1),
      waits: Enum.map(it.waits, &Verdict.Wait.from_proto/1)
    }

    struct!(__MODULE__, Map.merge(Map.take(it, @copied), fields))
  end

  defimpl String.Chars do
    def to_string(verdict), do: verdict.page
  end
end
