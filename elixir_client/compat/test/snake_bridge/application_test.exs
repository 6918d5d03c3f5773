defmodule RankBridge.SnakeBridge.ApplicationTest do
  @moduledoc """
  An application of SnakeBridge, with its call sites as they are: against answers that were recorded, and against ranks.
  """

  use ExUnit.Case, async: false

  alias RankBridge.{AtOnce, Gang, JSON}
  alias RankBridge.SnakeBridge.RuntimeClient
  alias RankBridge.Test.LiveRanks
  alias SnakeBridge.Runtime
  alias Vllm.Distributed.GroupCoordinator

  @moduletag timeout: 120_000
  @patient 50_000

  # Each rank has a worker of its own, in a pool of its own.
  defp application(rank) do
    pool = Enum.at([:worker_0, :worker_1, :worker_2], rank)
    opts = [__runtime__: [pool_name: pool, timeout: @patient, session_id: "application"]]

    with {:ok, tp} <- GroupCoordinator.new([[0, 1, 2]], rank, nil, false, [false, "app"], opts),
         {:ok, first} <- GroupCoordinator.first_rank(tp),
         {:ok, next} <- GroupCoordinator.next_rank(tp),
         {:ok, last?} <- GroupCoordinator.is_last_rank(tp),
         {:ok, sum} <- GroupCoordinator.all_reduce(tp, [1.0 * rank, 1.0]),
         {:ok, rows} <- GroupCoordinator.all_gather(tp, sum, dim: 0),
         {:ok, by_position} <- GroupCoordinator.all_gather(tp, sum, [0]),
         {:ok, at_one} <- GroupCoordinator.gather(tp, sum, [1, 0]),
         {:ok, nil} <- GroupCoordinator.barrier(tp),
         {:ok, received} <- GroupCoordinator.broadcast_object(tp, [%{step: {7, nil}}, 0]),
         {:ok, number} <- GroupCoordinator.broadcast_object(tp, obj: 2),
         {:ok, tensors} <- GroupCoordinator.broadcast_tensor_dict(tp, [%{"t" => sum, "n" => 1}]),
         {:ok, values} <- Runtime.call_method(sum, :tolist, []),
         {:ok, gathered} <- Runtime.call_method(rows, :tolist, []),
         {:ok, again} <- Runtime.call_method(by_position, :tolist, []),
         {:ok, nil} <- GroupCoordinator.destroy(tp) do
      %{
        properties: {first, next, last?},
        sum: values,
        gathered: {gathered, again},
        gathered_at: at_one && at_one.type_name,
        told: {received, number},
        tensors: {Map.keys(tensors), tensors["n"], tensors["t"].type_name}
      }
    end
  end

  defp check(results) do
    for {result, rank} <- Enum.with_index(results) do
      assert result === %{
               properties: {0, rem(rank + 1, 3), rank == 2},
               sum: [3.0, 3.0],
               gathered: {List.duplicate(3.0, 6), List.duplicate(3.0, 6)},
               gathered_at: if(rank == 1, do: "Tensor"),
               told: {%{"step" => {7, nil}}, 2},
               tensors: {["n", "t"], 1, "Tensor"}
             }
    end
  end

  # Answers of one rank after the other, as they were recorded.
  defmodule Recorded do
    @behaviour SnakeBridge.RuntimeClient

    @impl true
    def execute("snakebridge.call", payload, _opts) do
      [next | others] = Process.get(:recorded)
      Process.put(:recorded, others)
      true = next["function"] == payload["function"]
      {:ok, next["answer"]}
    end

    @impl true
    def execute_stream(_tool, _payload, _callback, _opts), do: :ok
  end

  test "with the answers that were recorded" do
    {:ok, recorded} =
      __DIR__ |> Path.join("payloads/application.json") |> File.read!() |> JSON.decode()

    results =
      AtOnce.map([0, 1, 2], fn rank ->
        Process.put(:snakebridge_runtime_client, Recorded)
        Process.put(:recorded, Enum.at(recorded, rank))
        application(rank)
      end)

    check(results)
  end

  for backend <- ["fake", "gloo"] do
    test "with ranks on #{backend}" do
      gang = gang(unquote(backend))

      results =
        AtOnce.map([0, 1, 2], fn rank ->
          Process.put(:snakebridge_runtime_client, RuntimeClient)
          application(rank)
        end)

      check(results)
      Process.put(:snakebridge_runtime_client, RuntimeClient)
      assert RankBridge.list!(gang) != []
      assert Runtime.release_session("application") == :ok
      assert RankBridge.list!(gang) == []
    end
  end

  # What hurts with process groups elsewhere.
  test "late members, dead callers, and tasks" do
    gang = gang("gloo")
    Process.put(:snakebridge_runtime_client, RuntimeClient)
    pools = [:worker_0, :worker_1, :worker_2]

    # Objects that tasks have made outlive them.
    coordinators =
      AtOnce.map(pools, fn pool ->
        Process.put(:snakebridge_runtime_client, RuntimeClient)
        opts = [__runtime__: [pool_name: pool, timeout: @patient]]
        {:ok, coordinator} = GroupCoordinator.new([[0, 1, 2]], nil, nil, false, [], opts)
        coordinator
      end)

    each = fn coordinators, fun ->
      AtOnce.map(coordinators, fn coordinator ->
        Process.put(:snakebridge_runtime_client, RuntimeClient)
        fun.(coordinator)
      end)
    end

    # To bring the tensor takes of it, too: on a busy machine, a while.
    soon = [__runtime__: [timeout: 2_000]]
    patient = [__runtime__: [timeout: @patient]]
    late = each.(tl(coordinators), &GroupCoordinator.all_reduce(&1, [100.0], soon))
    assert [{:error, %Snakepit.Error{category: :timeout} = error}, {:error, _other}] = late
    assert error.details.indefinite == false
    assert 0 in for(%{state: :missing, rank: rank} <- error.details.ranks, do: rank)

    # The one that was given up meets nobody.
    sums = each.(coordinators, &GroupCoordinator.all_reduce(&1, [1.0], patient))

    assert [[3.0], [3.0], [3.0]] ==
             for({:ok, sum} <- sums, do: elem(Runtime.call_method(sum, :tolist, []), 1))

    # Nor does that of a caller who has died.
    [first | _others] = coordinators

    {:ok, dead} =
      Task.start(fn ->
        Process.put(:snakebridge_runtime_client, RuntimeClient)
        GroupCoordinator.barrier(first, patient)
      end)

    pending = fn -> hd(RankBridge.status!(gang)).pending_operations end
    until(fn -> pending.() == 1 end)
    true = Process.exit(dead, :kill)
    until(fn -> pending.() == 0 end)

    assert [{:ok, 5}, {:ok, 5}, {:ok, 5}] =
             each.(coordinators, &GroupCoordinator.broadcast_object(&1, [5], patient))

    # A stuck call keeps nothing else from its rank.
    stuck =
      Task.async(fn ->
        Process.put(:snakebridge_runtime_client, RuntimeClient)
        GroupCoordinator.barrier(first, patient)
      end)

    until(fn -> pending.() == 1 end)
    [{:ok, sum} | _others] = sums
    assert Runtime.call_method(sum, :tolist, []) == {:ok, [3.0]}
    assert Runtime.call_method(sum, :__repr__, []) |> elem(1) =~ "float32[1]"

    assert [{:ok, nil}, {:ok, nil}] =
             each.(tl(coordinators), &GroupCoordinator.barrier(&1, patient))

    assert Task.await(stuck, @patient) == {:ok, nil}
  end

  test "vLLM's groups of a model, and streams" do
    gang = gang("fake")
    Process.put(:snakebridge_runtime_client, RuntimeClient)
    at = fn pool -> [__runtime__: [pool_name: pool, timeout: @patient]] end
    assert {:error, %{category: :validation}} = vllm(:get_tp_group, [], at.(:worker_1))
    assert vllm(:model_parallel_is_initialized, []) == {:ok, false}
    assert vllm(:init_distributed_environment, [], world_size: 3) == {:ok, nil}
    assert {:error, %{category: :validation}} = vllm(:init_distributed_environment, [4])
    assert {:error, %{category: :validation}} = vllm(:initialize_model_parallel, [2])
    assert vllm(:initialize_model_parallel, [3]) == {:ok, nil}
    assert vllm(:model_parallel_is_initialized, []) == {:ok, true}
    assert vllm(:get_tensor_model_parallel_rank, [], at.(:worker_2)) == {:ok, 2}
    assert vllm(:get_tensor_model_parallel_world_size, [], at.(:worker_2)) == {:ok, 3}

    sums =
      AtOnce.map([:worker_0, :worker_1, :worker_2], fn pool ->
        Process.put(:snakebridge_runtime_client, RuntimeClient)
        {:ok, sum} = vllm(:tensor_model_parallel_all_reduce, [[1]], at.(pool))
        Runtime.call_method(sum, :tolist, [])
      end)

    assert sums == [{:ok, [3]}, {:ok, [3]}, {:ok, [3]}]
    # Without a pool it is all ranks'.
    assert {:ok, world} = vllm(:get_world_group, [])
    assert GroupCoordinator.next_rank(world) == {:ok, [1, 2, 0]}

    # What one writes is gone through by another, until it is shut down.
    {:ok, world_of_one} = vllm(:get_world_group, [], at.(:worker_1))

    assert {:ok, [queue, queue, queue]} =
             RankBridge.GroupCoordinator.create_mq_broadcaster(world, [])

    assert GroupCoordinator.first_rank(world_of_one) == {:ok, 0}
    for value <- [1, nil, "x"], do: :ok = RankBridge.Queues.enqueue(gang, queue, value)
    :ok = shut_down_writer(gang, queue)
    test = self()

    {:ok, [wire | _others]} =
      RankBridge.GroupCoordinator.call(world, "all_reduce", [[[1], [2], [3]]], [], [])

    assert %RankBridge.Ref{} = wire

    {id, session} = RankBridge.SnakeBridge.Objects.put({:queue, gang, 1, queue}, "streams")
    ref = %SnakeBridge.Ref{id: id, session_id: session, library: "vllm", python_module: "vllm"}

    assert Runtime.stream("rankbridge", :items, [ref], at.(:worker_1), &send(test, {:item, &1})) ==
             :ok

    assert [1, nil, "x"] == for(_item <- 1..3, do: receive(do: ({:item, item} -> item)))

    {:ok, stream} = Runtime.call_method(ref, :__iter__, [])
    assert Runtime.stream_next(stream) == {:error, :stop_iteration}
    {:ok, tensor} = Runtime.call("torch", :full, [{2, 2}, 4], [{:dtype, :int64} | at.(:worker_0)])

    assert Runtime.stream(
             "rankbridge",
             :items,
             [tensor],
             at.(:worker_0),
             &send(test, {:item, &1})
           ) == :ok

    assert [[4, 4], [4, 4]] == for(_item <- 1..2, do: receive(do: ({:item, item} -> item)))
    assert Runtime.get_attr(tensor, :shape) == {:ok, {2, 2}}
    assert {:error, %{category: :validation}} = Runtime.set_attr(tensor, :shape, [4])

    {:ok, ones} = Runtime.call("torch", :ones, [2], at.(:worker_0))
    assert Runtime.call_method(ones, :tolist, []) == {:ok, [1.0, 1.0]}
    assert vllm(:destroy_model_parallel, []) == {:ok, nil}
    assert vllm(:model_parallel_is_initialized, []) == {:ok, false}
  end

  defp vllm(name, args, opts \\ []), do: Runtime.call("vllm.distributed", name, args, opts)

  defp shut_down_writer(gang, queue),
    do: RankBridge.Queues.shut_down_queue(gang, queue, rank_in_group: 0)

  # Asks again until it is so; each question waits for an answer of the ranks.
  defp until(question), do: if(question.(), do: :ok, else: until(question))

  defp gang(backend) do
    ranks = LiveRanks.start(3, backend)
    on_exit(fn -> LiveRanks.stop(ranks) end)

    start_supervised!(
      {Gang, name: __MODULE__.Gang, endpoints_file: ranks.file, timeout: @patient}
    )

    Application.put_env(:rank_bridge, :gang, __MODULE__.Gang)
    Application.put_env(:rank_bridge, :pools, worker_0: 0, worker_1: 1, worker_2: 2)
    on_exit(fn -> for key <- [:gang, :pools], do: Application.delete_env(:rank_bridge, key) end)
    __MODULE__.Gang
  end
end
