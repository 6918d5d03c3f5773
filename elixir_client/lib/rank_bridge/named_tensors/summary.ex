defmodule RankBridge.NamedTensors.Summary do
  @moduledoc """
  What a rank says of a tensor that its process shows under a name (`RankBridge.NamedTensors`).

  * `dtype`, `shape`, `device` - as of `RankBridge.NamedTensors.NamedTensor`
  * `norm` - the root of the sum of squares
  * `min`, `max`, `mean` - of the elements; of complex elements, the magnitudes count
  * `nans`, `infs` - how many elements are NaN, and how many are infinite
  * `hash` - of dtype, shape and all bytes: equal for equal tensors

  `norm`, `min`, `max` and `mean` are in float64, of the elements that are neither NaN nor infinite; nil if there are none.
  """

  alias RankBridge.Dtype
  alias RankBridge.NamedTensors.NamedTensor

  @type t :: %__MODULE__{
          dtype: Dtype.t() | String.t(),
          shape: [non_neg_integer()],
          device: String.t(),
          norm: float() | nil,
          min: float() | nil,
          max: float() | nil,
          mean: float() | nil,
          nans: non_neg_integer(),
          infs: non_neg_integer(),
          hash: String.t()
        }

  @fields [:dtype, :shape, :device, :norm, :min, :max, :mean, :nans, :infs, :hash]
  @enforce_keys @fields
  defstruct @fields

  @doc "What a rank said of the tensor. Raises if the value says something else."
  @spec from_value(map()) :: t()
  def from_value(%{} = value) do
    fields = for name <- @fields, do: {name, Map.fetch!(value, Atom.to_string(name))}
    summary = struct!(__MODULE__, fields)

    %{
      summary
      | dtype: NamedTensor.dtype(summary.dtype),
        shape: Tuple.to_list(summary.shape)
    }
  end
end
