defmodule RankBridge.GangCallsTest do
  @moduledoc "Gang calls on real ranks, on Gloo."

  use ExUnit.Case, async: true

  import RankBridge.Test.Soon

  alias RankBridge.{Error, Gang, Id, Tensor}
  alias RankBridge.Test.{LiveRanks, OsProcess, Telemetry}

  @members 0..2

  setup_all do
    ranks = LiveRanks.start(3, "gloo")
    on_exit(fn -> LiveRanks.stop(ranks) end)
    %{ranks: ranks}
  end

  setup %{ranks: ranks} do
    gang = start_supervised!({Gang, endpoints_file: ranks.file})
    :ok = RankBridge.await_ready(gang, 60_000)
    %{gang: gang}
  end

  defp values(gang, refs), do: gang |> RankBridge.get!(refs) |> Enum.map(&Tensor.to_list/1)
  defp numbered(gang), do: RankBridge.put!(gang, for(rank <- @members, do: [1.0 * rank]))
  defp on_each(value), do: List.duplicate(value, 3)

  test "gang calls and calls of ranks mix", %{gang: gang} do
    refs = numbered(gang)

    for _time <- 1..5, calls <- [:gang, :ranks] do
      assert values(gang, RankBridge.all_reduce!(gang, refs, calls: calls)) == on_each([3.0])
      assert RankBridge.barrier!(gang, calls: calls) == :ok
      assert RankBridge.Generations.ping!(gang) == :ok
    end
  end

  test "every kind of result is that of calls of each rank", %{gang: gang} do
    refs = numbered(gang)
    assert values(gang, RankBridge.all_gather!(gang, refs)) == on_each([0.0, 1.0, 2.0])
    assert [nil, ref, nil] = RankBridge.reduce!(gang, refs, dst_rank_in_group: 1)
    assert gang |> RankBridge.get!(ref) |> Tensor.to_list() == [3.0]
    # The members tell each other what they bring.
    ragged = RankBridge.put!(gang, [[0.0], [1.0, 1.0], [2.0, 2.0, 2.0]])

    for parts <- RankBridge.all_gather!(gang, ragged, layout: :list, ragged: true) do
      assert values(gang, parts) == [[0.0], [1.0, 1.0], [2.0, 2.0, 2.0]]
    end

    assert RankBridge.broadcast_object!(gang, %{1 => nil}) == on_each(%{1 => nil})
    assert RankBridge.scatter_object!(gang, [1, nil, "x"]) == [1, nil, "x"]
    assert RankBridge.all_reduce_value!(gang, [1, 2, 3]) == on_each(6)

    assert [sums, nil] =
             RankBridge.Coalesced.coalesce!(gang, [{:all_reduce, refs}, {:barrier, nil}])

    assert values(gang, sums) == on_each([3.0])
    name = "step-" <> Id.uuid()
    graph = fn -> RankBridge.all_reduce(gang, refs) end
    assert {graph, recorded} = RankBridge.Graphs.graph_capture!(gang, name, graph)
    assert RankBridge.Graphs.replay!(gang, graph) == [recorded]
    again = RankBridge.all_reduce!(gang, refs, operation_id: name)
    assert RankBridge.all_reduce!(gang, refs, operation_id: name) == again
    assert RankBridge.all_reduce!(gang, refs, operation_id: name, calls: :ranks) == again
    assert RankBridge.await!(gang, name) == again
  end

  test "large outcomes are fetched from their ranks, large parts go to each", %{gang: gang} do
    text = String.duplicate("x", 20_000)
    assert RankBridge.broadcast_object!(gang, text) == on_each(text)
    parts = for rank <- @members, do: String.duplicate("#{rank}", 1_000 + 2_000 * rank)
    assert RankBridge.all_gather_object!(gang, parts) == on_each(parts)
    text = String.duplicate("x", 200_000)
    assert RankBridge.broadcast_object!(gang, text) == on_each(text)
  end

  test "a group of some ranks", %{gang: gang} do
    name = "pair-" <> Id.uuid()
    RankBridge.new_group!(gang, name, [2, 1])
    refs = RankBridge.put!(gang, [[1], [2]], group: name)
    gathered = RankBridge.all_gather!(gang, refs, group: name)
    assert Enum.map(gathered, & &1.rank) == [2, 1]
    assert values(gang, gathered) == [[1, 2], [1, 2]]
    assert RankBridge.Generations.ping!(gang, group: name) == :ok
    RankBridge.destroy_group!(gang, name)
    assert {:error, %Error{reason: :unknown_group}} = RankBridge.barrier(gang, group: name)
  end

  test "several processes and controllers, in opposite order, never mismatch", context do
    other = start_supervised!({Gang, endpoints_file: context.ranks.file}, id: :other)

    working =
      for {gang, turn} <- [{context.gang, 0}, {other, 1}, {context.gang, 1}, {other, 0}] do
        Task.async(fn ->
          refs = numbered(gang)

          for place <- 1..20 do
            if rem(place, 2) == turn,
              do: RankBridge.barrier!(gang, calls: :gang),
              else: [_, _, _] = RankBridge.all_reduce!(gang, refs, calls: :gang)
          end
        end)
      end

    for results <- Task.await_many(working, 60_000), do: assert(length(results) == 20)
  end

  test "what one rank refuses fails on all, at once", %{gang: gang} do
    refs = numbered(gang)
    RankBridge.release!(gang, Enum.at(refs, 2))
    started = now()

    assert {:error, %Error{reason: :released_ref} = error} =
             RankBridge.all_reduce(gang, refs, timeout: 60_000)

    assert now() - started < 10_000
    assert outcomes(error) == Enum.map(@members, &{&1, :released_ref})
    refute error.indefinite
    assert RankBridge.barrier!(gang) == :ok
  end

  test "each is one call to the first rank, as telemetry sees it", %{gang: gang} do
    assert RankBridge.barrier!(gang) == :ok
    seen = Telemetry.watch([[:rank_bridge, :rank, :call, :stop]], gang)
    assert RankBridge.barrier!(gang) == :ok
    text = String.duplicate("x", 20_000)
    assert RankBridge.broadcast_object!(gang, text) == on_each(text)
    {:ok, stream} = RankBridge.CallStream.open(gang)
    {:ok, pushed} = RankBridge.CallStream.push(stream, :barrier)
    {:ok, nil} = RankBridge.CallStream.await(pushed)

    calls =
      for {_event, _measurements, metadata} <- Telemetry.seen(seen),
          do: {metadata.rank, metadata.operation, Path.basename(metadata.rpc), metadata.result}

    assert calls ==
             [{0, "barrier", "Execute", :ok}, {0, "broadcast_object", "Execute", :ok}] ++
               for(rank <- @members, do: {rank, "broadcast_object", "Await", :ok}) ++
               [{0, "barrier", "Execute", :ok}]
  end

  test "members that disagree are told so", %{gang: gang} do
    refs = RankBridge.put!(gang, [[1.0], [2.0], [3.0, 4.0]])
    assert {:error, %Error{reason: :mismatch} = error} = RankBridge.all_reduce(gang, refs)
    refute error.indefinite
    assert [2] = for(%{state: :disagrees, rank: rank} <- error.ranks, do: rank)
  end

  defp outcomes(error), do: for({rank, it} <- error.outcomes, do: {rank, it.reason})

  # The process of the first rank's stream, on which gang calls go.
  defp server(gang) do
    {:ok, view} = RankBridge.Gang.View.fetch(gang)
    RankBridge.Rank.Server.of(view, 0)
  end

  defp under_way(gang), do: map_size(:sys.get_state(server(gang)).requests.under_way)

  # The first rank waits for the others, until the function that this gives is called.
  defp busy(gang, group \\ "world") do
    part = [operation_id: Id.uuid(), timeout: 60_000, group: group]
    begin = &RankBridge.Operations.submit_rank!(gang, &1, :barrier, nil, part)
    begin.(0)
    fn -> Enum.each([1, 2], begin) end
  end

  test "calls share a stream; one that has ended is opened again", %{gang: gang} do
    server = server(gang)
    for _time <- 1..5, do: assert(RankBridge.barrier!(gang) == :ok)
    assert server(gang) == server
    monitor = Process.monitor(server)
    Process.exit(server, :kill)
    assert_receive {:DOWN, ^monitor, :process, _pid, :killed}, 10_000

    several = for _time <- 1..8, do: Task.async(fn -> RankBridge.barrier!(gang) end)
    assert several |> Task.await_many(60_000) |> Enum.uniq() == [:ok]
    assert server(gang) != server
  end

  test "calls of a group do not wait for those of another", %{gang: gang} do
    name = "all-" <> Id.uuid()
    RankBridge.new_group!(gang, name, [0, 1, 2])
    go_on = busy(gang, name)
    waiting = Task.async(fn -> RankBridge.barrier(gang, group: name, timeout: 60_000) end)
    assert_soon(1, fn -> under_way(gang) end)
    assert RankBridge.barrier!(gang) == :ok
    assert Task.yield(waiting, 0) == nil
    go_on.()
    assert Task.await(waiting, 60_000) == :ok
    RankBridge.destroy_group!(gang, name)
  end

  test "a call is told in its time, also behind one that may take longer", %{gang: gang} do
    go_on = busy(gang)
    waiting = Task.async(fn -> RankBridge.barrier(gang, timeout: 60_000) end)
    assert_soon(1, fn -> under_way(gang) end)
    assert {:error, %Error{} = error} = RankBridge.barrier(gang, timeout: 200)
    assert {error.reason, error.indefinite} == {:deadline_exceeded, false}
    go_on.()
    assert Task.await(waiting, 60_000) == :ok
  end

  test "the death of the caller withdraws its parts", %{gang: gang, ranks: ranks} do
    OsProcess.stop(Enum.at(ranks.pids, 2))
    on_exit(fn -> OsProcess.signal(Enum.at(ranks.pids, 2), "CONT") end)
    test = self()

    {:ok, calling} =
      Task.start(fn -> send(test, {:given, RankBridge.barrier(gang, timeout: 60_000)}) end)

    assert_soon([1, 1], fn -> pending(gang) end)
    refute_received {:given, _too_early}
    Process.exit(calling, :kill)
    assert_soon([0, 0], fn -> pending(gang) end)
    OsProcess.signal(Enum.at(ranks.pids, 2), "CONT")
    assert RankBridge.barrier!(gang) == :ok
  end

  describe "ranks that a test may kill" do
    setup do
      # A rank that was killed stays away, however long the test takes to look.
      ranks = LiveRanks.start(3, "gloo", ["--on-rank-exit", "leave"])
      on_exit(fn -> LiveRanks.stop(ranks) end)
      opts = [endpoints_file: ranks.file]
      mortal = start_supervised!({Gang, opts}, id: :mortal)
      assert RankBridge.barrier!(mortal) == :ok
      %{mortal: mortal, pids: ranks.pids}
    end

    test "one that is killed during a call is told to its caller at once", context do
      %{mortal: gang, pids: pids} = context
      refs = numbered(gang)
      # Stopped first, so that its part never comes.
      OsProcess.stop(Enum.at(pids, 2))
      calling = Task.async(fn -> RankBridge.all_reduce(gang, refs, timeout: 60_000) end)
      assert_soon([1, 1], fn -> pending(gang) end)
      OsProcess.signal(Enum.at(pids, 2), "KILL")
      started = now()
      assert {:error, %Error{reason: :peer_lost, rank: 2} = error} = Task.await(calling, 60_000)
      assert now() - started < 10_000
      assert [0, 1, 2] = for({rank, %Error{}} <- error.outcomes, do: rank)
    end

    test "the one that is asked, killed during a call, is told to its caller at once", context do
      %{mortal: gang, pids: pids} = context
      OsProcess.stop(hd(pids))
      calling = Task.async(fn -> RankBridge.barrier(gang, timeout: 60_000) end)
      # What was not sent would be known not to have begun.
      assert_soon(1, fn -> under_way(gang) end)
      OsProcess.signal(hd(pids), "KILL")
      started = now()
      assert {:error, %Error{reason: :unavailable} = error} = Task.await(calling, 60_000)
      assert now() - started < 10_000
      assert error.indefinite
      assert [%{rank: 0, state: :lost}] = error.ranks
      assert outcomes(error) == Enum.map(@members, &{&1, :unavailable})
    end
  end

  @tag sampled: RankBridge.Test.Sampled.part(__ENV__)
  test "a gang that is whole again has gang calls again, whoever was lost", %{test: name} do
    opts = [name: name, size: 2, command: OsProcess.rankbridge()]
    start_supervised!({Gang, opts}, id: :whole)
    assert RankBridge.await_ready(name, 60_000) == :ok
    assert RankBridge.barrier!(name) == :ok
    Gang.subscribe(name)

    for lost <- [0, 1] do
      name |> RankBridge.status!() |> Enum.at(lost) |> Map.fetch!(:pid) |> OsProcess.kill()
      assert_receive {:rank_bridge, ^name, %Gang.Event{kind: :rank_lost, rank: ^lost}}, 60_000
      assert RankBridge.await_ready(name, 60_000) == :ok
      assert RankBridge.Generations.ping!(name) == :ok
      assert RankBridge.barrier!(name) == :ok
    end
  end

  # Of the ranks that go on.
  defp pending(gang) do
    {:ok, view} = RankBridge.Gang.View.fetch(gang)

    for rank <- 0..1 do
      {:ok, status} = RankBridge.Ranks.status_of(view, rank, [])
      status.pending_operations
    end
  end

  defp now, do: System.monotonic_time(:millisecond)
end
