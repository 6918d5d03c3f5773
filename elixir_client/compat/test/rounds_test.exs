defmodule RankBridge.RoundsTest do
  @moduledoc "Whose turn it is in which round, against what OLMo-core was recorded to do."

  use ExUnit.Case, async: true

  alias RankBridge.{Error, Group, Place, Rounds}
  alias RankBridge.Test.Recorded

  doctest RankBridge.Rounds

  defp plan(%{"inputs" => %{"world_size" => size, "n" => n}}),
    do: {Enum.to_list(0..(size - 1)), Rounds.plan(Enum.to_list(0..(size - 1)), n)}

  test "OLMo-core's schedules" do
    for case <- Recorded.cases("olmo_nondist", ["do_n_schedule"]),
        {0, recorded} <- Recorded.answers(case) do
      {ranks, rounds} = plan(case)
      round_of_rank = for rank <- ranks, do: Enum.find_index(rounds, &(rank in &1))

      assert %{"rounds" => length(rounds), "round_of_rank" => round_of_rank} == recorded
    end
  end

  test "OLMo-core's turns and barriers" do
    for case <- Recorded.cases("olmo_nondist", ["do_n_events"]),
        {0, recorded} <- Recorded.answers(case) do
      {ranks, rounds} = plan(case)

      events = for rank <- ranks, do: Enum.map_join(rounds, &if(rank in &1, do: "fb", else: "b"))

      assert events == recorded
    end
  end

  test "everybody has one turn, and never more than so many at once" do
    for size <- 1..12, n <- 1..13 do
      ranks = Enum.to_list(10..(9 + size))
      rounds = Rounds.plan(ranks, n)
      assert rounds |> Enum.concat() |> Enum.sort() == ranks
      assert Enum.all?(rounds, &(length(&1) in 1..n))
      assert length(rounds) == ceil(size / n)
    end
  end

  test "one rank on each host has its turn at a time, as far as there are others" do
    places = for host <- ~w(b a b b), do: %Place{host: host, local_rank: 0}
    group = %Group{name: "g", ranks: [7, 2, 0, 5], places: places}
    assert Rounds.by_host(group) == [[7, 2], [0], [5]]
    assert_raise Error, fn -> Rounds.by_host(%{group | places: []}) end
  end
end
