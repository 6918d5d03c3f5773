# Message queues between real sidecars: in shared memory, and by each backend.
for {backend, arguments} <- [
      {"fake", []},
      {"gloo", []},
      {"fake", ["--no-shared-memory"]},
      {"gloo", ["--no-shared-memory"]}
    ] do
  place = if arguments == [], do: Near, else: Far

  defmodule Module.concat([RankBridge.QueuesTest, Macro.camelize(backend), place]) do
    use ExUnit.Case, async: true

    alias RankBridge.{Error, Gang, Id, Operation, Queue, Tensor}
    alias RankBridge.Test.LiveRanks

    @backend backend
    @arguments arguments
    @near if arguments == [], do: [1, 2], else: []
    @moduletag timeout: 120_000

    setup_all do
      ranks = LiveRanks.start(3, @backend, @arguments)
      on_exit(fn -> LiveRanks.stop(ranks) end)
      %{ranks: ranks}
    end

    setup %{ranks: ranks} do
      %{gang: start_supervised!({Gang, endpoints_file: ranks.file, timeout: 60_000})}
    end

    defp name, do: "q-" <> Id.uuid()

    defp read(gang, queue, place),
      do: RankBridge.Queues.dequeue!(gang, queue, rank_in_group: place)

    test "every reader reads each value, in order", %{gang: gang} do
      name = name()
      queue = RankBridge.Queues.new_queue!(gang, name)

      assert queue == %Queue{
               name: name,
               group: "world",
               ranks: [0, 1, 2],
               writer_rank_in_group: 0,
               reader_ranks_in_group: [1, 2],
               shared_memory_ranks_in_group: @near,
               max_chunk_bytes: 4_194_304,
               max_chunks: 6
             }

      values = [nil, 2 ** 90, "a", <<255>>, {:bytes, "a"}] ++ [Tensor.from_list([[1, 2]])]

      for value <- values, do: assert(RankBridge.Queues.enqueue!(gang, queue, value) == :ok)
      for place <- [2, 1], value <- values, do: assert(read(gang, queue, place) == value)
      assert RankBridge.Queues.shut_down_queue!(gang, queue) == :ok
    end

    test "a value that is larger than a chunk comes whole", %{gang: gang} do
      queue = RankBridge.Queues.new_queue!(gang, name(), max_chunk_bytes: 64, max_chunks: 2)
      assert {queue.max_chunk_bytes, queue.max_chunks} == {64, 2}
      large = :binary.copy("0123456789", 300_000)
      for value <- [large, "small"], do: RankBridge.Queues.enqueue!(gang, queue, value)
      for place <- [1, 2], do: assert(read(gang, queue, place) == large)
      for place <- [1, 2], do: assert(read(gang, queue, place) == "small")
      RankBridge.Queues.shut_down_queue!(gang, queue)
    end

    test "what is broadcast through a queue comes to each reader", %{gang: gang} do
      ends = [writer_rank_in_group: 1, reader_ranks_in_group: [2, 0]]
      queue = RankBridge.Queues.new_queue!(gang, name(), ends)
      assert {Queue.writer(queue), Queue.readers(queue)} == {1, [0, 2]}

      assert RankBridge.Queues.broadcast_through!(gang, queue, %{"a" => 1}) == [
               %{"a" => 1},
               %{"a" => 1}
             ]

      # What was unread comes first.
      RankBridge.Queues.enqueue!(gang, queue, "first")
      assert read(gang, queue, 2) == "first"
      assert RankBridge.Queues.broadcast_through!(gang, queue, "second") == ["first", "second"]
      assert read(gang, queue, 0) == "second"

      # With an id it is written and read once.
      opts = [operation_id: Id.uuid()]

      for _time <- 1..2,
          do: assert(["x", "x"] = RankBridge.Queues.broadcast_through!(gang, queue, "x", opts))

      assert RankBridge.Queues.broadcast_through!(gang, queue, "y") == ["y", "y"]
      RankBridge.Queues.shut_down_queue!(gang, queue)
    end

    test "the only reader need not be named, one of several must be", %{gang: gang} do
      queue = RankBridge.Queues.new_queue!(gang, name(), reader_ranks_in_group: [2])
      RankBridge.Queues.enqueue!(gang, queue, 1)
      assert RankBridge.Queues.dequeue!(gang, queue) == 1
      assert {:error, %Error{} = error} = RankBridge.Queues.dequeue(gang, queue, rank_in_group: 1)
      assert {error.reason, error.rank, error.indefinite} == {:invalid_argument, 1, false}
      RankBridge.Queues.shut_down_queue!(gang, queue)
    end

    test "who waits too long is told for whom, and nothing has happened", %{gang: gang} do
      queue = RankBridge.Queues.new_queue!(gang, name(), max_chunks: 1)

      assert {:error, %Error{reason: :peer_missing, indefinite: false, rank: 2}} =
               RankBridge.Queues.dequeue(gang, queue, rank_in_group: 2, timeout: 1_000)

      RankBridge.Queues.enqueue!(gang, queue, 1)
      assert read(gang, queue, 2) == 1

      assert {:error, %Error{reason: :peer_missing, indefinite: false, rank: 0} = error} =
               RankBridge.Queues.broadcast_through(gang, queue, 2, timeout: 1_000)

      assert Enum.map(error.ranks, & &1.rank) == [1]
      assert read(gang, queue, 1) == 1
      RankBridge.Queues.enqueue!(gang, queue, 3)
      assert {read(gang, queue, 1), read(gang, queue, 2)} == {3, 3}
      RankBridge.Queues.shut_down_queue!(gang, queue)
    end

    test "writing and reading are submitted at the ranks that do it", %{gang: gang} do
      queue = RankBridge.Queues.new_queue!(gang, name(), reader_ranks_in_group: [1])
      reading = RankBridge.Operations.submit_rank!(gang, 1, :dequeue, nil, queue: queue)
      assert %Operation{name: :dequeue, group: "world", ranks: [1]} = reading
      refute RankBridge.Operations.is_complete!(gang, reading)
      # It holds up no collective.
      assert RankBridge.barrier!(gang) == :ok

      id = Id.uuid()

      for _time <- 1..2 do
        opts = [queue: queue, operation_id: id]

        writing =
          RankBridge.Operations.submit_rank!(gang, Queue.writer(queue), :enqueue, {nil, 1}, opts)

        assert RankBridge.Operations.wait!(gang, writing) == nil
      end

      for _time <- 1..2, do: assert(RankBridge.Operations.wait!(gang, reading) == {nil, 1})
      assert RankBridge.Operations.is_complete!(gang, reading)

      # By its name, too; what is cancelled takes nothing.
      cancelled = RankBridge.Operations.submit_rank!(gang, 1, :dequeue, nil, queue: queue.name)
      assert RankBridge.cancel!(gang, cancelled) == [true]
      assert {:error, %Error{reason: :cancelled}} = RankBridge.Operations.wait(gang, cancelled)
      RankBridge.Operations.call_rank!(gang, 0, :enqueue, 2, queue: queue.name)
      assert RankBridge.Operations.call_rank!(gang, 1, :dequeue, nil, queue: queue.name) == 2

      assert {:error, %Error{reason: :invalid_argument}} =
               RankBridge.submit(gang, :enqueue, 3, queue: queue)

      RankBridge.Queues.shut_down_queue!(gang, queue)
    end

    test "what was written is read before the queue has ended", %{gang: gang} do
      queue = RankBridge.Queues.new_queue!(gang, name(), reader_ranks_in_group: [1])
      RankBridge.Queues.enqueue!(gang, queue, 1)
      assert RankBridge.Queues.shut_down_queue!(gang, queue, rank_in_group: 0) == :ok
      assert {:error, %Error{reason: :unknown_queue}} = RankBridge.Queues.enqueue(gang, queue, 2)
      assert RankBridge.Queues.dequeue!(gang, queue) == 1
      assert {:error, %Error{reason: :aborted}} = RankBridge.Queues.dequeue(gang, queue)

      assert {:error, %Error{reason: :unknown_queue, rank: 0, outcomes: []}} =
               RankBridge.Queues.shut_down_queue(gang, queue, rank_in_group: 0)

      # Everywhere else, and then nowhere.
      for _time <- 1..2, do: assert(RankBridge.Queues.shut_down_queue!(gang, queue) == :ok)
      assert {:error, %Error{reason: :unknown_queue}} = RankBridge.Queues.dequeue(gang, queue)
      assert RankBridge.Queues.new_queue!(gang, queue.name).name == queue.name
      RankBridge.Queues.shut_down_queue!(gang, queue)
    end

    test "who waits is woken by the end", %{gang: gang} do
      queue = RankBridge.Queues.new_queue!(gang, name(), reader_ranks_in_group: [1])
      reading = RankBridge.Operations.submit_rank!(gang, 1, :dequeue, nil, queue: queue)
      RankBridge.Queues.shut_down_queue!(gang, queue)

      assert {:error, %Error{reason: :aborted, indefinite: false}} =
               RankBridge.Operations.wait(gang, reading)
    end

    test "a queue is found by another program, and a name is taken once", context do
      %{gang: gang, ranks: ranks} = context
      other = start_supervised!({Gang, endpoints_file: ranks.file, timeout: 60_000}, id: :other)
      group = RankBridge.new_group!(gang, "pair-" <> Id.uuid(), [2, 0])
      name = name()
      queue = RankBridge.Queues.new_queue!(gang, name, group: group)
      assert {queue.group, queue.ranks} == {group.name, [2, 0]}
      assert {Queue.writer(queue), Queue.readers(queue)} == {2, [0]}
      assert queue in RankBridge.Queues.queues!(other)
      assert queue in RankBridge.Queues.queues!(other, rank: 0)
      assert queue not in RankBridge.Queues.queues!(other, rank: 1)
      assert RankBridge.Queues.queue!(other, name, group: group) == queue

      assert {:error, %Error{reason: :unknown_queue, group: "world"}} =
               RankBridge.Queues.queue(other, name)

      assert {:error, %Error{reason: :name_exists, indefinite: false}} =
               RankBridge.Queues.new_queue(other, name, group: group)

      assert RankBridge.Queues.enqueue!(other, queue, {1}) == :ok
      assert RankBridge.Queues.dequeue!(gang, queue) == {1}
      RankBridge.destroy_group!(gang, group.name)
      assert queue not in RankBridge.Queues.queues!(other)
      assert {:error, %Error{indefinite: false}} = RankBridge.Queues.dequeue(gang, queue)
    end
  end
end
