defmodule RankBridge.Gang.NewsTest do
  use ExUnit.Case, async: true

  alias RankBridge.{Error, RankStatus}
  alias RankBridge.Error.RankDetail
  alias RankBridge.Gang.{Event, News}

  @pids %{0 => 100, 1 => 101, 2 => 102}

  defp status(rank, fields),
    do:
      struct!(
        %RankStatus{rank: rank, pid: @pids[rank], generation: 3, generation_state: :formed},
        fields
      )

  defp statuses(changed \\ %{}), do: for(rank <- 0..2, do: status(rank, changed[rank] || []))

  test "news of another generation, or of processes that are not in it, does not concern the gang" do
    assert News.concerns?({:exited, 1, 101, "killed"}, 3, @pids)
    refute News.concerns?({:exited, 1, 99, "killed"}, 3, @pids)
    assert News.concerns?({:over, 3, %{1 => "gone"}, "gone"}, 3, @pids)
    refute News.concerns?({:over, 2, %{1 => "gone"}, "gone"}, 3, @pids)
    # Formed by somebody else, of whom the gang has not heard.
    assert News.concerns?({:over, 4, %{1 => "gone"}, "gone"}, 3, @pids)
  end

  test "what was heard first of a rank is kept, by the number that it has" do
    news = [
      {:exited, 7, 101, "killed by SIGKILL"},
      {:over, 3, %{1 => "its link was closed", 2 => "silent"}, "some are gone"},
      {:exited, 5, 99, "of no account"}
    ]

    assert News.lost(news, @pids) == %{1 => "killed by SIGKILL", 2 => "silent"}
    assert News.lost([], @pids) == %{}
  end

  test "what a rank tells of lost ones is told of each where it says so, else of all" do
    details = [
      %RankDetail{rank: 0, rank_in_group: 0, state: :arrived},
      %RankDetail{rank: 1, rank_in_group: 1, state: :lost, detail: "its link was closed"},
      %RankDetail{rank: 2, rank_in_group: 2, state: :lost}
    ]

    event = %Event{
      kind: :over,
      generation: 3,
      reason: "two are gone",
      ranks: [1, 2],
      error: %Error{reason: :peer_lost, ranks: details}
    }

    assert News.over(event) ==
             {:over, 3, %{1 => "its link was closed", 2 => "two are gone"}, "two are gone"}

    assert News.over(%{event | error: nil}) ==
             {:over, 3, %{1 => "two are gone", 2 => "two are gone"}, "two are gone"}
  end

  describe "what statuses tell" do
    test "is nothing where all are in the generation" do
      assert News.look(statuses(), 3, @pids) == nil
    end

    test "is who does not answer, and who was started again" do
      error = Error.refusal(:unavailable, "no connection")
      gone = [generation: 0, pid: 0, generation_state: :unspecified, error: error]
      again = [generation: 0, pid: 103, generation_state: :none]
      over = [generation_state: :over]

      assert {:over, 3, %{1 => "no connection", 2 => "was started again"}, _reason} =
               News.look(statuses(%{0 => over, 1 => gone, 2 => again}), 3, @pids)

      # In another host's numbers it may be the same process id.
      assert {:over, 3, %{2 => "was started again"}, _reason} =
               News.look(statuses(%{2 => [generation: 0, generation_state: :none]}), 3, @pids)
    end

    test "is nobody where the backend has failed, or somebody else has formed the next one" do
      over = [generation_state: :over]
      since = [generation: 4]

      for changed <- [over, since] do
        assert {:over, 3, lost, _reason} =
                 News.look(statuses(Map.new(0..2, &{&1, changed})), 3, @pids)

        assert lost == %{}
      end

      # Of which one rank is new.
      changed = %{0 => since, 1 => since, 2 => [generation: 4, pid: 103]}

      assert {:over, 3, %{2 => "was started again"}, _reason} =
               News.look(statuses(changed), 3, @pids)
    end
  end

  test "who is gone without news of the generation that was formed since is seen by the processes in it" do
    news = [{:over, 3, %{1 => "closed"}, "closed"}, {:exited, 1, 101, "killed by SIGKILL"}]
    replaced = statuses(%{1 => [pid: 201, generation: 4], 2 => [pid: 202, generation: 4]})

    # The newest comes first.
    assert News.gone(news, @pids, %{statuses: replaced, moved: %{}}) ==
             %{1 => "killed by SIGKILL", 2 => "was started again"}

    assert News.gone([], @pids, %{statuses: statuses(), moved: %{}}) == %{}

    left = [status(2, rank: 0, generation: 4)]

    assert News.gone(news, @pids, %{statuses: left, moved: %{2 => 0}}) ==
             %{0 => "did not answer", 1 => "killed by SIGKILL"}
  end

  test "each lost rank is an event; where none was, the end of the generation is one" do
    over = {:over, 3, %{}, "the backend has failed"}

    assert News.events([over, over], %{}, 3) ==
             [%Event{kind: :over, generation: 3, reason: "the backend has failed"}]

    assert News.events([over], %{1 => "killed", 2 => "silent"}, 3) == [
             %Event{kind: :rank_lost, generation: 3, rank: 1, reason: "killed"},
             %Event{kind: :rank_lost, generation: 3, rank: 2, reason: "silent"}
           ]

    assert News.events([], %{}, 3) == []
  end

  test "the error names who was lost, and how" do
    assert %Error{reason: :peer_lost, rank: 1, generation: 3} =
             error = News.error(%{2 => "silent", 1 => "killed"}, 3, "; too many")

    assert error.message == "lost was rank 1: killed, rank 2: silent; too many"
    assert %Error{reason: :backend_failed, rank: nil, generation: 3} = News.error(%{}, 3)
  end
end
