defmodule RankBridge.Meshes do
  @moduledoc """
  Meshes and role layouts: many groups, made as one. `RankBridge.Mesh` and `RankBridge.Layout` describe them.
  """

  use RankBridge.Bangs

  alias RankBridge.{Entry, Gang, Layout, ManyGroups, Mesh}

  @doc """
  Lays ranks out along named axes, outermost first, and makes a group for each line of each axis, as `new_groups/3`.

      {:ok, mesh} = RankBridge.Meshes.new_mesh(gang, [dp: -1, tp: 2])
      RankBridge.all_reduce(gang, refs, group: RankBridge.Mesh.group(mesh, :tp, 3))

  The size of one axis may be -1: what the others leave. Options:

    * `:ranks` - the ranks in row-major order; default: all of the gang
    * `:name` - what the names of the groups begin with; "mesh"
    * `:flattened` - the axes that each flattened axis stands for, as `[dp: [:dp_replicate, :dp_shard]]`
    * `:local` - true: the mesh has the axis `:local`, of the ranks on one host
    * `:timeout` - for each group, in milliseconds
  """
  spec_with_bang new_mesh(Gang.gang(), [{Mesh.axis(), integer()}], keyword()) :: Mesh.t()

  def new_mesh(gang, axes, opts \\ []) do
    Entry.call(gang, :new_mesh, opts, fn view -> ManyGroups.new_mesh(view, axes, opts) end)
  end

  @doc """
  A mesh whose groups exist: another program made them, or the current generation made them again. Arguments as of
  `new_mesh/3`. Groups that are missing are `:unknown_group`; groups that have other members, because the gang has
  become smaller, `:invalid_argument`.
  """
  spec_with_bang mesh(Gang.gang(), [{Mesh.axis(), integer()}], keyword()) :: Mesh.t()

  def mesh(gang, axes, opts \\ []) do
    Entry.call(gang, :mesh, opts, fn view -> ManyGroups.mesh(view, axes, opts) end)
  end

  @doc """
  Makes the groups of a role layout, as `new_groups/3`.

      {:ok, hosts} = RankBridge.Generations.hosts(gang)
      {:ok, layout} = RankBridge.Layout.by_host(hosts, buffers: 2)
      {:ok, layout} = RankBridge.Meshes.new_layout(gang, layout)
  """
  spec_with_bang new_layout(Gang.gang(), Layout.t(), keyword()) :: Layout.t()

  def new_layout(gang, layout, opts \\ []) do
    Entry.call(gang, :new_layout, opts, fn view -> ManyGroups.new_layout(view, layout, opts) end)
  end
end
