defmodule RankBridge.CoordinatorNames do
  @moduledoc """
  Operations by the names that they have on vLLM's `GroupCoordinator`, with its arguments and defaults.

  Where vLLM has none on CPU, these do what it does on CUDA; dimensions are right everywhere.
  """

  use RankBridge.Facade

  alias RankBridge.{Coalesced, Collectives, Gang, Group, Groups, Options, Ref}
  alias RankBridge.Gang.View

  @doc """
  Gives every member the members' tensors, concatenated in group order: vLLM's `all_gatherv`, along any dimension.

  `refs` has one for each member; or it is a list of such lists, which go as one operation and give such a list. Options:
  `:dim` (default 0, the first), `:sizes` (of each member's tensor along it; default: all are alike), and those of
  collectives.
  """
  defcall all_gatherv(
            gang :: Gang.gang(),
            refs :: [Ref.t()] | [[Ref.t()]],
            opts :: keyword() \\ []
          ) :: [Ref.t()] | [[Ref.t()]] do
    opts = Options.put_new(opts, :dim, 0)

    case refs do
      [list | _others] when is_list(list) ->
        {own, common} = Options.split(opts, [:dim, :sizes])
        Coalesced.coalesce(gang, for(list <- refs, do: {:all_gather, list, own}), common)

      refs ->
        Collectives.all_gather(gang, refs, opts)
    end
  end

  @doc """
  Gives every member its part of the sum of all members' tensors: vLLM's `reduce_scatterv`.

  Options: `:dim` (default -1, the last), `:sizes` (of each member's part along it; default: equal parts), and those of
  collectives.
  """
  defcall reduce_scatterv(gang :: Gang.gang(), refs :: [Ref.t()], opts :: keyword() \\ []) ::
            [Ref.t()],
          do: Collectives.reduce_scatter(gang, refs, opts)

  @doc "`RankBridge.all_reduce/3` as a sum. vLLM's of this name gives its argument; this gives new refs."
  defcall _all_reduce_out_place(gang :: Gang.gang(), refs :: [Ref.t()], opts :: keyword() \\ []) ::
            [Ref.t()],
          do: Collectives.all_reduce(gang, refs, opts)

  @doc "`RankBridge.all_gather/3` along `dim`."
  defcall _all_gather_out_place(
            gang :: Gang.gang(),
            refs :: [Ref.t()],
            dim :: integer(),
            opts :: keyword() \\ []
          ) :: [Ref.t()],
          do: Collectives.all_gather(gang, refs, Options.put(opts, :dim, dim))

  @doc "`RankBridge.reduce_scatter/3` along `dim`."
  defcall _reduce_scatter_out_place(
            gang :: Gang.gang(),
            refs :: [Ref.t()],
            dim :: integer(),
            opts :: keyword() \\ []
          ) :: [Ref.t()],
          do: Collectives.reduce_scatter(gang, refs, Options.put(opts, :dim, dim))

  @doc "`RankBridge.destroy_group/3`, of a group or its name."
  defcall destroy(
            gang :: Gang.gang(),
            group :: Group.t() | String.t(),
            opts :: keyword() \\ []
          ) :: Group.t(),
          do: View.with_view(gang, &Groups.destroy(&1, Group.name(group), opts))
end
