defmodule RankBridge.CallStreamTest do
  @moduledoc "Streams of gang calls, on real ranks, on Gloo."

  use ExUnit.Case, async: true

  import RankBridge.Test.Soon

  alias RankBridge.{CallStream, Error, Gang, Id, Tensor}
  alias RankBridge.CallStream.Pushed
  alias RankBridge.Test.{LiveRanks, OsProcess}

  @members 0..2

  setup_all do
    ranks = LiveRanks.start(3, "gloo")
    on_exit(fn -> LiveRanks.stop(ranks) end)
    %{ranks: ranks}
  end

  setup %{ranks: ranks} do
    gang = start_supervised!({Gang, endpoints_file: ranks.file})
    {:ok, stream} = CallStream.open(gang)
    %{gang: gang, stream: stream}
  end

  defp values(gang, refs), do: gang |> RankBridge.get!(refs) |> Enum.map(&Tensor.to_list/1)
  defp numbered(gang), do: RankBridge.put!(gang, for(rank <- @members, do: [1.0 * rank]))
  defp on_each(value), do: List.duplicate(value, 3)

  defp results(pushed), do: Enum.map(pushed, &CallStream.await/1)

  test "calls are done in order, many under way, and give what direct calls give", context do
    %{gang: gang, stream: stream} = context
    refs = numbered(gang)

    pushed = [
      CallStream.push!(stream, :barrier),
      CallStream.push!(stream, :all_reduce, refs, in_place: true),
      CallStream.push!(stream, :all_gather, refs),
      CallStream.push!(stream, :broadcast_object, %{1 => nil}, src_rank_in_group: 1),
      CallStream.push!(stream, :ping)
    ]

    assert [nil, ^refs, gathered, objects, nil] = for({:ok, value} <- results(pushed), do: value)
    assert values(gang, gathered) == on_each([3.0, 3.0, 3.0])
    assert objects == on_each(%{1 => nil})

    # More than go at once.
    many =
      for _time <- 1..300,
          do: CallStream.push!(stream, :all_reduce, refs, in_place: true, op: :max)

    # In whichever order they are asked for.
    assert many |> Enum.reverse() |> results() |> Enum.uniq() == [{:ok, refs}]
    assert values(gang, refs) == on_each([3.0])
    assert CallStream.close(stream) == :ok
    assert CallStream.close(stream) == :ok
  end

  test "one that fails keeps no other from being done", %{gang: gang, stream: stream} do
    refs = numbered(gang)
    released = numbered(gang)
    RankBridge.release!(gang, Enum.at(released, 1))
    first = CallStream.push!(stream, :all_reduce, refs, in_place: true)
    failing = CallStream.push!(stream, :all_reduce, released)
    last = CallStream.push!(stream, :barrier)
    assert CallStream.await(first) == {:ok, refs}

    assert {:error, %Error{reason: :released_ref, indefinite: false} = error} =
             CallStream.await(failing)

    assert [{0, %Error{}}, {1, %Error{}}, {2, %Error{}}] = error.outcomes
    assert CallStream.await(last) == {:ok, nil}
  end

  test "what no gang call can be is refused, and nothing is sent", context do
    %{gang: gang, stream: stream} = context

    for {operation, input, opts} <- [
          {:barrier, nil, [group: "world"]},
          {:barrier, nil, [calls: :gang]},
          {:barrier, nil, [:all]},
          {:both, nil, []},
          {:send, nil, []},
          {:all_reduce, [], []},
          {:broadcast_object, String.duplicate("x", 70_000), []},
          {:broadcast_object, self(), []}
        ] do
      assert {:error, %Error{reason: :invalid_argument}} =
               CallStream.push(stream, operation, input, opts)
    end

    # What is too large to be passed on is fetched.
    text = String.duplicate("x", 20_000)

    assert stream |> CallStream.push!(:broadcast_object, text) |> CallStream.await() ==
             {:ok, on_each(text)}

    assert RankBridge.barrier!(gang) == :ok
  end

  test "with a ! it gives what there is, or raises the error", %{gang: gang} do
    stream = CallStream.open!(gang)
    refs = numbered(gang)

    assert stream |> CallStream.push!(:all_reduce, refs, in_place: true) |> CallStream.await!() ==
             refs

    RankBridge.release!(gang, refs)
    failing = CallStream.push!(stream, :all_reduce, refs)
    after_it = CallStream.push!(stream, :barrier)
    assert_raise Error, ~r/^released_ref/, fn -> CallStream.await!(failing) end
    assert CallStream.await!(after_it) == nil
    assert_raise Error, ~r/^invalid_argument/, fn -> CallStream.push!(stream, :send) end
    assert_raise Error, ~r/^unknown_group/, fn -> CallStream.open!(gang, group: "none") end
  end

  test "a repeated id gives the first outcome; the ranks know what was pushed by its id",
       context do
    %{gang: gang, stream: stream} = context
    refs = numbered(gang)
    id = Id.uuid()
    first = CallStream.push!(stream, :all_reduce, refs, operation_id: id)
    assert %Pushed{operation: :all_reduce, operation_id: ^id, ranks: [0, 1, 2]} = first
    assert {:ok, sums} = CallStream.await(first)

    assert stream |> CallStream.push!(:all_reduce, refs, operation_id: id) |> CallStream.await() ==
             {:ok, sums}

    assert RankBridge.await!(gang, id) == sums
  end

  test "a group of some ranks, by a rank that is its first", %{gang: gang} do
    name = "pair-" <> Id.uuid()
    RankBridge.new_group!(gang, name, [2, 1])
    assert {:ok, %CallStream{rank: 2} = stream} = CallStream.open(gang, group: name)
    refs = RankBridge.put!(gang, [[1], [2]], group: name)
    {:ok, gathered} = stream |> CallStream.push!(:all_gather, refs) |> CallStream.await()
    assert values(gang, gathered) == [[1, 2], [1, 2]]
    RankBridge.destroy_group!(gang, name)
    assert {:error, %Error{reason: :unknown_group}} = after_it(stream)
    assert {:error, %Error{reason: :unknown_group}} = CallStream.open(gang, group: "none")
  end

  test "processes and streams that push in opposite order never mismatch", context do
    other = start_supervised!({Gang, endpoints_file: context.ranks.file}, id: :other)
    {:ok, second} = CallStream.open(other)
    streams = [{context.gang, context.stream, 0}, {other, second, 1}]

    working =
      for {gang, stream, turn} <- streams ++ streams do
        Task.async(fn ->
          refs = numbered(gang)

          pushed =
            for place <- 1..30 do
              if rem(place, 2) == turn,
                do: CallStream.push!(stream, :barrier),
                else: CallStream.push!(stream, :all_reduce, refs)
            end

          results(pushed)
        end)
      end

    for results <- Task.await_many(working, 60_000),
        result <- results,
        do: assert({:ok, _value} = result)
  end

  describe "while the first rank waits for the others" do
    setup %{gang: gang} do
      part = [operation_id: Id.uuid(), timeout: 60_000]
      begin = &RankBridge.Operations.submit_rank!(gang, &1, :barrier, nil, part)
      begin.(0)
      %{go_on: fn -> Enum.each([1, 2], begin) end}
    end

    test "what is withdrawn is cancelled, and the others are done", context do
      %{stream: stream} = context
      [first, second, third] = for _time <- 1..3, do: CallStream.push!(stream, :barrier)
      Enum.each([second, first], &CallStream.withdraw/1)

      for result <- results([first, second]),
          do: assert({:error, %Error{reason: :cancelled, indefinite: false}} = result)

      context.go_on.()
      assert CallStream.await(third) == {:ok, nil}
      # It is answered already.
      assert CallStream.withdraw(third) == :ok
    end

    test "what waits for others to be answered is not sent, and withdrawn at once", context do
      %{stream: stream} = context
      pushed = for _time <- 1..200, do: CallStream.push!(stream, :barrier)
      last = List.last(pushed)
      CallStream.withdraw(last)
      assert {:error, %Error{reason: :cancelled, indefinite: false}} = CallStream.await(last)
      assert under_way(stream) == 128
      context.go_on.()
      assert pushed |> Enum.drop(-1) |> results() |> Enum.uniq() == [{:ok, nil}]
    end

    test "the end of the owner withdraws all, that of who has pushed its own", context do
      %{gang: gang} = context
      test = self()

      {:ok, owner} =
        Task.start(fn ->
          {:ok, stream} = CallStream.open(gang)
          send(test, {:opened, stream})
          await_word()
        end)

      assert_receive {:opened, stream}, 10_000

      {:ok, pusher} =
        Task.start(fn ->
          for _time <- 1..2, do: CallStream.push!(stream, :barrier)
          await_word()
        end)

      assert_soon(2, fn -> under_way(stream) end)
      mine = CallStream.push!(stream, :barrier)
      assert_soon(3, fn -> under_way(stream) end)
      Process.exit(pusher, :kill)
      # They are answered, to nobody.
      assert_soon(1, fn -> under_way(stream) end)
      Process.exit(owner, :kill)
      assert {:error, %Error{reason: :cancelled, indefinite: true}} = CallStream.await(mine)
      assert {:error, %Error{reason: :unavailable, indefinite: false}} = after_it(stream)
      context.go_on.()
      assert RankBridge.barrier!(gang) == :ok
    end

    test "closing waits for what was pushed; what is pushed meanwhile is refused", context do
      %{stream: stream} = context
      pushed = CallStream.push!(stream, :barrier)
      closing = Task.async(fn -> CallStream.close(stream) end)

      assert_soon(true, fn ->
        :sys.get_state(stream.server).requests.streams[stream.stream] != []
      end)

      assert {:error, %Error{reason: :cancelled, indefinite: false}} = after_it(stream)
      assert Task.yield(closing, 0) == nil
      context.go_on.()
      assert Task.await(closing, 60_000) == :ok
      assert CallStream.await(pushed) == {:ok, nil}
      assert {:error, %Error{reason: :unavailable, indefinite: false}} = after_it(stream)
    end
  end

  test "the end of the gang ends its streams", %{gang: gang, stream: stream} do
    assert stream |> CallStream.push!(:barrier) |> CallStream.await() == {:ok, nil}
    monitor = Process.monitor(stream.server)
    stop_supervised!(Gang)
    assert_receive {:DOWN, ^monitor, :process, _pid, :shutdown}, 10_000
    assert {:error, %Error{reason: :unavailable}} = CallStream.push(stream, :barrier)
    refute Process.alive?(gang)
  end

  describe "ranks that a test may kill" do
    setup do
      # A rank that was killed stays away, however long the test takes to look.
      ranks = LiveRanks.start(3, "gloo", ["--on-rank-exit", "leave"])
      on_exit(fn -> LiveRanks.stop(ranks) end)
      mortal = start_supervised!({Gang, endpoints_file: ranks.file}, id: :mortal)
      {:ok, stream} = CallStream.open(mortal)
      assert stream |> CallStream.push!(:barrier) |> CallStream.await() == {:ok, nil}
      %{ranks: ranks, mortal: mortal, pids: ranks.pids, stream: stream}
    end

    @tag sampled: RankBridge.Test.Sampled.part(__ENV__)
    test "a member that is killed is told to all that wait, and then the one that is asked",
         context do
      %{mortal: gang, stream: stream, pids: [first, _second, last]} = context
      OsProcess.stop(last)
      pushed = for _time <- 1..3, do: CallStream.push!(stream, :barrier, nil, timeout: 60_000)
      assert_soon(true, fn -> pending(gang) > 0 end)
      OsProcess.signal(last, "KILL")
      started = now()

      for {:error, %Error{reason: reason}} <- assert(results(pushed)),
          do: assert(reason in [:peer_lost, :stale_generation])

      # The stream goes on, to say so.
      assert {:error, %Error{}} = stream |> CallStream.push!(:barrier) |> CallStream.await()
      OsProcess.stop(first)
      pushed = for _time <- 1..3, do: CallStream.push!(stream, :barrier, nil, timeout: 60_000)
      OsProcess.signal(first, "KILL")

      for result <- results(pushed) do
        assert {:error, %Error{reason: :unavailable} = error} = result
        assert [%{rank: 0, state: :lost}] = error.ranks
      end

      assert now() - started < 20_000
      assert {:error, %Error{reason: :unavailable, indefinite: false}} = after_it(stream)
      # That the connection for gRPC is lost, too, may be known a moment later.
      assert_soon(:unavailable, fn -> reason(CallStream.open(gang)) end)
    end

    @tag sampled: RankBridge.Test.Sampled.part(__ENV__)
    test "nobody is given a stream to a rank that is gone, also if nothing was sent on it",
         context do
      %{ranks: ranks, pids: [first | _others]} = context
      gang = start_supervised!({Gang, endpoints_file: ranks.file}, id: :silent)
      assert {:ok, _unused} = CallStream.open(gang)
      OsProcess.signal(first, "KILL")
      assert_soon(:unavailable, fn -> reason(CallStream.open(gang)) end)
    end

    @tag sampled: RankBridge.Test.Sampled.part(__ENV__)
    test "a rank that says nothing does not let its caller wait for ever", context do
      %{mortal: gang, stream: stream, pids: [first | _others]} = context
      OsProcess.stop(first)
      pushed = for _time <- 1..2, do: CallStream.push!(stream, :barrier, nil, timeout: 100)

      for result <- results(pushed),
          do: assert({:error, %Error{reason: :deadline_exceeded, indefinite: true}} = result)

      # The stream goes on with the rank.
      OsProcess.signal(first, "CONT")
      assert after_it(stream) == {:ok, nil}
      assert RankBridge.barrier!(gang) == :ok
    end
  end

  test "a rank's stream that is not used ends by itself, but none of one's own", context do
    %{gang: gang, stream: %{server: server} = stream} = context
    monitor = Process.monitor(server)
    # A minute has passed, and another one.
    idle = fn -> for _time <- 1..2, do: send(server, {:timeout, make_ref(), :idle}) end
    idle.()
    assert stream |> CallStream.push!(:barrier) |> CallStream.await() == {:ok, nil}
    assert CallStream.close(stream) == :ok
    idle.()
    assert_receive {:DOWN, ^monitor, :process, _pid, :normal}, 10_000
    assert RankBridge.barrier!(gang) == :ok
  end

  test "what another process has pushed cannot be awaited", %{stream: stream} do
    pushed = CallStream.push!(stream, :barrier)

    assert_raise ArgumentError, fn ->
      CallStream.await(%{pushed | pusher: Process.whereis(:init)})
    end

    assert inspect(pushed) =~ "#RankBridge.CallStream.Pushed<operation: :barrier"
    assert CallStream.await(pushed) == {:ok, nil}
  end

  defp reason({:error, error}), do: error.reason
  defp reason(result), do: result

  defp after_it(stream), do: stream |> CallStream.push!(:barrier) |> CallStream.await()

  defp await_word do
    receive do
      :end -> :ok
    end
  end

  # What the rank was sent and has not answered.
  defp under_way(stream), do: map_size(:sys.get_state(stream.server).requests.under_way)

  # What a rank has to do that goes on.
  defp pending(gang) do
    {:ok, view} = RankBridge.Gang.View.fetch(gang)
    {:ok, status} = RankBridge.Ranks.status_of(view, 1, [])
    status.pending_operations
  end

  defp now, do: System.monotonic_time(:millisecond)
end
