defmodule RankBridge.Tensors do
  @moduledoc """
  Tensors on the ranks: made there, asked for, freed. They are brought there and fetched by `RankBridge.put/3` and
  `RankBridge.get/3`.
  """

  use RankBridge.Bangs

  alias RankBridge.{Dtype, Entry, Gang, Ref, Refs, Tensor}
  alias RankBridge.Rank.{Memory, Transfers}

  @doc """
  Makes a tensor on every member of a group, or on one rank, without sending its elements.

  Options: `:init` (below; default `:zeros`), `:rank` (gives one ref instead of a list),
  `:group`, `:device`.

  Its elements are one of these inits:

    * `:zeros`
    * `{:full, element}` - a number or a boolean
    * `{:arange, start, step}` - element i, in row-major order, is start + i * step
    * `{:uniform, seed, low, high}` - from low to below high; torch's CPU generator, equal on every machine
    * `{:normal, seed, mean, std}` - likewise
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

  @doc """
  How the large tensors of a rank went to it and came from it so far: `shared` of them through memory that the rank shares,
  `streamed` over gRPC, and the `reason` of the last of those.

  The client shares memory with ranks on its host whose endpoint is a unix socket, and tries it for tensors of 1 MiB or more. If
  a rank shares no memory, has no room, or has another file system, tensors are streamed.
  """
  spec_with_bang transfers(Gang.gang(), non_neg_integer(), keyword()) :: Memory.counts()

  def transfers(gang, rank, opts \\ []) do
    Entry.call(gang, :transfers, opts, fn view -> Transfers.counts(view, rank) end)
  end
end
