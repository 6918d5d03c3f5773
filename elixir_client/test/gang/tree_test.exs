defmodule RankBridge.Gang.TreeTest do
  @moduledoc "The processes of a gang: which there are, who supervises them, and what the end of each means."

  # It takes the logs of this VM.
  use ExUnit.Case, async: false

  import RankBridge.Test.Soon

  alias RankBridge.Gang
  alias RankBridge.Test.{GangChildren, LiveRanks, Logs, OsProcess, WatchedRanks}

  @soon 60_000
  @size 3

  # What is logged of a child's end goes to the test.
  setup do
    on_exit(Logs.to_test())
  end

  # Each process under a supervisor, with its id.
  defp tree(supervisor) do
    for {id, pid, type, _modules} <- Supervisor.which_children(supervisor), is_pid(pid) do
      [{id, pid} | if(type == :supervisor, do: tree(pid), else: [])]
    end
    |> List.flatten()
  end

  # None of one that has ended. A process that is started without a supervisor has its parent alone.
  defp ancestors(pid) do
    case Process.info(pid, [:parent, :dictionary]) do
      nil -> []
      info -> [info[:parent] | for(it <- info[:dictionary][:"$ancestors"] || [], do: whereis(it))]
    end
  end

  defp whereis(pid) when is_pid(pid), do: pid
  defp whereis(name), do: GenServer.whereis(name)

  # The VM has processes that are no gang's, which come and go: those that look names up, for one.
  defp descendants(gang) do
    Enum.reduce(Process.list(), [], fn pid, found ->
      if Enum.any?(ancestors(pid), &(&1 == gang or &1 in found)), do: [pid | found], else: found
    end)
  end

  defp children(gang, role),
    do: for({_id, pid, _type, _modules} <- which(gang, role), do: pid)

  defp which(gang, role), do: DynamicSupervisor.which_children(GangChildren.pid(gang, role))

  # It is there when the gang has answered: before, an end of the gang is that of no process.
  defp monitor(gang) do
    monitor = Process.monitor(gang)
    _count = Supervisor.count_children(gang)
    monitor
  end

  # Every rank is called by its stream, and watched.
  defp work(gang) do
    :ok = RankBridge.await_ready(gang, @soon)
    :ok = Gang.subscribe(gang)
    assert RankBridge.barrier!(gang, calls: :ranks) == :ok
    # The server has begun the watches, and each of them has its stream.
    _state = GangChildren.state(gang)
    :ok
  end

  test "every process of a working gang is in its tree, and none is left when it ends" do
    child = {Gang, size: @size, backend: :fake, command: OsProcess.rankbridge()}
    {:ok, supervisor} = Supervisor.start_link([child], strategy: :one_for_one)
    [{Gang, gang, :supervisor, _modules}] = Supervisor.which_children(supervisor)
    work(gang)

    roles = [channels: @size, connections: 2 * @size, ranks: @size, watchers: @size, tasks: 0]

    # The task that has joined the ranks may not have ended yet.
    for {role, count} <- roles,
        do: assert_soon({role, count}, fn -> {role, length(children(gang, role))} end)

    pids = for {_id, pid} <- tree(gang), do: pid
    # Those that the joining task has started may not have ended yet.
    assert_soon([], fn -> for pid <- descendants(gang) -- pids, do: {pid, Process.info(pid)} end)

    for pid <- pids do
      assert gang in ancestors(pid)
      assert supervisor in ancestors(pid)
    end

    for role <- [:tables, :launcher, :server], do: assert(GangChildren.pid(gang, role) in pids)

    :ok = Supervisor.stop(supervisor)
    assert descendants(gang) == []
    assert for(pid <- pids, Process.alive?(pid), do: {pid, Process.info(pid)}) == []
    refute_received {:logged, _event}
  end

  describe "what is made again when it crashes:" do
    setup do
      ranks = LiveRanks.start(@size, "fake")
      on_exit(fn -> LiveRanks.stop(ranks) end)
      gang = start_supervised!({Gang, endpoints_file: ranks.file}, restart: :temporary)
      work(gang)
      %{gang: gang}
    end

    test "connections, writers, streams and watchers; calls go on", %{gang: gang} do
      for role <- [:connections, :ranks, :watchers] do
        before = children(gang, role)
        monitors = for pid <- before, do: {pid, Process.monitor(pid)}
        for pid <- before, do: Process.exit(pid, :kill)
        for {pid, ref} <- monitors, do: assert_receive({:DOWN, ^ref, :process, ^pid, _}, @soon)

        await_ranks(gang)
        assert RankBridge.barrier!(gang, calls: :ranks) == :ok
        assert_soon(length(before), fn -> length(children(gang, role)) end)
        assert children(gang, role) -- before == children(gang, role)
      end

      assert Process.alive?(gang)
    end

    test "no channel: the gang ends", %{gang: gang} do
      monitor = monitor(gang)
      [channel | _others] = children(gang, :channels)
      Process.exit(channel, :kill)
      assert_receive {:DOWN, ^monitor, :process, ^gang, :shutdown}, @soon
    end

    # A call may meet a connection that has just ended.
    defp await_ranks(gang) do
      {:ok, statuses} = RankBridge.status(gang)
      if Enum.any?(statuses, & &1.error), do: await_ranks(gang)
    end
  end

  test "the gang ends with each of its own processes, and its supervisor starts another" do
    ranks = start_supervised!({WatchedRanks, 2})
    name = __MODULE__.Ended
    child = {Gang, [name: name] ++ WatchedRanks.gang(ranks)}

    start = {Supervisor, :start_link, [[child], [strategy: :one_for_one, max_restarts: 100]]}

    start_supervised!(%{id: :supervisor, start: start, type: :supervisor})

    for role <- [:tables, :tasks, :watchers, :ranks, :channels, :connections, :server] do
      :ok = RankBridge.await_ready(name, @soon)
      gang = Process.whereis(name)
      monitor = monitor(gang)
      name |> GangChildren.pid(role) |> Process.exit(:kill)
      assert_receive {:DOWN, ^monitor, :process, ^gang, :shutdown}, @soon
    end

    :ok = RankBridge.await_ready(name, @soon)
    assert RankBridge.barrier!(name) == :ok
  end
end
