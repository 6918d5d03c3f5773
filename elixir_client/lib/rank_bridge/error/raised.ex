defmodule RankBridge.Error.Raised do
  @moduledoc false
  # An exception that a function of the user's own raised on a rank.
  #
  # `type` is the name of its class, with the module unless it is Python's own: "ValueError", "torch.OutOfMemoryError".
  # `traceback` has the user's own frames first, the innermost at the top, and then all of it as Python prints it.

  alias RankBridge.Proto.V1

  @type t :: %__MODULE__{
          rank: non_neg_integer(),
          type: String.t(),
          text: String.t(),
          traceback: String.t()
        }

  @enforce_keys [:rank, :type]
  defstruct [:rank, :type, text: "", traceback: ""]

  @doc "The exception that a rank sent."
  @spec from_proto(V1.Raised.t()) :: t()
  def from_proto(%V1.Raised{} = raised) do
    %__MODULE__{
      rank: raised.rank,
      type: raised.type,
      text: raised.text,
      traceback: raised.traceback
    }
  end

  @doc """
  Where the user's own code raised it, if it did.

      iex> traceback = "train.py:88 in next_batch: raise ValueError(name)\\ntrain.py:12 in step: next_batch()\\n\\nTraceback ..."
      iex> raised = %RankBridge.Error.Raised{rank: 2, type: "ValueError", text: "a.bin", traceback: traceback}
      iex> RankBridge.Error.Raised.lines(raised)
      ["raised on rank 2 at train.py:88 in next_batch: raise ValueError(name)"]
  """
  @spec lines(t()) :: [String.t()]
  def lines(raised) do
    # The first line is a frame unless all of them are of libraries.
    [first | _others] = String.split(raised.traceback, "\n", parts: 2)
    if first =~ ~r/^\S+:\d+ in /, do: ["raised on rank #{raised.rank} at #{first}"], else: []
  end
end
