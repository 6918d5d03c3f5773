defmodule RankBridge.Tensors do
  @moduledoc """
  Tensors on the ranks: made there, asked for, freed. They are brought there and fetched by `RankBridge.put/3` and
  `RankBridge.get/3`.
  """

  use RankBridge.Facade

  alias RankBridge.{Dtype, Gang, Ref, Refs, Tensor}

  @doc """
  Makes a tensor on every member of a group, or on one rank, without sending its elements.

  Options: `:init` (see `RankBridge.Refs.Init`; default `:zeros`), `:rank` (gives one ref instead of a list),
  `:group`, `:device`.
  """
  defcall create(
            gang :: Gang.gang(),
            dtype :: Dtype.t(),
            shape :: Tensor.shape(),
            opts :: keyword() \\ []
          ) :: [Ref.t()] | Ref.t(),
          do: Refs.create(view, dtype, shape, opts)

  @doc "The ref with the dtype, shape and device that its rank reports now."
  defcall describe(gang :: Gang.gang(), ref :: Ref.t(), opts :: keyword() \\ []) :: Ref.t(),
    do: Refs.describe(view, ref, opts)

  @doc "Every ref of the gang's session, by rank. Options: `:rank` or `:group`, to list the refs of those ranks alone."
  defcall list(gang :: Gang.gang(), opts :: keyword() \\ []) :: [Ref.t()],
    do: Refs.list(view, opts)

  @doc "Frees a ref, or a list of them: on each rank all or none. Gives how many were freed."
  defcall release(
            gang :: Gang.gang(),
            ref_or_refs :: Ref.t() | [Ref.t()],
            opts :: keyword() \\ []
          ) :: non_neg_integer() do
    refs = with %Ref{} = ref <- ref_or_refs, do: [ref]
    Refs.release(view, refs, opts)
  end
end
