defmodule RankBridge.Tensors do
  @moduledoc """
  Tensors on the ranks: made there, asked for, freed. They are brought there and fetched by `RankBridge.put/3` and
  `RankBridge.get/3`.
  """

  use RankBridge.Bangs

  alias RankBridge.{Dtype, Entry, Gang, Ref, Refs, Tensor}

  @doc """
  Makes a tensor on every member of a group, or on one rank, without sending its elements.

  Options: `:init` (see `RankBridge.Refs.Init`; default `:zeros`), `:rank` (gives one ref instead of a list),
  `:group`, `:device`.
  """
  spec_with_bang create(Gang.gang(), Dtype.t(), Tensor.shape(), keyword()) :: [Ref.t()] | Ref.t()

  def create(gang, dtype, shape, opts \\ []) do
    Entry.call(gang, :create, opts, fn view -> Refs.create(view, dtype, shape, opts) end)
  end

  @doc "The ref with the dtype, shape and device that its rank reports now."
  spec_with_bang describe(Gang.gang(), Ref.t(), keyword()) :: Ref.t()

  def describe(gang, ref, opts \\ []) do
    Entry.call(gang, :describe, opts, fn view -> Refs.describe(view, ref, opts) end)
  end

  @doc "Every ref of the gang's session, by rank. Options: `:rank` or `:group`, to list the refs of those ranks alone."
  spec_with_bang list(Gang.gang(), keyword()) :: [Ref.t()]

  def list(gang, opts \\ []) do
    Entry.call(gang, :list, opts, fn view -> Refs.list(view, opts) end)
  end

  @doc "Frees a ref, or a list of them: on each rank all or none. Gives how many were freed."
  spec_with_bang release(Gang.gang(), Ref.t() | [Ref.t()], keyword()) :: non_neg_integer()

  def release(gang, ref_or_refs, opts \\ []) do
    Entry.call(gang, :release, opts, fn view ->
      refs = with %Ref{} = ref <- ref_or_refs, do: [ref]
      Refs.release(view, refs, opts)
    end)
  end
end
