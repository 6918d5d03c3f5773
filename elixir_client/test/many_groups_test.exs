defmodule RankBridge.ManyGroupsTest do
  @moduledoc "Groups that are made and ended together, on ranks that can be told to fail."

  use ExUnit.Case, async: true

  alias RankBridge.{Error, Gang, Group, Layout, Mesh}
  alias RankBridge.Test.ScriptedRanks

  setup do
    ranks = start_supervised!(ScriptedRanks)
    gang = start_supervised!({Gang, ScriptedRanks.gang(ranks)})
    :ok = RankBridge.await_ready(gang, 60_000)
    %{ranks: ranks, gang: gang}
  end

  defp made(ranks), do: for(rank <- 0..3, do: ScriptedRanks.asked(ranks, :new_group, rank))
  defp ended(ranks), do: for(rank <- 0..3, do: ScriptedRanks.asked(ranks, :destroy_group, rank))

  test "groups are made on every rank, one after the other", %{gang: gang, ranks: ranks} do
    groups =
      RankBridge.Grouping.new_groups!(gang, [{"x", [2, 0]}, %Group{name: "y", ranks: [1, 3]}])

    assert Enum.map(groups, &{&1.name, &1.ranks}) == [{"x", [2, 0]}, {"y", [1, 3]}]
    assert made(ranks) == List.duplicate(["x", "y"], 4)
    assert RankBridge.Grouping.new_groups!(gang, []) == []
    assert RankBridge.Grouping.group!(gang, "x").ranks == [2, 0]
  end

  test "if one cannot be made, those before it are ended", %{gang: gang, ranks: ranks} do
    ScriptedRanks.fail(ranks, :new_group, "z", :ERROR_CODE_FORMING_FAILED)
    wanted = [{"x", [0, 1]}, {"y", [2, 3]}, {"z", [1, 2]}, {"never", [0]}]

    assert {:error, %Error{reason: :forming_failed} = error} =
             RankBridge.Grouping.new_groups(gang, wanted)

    assert made(ranks) == List.duplicate(["x", "y", "z"], 4)
    assert ended(ranks) == [["x"], ["x"], ["y"], ["y"]]
    refute error.message =~ "left"
  end

  test "one that may have been made is ended too", %{gang: gang, ranks: ranks} do
    ScriptedRanks.fail(ranks, :new_group, "y", :ERROR_CODE_DEADLINE_EXCEEDED,
      indefinite: true,
      rank: 0
    )

    wanted = [{"x", [0]}, {"y", [0, 1]}]

    assert {:error, %Error{reason: :deadline_exceeded} = error} =
             RankBridge.Grouping.new_groups(gang, wanted)

    assert ended(ranks) == [["y", "x"], ["y"], [], []]
    refute Map.has_key?(ScriptedRanks.known(ranks, 1), "y")
    # That rank 0 does not know the group is what was wanted; rank 1 has ended it.
    refute error.message =~ "left"
  end

  test "what cannot be ended again is named", %{gang: gang, ranks: ranks} do
    ScriptedRanks.fail(ranks, :new_group, "z", :ERROR_CODE_PEER_LOST)

    for name <- ["x", "y"],
        do: ScriptedRanks.fail(ranks, :destroy_group, name, :ERROR_CODE_STALE_GENERATION)

    wanted = [{"x", [0]}, {"y", [1]}, {"z", [2, 3]}]

    assert {:error, %Error{reason: :peer_lost} = error} =
             RankBridge.Grouping.new_groups(gang, wanted)

    assert error.message =~ ~s(groups that may be left: "y", "x")
    # After the first that says so, the others are not even tried.
    assert ended(ranks) == [[], ["y"], [], []]
  end

  test "names of groups that exist are refused before anything is made", %{
    gang: gang,
    ranks: ranks
  } do
    for name <- ["x", "mesh/dp/0", "layout/train"], do: ScriptedRanks.know(ranks, 1, name, [0, 1])

    assert {:error, %Error{reason: :group_exists, indefinite: false} = error} =
             RankBridge.Grouping.new_groups(gang, [{"w", [0, 1]}, {"x", [0, 1]}])

    assert {error.message, error.got} ==
             {"1 of 2 groups exist already; none was made", ~s("x")}

    assert {:error, %Error{reason: :group_exists}} = RankBridge.Meshes.new_mesh(gang, dp: 4)
    layout = Layout.in_blocks!(4)
    assert {:error, %Error{reason: :group_exists}} = RankBridge.Meshes.new_layout(gang, layout)
    assert made(ranks) == [[], [], [], []]
  end

  test "names of groups that their members have ended are free", %{gang: gang, ranks: ranks} do
    for name <- ["x", "mesh/dp/0"], do: ScriptedRanks.know(ranks, 3, name, [0, 1])
    assert [%Group{ranks: [2, 1]}] = RankBridge.Grouping.new_groups!(gang, [{"x", [2, 1]}])

    assert gang |> RankBridge.Meshes.new_mesh!(dp: 4) |> Mesh.group(:dp, 0) |> Map.get(:ranks) ==
             [
               0,
               1,
               2,
               3
             ]
  end

  test "members are asked before others who is in a group", %{gang: gang, ranks: ranks} do
    for rank <- [0, 3], do: ScriptedRanks.know(ranks, rank, "x", [2, 1])
    for rank <- [1, 2], do: ScriptedRanks.know(ranks, rank, "x", [1, 2])
    RankBridge.destroy_group!(gang, "x")
    assert ended(ranks) == [[], ["x"], ["x"], []]

    # Of a group that its members have ended, they say so themselves.
    assert {:error, %Error{reason: :unknown_group}} = RankBridge.destroy_group(gang, "x")
    for rank <- 0..3, do: ScriptedRanks.know(ranks, rank, "x", [3, 0])
    RankBridge.destroy_group!(gang, "x")
    assert ended(ranks) == [["x"], ["x", "x"], ["x", "x"], ["x"]]
  end

  test "malformed groups are refused before any rank is asked", %{gang: gang, ranks: ranks} do
    asked = ScriptedRanks.asked(ranks, :describe_rank, 0)

    for {groups, reason} <- [
          {[{"x", [0]}, {"x", [1]}], :invalid_argument},
          {[{"", [0]}], :invalid_argument},
          {[{String.duplicate("x", 129), [0]}], :invalid_argument},
          {[{"x", []}], :invalid_argument},
          {[{"x", [1, 1]}], :invalid_argument},
          {[{"w", [0]}, {"x", [4]}], :rank_out_of_range},
          {[{"x", [-1]}], :rank_out_of_range},
          {["x"], :invalid_argument},
          {:x, :invalid_argument}
        ] do
      assert {:error, %Error{reason: ^reason}} = RankBridge.Grouping.new_groups(gang, groups)
    end

    assert {:error, %Error{reason: :invalid_argument}} =
             RankBridge.Grouping.new_groups(gang, [], group: "x")

    assert ScriptedRanks.asked(ranks, :describe_rank, 0) == asked
  end

  test "those of the groups that exist are ended", %{gang: gang} do
    RankBridge.Grouping.new_groups!(gang, [{"x", [0, 1]}, {"y", [2]}])
    wanted = ["x", "never", %Group{name: "y", ranks: [0, 1, 2]}, "x"]
    ended = RankBridge.Grouping.destroy_groups!(gang, wanted)
    assert Enum.map(ended, &{&1.name, &1.ranks}) == [{"x", [0, 1]}, {"y", [2]}]
    assert RankBridge.Grouping.destroy_groups!(gang, ["x", "y"]) == []

    assert {:error, %Error{reason: :invalid_argument}} =
             RankBridge.Grouping.destroy_groups(gang, ["x", "world"])
  end

  test "one that cannot be ended does not keep the others", %{gang: gang, ranks: ranks} do
    RankBridge.Grouping.new_groups!(gang, [{"x", [0, 1]}, {"y", [2]}, {"z", [0]}])
    ScriptedRanks.fail(ranks, :destroy_group, "x", :ERROR_CODE_PEER_MISSING, rank: 1)

    assert {:error, %Error{reason: :peer_missing} = error} =
             RankBridge.Grouping.destroy_groups(gang, ["x", "y", "z"])

    assert error.message =~ ~s(groups that were not ended: "x")
    refute Map.has_key?(ScriptedRanks.known(ranks, 2), "y")
    refute Map.has_key?(ScriptedRanks.known(ranks, 0), "z")
  end

  test "a group is described with the places of its members", %{gang: gang} do
    RankBridge.Grouping.new_groups!(gang, [{"x", [3, 0]}])
    group = RankBridge.Grouping.group!(gang, "x")

    assert {group.ranks, group.backend, group.generation, group.rank_in_group} ==
             {[3, 0], "fake", 3, nil}

    assert Enum.map(group.ranks, &{Group.host(group, &1), Group.local_rank(group, &1)}) == [
             {"b", 1},
             {"a", 0}
           ]

    assert Group.by_host(RankBridge.Grouping.group!(gang, "")) == [{"a", [0, 1]}, {"b", [2, 3]}]
    assert RankBridge.Generations.hosts!(gang) == ["a", "a", "b", "b"]
  end

  test "a rank that does not answer leaves its own place open", %{gang: gang, ranks: ranks} do
    RankBridge.Grouping.new_groups!(gang, [{"x", [3, 0]}])
    ScriptedRanks.lose(ranks, 3)
    group = RankBridge.Grouping.group!(gang, "x")
    assert Enum.map(group.ranks, &Group.host(group, &1)) == [nil, "a"]
    assert {:error, %Error{reason: :unavailable}} = RankBridge.Generations.hosts(gang)
    for rank <- 0..2, do: ScriptedRanks.lose(ranks, rank)
    assert {:error, %Error{reason: :unavailable}} = RankBridge.Grouping.group(gang, "x")
  end

  test "a group that only others than its members tell of is unknown", %{gang: gang, ranks: ranks} do
    ScriptedRanks.know(ranks, 3, "ended", [0, 1])

    assert {:error, %Error{reason: :unknown_group} = error} =
             RankBridge.Grouping.group(gang, "ended")

    assert {error.expected, error.got} == {"one of world", ~s("ended")}
  end

  test "a mesh is made and found again", %{gang: gang, ranks: ranks} do
    axes = [dp: 2, tp: 2]
    opts = [name: "m", flattened: [all: [:dp, :tp]], local: true]
    mesh = RankBridge.Meshes.new_mesh!(gang, axes, opts)
    assert {Mesh.shape(mesh), mesh.ranks, mesh.generation} == {axes, [0, 1, 2, 3], 3}
    assert Enum.map(Mesh.groups(mesh), & &1.name) == hd(made(ranks))
    assert Mesh.lines(mesh, :local) == [[0, 1], [2, 3]]
    assert Group.host(Mesh.group(mesh, :local, 3), 3) == "b"
    assert RankBridge.Meshes.mesh!(gang, axes, opts) == mesh
    part = RankBridge.Meshes.new_mesh!(gang, [dp: 2], ranks: [3, 1], name: "part")
    assert [%Group{name: "part/dp/0", ranks: [3, 1], backend: "fake"}] = Mesh.groups(part)
  end

  test "a mesh that is not there as it should be is refused", %{gang: gang} do
    RankBridge.Meshes.new_mesh!(gang, dp: 2, tp: 2)
    assert {:error, %Error{} = error} = RankBridge.Meshes.mesh(gang, dp: 3, tp: 2)
    assert Exception.message(error) =~ "dp 3 x tp 2; expected 6 ranks, got 4"
    assert {:error, error} = RankBridge.Meshes.mesh(gang, [dp: 2, tp: 2], ranks: [0, 1, 3, 2])
    assert error.message =~ "3 of its 4 groups have other members"
    assert {error.expected, error.got} == {"mesh/dp/0 of ranks [0, 3]", "ranks [0, 2]"}

    assert {:error, %Error{reason: :unknown_group} = error} =
             RankBridge.Meshes.mesh(gang, [dp: 2, tp: 2], flattened: [x: [:tp], y: [:dp]])

    assert error.message =~ "4 of its 8 groups are not there"

    assert {:error, %Error{reason: :rank_out_of_range}} =
             RankBridge.Meshes.new_mesh(gang, [dp: 2], ranks: [3, 4], name: "part")
  end

  test "the groups of a layout are made", %{gang: gang, ranks: ranks} do
    layout =
      gang |> RankBridge.Generations.hosts!() |> Layout.by_host!(buffers: 2, agent_groups: 2)

    layout = RankBridge.Meshes.new_layout!(gang, layout)
    assert {layout.teams, layout.generation} == {[[0], [2]], 3}

    assert hd(made(ranks)) == [
             "layout/train",
             "layout/buffer",
             "layout/agent/0",
             "layout/agent/1"
           ]

    ended = RankBridge.Grouping.destroy_groups!(gang, Layout.groups(layout))
    assert Enum.at(ended, 1).ranks == [1, 3]
    assert {:error, error} = RankBridge.Meshes.new_layout(gang, Layout.in_blocks!(5))
    assert Exception.message(error) =~ "for a gang of another size; expected 4 ranks, got 5"
  end
end
