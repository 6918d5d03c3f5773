defmodule RankBridge.Gang.KillsTest do
  @moduledoc "Ranks killed at random, one after the other: real processes on Gloo."

  use ExUnit.Case, async: false

  alias RankBridge.{Error, Gang, Tensor}
  alias RankBridge.Gang.Lost
  alias RankBridge.Test.OsProcess

  # A loaded machine is not to lose ranks by itself, nor one that a test stops. One that is killed is lost at once.
  @patient ["--heartbeat-misses", "300"]
  @kills 20
  @seed {11, 20, 2026}

  # What the process that asks for sums may be told while a rank is lost; the last by the new rank, to which a call has come
  # that began before the loss was known.
  @told [:peer_lost, :unavailable, :stale_generation, :unknown_session]

  defp sums(gang) do
    with {:ok, refs} <- RankBridge.put(gang, for(rank <- 0..3, do: [1.0 * rank, 2.0])),
         {:ok, sums} <- RankBridge.all_reduce(gang, refs),
         {:ok, tensors} <- RankBridge.get(gang, sums),
         {:ok, 8} <- RankBridge.release(gang, refs ++ sums),
         do: {:ok, Enum.map(tensors, &Tensor.to_list/1)}
  end

  # Asks until there is an answer; every other one must be among those that a lost rank explains.
  defp next_good(gang, killed, errors \\ 0) do
    case sums(gang) do
      {:ok, tensors} ->
        assert tensors == List.duplicate([6.0, 8.0], 4)
        errors

      {:error, %Error{} = error} ->
        assert error.reason in @told, Exception.message(error)
        assert error.rank == killed or error.reason == :stale_generation, Exception.message(error)
        next_good(gang, killed, errors + 1)
    end
  end

  defp start(name, opts) do
    opts = [name: name, size: 4, command: OsProcess.rankbridge(), arguments: @patient] ++ opts

    gang = start_supervised!({Gang, opts})
    :ok = RankBridge.await_ready(name, 60_000)
    gang
  end

  defp pid(gang, rank), do: Enum.at(RankBridge.status!(gang), rank).pid

  test "pending calls tell which rank was lost; later ones wait for the gang to be whole, or fail as asked" do
    test = self()

    held = fn _gang, _lost ->
      send(test, {:held, self()})
      receive do: (:go_on -> :ok)
    end

    gang = start(__MODULE__.Pending, handle_rank_lost: held)
    refs = RankBridge.put!(gang, for(_rank <- 0..3, do: [1.0]))
    killed = pid(gang, 2)

    # A rank that does not go on keeps all waiting.
    OsProcess.stop(killed)
    pending = Task.async(fn -> RankBridge.all_reduce(gang, refs, calls: :ranks) end)
    alone = Task.async(fn -> RankBridge.Operations.call_rank(gang, 1, :barrier, nil) end)
    # Of rank 1 both: a call that comes after the loss waits for the gang instead.
    until(fn -> pending(gang, 0) >= 1 and pending(gang, 1) >= 2 end)
    OsProcess.kill(killed)
    assert {:error, %Error{reason: :peer_lost, rank: 2} = error} = Task.await(pending, 30_000)
    assert [{0, _}, {1, _}, {2, %Error{reason: :unavailable}}, {3, _}] = error.outcomes
    assert {:error, %Error{reason: :peer_lost, rank: 2}} = Task.await(alone, 30_000)

    assert_receive {:held, callback}, 30_000

    assert {:error, %Error{reason: :unavailable} = refused} =
             RankBridge.barrier(gang, unready: :fail)

    assert refused.message =~ "rank 2" and not refused.indefinite
    assert {:error, %Error{reason: :deadline_exceeded}} = RankBridge.barrier(gang, timeout: 50)
    waiting = Task.async(fn -> RankBridge.barrier(gang) end)
    send(callback, :go_on)
    assert Task.await(waiting, 30_000) == :ok
  end

  defp pending(gang, rank) do
    {:ok, statuses} = RankBridge.status(gang, timeout: 100)
    Enum.at(statuses, rank).pending_operations
  end

  defp until(question), do: if(question.(), do: :ok, else: until(question))

  @tag sampled: RankBridge.Test.Sampled.part(__ENV__)
  test "#{@kills} kills in a row, and every answer in between is right" do
    test = self()
    callback = fn _gang, %Lost{} = lost -> send(test, {:lost, lost.ranks}) && :ok end

    :ok = Gang.subscribe(__MODULE__)
    gang = start(__MODULE__, max_restarts: @kills, handle_rank_lost: callback)
    assert sums(gang) == {:ok, List.duplicate([6.0, 8.0], 4)}
    kept = RankBridge.status!(gang)

    {_random, _last} =
      for _kill <- 1..@kills, reduce: {:rand.seed_s(:exsss, @seed), nil} do
        {random, _last} ->
          {number, random} = :rand.uniform_s(4, random)
          killed = number - 1
          gang |> pid(killed) |> OsProcess.kill()
          # The answer may still be that of before: what follows comes after the loss was told of.
          _errors = next_good(gang, killed)
          assert_receive {:rank_bridge, __MODULE__, %{kind: :rank_lost, rank: ^killed}}, 30_000
          assert_receive {:lost, [^killed]}, 30_000
          _errors = next_good(gang, killed)
          {random, killed}
      end

    # The same gang, in as many more generations, and nothing is left of what was before.
    statuses = RankBridge.status!(gang)
    assert Enum.uniq(for status <- statuses, do: status.generation) == [1 + @kills]
    assert [{session, 0, 0}] = Enum.uniq(for %{sessions: [_shared, own]} <- statuses, do: own)
    assert Gang.session_id(gang) == {:ok, session}
    assert length(kept) == length(statuses)
  end
end
