defmodule RankBridge.NamedTensors.Difference do
  @moduledoc """
  How the tensor of one rank differs from that of the reference (`RankBridge.NamedTensors.Comparison`).

  * `elements` - how many elements differ
  * `first` - the place of the first one that does, counted from 0 in row-major order
  * `most` - the largest difference between two elements of which neither is NaN or infinite
  """

  @type t :: %__MODULE__{
          elements: pos_integer(),
          first: non_neg_integer(),
          most: float()
        }

  @enforce_keys [:elements, :first, :most]
  defstruct @enforce_keys

  @doc "What a rank said of the difference. Raises if the value says something else."
  @spec from_value(map()) :: t()
  def from_value(%{"elements" => elements, "first" => first, "most" => most}),
    do: %__MODULE__{elements: elements, first: first, most: most}
end
