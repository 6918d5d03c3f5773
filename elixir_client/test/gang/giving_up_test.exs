defmodule RankBridge.Gang.GivingUpTest do
  @moduledoc "A gang that ends when ranks are lost, and is started again by its supervisor: real processes on Gloo, and on the fake."

  use ExUnit.Case, async: true

  alias RankBridge.{Error, Gang}
  alias RankBridge.Gang.Event
  alias RankBridge.Test.OsProcess

  @soon 60_000

  # That a child has ended is no news here.
  setup do
    :ok = :logger.set_module_level(:supervisor, :none)
    on_exit(fn -> :logger.unset_module_level(:supervisor) end)
  end

  defp start(name, opts) do
    child = {Gang, [name: name, size: 2, command: OsProcess.rankbridge()] ++ opts}
    start = {Supervisor, :start_link, [[child], [strategy: :one_for_one]]}
    start_supervised!(%{id: :supervisor, start: start, type: :supervisor})
    :ok = RankBridge.await_ready(name, @soon)
    Process.whereis(name)
  end

  defp pids(gang), do: for(status <- RankBridge.status!(gang), do: status.pid)

  for {what, opts, more} <- [
        {"a gang that is to stop", [on_rank_lost: :stop], "rank 1: "},
        {"a gang that has lost more ranks than it may", [max_restarts: 0],
         "1 were lost, allowed are max_restarts: 0"}
      ] do
    @opts opts
    @more more
    @tag sampled: RankBridge.Test.Sampled.part(__ENV__)
    test "#{what} ends with the loss, and its supervisor starts it again", %{test: name} do
      gang = start(name, @opts ++ [arguments: ["--heartbeat-interval", "2"]])
      monitor = Process.monitor(gang)
      before = pids(name)
      {:ok, session} = Gang.session_id(name)
      refs = RankBridge.put!(name, [[1.0], [2.0]])
      agent = OsProcess.parent(hd(before))
      OsProcess.kill(Enum.at(before, 1))

      assert_receive {:DOWN, ^monitor, :process, ^gang, {:shutdown, %Error{} = error}}, @soon
      assert %Error{reason: :peer_lost, rank: 1, generation: 1} = error
      assert error.message =~ @more

      assert RankBridge.await_ready(name, @soon) == :ok
      # It is another one, of other ranks, which know nothing of what was on those.
      OsProcess.await_gone([agent | before])
      assert Enum.all?(pids(name), &(&1 not in before))
      assert {:ok, other} = Gang.session_id(name)
      assert other != session
      assert {:error, %Error{indefinite: false}} = RankBridge.get(name, refs)
      assert RankBridge.barrier(name) == :ok
    end
  end

  @tag sampled: RankBridge.Test.Sampled.part(__ENV__)
  test "a gang whose agent is killed ends, leaves no rank, and is started again", %{test: name} do
    Gang.subscribe(name)
    gang = start(name, backend: :fake)
    monitor = Process.monitor(gang)
    ranks = pids(name)
    agent = OsProcess.parent(hd(ranks))
    OsProcess.kill(agent)

    assert_receive {:DOWN, ^monitor, :process, ^gang, {:shutdown, %Error{} = error}}, @soon
    assert %Error{reason: :unavailable, operation: "up"} = error
    assert error.message =~ "the agent ended"
    OsProcess.await_gone([agent | ranks])
    assert RankBridge.await_ready(name, @soon) == :ok
    assert RankBridge.barrier(name) == :ok
    # Those who have subscribed by its name are told of the next one, too.
    for _gang <- 1..2,
        do: assert_receive({:rank_bridge, ^name, %Event{kind: :formed, generation: 1}}, @soon)
  end
end
