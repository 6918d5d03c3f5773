defmodule RankBridge.Gang.LossesTest do
  @moduledoc "What a gang makes of losses that come at moments that real ranks seldom choose: on ranks that a test directs."

  use ExUnit.Case, async: true

  alias RankBridge.{Error, Gang}
  alias RankBridge.Gang.{Event, Lost}
  alias RankBridge.Proto.V1
  alias RankBridge.Test.{GangChildren, WatchedRanks}

  # Bounds a hang, and nothing else.
  @soon 30_000

  setup %{test: test} do
    # Not of one with its ranks: they can end after it.
    %{ranks: start_supervised!({WatchedRanks, 3}), name: test}
  end

  # Its callback does what the test tells it to.
  defp start(context, opts) do
    test = self()

    directed = fn gang, lost ->
      send(test, {:called, self(), lost})
      receive do: ({:do, fun} -> fun.(gang))
    end

    defaults = [name: context.name, handle_rank_lost: directed, unready: :fail, lease: nil]
    Gang.subscribe(context.name)

    gang =
      start_supervised!({Gang, Keyword.merge(WatchedRanks.gang(context.ranks) ++ defaults, opts)},
        restart: :temporary
      )

    assert_formed(1)
    await_watched(context.ranks)
    gang
  end

  # The ranks are watched in the background; a gang that is ready may not hear of them yet.
  defp await_watched(ranks) do
    if Enum.any?(0..2, &(WatchedRanks.watchers(ranks, &1) == 0)), do: await_watched(ranks)
  end

  defp assert_formed(generation) do
    assert_receive {:rank_bridge, _gang, %Event{kind: :formed} = event}, @soon
    assert event.generation == generation
    event
  end

  defp assert_lost(rank) do
    assert_receive {:rank_bridge, _gang, %Event{kind: :rank_lost, rank: ^rank} = event}, @soon
    event
  end

  defp called(fun \\ fn _gang -> :ok end) do
    assert_receive {:called, pid, %Lost{} = lost}, @soon
    send(pid, {:do, fun})
    lost
  end

  defp nothing_more(context) do
    # What has come to the gang is told before it answers this.
    _state = GangChildren.state(context.name)
    refute_received {:rank_bridge, _gang, _event}
    refute_received {:called, _pid, _lost}
  end

  test "each loss is told once, though every rank tells of it", context do
    gang = start(context, on_rank_lost: :replace)
    WatchedRanks.lose(context.ranks, [1])
    assert %Event{generation: 1, reason: "ranks [1] are gone"} = assert_lost(1)
    assert {:error, %Error{reason: :unavailable} = error} = RankBridge.barrier(gang)
    assert error.message =~ "rank 1"
    WatchedRanks.replace(context.ranks, 1)

    assert %Lost{ranks: [1], policy: :replace, generation: 2, moved: moved} = called()
    assert moved == %{}
    assert %Event{world_size: 3} = assert_formed(2)
    assert RankBridge.barrier(gang) == :ok
    nothing_more(context)
  end

  test "a rank that is lost, and replaced, while another is being replaced is told of too",
       context do
    start(context, on_rank_lost: :replace)

    WatchedRanks.before_forming(context.ranks, fn ->
      WatchedRanks.lose(context.ranks, [2])
      WatchedRanks.replace(context.ranks, 2)
    end)

    WatchedRanks.lose(context.ranks, [1])
    WatchedRanks.replace(context.ranks, 1)
    assert_lost(1)
    assert_lost(2)
    # What was on it is to be brought back as well.
    assert %Lost{ranks: [1, 2], generation: 2} = called()
    assert_formed(2)
    nothing_more(context)
  end

  test "a rank that is lost while the gang shrinks is left out, and told of", context do
    gang = start(context, on_rank_lost: :shrink)
    WatchedRanks.before_forming(context.ranks, fn -> WatchedRanks.lose(context.ranks, [1]) end)
    WatchedRanks.lose(context.ranks, [0])
    assert_lost(0)
    assert_lost(1)
    assert %Lost{ranks: [0, 1], policy: :shrink, moved: %{2 => 0}} = called()
    assert %Event{world_size: 1} = assert_formed(2)
    assert Gang.size(gang) == {:ok, 1}
    assert RankBridge.barrier(gang) == :ok
    nothing_more(context)
  end

  test "those that are lost while the gang is made whole count", context do
    gang = start(context, on_rank_lost: :replace, max_restarts: 1, max_seconds: 3_600)
    monitor = Process.monitor(gang)

    WatchedRanks.before_forming(context.ranks, fn ->
      WatchedRanks.lose(context.ranks, [2])
      WatchedRanks.replace(context.ranks, 2)
    end)

    WatchedRanks.lose(context.ranks, [1])
    WatchedRanks.replace(context.ranks, 1)
    assert_receive {:DOWN, ^monitor, :process, ^gang, {:shutdown, %Error{} = error}}, @soon
    assert %Error{reason: :peer_lost, rank: 1} = error
    assert error.message =~ "2 were lost, allowed are max_restarts: 1 in 3600 s"
  end

  test "ranks that are lost twice while the gang shrinks are told by their first numbers",
       context do
    gang = start(context, on_rank_lost: :shrink)
    WatchedRanks.lose(context.ranks, [0])
    assert_lost(0)
    # What was 2 is 1 now, and is lost while the callback runs, which fails by that.
    assert %Lost{ranks: [0], moved: %{1 => 0, 2 => 1}} =
             called(fn gang ->
               WatchedRanks.lose(context.ranks, [2])
               RankBridge.barrier(gang)
             end)

    assert_lost(1)
    assert %Lost{ranks: [0, 2], moved: %{1 => 0}, generation: 3} = called()
    assert_formed(3)
    assert Gang.size(gang) == {:ok, 1}
    nothing_more(context)
  end

  test "a callback that a lost rank lets fail is called again, however it failed", context do
    gang = start(context, on_rank_lost: :replace, max_restarts: 10, max_seconds: 3_600)
    %{ranks: ranks} = context

    again = fn ->
      WatchedRanks.lose(ranks, [2])
      WatchedRanks.replace(ranks, 2)
    end

    failing = [
      fn gang -> again.() && RankBridge.barrier(gang) end,
      fn gang -> again.() && RankBridge.barrier!(gang) end,
      fn _gang -> again.() && exit(:gone) end,
      fn _gang -> again.() && throw(:gone) end,
      # A task takes the callback's process along.
      fn gang -> again.() && Task.await(Task.async(fn -> exit(failed(gang)) end), :infinity) end
    ]

    WatchedRanks.lose(ranks, [1])
    WatchedRanks.replace(ranks, 1)
    assert %Lost{ranks: [1]} = called(hd(failing))
    for fun <- tl(failing), do: assert(%Lost{ranks: [1, 2]} = called(fun))
    assert %Lost{ranks: [1, 2], generation: 7} = called()
    assert_formed(7)
    assert RankBridge.barrier(gang) == :ok
  end

  # As a shutdown it is no crash that OTP would log.
  defp failed(gang), do: {:shutdown, RankBridge.barrier(gang)}

  test "a generation that somebody else has formed is taken, and the callback begins again in it",
       context do
    gang = start(context, on_rank_lost: :replace)
    %{ranks: ranks} = context
    WatchedRanks.lose(ranks, [1])
    WatchedRanks.replace(ranks, 1)

    assert %Lost{ranks: [1], generation: 2} =
             called(fn _gang -> WatchedRanks.form(ranks) && {:error, "it was over"} end)

    # It was not that ranks were lost.
    assert %Lost{ranks: [1], generation: 3} = called()
    assert_formed(3)
    assert RankBridge.barrier(gang) == :ok
  end

  test "a loss is not forgotten because somebody else has formed the gang since", context do
    gang = start(context, on_rank_lost: :replace)
    %{ranks: ranks} = context
    session = Gang.session_id(gang)
    WatchedRanks.lose(ranks, [1])
    WatchedRanks.replace(ranks, 1)

    # The callback does not notice.
    assert %Lost{ranks: [1], generation: 2} =
             called(fn _gang ->
               WatchedRanks.lose(ranks, [2])
               WatchedRanks.replace(ranks, 2)
               WatchedRanks.form(ranks)
               await_formed(context.name, 3)
             end)

    assert_lost(2)
    assert %Lost{ranks: [1, 2]} = called()
    # At first, and in each generation since.
    assert WatchedRanks.asked(ranks, "OpenSession", 2) >= 3
    assert_formed(3)
    assert Gang.session_id(gang) == session
    assert RankBridge.barrier(gang) == :ok
  end

  # Each rank tells of a generation's end before it tells of the next one.
  defp await_formed(name, generation),
    do:
      if(GangChildren.state(name).formed < generation,
        do: await_formed(name, generation),
        else: :ok
      )

  test "a generation that somebody else forms is told, and is no loss", context do
    gang = start(context, on_rank_lost: :replace)
    WatchedRanks.form(context.ranks)
    assert %Event{world_size: 3} = assert_formed(2)
    WatchedRanks.form(context.ranks)
    assert_formed(3)
    nothing_more(context)
    assert RankBridge.barrier(gang, unready: :fail) == :ok
    assert WatchedRanks.asked(context.ranks, "Form", 0) == 0
  end

  test "a backend that fails is told once, and the gang is formed again", context do
    gang = start(context, on_rank_lost: :replace)
    WatchedRanks.fail(context.ranks, :ERROR_CODE_BACKEND_FAILED, "no way through")
    assert_receive {:rank_bridge, _gang, %Event{kind: :over} = event}, @soon
    assert %Event{generation: 1, reason: "no way through", ranks: []} = event
    assert %Lost{ranks: [], generation: 2} = called()
    assert_formed(2)
    assert RankBridge.barrier(gang) == :ok
    nothing_more(context)
  end

  test "where nothing is done, each loss and each end is told once all the same", context do
    gang = start(context, on_rank_lost: :leave)
    %{ranks: ranks} = context
    WatchedRanks.fail(ranks, :ERROR_CODE_BACKEND_FAILED, "no way through")
    assert_receive {:rank_bridge, _gang, %Event{kind: :over}}, @soon
    for rank <- 0..2, do: drained(ranks, rank)
    nothing_more(context)

    RankBridge.form!(gang)
    assert_formed(2)
    WatchedRanks.lose(ranks, [1])
    assert_lost(1)
    for rank <- [0, 2], do: drained(ranks, rank)
    nothing_more(context)

    # The same rank, in another generation.
    WatchedRanks.replace(ranks, 1)
    await_watched(ranks)
    RankBridge.form!(gang)
    assert_formed(3)
    WatchedRanks.lose(ranks, [1])
    assert_lost(1)
    nothing_more(context)
  end

  # That a rank was heard to the end: what it tells last has come.
  defp drained(ranks, place) do
    error = %V1.Error{code: :ERROR_CODE_MISMATCH, message: "mark #{place}"}
    WatchedRanks.report(ranks, place, {:mismatch, error})
    message = "mark #{place}"
    assert_receive {:rank_bridge, _gang, %Event{kind: :mismatch, reason: ^message}}, @soon
  end

  test "what happens while connections are lost is told afterwards, and nothing twice", context do
    start(context, on_rank_lost: :replace)
    %{ranks: ranks} = context
    drained(ranks, 1)
    WatchedRanks.hang_up(ranks)
    drained(ranks, 1)
    await_watched(ranks)
    drained(ranks, 1)
    nothing_more(context)
  end

  test "the next watch reports what happens while there is none, and nothing twice",
       context do
    gang = start(context, on_rank_lost: :replace)
    supervisor = GangChildren.pid(gang, :watchers)
    watches = Task.Supervisor.children(supervisor)
    # None takes a watch's place until the supervisor goes on.
    :ok = :sys.suspend(supervisor)
    monitors = for pid <- watches, do: Process.monitor(pid)
    for pid <- watches, do: Process.exit(pid, :kill)
    for monitor <- monitors, do: assert_receive({:DOWN, ^monitor, :process, _pid, _reason}, @soon)

    error = %V1.Error{code: :ERROR_CODE_MISMATCH, message: "sides", operation_id: "meanwhile"}
    WatchedRanks.report(context.ranks, 0, {:mismatch, error})
    WatchedRanks.lose(context.ranks, [1])
    WatchedRanks.replace(context.ranks, 1)
    :ok = :sys.resume(supervisor)

    assert_receive {:rank_bridge, _gang, %Event{operation_id: "meanwhile"}}, @soon
    assert_lost(1)
    called()
    assert_formed(2)
    await_watched(context.ranks)
    nothing_more(context)
  end

  test "all ranks at once", context do
    gang = start(context, on_rank_lost: :replace)
    WatchedRanks.lose(context.ranks, [0, 1, 2])
    for rank <- 0..2, do: WatchedRanks.replace(context.ranks, rank)
    for rank <- 0..2, do: assert(assert_lost(rank).reason == "was started again")
    assert %Lost{ranks: [0, 1, 2], generation: 2} = called()
    assert_formed(2)
    assert RankBridge.barrier(gang) == :ok
  end

  test "a gang that ends leaves none of its processes", context do
    gang = start(context, on_rank_lost: :replace)
    watchers = Task.Supervisor.children(GangChildren.pid(gang, :watchers))
    assert length(watchers) == 3
    WatchedRanks.lose(context.ranks, [1])
    WatchedRanks.replace(context.ranks, 1)
    assert_receive {:called, callback, _lost}, @soon
    monitors = for pid <- [callback | watchers], do: Process.monitor(pid)
    :ok = Gang.stop(gang)
    for monitor <- monitors, do: assert_receive({:DOWN, ^monitor, :process, _pid, _reason}, @soon)
    for rank <- 0..2, do: await_unwatched(context.ranks, rank)
  end

  defp await_unwatched(ranks, rank) do
    if WatchedRanks.watchers(ranks, rank) > 0, do: await_unwatched(ranks, rank)
  end

  test "nothing is done about ranks that a gang that is to stop has lost, but to say which",
       context do
    gang = start(context, on_rank_lost: :stop)
    monitor = Process.monitor(gang)
    WatchedRanks.lose(context.ranks, [1])
    assert_receive {:DOWN, ^monitor, :process, ^gang, {:shutdown, %Error{} = error}}, @soon
    assert %Error{reason: :peer_lost, rank: 1, generation: 1} = error
    assert_lost(1)
  end
end
