defmodule RankBridge.Test.Recorded do
  @moduledoc """
  What other systems were recorded to tell about ranks, groups, meshes and layouts: `tests/conformance/data`. And the
  bridge's answers in the words of those systems.
  """

  alias RankBridge.{Group, Layout, Mesh, Place}
  alias RankBridge.Test.JSON

  @folder Path.expand("../../../../tests/conformance/data", __DIR__)
  @dp [dp: [:dp_replicate, :dp_shard]]

  @type json :: RankBridge.JSON.t()

  @doc "The cases of a suite whose names begin with one of these. There must be some."
  @spec cases(String.t(), [String.t()]) :: [json(), ...]
  def cases(suite, names) do
    %{"cases" => all} = @folder |> Path.join("#{suite}.json") |> File.read!() |> JSON.decode!()
    [_first | _others] = Enum.filter(all, &String.starts_with?(name(&1), names))
  end

  @doc "So many of the cases, or all if they are no more; which, ExUnit's seed decides."
  @spec some(String.t(), [String.t()], pos_integer()) :: [json(), ...]
  def some(suite, names, count), do: suite |> cases(names) |> Enum.take_random(count)

  @doc "Its name."
  @spec name(json()) :: String.t()
  def name(case), do: case["id"] || case["case"]

  @doc "What each rank of a case answered, by rank."
  @spec answers(json()) :: [{non_neg_integer(), json()}]
  def answers(case) do
    for {%{"ok" => answer}, rank} <- Enum.with_index(case["per_rank"]), do: {rank, answer}
  end

  @doc "Whether every rank of a case refused it."
  @spec refused?(json()) :: boolean()
  def refused?(case), do: Enum.all?(case["per_rank"], &is_map_key(&1, "error"))

  @doc "What each rank of a vLLM case answered, in the newest version that was recorded."
  @spec vllm_ranks(json()) :: [{non_neg_integer(), json()}]
  def vllm_ranks(%{"results" => results}) do
    newest = results["*"] || results[results |> Map.keys() |> Enum.max()]
    for {answer, rank} <- Enum.with_index(newest["ranks"]), do: {rank, answer}
  end

  @doc "A member of a group as the properties of vLLM's `GroupCoordinator`."
  @spec vllm_member(Group.t(), non_neg_integer()) :: json()
  def vllm_member(group, rank) do
    %{
      "rank" => rank,
      "ranks" => group.ranks,
      "world_size" => Group.world_size(group),
      "local_rank" => Group.local_rank(group, rank),
      "rank_in_group" => Group.rank_in_group(group, rank),
      "first_rank" => Group.first_rank(group),
      "last_rank" => Group.last_rank(group),
      "is_first_rank" => Group.first_rank?(group, rank),
      "is_last_rank" => Group.last_rank?(group, rank),
      "next_rank" => Group.next_rank(group, rank),
      "prev_rank" => Group.prev_rank(group, rank)
    }
  end

  @doc "How many hosts a group is on, and which members share the first one's."
  @spec vllm_nodes(Group.t()) :: json()
  def vllm_nodes(group) do
    [{_host, first} | _others] = hosts = Group.by_host(group)
    %{"node_count" => length(hosts), "same_node" => Enum.map(group.ranks, &(&1 in first))}
  end

  @doc "The axes of optimus-dl's parallel mesh, and what is flattened."
  @spec optimus_axes(json()) :: {[{atom(), integer()}], keyword()}
  def optimus_axes(inputs) do
    tp = inputs["tp_size"]
    shards = inputs["sharding_world_size"] || max(1, div(inputs["local_world_size"], tp))
    {[dp_replicate: -1, dp_shard: shards, tp: tp], @dp}
  end

  @doc "The axes of optimus-dl's physical mesh."
  @spec optimus_hosts(json()) :: [{atom(), integer()}]
  def optimus_hosts(inputs), do: [nodes: -1, local_ranks: inputs["local_world_size"]]

  @doc "Where ranks run, equally many on each host."
  @spec places(pos_integer(), pos_integer()) :: [Place.t()]
  def places(world, local) do
    for rank <- 0..(world - 1),
        do: %Place{host: "host#{div(rank, local)}", local_rank: rem(rank, local)}
  end

  @doc "A rank of a mesh with the axis `:local` as the properties of optimus-dl's `MeshCollective`."
  @spec optimus_rank(Mesh.t(), Mesh.t(), non_neg_integer()) :: json()
  def optimus_rank(mesh, physical, rank) do
    line = &Mesh.line(mesh, &1, rank)
    [replicate, shard, _tp] = mesh.sizes

    groups =
      for part <- [mesh, physical],
          axis <- part.axes,
          into: %{},
          do: {"#{axis}", Mesh.group(part, axis, rank).ranks}

    Map.merge(part(mesh, rank, mesh.ranks), %{
      "local_rank" => mesh |> Mesh.group(:dp, rank) |> Group.local_rank(rank),
      "mesh_shape" => mesh.sizes,
      "mesh_names" => Enum.map(mesh.axes, &to_string/1),
      "mesh" => nested(mesh.ranks, mesh.sizes),
      "coord" => Keyword.values(Mesh.coordinates(mesh, rank)),
      "phys_shape" => physical.sizes,
      "phys_coord" => Keyword.values(Mesh.coordinates(physical, rank)),
      "groups" => groups,
      "dp_mesh_shape" => [replicate, shard],
      "dp_mesh" => nested(line.(:dp), [replicate, shard]),
      "tp_mesh" => line.(:tp),
      "local" => part(mesh, rank, line.(:local)),
      "local_local" => part(mesh, rank, line.(:local)),
      "tp_world" => part(mesh, rank, line.(:tp)),
      "local_tp_world" => part(mesh, rank, Mesh.line(mesh, :tp, rank, within: :local))
    })
  end

  # A rank in a part of a mesh.
  defp part(mesh, rank, ranks) do
    inside = fn axis -> mesh |> Mesh.line(axis, rank) |> Enum.filter(&(&1 in ranks)) end
    place = fn line -> Enum.find_index(line, &(&1 == rank)) end

    %{
      "rank" => place.(ranks),
      "pg_rank" => place.(ranks),
      "world_size" => length(ranks),
      "pg_size" => length(ranks),
      "ranks" => ranks,
      "local_rank" => place.(inside.(:local)),
      "dp_rank" => place.(inside.(:dp)),
      "dp_world_size" => length(inside.(:dp)),
      "tp_rank" => place.(inside.(:tp)),
      "tp_world_size" => length(inside.(:tp)),
      "is_master" => hd(ranks) == rank,
      "is_local_master" => hd(inside.(:local)) == rank
    }
  end

  defp nested(ranks, [_last]), do: ranks

  defp nested(ranks, [_outer | inner]),
    do: for(part <- Enum.chunk_every(ranks, Enum.product(inner)), do: nested(part, inner))

  @doc "What OLMo-core's `get_mesh_coordinates` tells on a rank, of the mesh and of its one-axis sub-meshes."
  @spec olmo_coordinates(Mesh.t(), non_neg_integer()) :: json()
  def olmo_coordinates(mesh, rank) do
    values = fn rank -> for {_axis, value} <- Mesh.coordinates(mesh, rank), do: value end

    sub =
      for axis <- mesh.axes, into: %{} do
        line = Mesh.line(mesh, axis, rank)

        {axis,
         %{
           "mine" => [Mesh.rank_in_group(mesh, axis, rank)],
           "ranks" => line,
           "rank0" => if(0 in line, do: [Mesh.rank_in_group(mesh, axis, 0)])
         }}
      end

    %{
      "mine" => values.(rank),
      "all" => Enum.map(mesh.ranks, values),
      "outside" => if(Mesh.member?(mesh, Mesh.world_size(mesh)), do: "inside"),
      "sub" => sub
    }
  end

  @doc "The layout that a version of torchgfn, \"seed\" or \"head\", was asked for."
  @spec gfn_plan(String.t(), json()) :: {:ok, Layout.t()} | {:error, RankBridge.Error.t()}
  def gfn_plan(version, %{"inputs" => inputs, "world" => world}) do
    opts = [
      buffers: inputs["num_remote_buffers"],
      agent_groups: inputs["num_agent_groups"],
      coordinators: if(inputs["use_coordinator"], do: 1, else: 0)
    ]

    if version == "seed",
      do: Layout.in_blocks(world, opts),
      else: Layout.by_host(List.duplicate("one", world), opts)
  end

  @doc """
  What torchgfn told on a rank, but for the differences that `docs/conformance.md` lists: ranks that do not train have
  no agent group, a coordinator is not a buffer without trainers, and a gang of one has groups.
  """
  @spec gfn_recorded(json(), Layout.t(), non_neg_integer()) :: json()
  def gfn_recorded(recorded, layout, rank) do
    alone? = %{"groups_torch" => %{"agent" => [[0]], "train" => [0], "buffer" => nil}}
    recorded = if layout.size == 1, do: Map.merge(recorded, alone?), else: recorded

    case Layout.role(layout, rank) do
      :trainer when layout.size == 1 ->
        Map.put(recorded, "agent_group_id", 0)

      :trainer ->
        recorded

      :buffer ->
        Map.put(recorded, "agent_group_id", nil)

      :coordinator ->
        Map.merge(recorded, %{"agent_group_id" => nil, "assigned_training_ranks" => nil})
    end
  end

  @doc "A rank of a layout as torchgfn's `DistributedContext`, with what of `recorded` the version told."
  @spec gfn_rank(Layout.t(), non_neg_integer()) :: json()
  def gfn_rank(layout, rank) do
    role = Layout.role(layout, rank)
    served = Layout.trainers_of(layout, rank)

    %{
      "my_rank" => rank,
      "world_size" => layout.size,
      "num_training_ranks" => length(layout.trainers),
      "agent_group_size" => length(hd(layout.agent_groups)),
      "agent_group_id" => Layout.agent_group_of(layout, rank),
      "assigned_buffer" => Layout.buffer_of(layout, rank),
      "assigned_training_ranks" => if(served != [], do: served),
      "is_buffer_rank" => role == :buffer,
      "is_training_rank" => role == :trainer,
      "is_coordinator_rank" => role == :coordinator,
      "coordinator_rank" => List.first(layout.coordinators),
      "buffer_rank_set" => Enum.sort(layout.buffers),
      "training_ranks" => layout.trainers
    }
  end

  @doc "The groups of a layout as torchgfn's process groups are told on a rank; `seen` gives the ranks of a group."
  @spec gfn_groups(Layout.t(), (Group.t() -> json())) :: json()
  def gfn_groups(layout, seen) do
    numbers = 0..(length(layout.agent_groups) - 1)
    buffer = Layout.buffer_group(layout)

    %{
      "agent" => Enum.map(numbers, &seen.(Layout.agent_group(layout, &1))),
      "train" => seen.(Layout.train_group(layout)),
      "buffer" => buffer && seen.(buffer)
    }
  end
end
