defmodule RankBridge.Collectives.Declaration do
  @moduledoc """
  The collectives, each declared once: what is called, which options it has, what it takes and gives.

  One operation more is one clause of `of/1` and one function in `RankBridge`.
  """

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.Rpc

  @enforce_keys [:rpc, :takes, :gives]
  defstruct [:rpc, :takes, :gives, options: [], of_gang: [], of_rank: []]

  @typedoc """
  * `takes` - whether each member's request names a ref
  * `options` - name, kind and default of what the request says beside `call` and `ref_id`
  * `of_gang`, `of_rank` - options that only a call of the gang has, and only a call of one rank: of the gang's, each
    member's request gets its own share
  * `gives` - `:refs`: a list with a ref or nil for each member; `:nothing`: nil
  """
  @type t :: %__MODULE__{
          rpc: Rpc.t(),
          takes: :refs | :nothing,
          options: [option()],
          of_gang: [option()],
          of_rank: [option()],
          gives: :refs | :nothing
        }

  @type option :: {atom(), {kind(), term()}}
  @type kind :: :rank_in_group | :dim | :sizes | :rows_of_sizes | :reduce_op | :boolean

  # Its name is that of its field in the message `Operation`.
  @names for {_number, name, _type, _presence} <- V1.Operation.__fields__(), do: name

  @doc "Every collective's name."
  @spec names() :: [atom()]
  def names, do: @names

  @doc "Everything about the collective of a name."
  @spec of(atom()) :: t()
  def of(:barrier),
    do: %__MODULE__{rpc: V1.CollectiveService.barrier(), takes: :nothing, gives: :nothing}

  def of(:broadcast) do
    %__MODULE__{
      rpc: V1.CollectiveService.broadcast(),
      takes: :refs,
      options: [src_rank_in_group: {:rank_in_group, 0}, in_place: {:boolean, false}],
      gives: :refs
    }
  end

  def of(:scatter) do
    %__MODULE__{
      rpc: V1.CollectiveService.scatter(),
      takes: :refs,
      options: [src_rank_in_group: {:rank_in_group, 0}, dim: {:dim, 0}],
      gives: :refs
    }
  end

  def of(:gather) do
    %__MODULE__{
      rpc: V1.CollectiveService.gather(),
      takes: :refs,
      options: [dst_rank_in_group: {:rank_in_group, 0}, dim: {:dim, -1}, sizes: {:sizes, nil}],
      gives: :refs
    }
  end

  def of(:all_reduce) do
    %__MODULE__{
      rpc: V1.CollectiveService.all_reduce(),
      takes: :refs,
      options: [op: {:reduce_op, :sum}, in_place: {:boolean, false}],
      gives: :refs
    }
  end

  def of(:reduce) do
    %__MODULE__{
      rpc: V1.CollectiveService.reduce(),
      takes: :refs,
      options: [op: {:reduce_op, :sum}, dst_rank_in_group: {:rank_in_group, 0}],
      gives: :refs
    }
  end

  def of(:reduce_scatter) do
    %__MODULE__{
      rpc: V1.CollectiveService.reduce_scatter(),
      takes: :refs,
      options: [op: {:reduce_op, :sum}, dim: {:dim, -1}, sizes: {:sizes, nil}],
      gives: :refs
    }
  end

  def of(:all_gather) do
    %__MODULE__{
      rpc: V1.CollectiveService.all_gather(),
      takes: :refs,
      options: [dim: {:dim, -1}, sizes: {:sizes, nil}],
      gives: :refs
    }
  end

  def of(:all_to_all) do
    %__MODULE__{
      rpc: V1.CollectiveService.all_to_all(),
      takes: :refs,
      options: [dim: {:dim, 0}],
      of_gang: [sizes: {:rows_of_sizes, nil}],
      of_rank: [input_sizes: {:sizes, nil}, output_sizes: {:sizes, nil}],
      gives: :refs
    }
  end
end
