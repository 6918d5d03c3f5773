defmodule RankBridge.Conformance.OnGangsTest do
  @moduledoc "The recorded cases whose groups are made, on real gangs of their size on the fake backend."

  use ExUnit.Case, async: true

  alias RankBridge.{Error, Gang, Group, Layout, Mesh, Tensor}
  alias RankBridge.Test.{LiveRanks, Recorded}

  @moduletag timeout: 300_000

  setup_all do
    ranks =
      for world <- [1, 2, 3, 4, 8], into: %{} do
        ranks = LiveRanks.start(world, "fake")
        on_exit(fn -> LiveRanks.stop(ranks) end)
        {world, ranks}
      end

    %{ranks: ranks}
  end

  setup %{ranks: ranks} do
    gangs =
      for {world, ranks} <- ranks, into: %{} do
        gang = {Gang, endpoints_file: ranks.file, timeout: 60_000}
        {world, start_supervised!(gang, id: world)}
      end

    %{gangs: gangs}
  end

  defp name, do: "case-#{System.unique_integer([:positive])}"

  # Each rank knows its own groups and its place in them, and data goes round in each.
  defp assert_groups_work(gang, groups) do
    for status <- RankBridge.status!(gang) do
      own = own_groups(status)

      for group <- groups do
        case own[group.name] do
          nil ->
            refute Group.member?(group, status.rank)

          described ->
            assert described.ranks == group.ranks
            assert described.rank_in_group == Group.rank_in_group(group, status.rank)
        end
      end
    end

    for group <- groups do
      refs = RankBridge.put!(gang, Enum.map(group.ranks, &[&1]), group: group)
      joined = RankBridge.all_gather!(gang, refs, group: group)
      values = gang |> RankBridge.get!(joined) |> Enum.map(&Tensor.to_list/1)
      assert values == List.duplicate(group.ranks, length(group.ranks))
      RankBridge.release!(gang, refs ++ joined)
    end
  end

  defp own_groups(status) do
    for group <- status.groups, group.rank_in_group != nil, into: %{}, do: {group.name, group}
  end

  test "members of vLLM's groups", %{gangs: gangs} do
    for %{"world" => world} = case <-
          Recorded.cases("vllm", ["props/", "nodes/", "ctor/overlapping_lists"]),
        %{"as" => as, "group_ranks" => lists} <- case["groups"] do
      gang = gangs[world]
      name = name()
      wanted = for {ranks, number} <- Enum.with_index(lists), do: {"#{name}/#{number}", ranks}

      groups =
        for group <- RankBridge.Grouping.new_groups!(gang, wanted),
            do: RankBridge.Grouping.group!(gang, group.name)

      assert_groups_work(gang, groups)

      for {rank, answer} <- Recorded.vllm_ranks(case) do
        group = groups |> Enum.filter(&Group.member?(&1, rank)) |> List.last()
        ours = Recorded.vllm_member(group, rank)
        assert Map.take(answer["ctor"][as]["ok"], Map.keys(ours)) == ours
      end

      assert length(RankBridge.Grouping.destroy_groups!(gang, groups)) == length(groups)
    end
  end

  test "hosts of vLLM's groups", %{gangs: gangs} do
    for case <- Recorded.cases("vllm", ["nodes/"]),
        {_rank, answer} <- Recorded.vllm_ranks(case) do
      world = RankBridge.Grouping.group!(gangs[case["world"]], "world")
      assert answer["steps"] == [%{"ok" => Recorded.vllm_nodes(world)}]
    end
  end

  test "groups that cannot be", %{gangs: gangs} do
    for {id, reason} <- [
          {"ctor/duplicate_rank", :invalid_argument},
          {"ctor/rank_out_of_range", :rank_out_of_range}
        ],
        case <- Recorded.cases("vllm", [id]) do
      gang = gangs[case["world"]]
      [%{"group_ranks" => [ranks]}] = case["groups"]

      for result <- [
            RankBridge.Grouping.new_groups(gang, [{name(), ranks}]),
            RankBridge.new_group(gang, name(), ranks)
          ],
          do: assert({:error, %Error{reason: ^reason, indefinite: false}} = result)
    end
  end

  test "optimus-dl's meshes", %{gangs: gangs} do
    for %{"inputs" => inputs, "world" => world} = case <-
          Recorded.some("optimus_mesh", ["mesh_table"], 13) do
      gang = gangs[world]
      {axes, flattened} = Recorded.optimus_axes(inputs)
      mesh = RankBridge.Meshes.new_mesh!(gang, axes, name: name(), flattened: flattened)
      physical = RankBridge.Meshes.new_mesh!(gang, Recorded.optimus_hosts(inputs), name: name())
      groups = Mesh.groups(mesh) ++ Mesh.groups(physical)
      assert_groups_work(gang, groups)
      statuses = RankBridge.status!(gang)

      for {rank, recorded} <- Recorded.answers(case) do
        own = own_groups(Enum.at(statuses, rank))

        described =
          for part <- [mesh, physical],
              axis <- part.axes,
              into: %{},
              do: {"#{axis}", own[Mesh.group(part, axis, rank).name].ranks}

        assert described == recorded["groups"]
        dp = own[Mesh.group(mesh, :dp, rank).name]

        assert {dp.rank_in_group, length(dp.ranks)} ==
                 {recorded["dp_rank"], recorded["dp_world_size"]}
      end

      assert length(RankBridge.Grouping.destroy_groups!(gang, groups)) == length(groups)
    end
  end

  test "OLMo-core's ranks", %{gangs: gangs} do
    ours = %{
      "get_rank" => fn world, rank -> world.ranks |> Enum.at(rank) end,
      "get_world_size" => fn world, _rank -> Group.world_size(world) end,
      "get_local_rank" => fn world, rank -> Group.local_rank(world, rank) end,
      "get_num_nodes" => fn world, _rank -> length(Group.by_host(world)) end
    }

    for {asked, answer} <- ours,
        case <- Recorded.cases("olmo", [asked]),
        world = RankBridge.Grouping.group!(gangs[case["world"]], "world"),
        {rank, recorded} <- Recorded.answers(case),
        do: assert({asked, answer.(world, rank)} == {asked, recorded})
  end

  test "OLMo-core's meshes and groups", %{gangs: gangs} do
    for %{"inputs" => %{"names" => names, "shape" => shape}, "world" => world} = case <-
          Recorded.cases("olmo", ["get_mesh_coordinates"]) do
      gang = gangs[world]
      axes = Enum.zip(names, shape)
      mesh = RankBridge.Meshes.new_mesh!(gang, axes, name: name())
      assert_groups_work(gang, Mesh.groups(mesh))

      for {rank, recorded} <- Recorded.answers(case),
          do: assert(Recorded.olmo_coordinates(mesh, rank) == recorded)
    end

    for %{"inputs" => %{"ranks" => ranks}, "world" => world} <-
          Recorded.cases("olmo", ["reversed_group"]) do
      [group] = RankBridge.Grouping.new_groups!(gangs[world], [{name(), ranks}])
      assert_groups_work(gangs[world], [group])
    end
  end

  test "torchgfn's contexts, in both versions", %{gangs: gangs} do
    for version <- ["seed", "head"],
        case <- Recorded.some("gfn_context_#{version}", ["initialize_distributed_compute"], 25),
        {:ok, plan} <- [Recorded.gfn_plan(version, case)] do
      gang = gangs[case["world"]]
      layout = RankBridge.Meshes.new_layout!(gang, %{plan | name: name()})
      assert_groups_work(gang, Layout.groups(layout))
      statuses = RankBridge.status!(gang)

      for {rank, answer} <- Recorded.answers(case) do
        own = own_groups(Enum.at(statuses, rank))
        seen = &if(described = own[&1.name], do: described.ranks, else: "non_member")
        recorded = Recorded.gfn_recorded(answer, layout, rank)
        assert Recorded.gfn_groups(layout, seen) == recorded["groups_torch"]
      end

      assert length(RankBridge.Grouping.destroy_groups!(gang, Layout.groups(layout))) ==
               length(Layout.groups(layout))
    end
  end

  test "a mesh exists again in the next generation, and is refused in a smaller gang", %{
    ranks: ranks,
    gangs: gangs
  } do
    gang = gangs[3]
    opts = [name: name(), local: true]
    mesh = RankBridge.Meshes.new_mesh!(gang, [dp: 3, tp: 1], opts)
    formed = RankBridge.form!(gang)
    assert formed.generation > mesh.generation
    assert_groups_work(gang, Mesh.groups(mesh))
    assert RankBridge.Meshes.mesh!(gang, [dp: 3, tp: 1], opts).generation == formed.generation

    plan = Mesh.plan!([pp: 3], 3, name: name())
    RankBridge.form!(gang, groups: Mesh.groups(plan))
    assert_groups_work(gang, Mesh.groups(RankBridge.Meshes.mesh!(gang, [pp: 3], name: plan.name)))

    {:ok, endpoints} = RankBridge.Endpoints.read(ranks[3].file)
    two = Enum.take(endpoints, 2)
    RankBridge.form!(gang, endpoints: Enum.map(two, &hd/1))

    smaller =
      start_supervised!({Gang, endpoints: two, form: false, timeout: 60_000}, id: :smaller)

    for {axes, opts, text} <- [
          {[dp: 3, tp: 1], opts, "expected 3 ranks, got 2"},
          {[dp: 1, tp: 2], opts, "1 of its 4 groups are not there"},
          {[tp: 2], [name: mesh.name], "1 of its 1 groups have other members"}
        ] do
      assert {:error, %Error{indefinite: false} = error} =
               RankBridge.Meshes.mesh(smaller, axes, opts)

      assert Exception.message(error) =~ text
    end

    :ok = stop_supervised(:smaller)
    assert RankBridge.form!(gang).world_size == 3
    assert_groups_work(gang, [RankBridge.Grouping.group!(gang, "world")])
  end
end
