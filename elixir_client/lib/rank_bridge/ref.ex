defmodule RankBridge.Ref do
  @moduledoc """
  A handle on a tensor that stays on its rank. A ref is plain data: it can be kept, sent and compared. The rank frees the
  tensor when its session ends, or by `RankBridge.release/3`, and not when a program forgets the ref.

  * `id` - made by the rank, never used twice
  * `rank` - rank in the gang that holds the tensor
  * `session_id` - session that owns it; empty: the rank's shared session
  * `dtype`, `shape`, `device` - of the tensor, at the time when the rank gave the ref
  """

  alias RankBridge.{Dtype, Tensor}
  alias RankBridge.Proto.V1

  @type t :: %__MODULE__{
          id: String.t(),
          rank: non_neg_integer(),
          session_id: String.t(),
          dtype: Dtype.t() | nil,
          shape: Tensor.shape(),
          device: String.t()
        }

  @enforce_keys [:id, :rank]
  defstruct [:id, :rank, session_id: "", dtype: nil, shape: [], device: ""]

  @doc "The ref that a rank sent."
  @spec from_proto(V1.Ref.t()) :: t()
  def from_proto(%V1.Ref{} = ref) do
    spec = ref.tensor || %V1.TensorSpec{}

    dtype =
      case Dtype.from_proto(spec.dtype) do
        {:ok, dtype} -> dtype
        :error -> nil
      end

    %__MODULE__{
      id: ref.id,
      rank: ref.rank,
      session_id: ref.session_id,
      dtype: dtype,
      shape: spec.shape,
      device: spec.device
    }
  end

  @doc "The ref as it travels."
  @spec to_proto(t()) :: V1.Ref.t()
  def to_proto(%__MODULE__{} = ref) do
    dtype = if ref.dtype, do: Dtype.to_proto(ref.dtype), else: :DTYPE_UNSPECIFIED

    %V1.Ref{
      id: ref.id,
      rank: ref.rank,
      session_id: ref.session_id,
      tensor: %V1.TensorSpec{dtype: dtype, shape: ref.shape, device: ref.device}
    }
  end

  defimpl Inspect do
    def inspect(ref, _options) do
      spec = RankBridge.Tensor.describe(ref.dtype || "?", ref.shape)
      "#RankBridge.Ref<#{ref.id} at rank #{ref.rank}, #{spec}>"
    end
  end
end
