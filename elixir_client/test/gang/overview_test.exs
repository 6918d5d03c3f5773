defmodule RankBridge.Gang.OverviewTest do
  use ExUnit.Case, async: true

  alias RankBridge.{Error, Gang, RankStatus}
  alias RankBridge.Gang.{Event, Overview}
  alias RankBridge.Test.WatchedRanks

  defp straggler(id, fields \\ []) do
    event = %Event{kind: :straggler, group: "world", operation: "barrier", operation_id: id}
    struct!(%{event | ranks: [1], waited_us: 12_345}, fields)
  end

  defp added(overview, events), do: Enum.reduce(events, overview, &Overview.add(&2, &1))
  defp late(overview), do: for(event <- overview.stragglers, do: event.operation_id)

  test "stragglers are those that have not come" do
    overview = added(Overview.new(:gang), [straggler("a"), straggler("b"), straggler("a")])
    assert late(overview) == ["a", "b"]
    assert overview |> Overview.add(straggler("a", arrived?: true)) |> late() == ["b"]
    missing = %Event{kind: :peer_missing, operation_id: "b"}
    assert overview |> Overview.add(missing) |> late() == ["a"]
    assert overview |> Overview.add(%Event{kind: :rank_lost, rank: 1}) |> late() == []
  end

  test "the last events are kept, the newest first" do
    overview =
      added(Overview.new(:gang), for(n <- 1..30, do: %Event{kind: :formed, generation: n}))

    assert for({%DateTime{}, event} <- overview.events, do: event.generation) ==
             Enum.to_list(30..11)

    assert overview.generation == 30
  end

  test "a row says why its rank is not well" do
    over = Error.refusal(:backend_failed, "the backend has failed")
    gone = Error.refusal(:unavailable, "no connection")

    ranks = [
      %RankStatus{
        rank: 0,
        host: "a",
        generation: 2,
        generation_state: :formed,
        pending_operations: 3
      },
      %RankStatus{rank: 1, pending_operations: 1},
      %RankStatus{rank: 2, generation_error: over},
      %RankStatus{rank: 3, error: gone}
    ]

    overview = Overview.add(%{Overview.new(:gang) | ranks: ranks}, straggler("a"))

    assert [%{host: "a", generation: 2, state: :formed, pending: 3, note: ""} | others] =
             Overview.rows(overview)

    assert for(row <- others, do: row.note) == ["others wait for it", over.message, gone.message]
    assert Overview.pending(overview) == 4
  end

  test "every kind of event is one line" do
    for {event, line} <- [
          {%Event{kind: :formed, generation: 2, world_size: 4},
           "generation 2 is formed, of 4 ranks"},
          {%Event{kind: :rank_lost, rank: 1, generation: 2, reason: "killed"},
           "rank 1 is lost in generation 2: killed"},
          {%Event{kind: :over, generation: 2, reason: "failed"}, "generation 2 is over: failed"},
          {straggler("a", ranks: [1, 3]),
           "barrier of group world waits for ranks 1, 3, since 12 ms"},
          {straggler("a", arrived?: true), "rank 1 came to barrier of group world after 12 ms"},
          {%{straggler("a") | kind: :peer_missing},
           "rank 1 did not come to barrier of group world"},
          {%{straggler("a") | kind: :mismatch, reason: "two sides"},
           "the members do not agree about barrier of group world: two sides"},
          {%Event{kind: :missed, missed: 7}, "7 events were missed"}
        ],
        do: assert(Overview.describe(event) == line)
  end

  test "a refresh asks the ranks, or says why it cannot" do
    assert %{error: %Error{reason: :unavailable}, ranks: []} =
             :nobody |> Overview.new() |> Overview.refresh()

    ranks = start_supervised!({WatchedRanks, 2})
    gang = start_supervised!({Gang, WatchedRanks.gang(ranks)})
    :ok = RankBridge.await_ready(gang, 60_000)

    assert %{error: nil, generation: 1, ranks: [%{rank: 0}, %{rank: 1}]} =
             gang |> Overview.new() |> Overview.refresh()
  end
end
