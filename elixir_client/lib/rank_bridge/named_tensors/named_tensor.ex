defmodule RankBridge.NamedTensors.NamedTensor do
  @moduledoc """
  A tensor that a rank's process shows under a name (`RankBridge.NamedTensors`).

  * `dtype` - `:float32`; of a dtype that this client does not know, its name in Python: `"qint8"`
  * `shape` - its sizes, outermost first
  * `device` - "cpu", "cuda:0"
  * `writable` - whether controllers may change its elements
  """

  alias RankBridge.Dtype

  @type t :: %__MODULE__{
          dtype: Dtype.t() | String.t(),
          shape: [non_neg_integer()],
          device: String.t(),
          writable: boolean()
        }

  @enforce_keys [:dtype, :shape, :device, :writable]
  defstruct @enforce_keys

  @doc "What a rank said of the tensor. Raises if the value says something else."
  @spec from_value(map()) :: t()
  def from_value(%{} = value) do
    %__MODULE__{
      dtype: dtype(Map.fetch!(value, "dtype")),
      shape: Tuple.to_list(Map.fetch!(value, "shape")),
      device: Map.fetch!(value, "device"),
      writable: Map.fetch!(value, "writable")
    }
  end

  @doc "The dtype of a name in Python, or the name, if this client does not know it."
  @spec dtype(String.t()) :: Dtype.t() | String.t()
  for dtype <- Dtype.all() do
    def dtype(unquote(Atom.to_string(dtype))), do: unquote(dtype)
  end

  def dtype(other), do: other
end
