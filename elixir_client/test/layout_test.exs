defmodule RankBridge.LayoutTest do
  @moduledoc "Role layouts as plans: properties of both assignments, and what is refused."

  use ExUnit.Case, async: true

  alias RankBridge.{Error, Layout}

  doctest RankBridge.Layout

  defp assert_whole(layout) do
    assert Enum.sort(layout.trainers ++ layout.buffers ++ layout.coordinators) ==
             Enum.to_list(0..(layout.size - 1))

    assert layout.teams |> Enum.concat() |> Enum.sort() == Enum.sort(layout.trainers)
    assert Enum.concat(layout.agent_groups) == layout.trainers
    assert length(Enum.uniq_by(layout.agent_groups, &length/1)) == 1

    for rank <- 0..(layout.size - 1) do
      role = Layout.role(layout, rank)
      buffer = Layout.buffer_of(layout, rank)
      assert buffer != nil == (role == :trainer and layout.buffers != [])
      if buffer, do: assert(rank in Layout.trainers_of(layout, buffer))
      assert Layout.trainers_of(layout, rank) != [] == (role == :buffer)
      number = Layout.agent_group_of(layout, rank)
      assert number != nil == (role == :trainer)
      if number, do: assert(rank in Layout.agent_group(layout, number).ranks)
    end
  end

  test "blocks are whole or refused" do
    for size <- 1..9, buffers <- 0..5, agent_groups <- 1..3, coordinators <- 0..2 do
      training = size - buffers - coordinators
      fits? = training >= max(1, buffers) and rem(training, agent_groups) == 0
      opts = [buffers: buffers, agent_groups: agent_groups, coordinators: coordinators]

      case Layout.in_blocks(size, opts) do
        {:ok, layout} ->
          assert fits?
          assert_whole(layout)
          assert layout.trainers == Enum.to_list(0..(training - 1))
          assert Layout.warnings(layout) == []

        {:error, error} ->
          refute fits?
          assert error.reason == :invalid_argument
      end
    end
  end

  test "layouts by host are whole, and warn of what crosses hosts" do
    for hosts <- ["a", "aab", "aaabbb", "ababab", "aabbbb", "aaabbbccc", "abbb"],
        hosts = String.graphemes(hosts),
        buffers <- 0..3,
        coordinators <- 0..1,
        {:ok, layout} <- [Layout.by_host(hosts, buffers: buffers, coordinators: coordinators)] do
      assert_whole(layout)
      host = &Enum.at(hosts, &1)

      crossing =
        for buffer <- layout.buffers,
            Enum.any?(Layout.trainers_of(layout, buffer), &(host.(&1) != host.(buffer))),
            do: buffer

      spanning =
        for group <- layout.agent_groups, length(Enum.uniq_by(group, host)) > 1, do: group

      assert length(Layout.warnings(layout)) == length(crossing) + length(spanning)
      working = hosts |> Enum.drop(-coordinators) |> Enum.uniq()
      if rem(buffers, length(working)) == 0, do: assert(crossing == [])
    end
  end

  test "groups are named after roles" do
    layout = Layout.in_blocks!(6, buffers: 2, agent_groups: 2, name: "roles")

    assert Enum.map(Layout.groups(layout), &{&1.name, &1.ranks}) == [
             {"roles/train", [0, 1, 2, 3]},
             {"roles/buffer", [4, 5]},
             {"roles/agent/0", [0, 1]},
             {"roles/agent/1", [2, 3]}
           ]

    assert Layout.buffer_group(Layout.in_blocks!(1)) == nil
  end

  test "numbers that do not fit are refused" do
    for {opts, text} <- [
          {[buffers: 3], "too few ranks are left to train; expected 3 or more of 4, got 1"},
          {[coordinators: 4], "too few ranks are left to train"},
          {[coordinators: 5], "too few ranks are left to train"},
          {[agent_groups: 3], "equal agent groups; expected a multiple of 3 trainers, got 4"},
          {[agent_groups: 0], "1 agent group or more"},
          {[buffers: -1], "0 buffers or more"},
          {[name: ""], "a name"},
          {[buffer: 1], "bad numbers"}
        ] do
      assert {:error, %Error{reason: :invalid_argument} = error} = Layout.in_blocks(4, opts)
      assert Exception.message(error) =~ text
    end

    assert {:error, %Error{}} = Layout.in_blocks(0)
    assert {:error, %Error{}} = Layout.by_host([])
    assert {:error, %Error{}} = Layout.by_host("ab")
  end

  test "hosts with too few ranks are named" do
    for {hosts, opts, text} <- [
          {~w(a a b), [buffers: 2],
           ~s(host "b" has too few ranks for 1 team; expected 2 or more)},
          {~w(a a a b b), [buffers: 3], "there are too few ranks for 3 teams"},
          {~w(a b), [coordinators: 2], "no rank is left to train"}
        ] do
      assert_raise Error, ~r/#{text}/, fn -> Layout.by_host!(hosts, opts) end
    end
  end

  test "questions that have no answer are refused" do
    layout = Layout.in_blocks!(2)

    for ask <- [
          &Layout.role/2,
          &Layout.buffer_of/2,
          &Layout.trainers_of/2,
          &Layout.agent_group_of/2
        ] do
      assert_raise Error, ~r/rank 2 is not in it; expected 0 to 1/, fn -> ask.(layout, 2) end
    end

    assert_raise Error, ~r/no such agent group/, fn -> Layout.agent_group(layout, 1) end
  end
end
