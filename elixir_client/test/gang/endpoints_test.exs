defmodule RankBridge.Gang.EndpointsTest do
  @moduledoc "Gangs of ranks that somebody else has started, and replaces: real processes on Gloo."

  use ExUnit.Case, async: true

  alias RankBridge.{Error, Gang, Tensor}
  alias RankBridge.Gang.{Event, Lost}
  alias RankBridge.Test.{Marks, OsProcess, RankProcesses}

  @soon 60_000

  setup %{test: test} do
    ranks = RankProcesses.start(2)
    on_exit(fn -> RankProcesses.stop(ranks) end)
    %{ranks: ranks, targets: RankProcesses.targets(ranks, :unix), name: test}
  end

  defp start(targets, opts) do
    spec = Supervisor.child_spec({Gang, [endpoints: targets] ++ opts}, restart: :temporary)
    gang = start_supervised!(spec, id: make_ref())
    # Two that start at once may both form the first generation.
    :ok = RankBridge.await_ready(gang, @soon)
    gang
  end

  defp generation(gang) do
    [generation] = for(status <- RankBridge.status!(gang), do: status.generation) |> Enum.uniq()
    generation
  end

  defp sums(gang, refs) do
    sums = RankBridge.all_reduce!(gang, refs)
    gang |> RankBridge.get!(sums) |> Enum.map(&Tensor.to_list/1)
  end

  test "the ranks outlive their gang, however it ends, and stay whole", context do
    # One after the other: each would form a generation.
    first = start(context.targets, [])
    :ok = RankBridge.await_ready(first, @soon)
    second = start(context.targets, [])
    refs = RankBridge.put!(second, [[1.0], [2.0]])
    {:ok, session} = Gang.session_id(first)
    RankBridge.put!(first, [[1.0], [2.0]])
    pids = for status <- RankBridge.status!(first), do: status.pid

    :ok = Gang.stop(first)
    # It has given back what it had.
    sessions = for status <- RankBridge.status!(second), {id, _, _} <- status.sessions, do: id
    refute session in sessions

    Process.flag(:trap_exit, true)
    {:ok, third} = Gang.start_link(endpoints: context.targets, form: false)
    :ok = RankBridge.await_ready(third, @soon)
    Process.exit(third, :kill)
    assert_receive {:EXIT, ^third, :killed}, @soon

    assert for(status <- RankBridge.status!(second), do: status.pid) == pids
    assert Enum.all?(pids, &OsProcess.alive?/1)
    assert generation(second) == 1
    assert sums(second, refs) == [[3.0], [3.0]]
  end

  test "nothing is done about a loss, but to tell of it; somebody forms the gang by hand",
       context do
    %{ranks: ranks, name: name} = context
    Gang.subscribe(name)
    gang = start(context.targets, name: name, timeout: @soon)
    assert_receive {:rank_bridge, ^name, %Event{kind: :formed, generation: 1}}, @soon
    refs = RankBridge.put!(name, [[1.0], [2.0]])
    Marks.await_heard(name)

    RankProcesses.kill(ranks, 1)
    assert_receive {:rank_bridge, ^name, %Event{kind: :rank_lost} = lost}, @soon
    assert %Event{rank: 1, generation: 1} = lost
    assert {:error, %Error{}} = RankBridge.all_reduce(name, refs, unready: :fail)

    _ranks = RankProcesses.replace(ranks, 1)
    # The new rank is there, and in no generation.
    assert [1, 0] = for(status <- RankBridge.status!(name, timeout: @soon), do: status.generation)
    refute_received {:rank_bridge, ^name, %Event{kind: :formed}}

    assert %{generation: generation} = RankBridge.form!(name, timeout: @soon)
    assert_receive {:rank_bridge, ^name, %Event{kind: :formed, generation: ^generation}}, @soon
    new = RankBridge.put_rank!(name, 1, [2.0])
    assert sums(name, [hd(refs), new]) == [[3.0], [3.0]]
    assert Process.alive?(gang)
    refute_received {:rank_bridge, ^name, %Event{kind: :rank_lost}}
  end

  test "a rank that is killed and started again by somebody else is taken in", context do
    %{ranks: ranks, name: name} = context
    test = self()
    callback = fn _gang, lost -> send(test, {:lost, lost}) && :ok end
    Gang.subscribe(name)

    opts = [name: name, on_rank_lost: :replace, handle_rank_lost: callback, timeout: @soon]
    gang = start(context.targets, opts)
    assert_receive {:rank_bridge, ^name, %Event{kind: :formed, generation: 1}}, @soon
    refs = RankBridge.put!(name, [[1.0], [2.0]])

    for {killed, others} <- [{1, 0}, {0, 1}], reduce: {ranks, refs} do
      {ranks, refs} ->
        RankProcesses.kill(ranks, killed)
        assert_receive {:rank_bridge, ^name, %Event{kind: :rank_lost, rank: ^killed}}, @soon
        # Nobody has started it yet: calls wait, and give up when they may no more.
        assert {:error, %Error{reason: :unavailable}} = RankBridge.barrier(name, unready: :fail)

        assert {:error, %Error{reason: :deadline_exceeded, indefinite: false}} =
                 RankBridge.barrier(name, timeout: 1)

        waiting = Task.async(fn -> RankBridge.put_rank!(name, killed, [10.0]) end)
        ranks = RankProcesses.replace(ranks, killed)
        assert_receive {:lost, %Lost{ranks: [^killed], policy: :replace}}, @soon
        assert_receive {:rank_bridge, ^name, %Event{kind: :formed}}, @soon
        kept = Enum.find(refs, &(&1.rank == others))
        refs = Enum.sort_by([kept, Task.await(waiting, @soon)], & &1.rank)
        assert [[sum], [sum]] = sums(name, refs)
        assert sum in [11.0, 20.0]
        {ranks, refs}
    end

    assert Process.alive?(gang)
  end

  test "two gangs of the same ranks are both whole again, in the same generation", context do
    %{ranks: ranks, targets: targets} = context
    test = self()

    gangs =
      for id <- [:one, :other] do
        callback = fn _gang, lost -> send(test, {:lost, id, lost}) && :ok end

        opts = [
          on_rank_lost: :replace,
          handle_rank_lost: callback,
          max_restarts: 100,
          timeout: @soon
        ]

        gang = start(targets, opts)
        :ok = RankBridge.await_ready(gang, @soon)
        Gang.subscribe(gang)
        Marks.await_heard(gang)
        {gang, RankBridge.put!(gang, [[1.0], [2.0]])}
      end

    for killed <- [1, 0], reduce: ranks do
      ranks ->
        RankProcesses.kill(ranks, killed)
        ranks = RankProcesses.replace(ranks, killed)
        for id <- [:one, :other], do: assert_receive({:lost, ^id, %Lost{ranks: [^killed]}}, @soon)
        latest = for {gang, _refs} <- gangs, do: formed(gang, 0)
        settled(gangs, Enum.max(latest))
        assert [_generation] = gangs |> Enum.map(&generation(elem(&1, 0))) |> Enum.uniq()
        ranks
    end

    # Both of the first ranks are gone; what is brought now is there.
    for {gang, _refs} <- gangs do
      assert sums(gang, RankBridge.put!(gang, [[1.0], [2.0]])) == [[3.0], [3.0]]
      assert Process.alive?(gang)
    end
  end

  # The next generation that a gang tells of after that one.
  defp formed(gang, generation) do
    assert_receive {:rank_bridge, ^gang, %Event{kind: :formed, generation: later}}
                   when later > generation,
                   @soon

    later
  end

  # One of them may have formed a generation after the other one was ready: both come to the last.
  defp settled(gangs, latest) do
    for {gang, _refs} <- gangs, do: assert(RankBridge.await_ready(gang, @soon) == :ok)
    statuses = for {gang, _refs} <- gangs, status <- RankBridge.status!(gang), do: status
    whole? = Enum.all?(statuses, &(&1.generation_state == :formed and &1.generation >= latest))

    case Enum.uniq(for status <- statuses, do: status.generation) do
      [_one] when whole? -> :ok
      _several -> settled(gangs, latest)
    end
  end
end
