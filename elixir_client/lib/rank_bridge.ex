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

    * `:group` - the group, or its name; default "world"
    * `:operation_id` - default: a fresh UUID. A repeated id gets the first call's outcome and runs nothing
    * `:calls` - `:gang`: as one call to one rank, which passes it on (`RankBridge.Operations.GangCall`); `:ranks`: to each rank
      at once; default: the gang's, which defaults to `:gang`

  ## Modules

  Each of these modules declares functions of this module, and documents them:

    * `RankBridge.Tensors` - on refs; `RankBridge.Containers` - on tensors in maps and structs; `RankBridge.Grouping` and
      `RankBridge.Meshes` - groups, one and many; `RankBridge.Generations` - the ranks themselves
    * `RankBridge.Collectives` - on one tensor of each member; `RankBridge.Coalesced` - several of them as one;
      `RankBridge.Programs` - several, each of which may take another's result
    * `RankBridge.Objects` - on values, numbers, and maps of tensors
    * `RankBridge.PointToPoint` - from one member to another; `RankBridge.Queues` - from one to its readers, in order
    * `RankBridge.Graphs` - collectives that are recorded, and run again
    * `RankBridge.Operations` - one rank's part, operations without waiting, and outcomes by id
    * `RankBridge.Rounds` - so many ranks at a time; `RankBridge.Run` - a function for each rank, all at once
    * `RankBridge.Averaging`, `RankBridge.Synchronized`, `RankBridge.Experts`, `RankBridge.Buffers`, `RankBridge.Devices`,
      `RankBridge.Reports` - functions of other systems, made of these
    * `RankBridge.CoordinatorNames`, `RankBridge.MeshCollectiveNames` - the same under the names of other systems

  Collectives one after the other, each on the last one's result: `RankBridge.Pipeline`. Gang calls, each sent while the last
  one is under way: `RankBridge.Stream`. The telemetry events of every call: `RankBridge.Telemetry`.
  """

  use RankBridge.Facade,
    of: [
      RankBridge.Tensors,
      RankBridge.Containers,
      RankBridge.Grouping,
      RankBridge.Meshes,
      RankBridge.Generations,
      RankBridge.Collectives,
      RankBridge.Coalesced,
      RankBridge.Programs,
      RankBridge.Objects,
      RankBridge.PointToPoint,
      RankBridge.Queues,
      RankBridge.Graphs,
      RankBridge.Operations,
      RankBridge.Rounds,
      RankBridge.Run,
      RankBridge.Averaging,
      RankBridge.Synchronized,
      RankBridge.Experts,
      RankBridge.Buffers,
      RankBridge.Devices,
      RankBridge.CoordinatorNames,
      RankBridge.MeshCollectiveNames
    ]

  alias RankBridge.{Averaging, Entry, Error, Gang, Ref, Refs, Reports, Tensor}

  alias RankBridge.Gang.Readiness

  @type result(value) :: {:ok, value} | {:error, Error.t()}

  @doc """
  Waits until a gang is ready, also one that is being started by its supervisor, or again. `timeout` in milliseconds.
  """
  @spec await_ready(Gang.gang(), timeout()) :: :ok | {:error, Error.t()}
  def await_ready(gang, timeout \\ 30_000),
    do: with({:ok, _view} <- Readiness.await(gang, timeout), do: :ok)

  @doc """
  Brings tensors to the ranks: one to each member of a group, or one to one rank.

      put(gang, [tensor, ...], opts \\\\ [])        :group, :device
      put(gang, rank, tensor, opts \\\\ [])         :device

  A tensor is a `RankBridge.Tensor`, an Nx tensor, or lists of numbers (see `RankBridge.Tensor.coerce/1`).
  """
  @spec put(Gang.gang(), [Tensor.like()]) :: result([Ref.t()])
  def put(gang, tensors), do: put(gang, tensors, [])

  @doc "As `put/2`: to the members of a group with options, or to one rank without."
  @spec put(Gang.gang(), [Tensor.like()], keyword()) :: result([Ref.t()])
  @spec put(Gang.gang(), non_neg_integer(), Tensor.like()) :: result(Ref.t())
  def put(gang, rank, tensor) when is_integer(rank), do: put(gang, rank, tensor, [])
  def put(gang, tensors, opts), do: Entry.call(gang, :put, opts, &Refs.put_all(&1, tensors, opts))

  @doc "As `put/2`: to one rank, with options."
  @spec put(Gang.gang(), non_neg_integer(), Tensor.like(), keyword()) :: result(Ref.t())
  def put(gang, rank, tensor, opts),
    do: Entry.call(gang, :put, opts, &Refs.put(&1, rank, tensor, opts))

  @doc "As `put/2`; raises the error."
  @spec put!(Gang.gang(), [Tensor.like()]) :: [Ref.t()]
  def put!(gang, tensors), do: bang(put(gang, tensors))

  @doc "As `put/3`; raises the error."
  @spec put!(Gang.gang(), [Tensor.like()], keyword()) :: [Ref.t()]
  @spec put!(Gang.gang(), non_neg_integer(), Tensor.like()) :: Ref.t()
  def put!(gang, rank_or_tensors, tensor_or_opts),
    do: bang(put(gang, rank_or_tensors, tensor_or_opts))

  @doc "As `put/4`; raises the error."
  @spec put!(Gang.gang(), non_neg_integer(), Tensor.like(), keyword()) :: Ref.t()
  def put!(gang, rank, tensor, opts), do: bang(put(gang, rank, tensor, opts))

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

  @doc "See `RankBridge.Averaging.get_reduce_divide_factor/1`."
  @spec get_reduce_divide_factor(pos_integer()) :: float()
  defdelegate get_reduce_divide_factor(world_size), to: Averaging

  @doc "See `RankBridge.Reports.report_time_info/1`."
  @spec report_time_info(Reports.Timings.like()) :: result(Reports.TimeInfo.t())
  defdelegate report_time_info(timings), to: Reports

  @doc "See `RankBridge.Reports.report_load_imbalance/1`."
  @spec report_load_imbalance(Reports.Timings.like()) :: result(Reports.LoadImbalance.t())
  defdelegate report_load_imbalance(timings), to: Reports

  defp bang({:ok, value}), do: value
  defp bang({:error, error}), do: raise(error)
end
