defmodule RankBridge.Collectives do
  @moduledoc """
  Collectives on the tensors of a group's members: every one is called on all members at once.

  `refs` has one ref for each member of the group, in group order, and so has what is given.
  """

  use RankBridge.Facade

  alias RankBridge.{Gang, Ref}
  alias RankBridge.Gang.View
  alias RankBridge.Operations.Plan

  @doc "Returns when every member of the group has called. Gives nil."
  defcall barrier(gang :: Gang.gang(), opts :: keyword() \\ []) :: nil,
    do: run(view, :barrier, nil, opts)

  @doc """
  Gives every member a tensor equal to the source's. All tensors must have its dtype and shape.

  Options: `:src_rank_in_group` (default 0), `:in_place` (default false: the results get new refs).
  """
  defcall broadcast(gang :: Gang.gang(), refs :: [Ref.t()], opts :: keyword() \\ []) :: [Ref.t()],
    do: run(view, :broadcast, refs, opts)

  @doc """
  Gives every member its part of the source's tensor, divided equally in group order: of `[8, 3]` and four members,
  `[2, 3]` along dimension 0, as `torch.distributed.scatter` of chunks.

  The source's ref is the whole; the others' are of the part's dtype and shape, and say what is expected. They stay
  as they are. A whole that cannot be divided equally is an `:invalid_argument`, another part than a member expects a
  `:mismatch`.

  Options: `:src_rank_in_group` (default 0), `:dim` (default 0, the first).
  """
  defcall scatter(gang :: Gang.gang(), refs :: [Ref.t()], opts :: keyword() \\ []) :: [Ref.t()],
    do: run(view, :scatter, refs, opts)

  @doc """
  Gives the destination the members' tensors, concatenated in group order; nil stands for the others.

  Options: `:dst_rank_in_group` (default 0) and

    * `:layout` - `:concatenated` (the default): one tensor, the members' side by side along `:dim`; `:stacked`: one with
      one dimension more, along which they follow one another at place `:dim`; `:list`: a list of a ref for each member
    * `:dim` - default: the last, of a stack the first
    * `:sizes` - for tensors that differ along `:dim`: the size of each member's there, in group order; default: all are
      alike
    * `:ragged` - true: the members tell each other their shapes, which may differ as far as the layout allows
  """
  defcall gather(gang :: Gang.gang(), refs :: [Ref.t()], opts :: keyword() \\ []) :: [
            Ref.t() | [Ref.t()] | nil
          ],
          do: run(view, :gather, refs, opts)

  @doc """
  Gives every member the element-wise reduction of all members' tensors.

  Options: `:op` (`:sum`, `:product`, `:min`, `:max`, `:avg`, and of integers and bools the bits' `:band`, `:bor`,
  `:bxor`; default `:sum`), `:in_place` (default false).
  """
  defcall all_reduce(gang :: Gang.gang(), refs :: [Ref.t()], opts :: keyword() \\ []) :: [Ref.t()],
    do: run(view, :all_reduce, refs, opts)

  @doc """
  Gives the destination the element-wise reduction of all members' tensors; nil stands for the others. No input
  changes, unlike with `torch.distributed.reduce`.

  Options: `:op` (as of `all_reduce/3`; default `:sum`), `:dst_rank_in_group` (default 0).
  """
  defcall reduce(gang :: Gang.gang(), refs :: [Ref.t()], opts :: keyword() \\ []) :: [
            Ref.t() | nil
          ],
          do: run(view, :reduce, refs, opts)

  @doc """
  Gives every member its part of the element-wise reduction of all members' tensors, divided in group order: of
  `[4, 8]` on each of four members, `[4, 2]` along the last dimension. As vLLM's `reduce_scatter`, and with `:sizes` its
  `reduce_scatterv`, but right along every dimension.

  Options: `:op` (as of `all_reduce/3`; default `:sum`), `:dim` (default -1, the last), `:sizes` (of each member's part
  along `:dim`, in group order; default: equal parts). Tensors that cannot be divided so are an `:invalid_argument`,
  members that differ in anything a `:mismatch`.
  """
  defcall reduce_scatter(gang :: Gang.gang(), refs :: [Ref.t()], opts :: keyword() \\ []) :: [
            Ref.t()
          ],
          do: run(view, :reduce_scatter, refs, opts)

  @doc """
  Gives every member the members' tensors, concatenated in group order.

  As vLLM's `all_gather`, and with `:sizes` its `all_gatherv`, but along every dimension: that knows the first alone.

  Options: `:layout`, `:dim`, `:sizes`, `:ragged`, as of `gather/3`.
  """
  defcall all_gather(gang :: Gang.gang(), refs :: [Ref.t()], opts :: keyword() \\ []) ::
            [Ref.t()] | [[Ref.t()]],
          do: run(view, :all_gather, refs, opts)

  @doc """
  Gives every member its parts of all members' tensors, concatenated in group order, as
  `torch.distributed.all_to_all_single`, but along any dimension.

  Options: `:dim` (default 0, the first), `:sizes` (a row for each member, in group order, with the size along `:dim` of
  what it sends to each; default: equal parts). `call_rank/5` and `submit_rank/5` take `:input_sizes` and
  `:output_sizes` instead, what goes to and what comes from each member. Tensors that cannot be divided so are an
  `:invalid_argument`; if one member expects something else than another sends, that is a `:mismatch` on all of them,
  which names both, and nothing has moved.
  """
  defcall all_to_all(gang :: Gang.gang(), refs :: [Ref.t()], opts :: keyword() \\ []) :: [Ref.t()],
    do: run(view, :all_to_all, refs, opts)

  @doc """
  Gives member m the element-wise reduction of the tensors of members 0 to m, as `MPI_Scan`; with `:exclusive` those of
  members 0 to m - 1, and member 0 zeros, as `MPI_Exscan`. A backend without it answers `:unsupported_operation`.

  Options: `:op` (as of `all_reduce/3`, but not `:avg`; default `:sum`), `:exclusive` (of sums only; default false).
  """
  defcall scan(gang :: Gang.gang(), refs :: [Ref.t()], opts :: keyword() \\ []) :: [Ref.t()],
    do: run(view, :scan, refs, opts)

  @doc "On the view of a gang: runs an operation on all members of a group at once. `input` is what they bring, nil: nothing."
  @spec run(View.t(), atom(), term(), keyword()) ::
          {:ok, term()} | {:error, RankBridge.Error.t()}
  def run(view, name, input, opts) do
    with {:ok, plan} <- Plan.of_gang(view, name, input, opts), do: Plan.perform(view, plan)
  end
end
