defmodule RankBridge.Collectives do
  @moduledoc """
  Collectives on the tensors of a group's members: every one is called on all members at once.

  `refs` has one ref for each member of the group, in group order, and so has what is given.

  ## Gang calls

  A collective is a gang call: one call to the group's first rank, which passes it on. With the option `calls: :ranks`, of the
  gang or of the call, it is a call to each rank at once:

      RankBridge.all_reduce(gang, refs, calls: :ranks)

  Results and errors are the same. The differences:

    * gang calls of several controllers never mismatch: the sidecar of the group's first rank puts them into one order
    * if one member refuses its part, all others fail at once with the same reason, definite
    * a gang call costs one message to the group's first rank and one back, however many members there are

  A collective of which a member's part is larger than 60,000 bytes goes to each rank. An outcome that is too large to be
  passed on is fetched from its rank. `RankBridge.submit/4`, and sends, receives and queues, are never gang calls;
  `RankBridge.Generations.ping/2` always is.
  """

  use RankBridge.Bangs

  alias RankBridge.{Entry, Gang, Ref}
  alias RankBridge.Gang.View
  alias RankBridge.Operations.Plan

  # --- of CollectiveService: written by scripts/methods.py from the proto

  @doc """
  Returns when every member has called.

  Gives `:ok`.
  """
  spec_with_bang barrier(Gang.gang(), keyword()) :: :ok

  def barrier(gang, opts \\ []) do
    Entry.call_without_value(gang, :barrier, opts, fn view -> run(view, :barrier, nil, opts) end)
  end

  @doc """
  Gives every member a tensor equal to the source's.

  `refs`: one ref of each member, in group order. At the source: what is sent. Elsewhere: a tensor of equal dtype
  and shape, which says what is expected.

  Gives each member: a ref on the result.

  Options:

    * `:src_rank_in_group` - rank in the group whose tensor is sent, 0 to the group's size - 1 (default `0`).
    * `:in_place` - true: the result takes the place of the input, under the same ref. false: it gets a new ref
      (default `false`).

  Errors of its own: `:rank_out_of_range`: there is no such source; `:mismatch`: the members' dtypes, shapes or
  sources differ.
  """
  spec_with_bang broadcast(Gang.gang(), [Ref.t()], keyword()) :: [Ref.t()]

  def broadcast(gang, refs, opts \\ []) do
    Entry.call(gang, :broadcast, opts, fn view -> run(view, :broadcast, refs, opts) end)
  end

  @doc """
  Gives the destination the members' tensors, put together in group order; the others nil.

  With `:ragged` and `:dim` 0 this is torchgfn's `gather_distributed_data`.

  `refs`: one ref of each member, in group order; equal dtype and shape on all members but for `:sizes`, one
  dimension or more.

  Gives each member: at the destination a ref on the result, or of a list a list of refs by rank in group;
  elsewhere nil.

  Options:

    * `:dst_rank_in_group` - rank in the group that receives, 0 to the group's size - 1 (default `0`).
    * `:dim` - dimension along which to concatenate; negative counts from the last. nil: -1, the last. Of a stack:
      the place of the new dimension, 0 if absent. Of a list, nothing is laid out along it.
    * `:sizes` - size of every member's tensor along `:dim`, by rank in group, each 0 or more; this rank's own is
      its tensor's. The same on all members. nil: all tensors are alike.
    * `:layout` - how the tensors are put together: `:concatenated` (one tensor, the members' side by side along
      `:dim`), `:stacked` (one with one dimension more, at place `:dim`, along which they follow one another) or
      `:list` (one for each member) (default `:concatenated`).
    * `:ragged` - true: shapes may differ, as far as the layout allows, and the members exchange them; `:sizes`
      must be empty (default `false`).

  Errors of its own: `:invalid_argument`: the tensors have no such dimension, or a member's is not of its size;
  `:rank_out_of_range`: there is no such destination; `:mismatch`: the members' dtypes, shapes, dims, sizes,
  layouts or destinations differ.
  """
  spec_with_bang gather(Gang.gang(), [Ref.t()], keyword()) :: [Ref.t() | [Ref.t()] | nil]

  def gather(gang, refs, opts \\ []) do
    Entry.call(gang, :gather, opts, fn view -> run(view, :gather, refs, opts) end)
  end

  @doc """
  Gives every member the element-wise reduction of all members' tensors.

  `refs`: one ref of each member, in group order; equal dtype and shape on all members.

  Gives each member: a ref on the result.

  Options:

    * `:op` - how elements are combined: `:sum` (of bool: or), `:product` (of bool: and), `:min`, `:max`, `:avg`
      (no integers), or of the bits of integers and bools `:band`, `:bor`, `:bxor` (default `:sum`).
    * `:in_place` - true: the result takes the place of the input, under the same ref. false: it gets a new ref
      (default `false`).

  Errors of its own: `:unsupported_dtype`: the backend has no such reduction; `:mismatch`: the members' dtypes,
  shapes or ops differ.
  """
  spec_with_bang all_reduce(Gang.gang(), [Ref.t()], keyword()) :: [Ref.t()]

  def all_reduce(gang, refs, opts \\ []) do
    Entry.call(gang, :all_reduce, opts, fn view -> run(view, :all_reduce, refs, opts) end)
  end

  @doc """
  Gives every member all members' tensors, put together in group order.

  As vLLM's `all_gather`, and with `:sizes` its `all_gatherv`, but along every dimension: vLLM knows the first
  alone. As a list and `:ragged` this is OLMo-core's `all_gather` of tensors of unequal shapes.

  `refs`: one ref of each member, in group order; equal dtype and shape on all members but for `:sizes`, one
  dimension or more.

  Gives each member: a ref on the result, or of a list a list of refs by rank in group.

  Options:

    * `:dim` - dimension along which to concatenate; negative counts from the last. nil: -1, the last. Of a stack:
      the place of the new dimension, 0 if absent. Of a list, nothing is laid out along it.
    * `:sizes` - size of every member's tensor along `:dim`, by rank in group, each 0 or more; this rank's own is
      its tensor's. The same on all members. nil: all tensors are alike.
    * `:layout` - how the tensors are put together: `:concatenated` (one tensor, the members' side by side along
      `:dim`), `:stacked` (one with one dimension more, at place `:dim`, along which they follow one another) or
      `:list` (one for each member) (default `:concatenated`).
    * `:ragged` - true: shapes may differ, as far as the layout allows, and the members exchange them; `:sizes`
      must be empty (default `false`).

  Errors of its own: `:invalid_argument`: the tensors have no such dimension, or a member's is not of its size;
  `:mismatch`: the members' dtypes, shapes, dims, sizes or layouts differ.
  """
  spec_with_bang all_gather(Gang.gang(), [Ref.t()], keyword()) :: [Ref.t()] | [[Ref.t()]]

  def all_gather(gang, refs, opts \\ []) do
    Entry.call(gang, :all_gather, opts, fn view -> run(view, :all_gather, refs, opts) end)
  end

  @doc """
  Gives the destination the element-wise reduction of all members' tensors; the others nil.

  As `torch.distributed.reduce`, but no input changes.

  `refs`: one ref of each member, in group order; equal dtype and shape on all members.

  Gives each member: at the destination a ref on the result, elsewhere nil.

  Options:

    * `:op` - how elements are combined: `:sum` (of bool: or), `:product` (of bool: and), `:min`, `:max`, `:avg`
      (no integers), or of the bits of integers and bools `:band`, `:bor`, `:bxor` (default `:sum`).
    * `:dst_rank_in_group` - rank in the group that receives, 0 to the group's size - 1 (default `0`).

  Errors of its own: `:unsupported_dtype`: the backend has no such reduction; `:rank_out_of_range`: there is no
  such destination; `:mismatch`: the members' dtypes, shapes, ops or destinations differ.
  """
  spec_with_bang reduce(Gang.gang(), [Ref.t()], keyword()) :: [Ref.t() | nil]

  def reduce(gang, refs, opts \\ []) do
    Entry.call(gang, :reduce, opts, fn view -> run(view, :reduce, refs, opts) end)
  end

  @doc """
  Gives every member its part of the source's tensor, divided in group order.

  The parts are those of `torch.chunk`, as `torch.distributed.scatter` gives them: of [8, 3] and four members, [2,
  3] along dimension 0. With `:sizes` they are those of `torch.split`, as MPI's `Scatterv` gives them.

  `refs`: one ref of each member, in group order. At the source: the whole, whose size along `:dim` is a multiple
  of the group's size, or the sum of `:sizes`. Elsewhere: a tensor of the part's dtype and shape, which says what
  is expected. They stay as they are.

  Gives each member: a ref on this rank's part.

  Options:

    * `:src_rank_in_group` - rank in the group whose tensor is divided, 0 to the group's size - 1 (default `0`).
    * `:dim` - dimension along which to divide; negative counts from the last. 0: the first (default `0`).
    * `:sizes` - size of every member's part along `:dim`, by rank in group, each 0 or more; their sum is the size
      of the source's tensor along `:dim`. The same on all members. nil: equal parts.

  Errors of its own: `:invalid_argument`: the source's tensor cannot be divided equally along `:dim`, or not into
  `:sizes`, or a member's is not of its size; `:rank_out_of_range`: there is no such source; `:mismatch`: a member
  expects a part of another dtype or shape, or the dims, sources or sizes differ.
  """
  spec_with_bang scatter(Gang.gang(), [Ref.t()], keyword()) :: [Ref.t()]

  def scatter(gang, refs, opts \\ []) do
    Entry.call(gang, :scatter, opts, fn view -> run(view, :scatter, refs, opts) end)
  end

  @doc """
  Gives every member its part of the element-wise reduction of all members' tensors, divided in group order.

  As vLLM's `reduce_scatter`, and with `:sizes` its `reduce_scatterv`: of [4, 8] on each of four members, [4, 2]
  along the last dimension. From the third dimension on vLLM divides in the wrong order; this does not.

  `refs`: one ref of each member, in group order; equal dtype and shape on all members, one dimension or more.

  Gives each member: a ref on this rank's part.

  Options:

    * `:op` - how elements are combined: `:sum` (of bool: or), `:product` (of bool: and), `:min`, `:max`, `:avg`
      (no integers), or of the bits of integers and bools `:band`, `:bor`, `:bxor` (default `:sum`).
    * `:dim` - dimension along which to divide; negative counts from the last. nil: -1, the last (default `-1`).
    * `:sizes` - size of every member's part along `:dim`, by rank in group, each 0 or more; their sum is the
      tensor's size along `:dim`. The same on all members. nil: equal parts.

  Errors of its own: `:invalid_argument`: the tensors cannot be divided equally along `:dim`, or not into
  `:sizes`; `:unsupported_dtype`: the backend has no such reduction; `:mismatch`: the members' dtypes, shapes,
  ops, dims or sizes differ.
  """
  spec_with_bang reduce_scatter(Gang.gang(), [Ref.t()], keyword()) :: [Ref.t()]

  def reduce_scatter(gang, refs, opts \\ []) do
    Entry.call(gang, :reduce_scatter, opts, fn view -> run(view, :reduce_scatter, refs, opts) end)
  end

  @doc """
  Gives every member its parts of all members' tensors, concatenated in group order.

  As `torch.distributed.all_to_all_single`, but along any dimension: what each member gets is what it is sent
  first by the first member, then by the second, and so on.

  `refs`: one ref of each member, in group order, one dimension or more; equal dtype on all members, and equal
  shape but for the sizes.

  Gives each member: a ref on what this rank got.

  Options:

    * `:dim` - dimension along which to divide and to concatenate; negative counts from the last. 0: the first
      (default `0`).
    * `:sizes` - a row for each member, in group order: size along `:dim` of what this rank sends to each member,
      by rank in group, each 0 or more; they add up to the tensor's. nil: equal parts, of tensors that are all
      alike.

  Errors of its own: `:invalid_argument`: a member's tensor cannot be divided so; `:mismatch`: the members'
  dtypes, shapes or dims differ, or one expects another size than the other sends: every member gets both sides,
  and nothing has moved.
  """
  spec_with_bang all_to_all(Gang.gang(), [Ref.t()], keyword()) :: [Ref.t()]

  def all_to_all(gang, refs, opts \\ []) do
    Entry.call(gang, :all_to_all, opts, fn view -> run(view, :all_to_all, refs, opts) end)
  end

  @doc """
  Gives member m the element-wise reduction of the tensors of members 0 to m.

  As MPI's `Scan`, and exclusive its `Exscan`. Not every backend has it.

  `refs`: one ref of each member, in group order; equal dtype and shape on all members.

  Gives each member: a ref on the result.

  Options:

    * `:op` - how elements are combined: any reduce op of AllReduce except `:avg` (default `:sum`).
    * `:exclusive` - true: of members 0 to m - 1, for member 0 zeros; of sums only. false: of members 0 to m
      (default `false`).

  Errors of its own: `:unsupported_operation`: the backend has no scan; `:unsupported_dtype`: it has no such scan;
  `:invalid_argument`: an average, or an exclusive scan of anything but sums; `:mismatch`: the members' dtypes,
  shapes or ops differ.
  """
  spec_with_bang scan(Gang.gang(), [Ref.t()], keyword()) :: [Ref.t()]

  def scan(gang, refs, opts \\ []) do
    Entry.call(gang, :scan, opts, fn view -> run(view, :scan, refs, opts) end)
  end

  # --- end of CollectiveService

  @doc "On the view of a gang: runs an operation on all members of a group at once. `input` is what they bring, nil: nothing."
  @spec run(View.t(), atom(), term(), keyword()) ::
          {:ok, term()} | {:error, RankBridge.Error.t()}
  def run(view, name, input, opts) do
    with {:ok, plan} <- Plan.of_gang(view, name, input, opts), do: Plan.perform(view, plan)
  end
end
