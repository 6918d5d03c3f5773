defmodule RankBridge.Conformance.RecordedCasesTest do
  @moduledoc "The recorded cases about ranks, groups, meshes and layouts, against the pure code. No rank is asked."

  use ExUnit.Case, async: true

  alias RankBridge.{Error, Group, Layout, Mesh, Place}
  alias RankBridge.Test.Recorded

  # As when vLLM was recorded, all ranks are on one host.
  defp group(ranks) do
    places = for rank <- ranks, do: %Place{host: "a", local_rank: rank}
    %Group{name: "g", ranks: ranks, places: places}
  end

  test "members of vLLM's groups" do
    for case <- Recorded.cases("vllm", ["props/", "nodes/", "ctor/overlapping_lists"]),
        %{"as" => as, "group_ranks" => lists} <- case["groups"],
        {rank, answer} <- Recorded.vllm_ranks(case) do
      # In overlapping lists a rank has the last one that it is in; the bridge has both groups.
      group = lists |> Enum.filter(&(rank in &1)) |> List.last() |> group()
      ours = Recorded.vllm_member(group, rank)

      assert {case["id"], Map.take(answer["ctor"][as]["ok"], Map.keys(ours))} ==
               {case["id"], ours}
    end
  end

  test "hosts of vLLM's groups" do
    for case <- Recorded.cases("vllm", ["nodes/"]),
        {_rank, answer} <- Recorded.vllm_ranks(case) do
      [%{"group_ranks" => [ranks]}] = case["groups"]
      assert answer["steps"] == [%{"ok" => Recorded.vllm_nodes(group(ranks))}]
    end
  end

  test "optimus-dl's meshes" do
    for %{"inputs" => inputs, "world" => world} = case <-
          Recorded.cases("optimus_mesh", ["mesh_table"]) do
      {axes, flattened} = Recorded.optimus_axes(inputs)
      places = Recorded.places(world, inputs["local_world_size"])
      mesh = Mesh.plan!(axes, world, flattened: flattened, local: true, places: places)
      physical = Mesh.plan!(Recorded.optimus_hosts(inputs), world)

      for {rank, recorded} <- Recorded.answers(case) do
        ours = Recorded.optimus_rank(mesh, physical, rank)
        assert Map.keys(recorded) -- Map.keys(ours) == ["default_device", "repr"]

        for {key, value} <- ours do
          answer =
            if is_map(value), do: Map.take(recorded[key], Map.keys(value)), else: recorded[key]

          assert {inputs, rank, key, answer} == {inputs, rank, key, value}
        end
      end
    end
  end

  test "meshes that do not fit" do
    for %{"inputs" => inputs, "world" => world} = case <-
          Recorded.cases("optimus_mesh", ["mesh_ctor_error"]) do
      assert Recorded.refused?(case)
      {axes, _flattened} = Recorded.optimus_axes(inputs)
      on_host = {[dp: -1, tp: inputs["tp_size"]], inputs["local_world_size"]}

      errors =
        for {axes, size} <- [{axes, world}, {Recorded.optimus_hosts(inputs), world}, on_host],
            {:error, error} <- [Mesh.plan(axes, size)],
            do: error

      assert [%Error{reason: :invalid_argument, message: message} | _more] = errors
      assert message =~ "do not fit the number of ranks"
    end
  end

  test "OLMo-core's mesh coordinates" do
    for %{"inputs" => %{"names" => names, "shape" => shape}, "world" => world} = case <-
          Recorded.cases("olmo", ["get_mesh_coordinates"]) do
      mesh = names |> Enum.zip(shape) |> Mesh.plan!(world)

      for {rank, recorded} <- Recorded.answers(case),
          do: assert(Recorded.olmo_coordinates(mesh, rank) == recorded)

      # Where OLMo tells nothing of a rank outside the mesh, the bridge refuses.
      assert_raise Error, fn -> Mesh.coordinates(mesh, world) end
    end
  end

  test "OLMo-core's meshes of some ranks in an order of their own" do
    for %{"inputs" => %{"mesh" => [row | _rows] = rows}} = case <-
          Recorded.cases("olmo", ["get_mesh_coordinates_custom"]) do
      mesh = Mesh.plan!([row: length(rows), column: length(row)], List.flatten(rows))

      for {_rank, recorded} <- Recorded.answers(case),
          {coordinates, rank} <- Enum.with_index(recorded) do
        assert Mesh.member?(mesh, rank) == (coordinates != nil)

        if coordinates != nil,
          do: assert(Keyword.values(Mesh.coordinates(mesh, rank)) == coordinates),
          else: assert_raise(Error, fn -> Mesh.coordinates(mesh, rank) end)
      end
    end
  end

  test "a reversed group keeps its order, unlike in torch" do
    for %{"inputs" => %{"ranks" => ranks}} = case <- Recorded.cases("olmo", ["reversed_group"]),
        {rank, recorded} <- Recorded.answers(case) do
      group = %Group{name: "reversed", ranks: ranks}
      assert [^rank, sorted, sorted, highest, lowest] = recorded
      assert sorted == Enum.sort(ranks)
      assert Group.rank_in_group(group, rank) == length(ranks) - 1 - rank
      assert {Group.first_rank(group), Group.last_rank(group)} == {highest, lowest}
    end
  end

  test "torchgfn's layouts by host, and its warnings" do
    for case <- Recorded.cases("gfn_layout", ["build", "from_hostnames"]) do
      inputs = case["inputs"]

      opts = [
        buffers: inputs["num_remote_buffers"],
        agent_groups: inputs["num_agent_groups"],
        coordinators: inputs["num_coordinators"]
      ]

      case {Layout.by_host(hosts(inputs), opts), case["result"]} do
        {{:error, error}, recorded} ->
          assert error.reason == :invalid_argument
          assert is_map_key(recorded, "error")

        {{:ok, layout}, %{"ok" => recorded}} ->
          assert layout.trainers == recorded["training_ranks"]
          assert layout.buffers == recorded["buffer_ranks"]
          assert layout.teams == recorded["agent_ranks_per_group"]
          assert layout.agent_groups == recorded["agent_group_rank_list"]

          for {recorded_rank, rank} <- Enum.with_index(recorded["per_rank"]) do
            served = Layout.trainers_of(layout, rank)
            assert Layout.buffer_of(layout, rank) == recorded_rank["assigned_buffer"]
            assert if(served != [], do: served) == recorded_rank["assigned_training_ranks"]

            if Layout.role(layout, rank) == :trainer,
              do: assert(Layout.agent_group_of(layout, rank) == recorded_rank["agent_group_id"])
          end

          # Where torchgfn lays out numbers of nodes and not hosts, it does not warn of all that cross them.
          ours = kinds(Layout.warnings(layout))
          theirs = recorded_kinds(case["warnings"])

          if Recorded.name(case) == "from_hostnames",
            do: assert(ours == theirs),
            else: assert(MapSet.subset?(theirs, ours))
      end
    end
  end

  defp hosts(%{"hostnames" => hosts}), do: hosts

  defp hosts(inputs) do
    there = Layout.split_evenly(Enum.to_list(0..(inputs["world_size"] - 1)), inputs["num_nodes"])
    for {ranks, number} <- Enum.with_index(there), _rank <- ranks, do: "host#{number}"
  end

  defp kinds(warnings),
    do: MapSet.new(warnings, &if(&1 =~ ~r/^buffer/, do: :buffer, else: :agent_group))

  defp recorded_kinds(warnings),
    do: MapSet.new(warnings, &if(&1 =~ ~r/^num_remote_buffers/, do: :buffer, else: :agent_group))

  test "torchgfn's contexts, in both versions" do
    for version <- ["seed", "head"],
        case <- Recorded.cases("gfn_context_#{version}", ["initialize_distributed_compute"]) do
      case Recorded.gfn_plan(version, case) do
        {:error, error} ->
          assert error.reason == :invalid_argument
          assert Recorded.refused?(case)

        {:ok, layout} ->
          refute Recorded.refused?(case)

          for {rank, answer} <- Recorded.answers(case) do
            recorded = Recorded.gfn_recorded(answer, layout, rank)
            ours = Map.take(Recorded.gfn_rank(layout, rank), Map.keys(recorded))
            assert Map.take(recorded, Map.keys(ours)) == ours
            assert map_size(ours) >= 11
            seen = &if(rank in &1.ranks, do: &1.ranks, else: "non_member")
            assert Recorded.gfn_groups(layout, seen) == recorded["groups_torch"]
          end
      end
    end
  end
end
