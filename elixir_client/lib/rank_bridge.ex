defmodule RankBridge do
  @moduledoc """
  Collectives of a torch.distributed job, driven from Elixir.

      children = [{RankBridge.Gang, name: MyGang, size: 4, backend: :gloo}]
      {:ok, _supervisor} = Supervisor.start_link(children, strategy: :one_for_one)
      :ok = RankBridge.await_ready(MyGang, 60_000)

      {:ok, refs} = RankBridge.put(MyGang, for(rank <- 0..3, do: [1.0 * rank, 2.0]))
      {:ok, sums} = RankBridge.all_reduce(MyGang, refs, op: :sum)
      {:ok, [tensor | _]} = RankBridge.get(MyGang, sums)
      RankBridge.Tensor.to_list(tensor)
      #=> [6.0, 8.0]

  Tensors stay on the ranks; callers have refs on them (`RankBridge.Ref`). A list of refs has one entry for each member
  of the group, in group order: for the group "world", one for each rank.

  Every function runs in the calling process and returns `{:ok, value}` or `{:error, %RankBridge.Error{}}`; functions
  with a `!` return the value or raise the error. A call to several ranks is made on all at once; if any fails, the error is
  the root cause and has every rank's outcome.

  ## Options that every function has

    * `:timeout` - in milliseconds; default: the gang's
    * `:unready` - what the call does while the gang starts, or recovers from a loss: `:wait`, for as long as `:timeout`, or
      `:fail`; default: the gang's

  ## Options of collectives

    * `:group` - the group, or its name; default: the gang's, which defaults to "world"
    * `:operation_id` - default: a fresh UUID. A repeated id gets the first call's outcome and runs nothing
    * `:calls` - `:gang`: as one call to one rank, which passes it on (see `RankBridge.Collectives`); `:ranks`: to each rank
      at once; default: the gang's, which defaults to `:gang`

  ## Modules

  This module has what most programs need. Each of its functions is declared in one of these modules, which have more:

    * `RankBridge.Tensors` - tensors and their refs; `RankBridge.Container` - tensors in maps and structs
    * `RankBridge.Collectives` - one tensor of each member; `RankBridge.Coalesced` - several collectives as one;
      `RankBridge.Averaging` - averages of maps of tensors
    * `RankBridge.Objects` - values, numbers, and maps of tensors
    * `RankBridge.PointToPoint` - from one member to another; `RankBridge.Queues` - from one to its readers, in order
    * `RankBridge.Programs` - collectives, each of which may take another's result; `RankBridge.Graphs` - collectives that
      are recorded, and run again; `RankBridge.Pipeline` - one after the other, each on the last one's result
    * `RankBridge.Operations` - one rank's part, operations without waiting, and outcomes by id; `RankBridge.Run` - a
      function for each rank, all at once
    * `RankBridge.Functions` - functions of your own, in Python, that the ranks have loaded
    * `RankBridge.NamedTensors` - tensors that the ranks' processes show under names
    * `RankBridge.CallStream` - gang calls, each sent while the last one is under way
    * `RankBridge.Grouping` and `RankBridge.Meshes` - groups, one and many; `RankBridge.Generations` - the ranks themselves;
      `RankBridge.Doctor` - what is wrong with them; `RankBridge.Hold` - breakpoints
    * `RankBridge.Gang` - the gang in a supervision tree, and its events; `RankBridge.Telemetry` - the events of every call
    * `RankBridge.Case` - real ranks for tests in ExUnit

  The package `:rank_bridge_compat` has functions by the names of other systems, as `RankBridge.Compat`.
  """

  use RankBridge.Facade,
    of: [
      {RankBridge.Tensors, only: [:create, :list, :release]},
      RankBridge.Containers,
      {RankBridge.Grouping, only: [:new_group, :destroy_group]},
      {RankBridge.Meshes, only: []},
      {RankBridge.Generations, only: [:status, :pending, :record, :stacks, :form, :kill_rank]},
      RankBridge.Collectives,
      {RankBridge.Coalesced, only: []},
      {RankBridge.Programs, only: []},
      {RankBridge.Objects,
       only: [
         :broadcast_object,
         :scatter_object,
         :gather_object,
         :all_gather_object,
         :all_reduce_value
       ]},
      {RankBridge.PointToPoint, only: [:send, :send_object, :recv, :recv_object]},
      {RankBridge.Queues, only: []},
      {RankBridge.Graphs, only: []},
      {RankBridge.Operations, only: [:submit, :await, :cancel]},
      RankBridge.Run,
      RankBridge.Functions,
      RankBridge.NamedTensors,
      {RankBridge.Averaging, only: []}
    ]

  use RankBridge.Moved

  alias RankBridge.{Each, Entry, Error, Functions, Gang, Ref, Refs, Tensor}

  alias RankBridge.Gang.Readiness

  @type result(value) :: {:ok, value} | {:error, Error.t()}

  @doc """
  Waits until a gang is ready, also one that is being started by its supervisor, or again. `timeout` in milliseconds.
  """
  @spec await_ready(Gang.gang(), timeout()) :: :ok | {:error, Error.t()}
  def await_ready(gang, timeout \\ 30_000),
    do: with({:ok, _view} <- Readiness.await(gang, timeout), do: :ok)

  @doc "See `RankBridge.Gang.subscribe/1`."
  @spec subscribe(Gang.gang()) :: :ok
  defdelegate subscribe(gang), to: Gang

  @doc "See `RankBridge.Gang.unsubscribe/1`."
  @spec unsubscribe(Gang.gang()) :: :ok
  defdelegate unsubscribe(gang), to: Gang

  @doc "See `RankBridge.Functions.each/1`."
  @spec each(Enumerable.t()) :: Each.t()
  defdelegate each(values), to: Functions

  @doc """
  Brings tensors to the ranks, one to each member of a group.

  A tensor is a `RankBridge.Tensor`, an Nx tensor, or lists of numbers (see `RankBridge.Tensor.coerce/1`). Options: `:group`,
  `:device`.
  """
  @spec put(Gang.gang(), [Tensor.like()], keyword()) :: result([Ref.t()])
  def put(gang, tensors, opts \\ [])

  # Deprecated, as `put/4`: the release after this one removes it.
  def put(gang, rank, tensor) when is_integer(rank), do: put_rank(gang, rank, tensor)
  def put(gang, tensors, opts), do: Entry.call(gang, :put, opts, &Refs.put_all(&1, tensors, opts))

  @doc "As `put/3`; raises the error."
  @spec put!(Gang.gang(), [Tensor.like()], keyword()) :: [Ref.t()]
  def put!(gang, tensors, opts \\ []), do: bang(put(gang, tensors, opts))

  @doc "Brings a tensor to one rank, as `put/3`. Option: `:device`."
  @spec put_rank(Gang.gang(), non_neg_integer(), Tensor.like(), keyword()) :: result(Ref.t())
  def put_rank(gang, rank, tensor, opts \\ []),
    do: Entry.call(gang, :put_rank, opts, &Refs.put(&1, rank, tensor, opts))

  @doc "As `put_rank/4`; raises the error."
  @spec put_rank!(Gang.gang(), non_neg_integer(), Tensor.like(), keyword()) :: Ref.t()
  def put_rank!(gang, rank, tensor, opts \\ []), do: bang(put_rank(gang, rank, tensor, opts))

  @doc false
  @deprecated "use RankBridge.put_rank/4"
  @spec put(Gang.gang(), non_neg_integer(), Tensor.like(), keyword()) :: result(Ref.t())
  def put(gang, rank, tensor, opts), do: put_rank(gang, rank, tensor, opts)

  @doc false
  @deprecated "use RankBridge.put_rank!/4"
  @spec put!(Gang.gang(), non_neg_integer(), Tensor.like(), keyword()) :: Ref.t()
  def put!(gang, rank, tensor, opts), do: put_rank!(gang, rank, tensor, opts)

  @doc "Fetches the tensor of a ref, or the tensors of a list of refs."
  @spec get(Gang.gang(), Ref.t(), keyword()) :: result(Tensor.t())
  @spec get(Gang.gang(), [Ref.t()], keyword()) :: result([Tensor.t()])
  def get(gang, ref_or_refs, opts \\ [])

  def get(gang, refs, opts) when is_list(refs),
    do: Entry.call(gang, :get, opts, &Refs.get_all(&1, refs, opts))

  def get(gang, ref, opts), do: Entry.call(gang, :get, opts, &Refs.get(&1, ref, opts))

  @doc "As `get/3`; raises the error."
  @spec get!(Gang.gang(), Ref.t(), keyword()) :: Tensor.t()
  @spec get!(Gang.gang(), [Ref.t()], keyword()) :: [Tensor.t()]
  def get!(gang, ref_or_refs, opts \\ []), do: bang(get(gang, ref_or_refs, opts))

  defp bang({:ok, value}), do: value
  defp bang({:error, error}), do: raise(error)
end
