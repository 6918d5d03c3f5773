defmodule RankBridge.MeshCollectiveNames do
  @moduledoc """
  Operations by the names that they have on optimus-dl's `MeshCollective`. Its `is_master` and `is_local_master` are
  `RankBridge.Group.master?/2` and `RankBridge.Group.local_master?/2`, its `default_device` is
  `RankBridge.Compat.default_device/3`, and the stacked and concatenated forms of its gathers are the `:layout` of
  `RankBridge.all_gather/3`.
  """

  use RankBridge.Bangs

  alias RankBridge.{Collectives, Entry, Gang, Objects, Options, Ref, Value}

  @doc """
  Gives every member a list with a ref for each member's tensor: `RankBridge.all_gather/3` with `layout: :list`. Options:
  `:ragged`, and those of collectives.
  """
  spec_with_bang all_gather_to_list(Gang.gang(), [Ref.t()], keyword()) :: [[Ref.t()]]

  def all_gather_to_list(gang, refs, opts \\ []) do
    Entry.call(gang, :all_gather_to_list, opts, fn view ->
      Collectives.run(view, :all_gather, refs, Options.put(opts, :layout, :list))
    end)
  end

  @doc "Gives every member the list of all members' objects: `RankBridge.all_gather_object/3`."
  spec_with_bang all_gather_objects(Gang.gang(), [Value.t()], keyword()) :: [[Value.t()]]

  def all_gather_objects(gang, objects, opts \\ []) do
    Entry.call(gang, :all_gather_objects, opts, fn view ->
      Collectives.run(view, :all_gather_object, objects, opts)
    end)
  end

  @doc """
  Gives every member the list of objects of the member at `source`, its rank in the group:
  `RankBridge.Objects.broadcast_object_list/3`.
  """
  spec_with_bang broadcast_objects(Gang.gang(), [Value.t()], non_neg_integer(), keyword()) :: [
                   [Value.t()]
                 ]

  def broadcast_objects(gang, objects, source, opts \\ []) do
    Entry.call(gang, :broadcast_objects, opts, fn view ->
      Objects.broadcast_list(
        view,
        objects,
        Options.put(opts, :src_rank_in_group, source)
      )
    end)
  end
end
