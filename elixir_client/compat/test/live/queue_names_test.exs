# Message queues by vLLM's names, between real sidecars: in shared memory, and by each backend.
for {backend, arguments} <- [{"fake", []}, {"gloo", []}, {"gloo", ["--no-shared-memory"]}] do
  place = if arguments == [], do: Near, else: Far

  defmodule Module.concat([RankBridge.QueueNamesTest, Macro.camelize(backend), place]) do
    use ExUnit.Case, async: true

    alias RankBridge.{Error, Gang, Id}
    alias RankBridge.Test.LiveRanks

    @backend backend
    @arguments arguments
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

    test "vLLM's names", %{gang: gang} do
      one = RankBridge.Compat.create_mq_broadcaster!(gang, writer_rank: 2, max_chunks: 3)
      assert {one.writer_rank_in_group, one.reader_ranks_in_group} == {2, [0, 1]}
      assert {one.max_chunk_bytes, one.max_chunks} == {4_194_304, 3}
      assert RankBridge.Queues.broadcast_through!(gang, one, 1) == [1, 1]

      name = name()
      opts = [reader_rank_in_group: 1, name: name]

      assert [first, nil, last] =
               RankBridge.Compat.create_single_reader_mq_broadcasters!(gang, opts)

      for {queue, place} <- [{first, 0}, {last, 2}] do
        assert queue.name == "#{name}/#{place}"
        assert {queue.writer_rank_in_group, queue.reader_ranks_in_group} == {place, [1]}
        RankBridge.Queues.enqueue!(gang, queue, place)
        assert RankBridge.Queues.dequeue!(gang, queue) == place
      end

      # All of them, or none.
      for queue <- [one, first], do: RankBridge.Queues.shut_down_queue!(gang, queue)

      assert {:error, %Error{reason: :name_exists}} =
               RankBridge.Compat.create_single_reader_mq_broadcasters(gang, opts)

      assert for(queue <- RankBridge.Queues.queues!(gang), queue.name == first.name, do: queue) ==
               []

      RankBridge.Queues.shut_down_queue!(gang, last)
    end
  end
end
