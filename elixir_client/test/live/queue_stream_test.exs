# Queues as enumerables and collectables, between real ranks: in shared memory, and by the backend.
for {place, arguments} <- [{Near, []}, {Far, ["--no-shared-memory"]}] do
  defmodule Module.concat(RankBridge.QueueStreamTest, place) do
    use ExUnit.Case, async: true

    alias RankBridge.{Error, Gang, Id, Queue}
    alias RankBridge.Test.{LiveRanks, OsProcess}

    @arguments arguments
    @moduletag timeout: 120_000

    setup_all do
      ranks = LiveRanks.start(3, "gloo", @arguments)
      on_exit(fn -> LiveRanks.stop(ranks) end)
      %{ranks: ranks}
    end

    setup %{ranks: ranks} do
      %{gang: start_supervised!({Gang, endpoints_file: ranks.file, timeout: 60_000})}
    end

    defp queue(gang, opts \\ []), do: RankBridge.Queues.new_queue!(gang, "q-" <> Id.uuid(), opts)

    test "each reader takes the values that it asks for, and no more", %{gang: gang} do
      queue = queue(gang)
      stream = Queue.stream(gang, queue, rank_in_group: 1)
      assert Enum.into([1, "two", {3}, %{"four" => 4}], stream) == stream
      assert Enum.take(stream, 3) == [1, "two", {3}]
      assert RankBridge.Queues.dequeue!(gang, queue, rank_in_group: 1) == %{"four" => 4}

      assert for(value <- Enum.take(Queue.stream(gang, queue, rank_in_group: 2), 1), do: value) ==
               [1]

      RankBridge.Queues.shut_down_queue!(gang, queue)
    end

    test "what was written is read before the end, and then it ends", %{gang: gang} do
      queue = queue(gang, reader_ranks_in_group: [2], max_chunks: 2)
      reader = Task.async(fn -> gang |> Queue.stream(queue) |> Enum.map(&(&1 * &1)) end)
      # More than are unread at a time.
      for value <- 1..20, into: Queue.stream(gang, queue), do: value
      RankBridge.Queues.shut_down_queue!(gang, queue, rank_in_group: 0)
      assert Task.await(reader, 60_000) == for(value <- 1..20, do: value * value)
      RankBridge.Queues.shut_down_queue!(gang, queue)
    end

    test "it ends when the queue is shut down at the reader", %{gang: gang} do
      queue = queue(gang, reader_ranks_in_group: [1])
      stream = Queue.stream(gang, queue)
      RankBridge.Queues.enqueue!(gang, queue, "only")
      test = self()
      reader = Task.async(fn -> Enum.map(stream, &tap(&1, fn value -> send(test, value) end)) end)
      assert_receive "only", 60_000
      RankBridge.Queues.shut_down_queue!(gang, queue)
      assert Task.await(reader, 60_000) == ["only"]
      assert_raise Error, ~r/no such queue/, fn -> Enum.to_list(stream) end
      assert_raise Error, fn -> Enum.into([1], stream) end
    end

    @tag sampled: RankBridge.Test.Sampled.part(__ENV__)
    test "it ends when nothing comes in time, and waits for room no longer", %{gang: gang} do
      queue = queue(gang, reader_ranks_in_group: [1], max_chunks: 1)
      stream = Queue.stream(gang, queue, timeout: 1_000)
      assert Enum.to_list(stream) == []
      error = assert_raise Error, fn -> Enum.into([1, 2], stream) end
      assert {error.reason, error.indefinite} == {:peer_missing, false}
      assert Enum.to_list(stream) == [1]
      RankBridge.Queues.shut_down_queue!(gang, queue)
    end

    @tag sampled: RankBridge.Test.Sampled.part(__ENV__)
    test "without a limit it waits for longer than the gang's calls", %{ranks: ranks} do
      gang = start_supervised!({Gang, endpoints_file: ranks.file, timeout: 1_000}, id: :hasty)
      # It may take longer to connect than its calls may.
      :ok = RankBridge.await_ready(gang, 60_000)
      queue = queue(gang, reader_ranks_in_group: [1], max_chunks: 1, timeout: 60_000)
      stream = Queue.stream(gang, queue)
      reader = Task.async(fn -> Enum.take(stream, 1) end)
      # Longer than one call's limit.
      assert Task.yield(reader, 2_500) == nil
      writer = Task.async(fn -> Enum.into([1, 2, 3], stream) end)
      assert Task.await(reader, 60_000) == [1]
      assert Task.yield(writer, 2_500) == nil
      assert Enum.take(stream, 2) == [2, 3]
      assert Task.await(writer, 60_000) == stream
      RankBridge.Queues.shut_down_queue!(gang, queue, timeout: 60_000)
    end

    test "the end of its group is no end of the queue", %{gang: gang} do
      group = RankBridge.new_group!(gang, "pair-" <> Id.uuid(), [0, 1])
      queue = queue(gang, group: group)
      RankBridge.Queues.enqueue!(gang, queue, 1)

      assert_raise Error, fn ->
        gang
        |> Queue.stream(queue)
        |> Enum.each(fn 1 -> RankBridge.destroy_group!(gang, group.name) end)
      end
    end

    test "which of several readers is meant must be said", %{gang: gang} do
      queue = queue(gang)
      assert_raise Error, ~r/which reader/, fn -> Enum.to_list(Queue.stream(gang, queue)) end
      wrong = Queue.stream(gang, queue, rank_in_group: 7)
      assert_raise Error, ~r/not in the group/, fn -> Enum.to_list(wrong) end
      assert_raise ArgumentError, fn -> Queue.stream(gang, queue, timeout: 0) end
      assert_raise ArgumentError, fn -> Queue.stream(gang, queue, reader: 1) end
      assert inspect(wrong) =~ queue.name
      RankBridge.Queues.shut_down_queue!(gang, queue)
    end

    @tag timeout: 180_000
    @tag sampled: RankBridge.Test.Sampled.part(__ENV__)
    test "the loss of a rank is no end of the queue" do
      opts =
        [size: 2, backend: :gloo, command: OsProcess.rankbridge(), timeout: 60_000] ++
          [arguments: ["--heartbeat-misses", "100" | @arguments]]

      gang = start_supervised!({Gang, opts}, id: :replacing)
      Gang.subscribe(gang)
      queue = queue(gang)
      [writer, _reader] = RankBridge.status!(gang)
      RankBridge.Queues.enqueue!(gang, queue, 1)
      test = self()

      reader =
        Task.async(fn ->
          assert_raise Error, fn ->
            for value <- Queue.stream(gang, queue), do: send(test, {:read, value})
          end
        end)

      assert_receive {:read, 1}, 60_000
      OsProcess.kill(writer.pid)
      assert %Error{reason: reason} = Task.await(reader, 60_000)
      assert reason in [:peer_lost, :aborted, :stale_generation, :unknown_queue, :unavailable]

      # Of the next generation, which has no queues. The reader may know of the loss before the gang does.
      assert_receive {:rank_bridge, ^gang, %Gang.Event{kind: :formed, generation: generation}}
                     when generation > 1,
                     60_000

      assert_raise Error, ~r/no such queue/, fn -> Enum.to_list(Queue.stream(gang, queue)) end
    end
  end
end
