defmodule RankBridge.Error.Raised do
  @moduledoc false
  # An exception that a function of the user's own raised on a rank.
  #
  # `type` is the name of its class, with the module unless it is Python's own: "ValueError", "torch.OutOfMemoryError".
  # `traceback` has the user's own lines first, the innermost at the top, and then all of it as Python prints it. `where` is the
  # innermost of the user's own, as "train.py:88 in next_batch"; empty: there is none.

  alias RankBridge.Proto.V1

  @type t :: %__MODULE__{
          rank: non_neg_integer(),
          type: String.t(),
          text: String.t(),
          traceback: String.t(),
          where: String.t()
        }

  @enforce_keys [:rank, :type]
  defstruct [:rank, :type, text: "", traceback: "", where: ""]

  @doc "The exception that a rank sent."
  @spec from_proto(V1.Raised.t()) :: t()
  def from_proto(%V1.Raised{} = raised) do
    %__MODULE__{
      rank: raised.rank,
      type: raised.type,
      text: raised.text,
      traceback: raised.traceback,
      where: raised.where
    }
  end
end
