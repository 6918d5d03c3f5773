defmodule RankBridge.Group do
  @moduledoc """
  Some ranks of the gang, in order, under a name.

  * `name` - unique in the gang
  * `ranks` - ranks of the gang in group order: the i-th has rank_in_group i
  * `backend` - what moves its data: "gloo", "fake"
  * `generation` - in which it was formed
  * `sequence` - operations that were admitted so far, as the rank that was asked counts
  """

  alias RankBridge.Proto.V1

  @type t :: %__MODULE__{
          name: String.t(),
          ranks: [non_neg_integer()],
          backend: String.t(),
          generation: non_neg_integer(),
          sequence: non_neg_integer()
        }

  @enforce_keys [:name, :ranks]
  defstruct [:name, :ranks, backend: "", generation: 0, sequence: 0]

  @doc "The group that a rank described."
  @spec from_proto(V1.Group.t()) :: t()
  def from_proto(%V1.Group{} = group) do
    struct!(__MODULE__, Map.take(group, [:name, :ranks, :backend, :generation, :sequence]))
  end
end
