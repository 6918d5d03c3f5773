defmodule RankBridge.MeshTest do
  @moduledoc "Meshes as plans: what is where, which groups there are, and what is refused."

  use ExUnit.Case, async: true

  alias RankBridge.{Error, Mesh, Place}

  doctest RankBridge.Mesh

  test "ranks are laid out with the last axis fastest" do
    mesh = Mesh.plan!([dp: 2, tp: 3], 6)

    assert Enum.map(0..5, &Mesh.coordinates(mesh, &1)) ==
             for(dp <- 0..1, tp <- 0..2, do: [dp: dp, tp: tp])

    assert Mesh.lines(mesh, :dp) == [[0, 3], [1, 4], [2, 5]]
    assert Mesh.lines(mesh, "tp") == [[0, 1, 2], [3, 4, 5]]

    assert Enum.map(Mesh.groups(mesh), & &1.name) ==
             ["mesh/dp/0", "mesh/dp/1", "mesh/dp/2", "mesh/tp/0", "mesh/tp/1"]

    assert Mesh.group(mesh, :tp, 4).ranks == [3, 4, 5]
    assert Mesh.rank_in_group(mesh, :tp, 4) == 1
    assert {Mesh.world_size(mesh), Mesh.shape(mesh)} == {6, [dp: 2, tp: 3]}
  end

  test "given ranks keep their order" do
    mesh = Mesh.plan!([{"a", 2}, {"b", 2}], [7, 2, 5, 3], name: "odd")
    assert Mesh.lines(mesh, "a") == [[7, 5], [2, 3]]
    assert Mesh.coordinates(mesh, 5) == [{"a", 1}, {"b", 0}]
    assert Mesh.group(mesh, "b", 3).name == "odd/b/1"
    assert Mesh.member?(mesh, 5)
    refute Mesh.member?(mesh, 0)
  end

  test "an axis of size 1 has a group for each rank" do
    mesh = Mesh.plan!([dp: 2, cp: 1], 2)
    groups = for group <- Mesh.groups(mesh, :cp), do: {group.name, group.ranks}
    assert groups == [{"mesh/cp/0", [0]}, {"mesh/cp/1", [1]}]
  end

  test "a flattened axis stands for several" do
    axes = [dp_replicate: 2, tp: 2, dp_shard: 2]
    mesh = Mesh.plan!(axes, 8, flattened: [dp: [:dp_replicate, :dp_shard]])
    assert Mesh.lines(mesh, :dp) == [[0, 1, 4, 5], [2, 3, 6, 7]]
    assert {Mesh.size(mesh, :dp), Mesh.size(mesh, :tp)} == {4, 2}
    assert Mesh.rank_in_group(mesh, :dp, 6) == 2
  end

  test "one axis may take what the others leave" do
    assert Mesh.shape(Mesh.plan!([dp: -1, tp: 2], 6)) == [dp: 3, tp: 2]
  end

  test "the local axis has a line for each host" do
    places = for host <- ["a", "b", "a", "b"], do: %Place{host: host, local_rank: 0}
    mesh = Mesh.plan!([dp: 2, tp: 2], [3, 2, 1, 0], local: true, places: places)
    assert Mesh.lines(mesh, :local) == [[3, 1], [2, 0]]
    assert Mesh.group(mesh, :local, 0).name == "mesh/local/1"
    assert Mesh.line(mesh, :tp, 3) == [3, 2]
    assert Mesh.line(mesh, :tp, 3, within: :local) == [3]
    assert RankBridge.Group.host(Mesh.group(mesh, :tp, 2), 2) == "b"
  end

  test "every axis parts the ranks, and coordinates find them again" do
    for sizes <- [[1], [4], [2, 3], [3, 1, 2], [2, 2, 2, 2]] do
      axes = for {size, number} <- Enum.with_index(sizes), do: {"axis#{number}", size}
      ranks = for rank <- (Enum.product(sizes) - 1)..0//-1, do: rank * 3 + 1
      mesh = Mesh.plan!(axes, ranks, flattened: [all: Enum.map(axes, &elem(&1, 0))])
      for rank <- ranks, do: assert(Mesh.rank_at(mesh, Mesh.coordinates(mesh, rank)) == rank)
      assert Mesh.lines(mesh, :all) == [ranks]

      for {axis, size} <- axes do
        lines = Mesh.lines(mesh, axis)
        assert lines |> Enum.concat() |> Enum.sort() == Enum.sort(ranks)
        assert Enum.all?(lines, &(length(&1) == size))

        for line <- lines do
          coordinates = Enum.map(line, &Map.new(Mesh.coordinates(mesh, &1)))
          assert Enum.map(coordinates, & &1[axis]) == Enum.to_list(0..(size - 1))
          assert length(Enum.uniq_by(coordinates, &Map.delete(&1, axis))) == 1
        end
      end
    end
  end

  test "axes that do not fit are refused" do
    for {axes, ranks, text} <- [
          {[dp: 2, tp: 4], 6, "dp 2 x tp 4; expected 8 ranks, got 6"},
          {[dp: -1, tp: 4], 6, "dp ? x tp 4; expected a multiple of 4 ranks, got 6"},
          {[tp: 1], 2, "expected 1 rank, got 2"},
          {[], 1, "one axis at least"},
          {[dp: 0], 4, "size 1 or more"},
          {[dp: -2], 4, "size 1 or more"},
          {[dp: -1, tp: -1], 4, "at most one of size -1"},
          {[dp: 2], [1, 1], "each rank once"},
          {[dp: 2], [0, -1], "each rank once"},
          {[dp: 2], 0, "each rank once"},
          {[dp: 2], :all, "each rank once"},
          {[{"d/p", 2}], 2, "without '/'"},
          {[{"", 2}], 2, "not empty"},
          {[{"dp", 2}, {:dp, 1}], 2, "each of its own"},
          {%{dp: 2}, 2, "a list of names and sizes"},
          {[dp: 2.0], 2, "a list of names and sizes"}
        ] do
      assert {:error, %Error{reason: :invalid_argument} = error} = Mesh.plan(axes, ranks)
      assert Exception.message(error) =~ text
    end
  end

  test "bad names, places and options are refused" do
    for opts <- [
          [flattened: [dp: [:dp, :tp]]],
          [flattened: [all: [:dp, :pp]]],
          [flattened: [all: []]],
          [flattened: [all: [:dp, :dp]]],
          [flattened: [all: :dp]],
          [flattened: :dp],
          [name: ""],
          [name: :mesh],
          [local: true],
          [size: 2],
          :name
        ] do
      assert {:error, %Error{reason: :invalid_argument}} = Mesh.plan([dp: 2, tp: 1], 2, opts)
    end

    assert_raise Error, ~r/bad names/, fn ->
      Mesh.plan!([local: 1], 1, local: true, places: [%Place{host: "a", local_rank: 0}])
    end
  end

  test "questions that have no answer are refused" do
    mesh = Mesh.plan!([dp: 2], 2)

    for ask <- [&Mesh.lines(&1, :tp), &Mesh.group(&1, :tp, 0), &Mesh.size(&1, :local)] do
      assert_raise Error, ~r/there is no such axis; expected one of dp, got/, fn -> ask.(mesh) end
    end

    for ask <- [&Mesh.coordinates(mesh, &1), &Mesh.line(mesh, :dp, &1)] do
      assert_raise Error, ~r/rank 9 is not in it/, fn -> ask.(9) end
    end

    for wrong <- [[dp: 0, tp: 0], [], [dp: 0, dp: 0]] do
      assert_raise Error, ~r/one coordinate for each axis/, fn -> Mesh.rank_at(mesh, wrong) end
    end

    assert_raise Error, ~r/expected 0 to 1, got 2/, fn -> Mesh.rank_at(mesh, dp: 2) end
  end
end
