defmodule RankBridge.Meshes do
  @moduledoc """
  Meshes and role layouts: many groups, made as one. `RankBridge.Mesh` and `RankBridge.Layout` describe them.
  """

  use RankBridge.Facade

  alias RankBridge.{Gang, Layout, ManyGroups, Mesh}

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
  defcall new_mesh(
            gang :: Gang.gang(),
            axes :: [{Mesh.axis(), integer()}],
            opts :: keyword() \\ []
          ) :: Mesh.t(),
          do: ManyGroups.new_mesh(view, axes, opts)

  @doc """
  A mesh whose groups exist: another program made them, or the current generation made them again. Arguments as of
  `new_mesh/3`. Groups that are missing are `:unknown_group`; groups that have other members, because the gang has
  become smaller, `:invalid_argument`.
  """
  defcall mesh(
            gang :: Gang.gang(),
            axes :: [{Mesh.axis(), integer()}],
            opts :: keyword() \\ []
          ) :: Mesh.t(),
          do: ManyGroups.mesh(view, axes, opts)

  @doc """
  Makes the groups of a role layout, as `new_groups/3`.

      {:ok, hosts} = RankBridge.Generations.hosts(gang)
      {:ok, layout} = RankBridge.Layout.by_host(hosts, buffers: 2)
      {:ok, layout} = RankBridge.Meshes.new_layout(gang, layout)
  """
  defcall new_layout(gang :: Gang.gang(), layout :: Layout.t(), opts :: keyword() \\ []) ::
            Layout.t(),
          do: ManyGroups.new_layout(view, layout, opts)
end
