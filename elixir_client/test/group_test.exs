defmodule RankBridge.GroupTest do
  @moduledoc "What a group tells of its members, from its description alone."

  use ExUnit.Case, async: true

  alias RankBridge.{Error, Group, Place}

  doctest RankBridge.Group
  doctest RankBridge.Place

  test "neighbours go round in group order, not in rank order" do
    group = %Group{name: "odd", ranks: [5, 0, 3]}

    around =
      for rank <- group.ranks, do: {Group.prev_rank(group, rank), Group.next_rank(group, rank)}

    assert around == [{3, 0}, {5, 3}, {0, 5}]
    assert Enum.map(group.ranks, &Group.first_rank?(group, &1)) == [true, false, false]
    assert Enum.map(group.ranks, &Group.last_rank?(group, &1)) == [false, false, true]
    assert {Group.first_rank(group), Group.last_rank(group), Group.world_size(group)} == {5, 3, 3}
    assert Enum.map(0..2, &Group.rank_at(group, &1)) == group.ranks
  end

  test "a group of one is its own neighbour" do
    only = %Group{name: "one", ranks: [4]}
    assert {Group.next_rank(only, 4), Group.prev_rank(only, 4)} == {4, 4}
    assert Group.first_rank?(only, 4) and Group.last_rank?(only, 4)
  end

  test "who is no member is refused, and the members are named" do
    group = %Group{name: "pair", ranks: [2, 7]}
    assert Group.member?(group, 7)
    refute Group.member?(group, 0)
    error = assert_raise Error, ~r/rank 0 is not a member/, fn -> Group.next_rank(group, 0) end
    assert {error.expected, error.got, error.group} == {"one of ranks [2, 7]", "0", "pair"}

    for place <- [-1, 2, nil] do
      assert_raise Error, ~r/expected 0 to 1/, fn -> Group.rank_at(group, place) end
    end
  end

  test "hosts are told as far as they are known" do
    places = [%Place{host: "b", local_rank: 1}, nil, %Place{host: "a", local_rank: 0}]
    group = %Group{name: "g", ranks: [3, 1, 0], places: places}
    assert Enum.map(group.ranks, &Group.host(group, &1)) == ["b", nil, "a"]
    assert Enum.map(group.ranks, &Group.local_rank(group, &1)) == [1, nil, 0]
    assert Group.host(%{group | places: []}, 3) == nil

    for unknown <- [group, %{group | places: []}] do
      assert_raise Error, ~r/hosts of group "g" are not known/, fn -> Group.by_host(unknown) end
    end

    known = %{group | places: List.replace_at(places, 1, %Place{host: "b", local_rank: 2})}
    assert Group.by_host(known) == [{"b", [3, 1]}, {"a", [0]}]
  end
end
