defmodule RankBridge.Gang.EventTest do
  use ExUnit.Case, async: true

  alias RankBridge.Error
  alias RankBridge.Gang.Event
  alias RankBridge.Proto.V1

  defp event(kind), do: Event.from_proto(%V1.Event{number: 7, rank: 1, generation: 3, kind: kind})

  defp detail(rank, state, detail \\ ""),
    do: %V1.RankDetail{rank: rank, rank_in_group: rank, state: state, detail: detail}

  test "of a generation that was formed" do
    assert event({:formed, %V1.FormedEvent{world_size: 4}}) ==
             %Event{kind: :formed, generation: 3, world_size: 4}
  end

  test "of one that is over: the lost ranks are in it" do
    error = %V1.Error{
      code: :ERROR_CODE_PEER_LOST,
      message: "rank 2 is lost",
      ranks: [detail(0, :RANK_STATE_FAILED), detail(2, :RANK_STATE_LOST, "its link was closed")]
    }

    assert %Event{kind: :over, generation: 3, ranks: [2], reason: "rank 2 is lost"} =
             event_of_rank = event({:over, error})

    assert %Error{reason: :peer_lost, rank: 2} = event_of_rank.error
  end

  test "of members that disagree, and of those that are missing" do
    error = %V1.Error{
      code: :ERROR_CODE_MISMATCH,
      message: "shapes differ",
      group: "world",
      operation: "all_reduce",
      operation_id: "x",
      ranks: [detail(0, :RANK_STATE_ARRIVED), detail(1, :RANK_STATE_DISAGREES, "[2]")]
    }

    assert %Event{kind: :mismatch, group: "world", operation: "all_reduce", operation_id: "x"} =
             event_of_rank = event({:mismatch, error})

    assert event_of_rank.ranks == [1]
    assert %Error{reason: :mismatch, ranks: [_arrived, %{detail: "[2]"}]} = event_of_rank.error

    ranks = [
      detail(0, :RANK_STATE_ARRIVED),
      detail(1, :RANK_STATE_MISSING),
      detail(3, :RANK_STATE_LOST)
    ]

    error = %{error | code: :ERROR_CODE_PEER_MISSING, ranks: ranks}
    assert %Event{kind: :peer_missing, ranks: [1, 3]} = event({:peer_missing, error})
  end

  test "of members that are late, and have come since" do
    first = %V1.ArrivedMember{rank: 0, after_us: 0}

    straggler = %V1.StragglerEvent{
      group: "world",
      operation: "barrier",
      operation_id: "x",
      arrived: [first],
      missing: [%V1.MissingMember{rank: 1}, %V1.MissingMember{rank: 2}],
      waited_us: 1_000
    }

    assert event({:straggler, straggler}) ==
             %Event{
               kind: :straggler,
               generation: 3,
               group: "world",
               operation: "barrier",
               operation_id: "x",
               ranks: [1, 2],
               waited_us: 1_000
             }

    # Who came soon after the first was not late.
    came = [
      first,
      %V1.ArrivedMember{rank: 1, after_us: 500},
      %V1.ArrivedMember{rank: 2, after_us: 1_000}
    ]

    assert %Event{arrived?: true, ranks: [2]} =
             event({:straggler, %{straggler | arrived: came, missing: []}})
  end

  test "of a kind that is not known there is none" do
    assert event(nil) == nil
  end
end
