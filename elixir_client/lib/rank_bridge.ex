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
  """

  alias RankBridge.{
    Collectives,
    Dtype,
    Error,
    Gang,
    Group,
    Groups,
    Layout,
    ManyGroups,
    Mesh,
    Operation,
    Operations,
    Ranks,
    RankStatus,
    Ref,
    Refs,
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

  @spec put(Gang.gang(), [Tensor.like()], keyword()) :: result([Ref.t()])
  @spec put(Gang.gang(), non_neg_integer(), Tensor.like()) :: result(Ref.t())
  def put(gang, rank, tensor) when is_integer(rank), do: put(gang, rank, tensor, [])
  def put(gang, tensors, opts), do: with_view(gang, &Refs.put_all(&1, tensors, opts))

  @spec put(Gang.gang(), non_neg_integer(), Tensor.like(), keyword()) :: result(Ref.t())
  def put(gang, rank, tensor, opts), do: with_view(gang, &Refs.put(&1, rank, tensor, opts))

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
  def get(gang, refs, opts) when is_list(refs), do: with_view(gang, &Refs.get_all(&1, refs, opts))
  def get(gang, ref, opts), do: with_view(gang, &Refs.get(&1, ref, opts))

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
    do: with_view(gang, &Refs.create(&1, dtype, shape, opts))

  @doc "As `create/4`; raises the error."
  @spec create!(Gang.gang(), Dtype.t(), Tensor.shape(), keyword()) :: [Ref.t()] | Ref.t()
  def create!(gang, dtype, shape, opts \\ []), do: bang(create(gang, dtype, shape, opts))

  @doc "Asks a ref's rank what the ref is."
  @spec describe(Gang.gang(), Ref.t(), keyword()) :: result(Ref.t())
  def describe(gang, ref, opts \\ []), do: with_view(gang, &Refs.describe(&1, ref, opts))

  @doc "As `describe/3`; raises the error."
  @spec describe!(Gang.gang(), Ref.t(), keyword()) :: Ref.t()
  def describe!(gang, ref, opts \\ []), do: bang(describe(gang, ref, opts))

  @doc "Every ref of the gang's session, by rank. Options: `:rank` or `:group`, to ask those alone."
  @spec list(Gang.gang(), keyword()) :: result([Ref.t()])
  def list(gang, opts \\ []), do: with_view(gang, &Refs.list(&1, opts))

  @doc "As `list/2`; raises the error."
  @spec list!(Gang.gang(), keyword()) :: [Ref.t()]
  def list!(gang, opts \\ []), do: bang(list(gang, opts))

  @doc "Frees a ref, or a list of them: on each rank all or none. Gives how many were freed."
  @spec release(Gang.gang(), Ref.t() | [Ref.t()], keyword()) :: result(non_neg_integer())
  def release(gang, refs, opts \\ [])
  def release(gang, %Ref{} = ref, opts), do: release(gang, [ref], opts)
  def release(gang, refs, opts), do: with_view(gang, &Refs.release(&1, refs, opts))

  @doc "As `release/3`; raises the error."
  @spec release!(Gang.gang(), Ref.t() | [Ref.t()], keyword()) :: non_neg_integer()
  def release!(gang, refs, opts \\ []), do: bang(release(gang, refs, opts))

  @doc "Returns when every member of the group has called. Gives nil."
  @spec barrier(Gang.gang(), keyword()) :: result(nil)
  def barrier(gang, opts \\ []), do: collective(gang, :barrier, nil, opts)

  @doc "As `barrier/2`; raises the error."
  @spec barrier!(Gang.gang(), keyword()) :: nil
  def barrier!(gang, opts \\ []), do: bang(barrier(gang, opts))

  @doc """
  Gives every member a tensor equal to the source's. All tensors must have its dtype and shape.

  Options: `:src_rank_in_group` (default 0), `:in_place` (default false: the results get new refs).
  """
  @spec broadcast(Gang.gang(), [Ref.t()], keyword()) :: result([Ref.t()])
  def broadcast(gang, refs, opts \\ []), do: collective(gang, :broadcast, refs, opts)

  @doc "As `broadcast/3`; raises the error."
  @spec broadcast!(Gang.gang(), [Ref.t()], keyword()) :: [Ref.t()]
  def broadcast!(gang, refs, opts \\ []), do: bang(broadcast(gang, refs, opts))

  @doc """
  Gives every member its part of the source's tensor, divided equally in group order: of `[8, 3]` and four members,
  `[2, 3]` along dimension 0, as `torch.distributed.scatter` of chunks.

  The source's ref is the whole; the others' are of the part's dtype and shape, and say what is expected. They stay
  as they are. A whole that cannot be divided equally is an `:invalid_argument`, another part than a member expects a
  `:mismatch`.

  Options: `:src_rank_in_group` (default 0), `:dim` (default 0, the first).
  """
  @spec scatter(Gang.gang(), [Ref.t()], keyword()) :: result([Ref.t()])
  def scatter(gang, refs, opts \\ []), do: collective(gang, :scatter, refs, opts)

  @doc "As `scatter/3`; raises the error."
  @spec scatter!(Gang.gang(), [Ref.t()], keyword()) :: [Ref.t()]
  def scatter!(gang, refs, opts \\ []), do: bang(scatter(gang, refs, opts))

  @doc """
  Gives the destination the members' tensors, concatenated in group order; nil stands for the others.

  Options: `:dst_rank_in_group` (default 0), `:dim` (default -1, the last), `:sizes` (for tensors that differ along
  `:dim`: the size of each member's there, in group order; default: all are alike).
  """
  @spec gather(Gang.gang(), [Ref.t()], keyword()) :: result([Ref.t() | nil])
  def gather(gang, refs, opts \\ []), do: collective(gang, :gather, refs, opts)

  @doc "As `gather/3`; raises the error."
  @spec gather!(Gang.gang(), [Ref.t()], keyword()) :: [Ref.t() | nil]
  def gather!(gang, refs, opts \\ []), do: bang(gather(gang, refs, opts))

  @doc """
  Gives every member the element-wise reduction of all members' tensors.

  Options: `:op` (`:sum`, `:product`, `:min`, `:max`, `:avg`, and of integers and bools the bits' `:band`, `:bor`,
  `:bxor`; default `:sum`), `:in_place` (default false).
  """
  @spec all_reduce(Gang.gang(), [Ref.t()], keyword()) :: result([Ref.t()])
  def all_reduce(gang, refs, opts \\ []), do: collective(gang, :all_reduce, refs, opts)

  @doc "As `all_reduce/3`; raises the error."
  @spec all_reduce!(Gang.gang(), [Ref.t()], keyword()) :: [Ref.t()]
  def all_reduce!(gang, refs, opts \\ []), do: bang(all_reduce(gang, refs, opts))

  @doc """
  Gives the destination the element-wise reduction of all members' tensors; nil stands for the others. No input
  changes, unlike with `torch.distributed.reduce`.

  Options: `:op` (as of `all_reduce/3`; default `:sum`), `:dst_rank_in_group` (default 0).
  """
  @spec reduce(Gang.gang(), [Ref.t()], keyword()) :: result([Ref.t() | nil])
  def reduce(gang, refs, opts \\ []), do: collective(gang, :reduce, refs, opts)

  @doc "As `reduce/3`; raises the error."
  @spec reduce!(Gang.gang(), [Ref.t()], keyword()) :: [Ref.t() | nil]
  def reduce!(gang, refs, opts \\ []), do: bang(reduce(gang, refs, opts))

  @doc """
  Gives every member its part of the element-wise reduction of all members' tensors, divided in group order: of
  `[4, 8]` on each of four members, `[4, 2]` along the last dimension. As vLLM's `reduce_scatter`, and with `:sizes` its
  `reduce_scatterv`, but right along every dimension.

  Options: `:op` (as of `all_reduce/3`; default `:sum`), `:dim` (default -1, the last), `:sizes` (of each member's part
  along `:dim`, in group order; default: equal parts). Tensors that cannot be divided so are an `:invalid_argument`,
  members that differ in anything a `:mismatch`.
  """
  @spec reduce_scatter(Gang.gang(), [Ref.t()], keyword()) :: result([Ref.t()])
  def reduce_scatter(gang, refs, opts \\ []), do: collective(gang, :reduce_scatter, refs, opts)

  @doc "As `reduce_scatter/3`; raises the error."
  @spec reduce_scatter!(Gang.gang(), [Ref.t()], keyword()) :: [Ref.t()]
  def reduce_scatter!(gang, refs, opts \\ []), do: bang(reduce_scatter(gang, refs, opts))

  @doc """
  Gives every member the members' tensors, concatenated in group order.

  As vLLM's `all_gather`, and with `:sizes` its `all_gatherv`, but along every dimension: that knows the first alone.

  Options: `:dim` (default -1, the last), `:sizes` (as of `gather/3`).
  """
  @spec all_gather(Gang.gang(), [Ref.t()], keyword()) :: result([Ref.t()])
  def all_gather(gang, refs, opts \\ []), do: collective(gang, :all_gather, refs, opts)

  @doc "As `all_gather/3`; raises the error."
  @spec all_gather!(Gang.gang(), [Ref.t()], keyword()) :: [Ref.t()]
  def all_gather!(gang, refs, opts \\ []), do: bang(all_gather(gang, refs, opts))

  @doc """
  Gives every member its parts of all members' tensors, concatenated in group order, as
  `torch.distributed.all_to_all_single`, but along any dimension.

  Options: `:dim` (default 0, the first), `:sizes` (a row for each member, in group order, with the size along `:dim` of
  what it sends to each; default: equal parts). `call_rank/5` and `submit_rank/5` take `:input_sizes` and
  `:output_sizes` instead, what goes to and what comes from each member. Tensors that cannot be divided so are an
  `:invalid_argument`; if one member expects something else than another sends, that is a `:mismatch` on all of them,
  which names both, and nothing has moved.
  """
  @spec all_to_all(Gang.gang(), [Ref.t()], keyword()) :: result([Ref.t()])
  def all_to_all(gang, refs, opts \\ []), do: collective(gang, :all_to_all, refs, opts)

  @doc "As `all_to_all/3`; raises the error."
  @spec all_to_all!(Gang.gang(), [Ref.t()], keyword()) :: [Ref.t()]
  def all_to_all!(gang, refs, opts \\ []), do: bang(all_to_all(gang, refs, opts))

  @doc """
  One rank's part of a collective, for programs in which several drive the gang. Someone must call the other
  members: with the same `:operation_id`, or all without one (an empty text).

  `operation` is the collective's name, as in `:all_reduce`; `ref` is nil for `:barrier`. Options: the collective's.
  """
  @spec call_rank(Gang.gang(), non_neg_integer(), atom(), Ref.t() | nil, keyword()) ::
          result(Ref.t() | nil)
  def call_rank(gang, rank, operation, ref, opts \\ []),
    do: with_view(gang, &Collectives.run_on(&1, operation, rank, ref, opts))

  @doc "As `call_rank/5`; raises the error."
  @spec call_rank!(Gang.gang(), non_neg_integer(), atom(), Ref.t() | nil, keyword()) ::
          Ref.t() | nil
  def call_rank!(gang, rank, operation, ref, opts \\ []),
    do: bang(call_rank(gang, rank, operation, ref, opts))

  @doc """
  Begins a collective on every member of a group, and returns as soon as they all have it.

      {:ok, operation} = RankBridge.submit(gang, :all_reduce, refs, op: :max)
      {:ok, maxima} = RankBridge.await(gang, operation)

  `operation` is the collective's name; `refs` is nil for `:barrier`. Options: the collective's. If a rank refuses it,
  it is withdrawn on the others.
  """
  @spec submit(Gang.gang(), atom(), [Ref.t()] | nil, keyword()) :: result(Operation.t())
  def submit(gang, operation, refs, opts \\ []),
    do: with_view(gang, &Operations.submit(&1, operation, refs, opts))

  @doc "As `submit/4`; raises the error."
  @spec submit!(Gang.gang(), atom(), [Ref.t()] | nil, keyword()) :: Operation.t()
  def submit!(gang, operation, refs, opts \\ []), do: bang(submit(gang, operation, refs, opts))

  @doc "Begins one rank's part of a collective: `submit/4` as `call_rank/5`."
  @spec submit_rank(Gang.gang(), non_neg_integer(), atom(), Ref.t() | nil, keyword()) ::
          result(Operation.t())
  def submit_rank(gang, rank, operation, ref, opts \\ []),
    do: with_view(gang, &Operations.submit_on(&1, operation, rank, ref, opts))

  @doc "As `submit_rank/5`; raises the error."
  @spec submit_rank!(Gang.gang(), non_neg_integer(), atom(), Ref.t() | nil, keyword()) ::
          Operation.t()
  def submit_rank!(gang, rank, operation, ref, opts \\ []),
    do: bang(submit_rank(gang, rank, operation, ref, opts))

  @doc """
  How far an operation is on each of its members, in group order.

  `operation` is what `submit/4` gave, or the id of any operation: also of one whose call was lost, or that another
  program began. Options for an id: `:group` (default "world"), or `:rank`, to ask that one alone.
  The error `:unknown_operation` says that a rank has never had it, or has forgotten it after thousands of others.
  """
  @spec poll(Gang.gang(), Operation.t() | String.t(), keyword()) :: result([Operation.status()])
  def poll(gang, operation, opts \\ []),
    do: with_view(gang, &Operations.poll(&1, operation, opts))

  @doc "As `poll/3`; raises the error."
  @spec poll!(Gang.gang(), Operation.t() | String.t(), keyword()) :: [Operation.status()]
  def poll!(gang, operation, opts \\ []), do: bang(poll(gang, operation, opts))

  @doc """
  Waits for an operation's outcome, and gives what the direct call gives: a ref or nil for each member, in group
  order; nil if no member gets one, as of a barrier. May be called again, also from another program.

  `operation` and options as of `poll/3`. `:timeout` is how long to wait (default: the operation's own, or for an id
  the gang's, and two seconds more); the error `:deadline_exceeded` says that it is not done yet, and goes on.
  """
  @spec await(Gang.gang(), Operation.t() | String.t(), keyword()) ::
          result([Ref.t() | nil] | nil)
  def await(gang, operation, opts \\ []),
    do: with_view(gang, &Operations.await(&1, operation, opts))

  @doc "As `await/3`; raises the error."
  @spec await!(Gang.gang(), Operation.t() | String.t(), keyword()) :: [Ref.t() | nil] | nil
  def await!(gang, operation, opts \\ []), do: bang(await(gang, operation, opts))

  @doc """
  Withdraws an operation where it was not admitted yet. Gives for each member, in group order, whether it was
  withdrawn there; false: it was admitted or done already. `operation` and options as of `poll/3`.
  """
  @spec cancel(Gang.gang(), Operation.t() | String.t(), keyword()) :: result([boolean()])
  def cancel(gang, operation, opts \\ []),
    do: with_view(gang, &Operations.cancel(&1, operation, opts))

  @doc "As `cancel/3`; raises the error."
  @spec cancel!(Gang.gang(), Operation.t() | String.t(), keyword()) :: [boolean()]
  def cancel!(gang, operation, opts \\ []), do: bang(cancel(gang, operation, opts))

  @doc """
  Makes a group of some ranks of the gang, in group order. All members of the group `:group` (default "world") take
  part, those who will not be in the new one included.
  """
  @spec new_group(Gang.gang(), String.t(), [non_neg_integer()], keyword()) :: result(Group.t())
  def new_group(gang, name, ranks, opts \\ []),
    do: with_view(gang, &Groups.create(&1, name, ranks, opts))

  @doc "As `new_group/4`; raises the error."
  @spec new_group!(Gang.gang(), String.t(), [non_neg_integer()], keyword()) :: Group.t()
  def new_group!(gang, name, ranks, opts \\ []), do: bang(new_group(gang, name, ranks, opts))

  @doc "Ends a group. Calls that are queued on it run first. Gives the group as it was."
  @spec destroy_group(Gang.gang(), String.t(), keyword()) :: result(Group.t())
  def destroy_group(gang, name, opts \\ []), do: with_view(gang, &Groups.destroy(&1, name, opts))

  @doc "As `destroy_group/3`; raises the error."
  @spec destroy_group!(Gang.gang(), String.t(), keyword()) :: Group.t()
  def destroy_group!(gang, name, opts \\ []), do: bang(destroy_group(gang, name, opts))

  @doc "Every group of the gang, by name."
  @spec groups(Gang.gang(), keyword()) :: result([Group.t()])
  def groups(gang, opts \\ []), do: with_view(gang, &Groups.list(&1, opts))

  @doc "As `groups/2`; raises the error."
  @spec groups!(Gang.gang(), keyword()) :: [Group.t()]
  def groups!(gang, opts \\ []), do: bang(groups(gang, opts))

  @doc "The name of each rank's host, by rank."
  @spec hosts(Gang.gang(), keyword()) :: result([String.t()])
  def hosts(gang, opts \\ []), do: with_view(gang, &ManyGroups.hosts(&1, opts))

  @doc "As `hosts/2`; raises the error."
  @spec hosts!(Gang.gang(), keyword()) :: [String.t()]
  def hosts!(gang, opts \\ []), do: bang(hosts(gang, opts))

  @doc """
  One group, by its name, with the `places` of its members, as far as ranks answer. `RankBridge.Group` tells what each
  member is in it: `RankBridge.Group.next_rank(group, rank)`.
  """
  @spec group(Gang.gang(), String.t(), keyword()) :: result(Group.t())
  def group(gang, name, opts \\ []), do: with_view(gang, &ManyGroups.describe(&1, name, opts))

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
    do: with_view(gang, &ManyGroups.create(&1, groups, opts))

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
    do: with_view(gang, &ManyGroups.destroy(&1, groups, opts))

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
  def new_mesh(gang, axes, opts \\ []), do: with_view(gang, &ManyGroups.new_mesh(&1, axes, opts))

  @doc "As `new_mesh/3`; raises the error."
  @spec new_mesh!(Gang.gang(), [{Mesh.axis(), integer()}], keyword()) :: Mesh.t()
  def new_mesh!(gang, axes, opts \\ []), do: bang(new_mesh(gang, axes, opts))

  @doc """
  A mesh whose groups are there: made by another program, or again with the current generation. Arguments as of
  `new_mesh/3`. Groups that are missing are `:unknown_group`; groups that have other members, because the gang has
  become smaller, `:invalid_argument`.
  """
  @spec mesh(Gang.gang(), [{Mesh.axis(), integer()}], keyword()) :: result(Mesh.t())
  def mesh(gang, axes, opts \\ []), do: with_view(gang, &ManyGroups.mesh(&1, axes, opts))

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
    do: with_view(gang, &ManyGroups.new_layout(&1, layout, opts))

  @doc "As `new_layout/3`; raises the error."
  @spec new_layout!(Gang.gang(), Layout.t(), keyword()) :: Layout.t()
  def new_layout!(gang, layout, opts \\ []), do: bang(new_layout(gang, layout, opts))

  @doc "What each rank is doing. A rank that cannot be asked is in the list, with an `error`."
  @spec status(Gang.gang(), keyword()) :: result([RankStatus.t()])
  def status(gang, opts \\ []), do: with_view(gang, &Ranks.status(&1, opts))

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
  def form(gang, opts \\ []), do: with_view(gang, &Ranks.form(&1, opts))

  @doc "As `form/2`; raises the error."
  @spec form!(Gang.gang(), keyword()) :: Ranks.formed()
  def form!(gang, opts \\ []), do: bang(form(gang, opts))

  defp collective(gang, name, refs, opts),
    do: with_view(gang, &Collectives.run(&1, name, refs, opts))

  defp with_view(gang, fun), do: with({:ok, view} <- View.fetch(gang), do: fun.(view))

  defp bang({:ok, value}), do: value
  defp bang({:error, error}), do: raise(error)
end
