defmodule RankBridge.MeshCollectiveNames do
  @moduledoc """
  Operations by the names that they have on optimus-dl's `MeshCollective`. Its `is_master` and `is_local_master` are
  `RankBridge.Group.master?/2` and `RankBridge.Group.local_master?/2`, its `default_device` is
  `RankBridge.Compat.default_device/3`, and the stacked and concatenated forms of its gathers are the `:layout` of
  `RankBridge.all_gather/3`.
  """

  use RankBridge.Facade

  alias RankBridge.{Collectives, Gang, Objects, Options, Ref, Value}

  @doc """
  Gives every member a list with a ref for each member's tensor: `RankBridge.all_gather/3` with `layout: :list`. Options:
  `:ragged`, and those of collectives.
  """
  defcall all_gather_to_list(gang :: Gang.gang(), refs :: [Ref.t()], opts :: keyword() \\ []) ::
            [[Ref.t()]],
          do: Collectives.run(view, :all_gather, refs, Options.put(opts, :layout, :list))

  @doc "Gives every member the list of all members' objects: `RankBridge.all_gather_object/3`."
  defcall all_gather_objects(gang :: Gang.gang(), objects :: [Value.t()], opts :: keyword() \\ []) ::
            [[Value.t()]],
          do: Collectives.run(view, :all_gather_object, objects, opts)

  @doc """
  Gives every member the list of objects of the member at `source`, its rank in the group:
  `RankBridge.Objects.broadcast_object_list/3`.
  """
  defcall broadcast_objects(
            gang :: Gang.gang(),
            objects :: [Value.t()],
            source :: non_neg_integer(),
            opts :: keyword() \\ []
          ) :: [[Value.t()]],
          do:
            Objects.broadcast_list(
              view,
              objects,
              Options.put(opts, :src_rank_in_group, source)
            )
end
