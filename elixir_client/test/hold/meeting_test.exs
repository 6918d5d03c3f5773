defmodule RankBridge.Hold.MeetingTest do
  @moduledoc "Whom `RankBridge.Hold.together/2` steps, so that ranks that are held at different calls meet at one."

  use ExUnit.Case, async: true

  alias RankBridge.HeldCall
  alias RankBridge.Hold.Meeting
  alias RankBridge.Proto.V1

  @ranks [0, 1, 2]

  defp held(rank, number, group \\ "world") do
    HeldCall.from_proto(%V1.HeldCall{
      rank: rank,
      held_id: number,
      caller: :CALLER_SCRIPT,
      group: group,
      operation: "all_reduce",
      number: number
    })
  end

  defp stepped(numbers),
    do: for({rank, number} <- numbers, into: %{}, do: {{rank, :script, "world"}, number})

  test "those are stepped for whom another rank waits in their call" do
    calls = [held(1, 4), held(2, 4)]
    assert Meeting.behind(calls, @ranks, %{}) == calls
  end

  test "a rank that is ahead is not stepped before the others have come" do
    stepped = stepped(%{1 => 4, 2 => 4})
    assert Meeting.behind([held(0, 5)], @ranks, stepped) == []
    assert Meeting.behind([held(0, 5), held(2, 5)], @ranks, stepped) == []
  end

  test "a rank that has gone further than those that are held is not waited for" do
    assert Meeting.behind([held(1, 4)], [0, 1], stepped(%{0 => 6})) == [held(1, 4)]
    assert Meeting.behind([held(1, 6)], [0, 1], stepped(%{0 => 6, 1 => 5})) == [held(1, 6)]
  end

  test "of all ranks that are held the lowest of each group are stepped" do
    calls = [held(0, 3), held(1, 4), held(2, 1, "pair")]

    assert Meeting.behind(calls, @ranks, %{}) |> Enum.sort_by(& &1.rank) == [
             held(0, 3),
             held(2, 1, "pair")
           ]
  end
end
