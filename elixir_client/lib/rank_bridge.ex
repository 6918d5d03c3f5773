defmodule RankBridge do
  @moduledoc """
  Collectives of a torch.distributed job, driven from Elixir.

      {:ok, gang} = RankBridge.Gang.start_link(endpoints_file: "endpoints.json")

      {:ok, refs} = RankBridge.put(gang, for(rank <- 0..3, do: [1.0 * rank, 2.0]))
      {:ok, sums} = RankBridge.all_reduce(gang, refs, op: :sum)
      {:ok, [tensor | _]} = RankBridge.get(gang, sums)
      RankBridge.Tensor.to_list(tensor)
      #=> [6.0, 8.0]

  Tensors stay on the ranks; what travels are refs (`RankBridge.Ref`). A list of refs has one entry for each member
  of the group, in group order: for the group "world", one for each rank.

  Every function runs in the calling process and gives `{:ok, value}` or `{:error, %RankBridge.Error{}}`; those with
  a `!` give the value or raise the error. A call to several ranks is made on all at once; if any fails, the error is
  the root cause and has every rank's outcome.

  ## Options that every function has

    * `:timeout` - in milliseconds; default: the gang's

  ## Options of collectives

    * `:group` - the group, or its name; default "world"
    * `:operation_id` - default: a fresh UUID. A repeated id gets the first call's outcome and runs nothing

  ## Where what is

  Each of these modules declares some of the functions here, and says more about them:

    * `RankBridge.Collectives` - on one tensor of each member; `RankBridge.Coalesced` - several of them as one
    * `RankBridge.Objects` - on values, numbers, and maps of tensors
    * `RankBridge.PointToPoint` - from one member to another; `RankBridge.Queues` - from one to its readers, in order
    * `RankBridge.Graphs` - collectives that are recorded, and run again
    * `RankBridge.Operations` - one rank's part, what is not waited for, and outcomes by id
    * `RankBridge.Rounds` - so many ranks at a time
    * `RankBridge.Averaging`, `RankBridge.Synchronized`, `RankBridge.Experts`, `RankBridge.Buffers`, `RankBridge.Devices`,
      `RankBridge.Reports` - what is made of these, as other systems have it
    * `RankBridge.CoordinatorNames`, `RankBridge.MeshCollectiveNames` - the same by the names of other systems
  """

  use RankBridge.Facade,
    of: [
      RankBridge.Collectives,
      RankBridge.Coalesced,
      RankBridge.Objects,
      RankBridge.PointToPoint,
      RankBridge.Queues,
      RankBridge.Graphs,
      RankBridge.Operations,
      RankBridge.Rounds,
      RankBridge.Averaging,
      RankBridge.Synchronized,
      RankBridge.Experts,
      RankBridge.Buffers,
      RankBridge.Devices,
      RankBridge.CoordinatorNames,
      RankBridge.MeshCollectiveNames
    ]

  alias RankBridge.{
    Averaging,
    Dtype,
    Error,
    Gang,
    Group,
    Groups,
    Layout,
    ManyGroups,
    Mesh,
    Ranks,
    RankStatus,
    Ref,
    Refs,
    Reports,
    Tensor
  }

  alias RankBridge.Gang.View

  @type result(value) :: {:ok, value} | {:error, Error.t()}

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
  def put(gang, tensors, opts), do: View.with_view(gang, &Refs.put_all(&1, tensors, opts))

  @doc "As `put/2`: to one rank, with options."
  @spec put(Gang.gang(), non_neg_integer(), Tensor.like(), keyword()) :: result(Ref.t())
  def put(gang, rank, tensor, opts), do: View.with_view(gang, &Refs.put(&1, rank, tensor, opts))

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
    do: View.with_view(gang, &Refs.get_all(&1, refs, opts))

  def get(gang, ref, opts), do: View.with_view(gang, &Refs.get(&1, ref, opts))

  @doc "As `get/3`; raises the error."
  @spec get!(Gang.gang(), Ref.t(), keyword()) :: Tensor.t()
  @spec get!(Gang.gang(), [Ref.t()], keyword()) :: [Tensor.t()]
  def get!(gang, ref_or_refs, opts \\ []), do: bang(get(gang, ref_or_refs, opts))

  @doc """
  Makes a tensor on every member of a group, or on one rank, without sending its elements.

  Options: `:init` (see `RankBridge.Refs.Init`; default `:zeros`), `:rank` (gives one ref instead of a list),
  `:group`, `:device`.
  """
  @spec create(Gang.gang(), Dtype.t(), Tensor.shape(), keyword()) :: result([Ref.t()] | Ref.t())
  def create(gang, dtype, shape, opts \\ []),
    do: View.with_view(gang, &Refs.create(&1, dtype, shape, opts))

  @doc "As `create/4`; raises the error."
  @spec create!(Gang.gang(), Dtype.t(), Tensor.shape(), keyword()) :: [Ref.t()] | Ref.t()
  def create!(gang, dtype, shape, opts \\ []), do: bang(create(gang, dtype, shape, opts))

  @doc "Asks a ref's rank what the ref is."
  @spec describe(Gang.gang(), Ref.t(), keyword()) :: result(Ref.t())
  def describe(gang, ref, opts \\ []), do: View.with_view(gang, &Refs.describe(&1, ref, opts))

  @doc "As `describe/3`; raises the error."
  @spec describe!(Gang.gang(), Ref.t(), keyword()) :: Ref.t()
  def describe!(gang, ref, opts \\ []), do: bang(describe(gang, ref, opts))

  @doc "Every ref of the gang's session, by rank. Options: `:rank` or `:group`, to ask those alone."
  @spec list(Gang.gang(), keyword()) :: result([Ref.t()])
  def list(gang, opts \\ []), do: View.with_view(gang, &Refs.list(&1, opts))

  @doc "As `list/2`; raises the error."
  @spec list!(Gang.gang(), keyword()) :: [Ref.t()]
  def list!(gang, opts \\ []), do: bang(list(gang, opts))

  @doc "Frees a ref, or a list of them: on each rank all or none. Gives how many were freed."
  @spec release(Gang.gang(), Ref.t() | [Ref.t()], keyword()) :: result(non_neg_integer())
  def release(gang, refs, opts \\ [])
  def release(gang, %Ref{} = ref, opts), do: release(gang, [ref], opts)
  def release(gang, refs, opts), do: View.with_view(gang, &Refs.release(&1, refs, opts))

  @doc "As `release/3`; raises the error."
  @spec release!(Gang.gang(), Ref.t() | [Ref.t()], keyword()) :: non_neg_integer()
  def release!(gang, refs, opts \\ []), do: bang(release(gang, refs, opts))

  @doc """
  Makes a group of some ranks of the gang, in group order. All members of the group `:group` (default "world") take
  part, those who will not be in the new one included.
  """
  @spec new_group(Gang.gang(), String.t(), [non_neg_integer()], keyword()) :: result(Group.t())
  def new_group(gang, name, ranks, opts \\ []),
    do: View.with_view(gang, &Groups.create(&1, name, ranks, opts))

  @doc "As `new_group/4`; raises the error."
  @spec new_group!(Gang.gang(), String.t(), [non_neg_integer()], keyword()) :: Group.t()
  def new_group!(gang, name, ranks, opts \\ []), do: bang(new_group(gang, name, ranks, opts))

  @doc "Ends a group. Calls that are queued on it run first. Gives the group as it was."
  @spec destroy_group(Gang.gang(), String.t(), keyword()) :: result(Group.t())
  def destroy_group(gang, name, opts \\ []),
    do: View.with_view(gang, &Groups.destroy(&1, name, opts))

  @doc "As `destroy_group/3`; raises the error."
  @spec destroy_group!(Gang.gang(), String.t(), keyword()) :: Group.t()
  def destroy_group!(gang, name, opts \\ []), do: bang(destroy_group(gang, name, opts))

  @doc "Every group of the gang, by name."
  @spec groups(Gang.gang(), keyword()) :: result([Group.t()])
  def groups(gang, opts \\ []), do: View.with_view(gang, &Groups.list(&1, opts))

  @doc "As `groups/2`; raises the error."
  @spec groups!(Gang.gang(), keyword()) :: [Group.t()]
  def groups!(gang, opts \\ []), do: bang(groups(gang, opts))

  @doc "The name of each rank's host, by rank."
  @spec hosts(Gang.gang(), keyword()) :: result([String.t()])
  def hosts(gang, opts \\ []), do: View.with_view(gang, &ManyGroups.hosts(&1, opts))

  @doc "As `hosts/2`; raises the error."
  @spec hosts!(Gang.gang(), keyword()) :: [String.t()]
  def hosts!(gang, opts \\ []), do: bang(hosts(gang, opts))

  @doc """
  One group, by its name, with the `places` of its members, as far as ranks answer. `RankBridge.Group` tells what each
  member is in it: `RankBridge.Group.next_rank(group, rank)`.
  """
  @spec group(Gang.gang(), String.t(), keyword()) :: result(Group.t())
  def group(gang, name, opts \\ []),
    do: View.with_view(gang, &ManyGroups.describe(&1, name, opts))

  @doc "As `group/3`; raises the error."
  @spec group!(Gang.gang(), String.t(), keyword()) :: Group.t()
  def group!(gang, name, opts \\ []), do: bang(group(gang, name, opts))

  @doc """
  Makes several groups: all of them, or none. `groups` are `{name, ranks}`, or groups. Call it from one process at a
  time, as anything on "world".

  They are made one after the other, each on every rank before the next begins. If one fails, those before it are ended
  again; the message of an error after which some may be left names them. `:group_exists` and malformed descriptions
  are found before any is made. What a process has made is left if it dies meanwhile.

  Option `:timeout`: for each of them, in milliseconds.
  """
  @spec new_groups(Gang.gang(), [ManyGroups.group()], keyword()) :: result([Group.t()])
  def new_groups(gang, groups, opts \\ []),
    do: View.with_view(gang, &ManyGroups.create(&1, groups, opts))

  @doc "As `new_groups/3`; raises the error."
  @spec new_groups!(Gang.gang(), [ManyGroups.group()], keyword()) :: [Group.t()]
  def new_groups!(gang, groups, opts \\ []), do: bang(new_groups(gang, groups, opts))

  @doc """
  Ends those of the groups that exist, each after the calls queued on it, and gives them as they were. `groups` are
  names or groups: `RankBridge.Mesh.groups(mesh)`. All are tried; the message of an error names those that were not
  ended.

  Option `:timeout`: for each of them, in milliseconds.
  """
  @spec destroy_groups(Gang.gang(), [Group.t() | String.t()], keyword()) :: result([Group.t()])
  def destroy_groups(gang, groups, opts \\ []),
    do: View.with_view(gang, &ManyGroups.destroy(&1, groups, opts))

  @doc "As `destroy_groups/3`; raises the error."
  @spec destroy_groups!(Gang.gang(), [Group.t() | String.t()], keyword()) :: [Group.t()]
  def destroy_groups!(gang, groups, opts \\ []), do: bang(destroy_groups(gang, groups, opts))

  @doc """
  Lays ranks out along named axes, outermost first, and makes a group for each line of each axis, as `new_groups/3`.

      {:ok, mesh} = RankBridge.new_mesh(gang, [dp: -1, tp: 2])
      RankBridge.all_reduce(gang, refs, group: RankBridge.Mesh.group(mesh, :tp, 3))

  The size of one axis may be -1: what the others leave. Options:

    * `:ranks` - the ranks in row-major order; default: all of the gang
    * `:name` - what the names of the groups begin with; "mesh"
    * `:flattened` - the axes that each flattened axis stands for, as `[dp: [:dp_replicate, :dp_shard]]`
    * `:local` - true: the mesh has the axis `:local`, of the ranks on one host
    * `:timeout` - for each group, in milliseconds
  """
  @spec new_mesh(Gang.gang(), [{Mesh.axis(), integer()}], keyword()) :: result(Mesh.t())
  def new_mesh(gang, axes, opts \\ []),
    do: View.with_view(gang, &ManyGroups.new_mesh(&1, axes, opts))

  @doc "As `new_mesh/3`; raises the error."
  @spec new_mesh!(Gang.gang(), [{Mesh.axis(), integer()}], keyword()) :: Mesh.t()
  def new_mesh!(gang, axes, opts \\ []), do: bang(new_mesh(gang, axes, opts))

  @doc """
  A mesh whose groups are there: made by another program, or again with the current generation. Arguments as of
  `new_mesh/3`. Groups that are missing are `:unknown_group`; groups that have other members, because the gang has
  become smaller, `:invalid_argument`.
  """
  @spec mesh(Gang.gang(), [{Mesh.axis(), integer()}], keyword()) :: result(Mesh.t())
  def mesh(gang, axes, opts \\ []), do: View.with_view(gang, &ManyGroups.mesh(&1, axes, opts))

  @doc "As `mesh/3`; raises the error."
  @spec mesh!(Gang.gang(), [{Mesh.axis(), integer()}], keyword()) :: Mesh.t()
  def mesh!(gang, axes, opts \\ []), do: bang(mesh(gang, axes, opts))

  @doc """
  Makes the groups of a role layout, as `new_groups/3`.

      {:ok, hosts} = RankBridge.hosts(gang)
      {:ok, layout} = RankBridge.Layout.by_host(hosts, buffers: 2)
      {:ok, layout} = RankBridge.new_layout(gang, layout)
  """
  @spec new_layout(Gang.gang(), Layout.t(), keyword()) :: result(Layout.t())
  def new_layout(gang, layout, opts \\ []),
    do: View.with_view(gang, &ManyGroups.new_layout(&1, layout, opts))

  @doc "As `new_layout/3`; raises the error."
  @spec new_layout!(Gang.gang(), Layout.t(), keyword()) :: Layout.t()
  def new_layout!(gang, layout, opts \\ []), do: bang(new_layout(gang, layout, opts))

  @doc "What each rank is doing. A rank that cannot be asked is in the list, with an `error`."
  @spec status(Gang.gang(), keyword()) :: result([RankStatus.t()])
  def status(gang, opts \\ []), do: View.with_view(gang, &Ranks.status(&1, opts))

  @doc "As `status/2`; raises the error."
  @spec status!(Gang.gang(), keyword()) :: [RankStatus.t()]
  def status!(gang, opts \\ []), do: bang(status(gang, opts))

  @doc """
  Forms the next generation of all ranks: either every rank has it, or none. Opens the gang's session on ranks that
  are new in it. Waits for ranks that cannot be reached yet, as those that are being replaced.

  Options: `:groups` (a list of `{name, ranks}`, or of groups, beside "world"), `:endpoints` (a target for each rank as the
  sidecars can reach each other; default: those that this gang uses). The default timeout is 10,000.
  """
  @spec form(Gang.gang(), keyword()) :: result(Ranks.formed())
  def form(gang, opts \\ []), do: View.with_view(gang, &Ranks.form(&1, opts))

  @doc "As `form/2`; raises the error."
  @spec form!(Gang.gang(), keyword()) :: Ranks.formed()
  def form!(gang, opts \\ []), do: bang(form(gang, opts))

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
