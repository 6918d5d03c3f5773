defmodule RankBridge.Gang.ReloadingTest do
  @moduledoc "What `handle_rank_lost` brings back before calls go on: real processes on Gloo."

  use ExUnit.Case, async: true

  alias RankBridge.{Error, Gang, Tensor}
  alias RankBridge.Gang.{Lost, News}
  alias RankBridge.Test.{GangChildren, RankProcesses}

  @soon 60_000

  setup %{test: test} do
    ranks = RankProcesses.start(3)
    on_exit(fn -> RankProcesses.stop(ranks) end)
    %{ranks: ranks, name: test}
  end

  # Asks the test's process what to do.
  @doc false
  def directed(gang, lost, test) do
    send(test, {:called, self(), gang, lost})
    receive do: ({:do, fun} -> fun.(gang, lost))
  end

  defp options(context, opts) do
    [name: context.name, endpoints: RankProcesses.targets(context.ranks, :unix)] ++
      [on_rank_lost: :replace, max_restarts: 100, timeout: @soon] ++ opts
  end

  defp replace(ranks, killed) do
    RankProcesses.kill(ranks, killed)
    RankProcesses.replace(ranks, killed)
  end

  defp called(name) do
    assert_receive {:called, pid, ^name, %Lost{} = lost}, @soon
    {pid, lost}
  end

  defp waits?(gang, pid) do
    Enum.any?(Registry.lookup(Gang.Readiness, gang), &match?({^pid, _alias}, &1))
  end

  defp await_waiting(gang, pid), do: waits?(gang, pid) || await_waiting(gang, pid)

  defp values(gang, refs), do: gang |> RankBridge.get!(refs) |> Enum.map(&Tensor.to_list/1)

  @tag sampled: RankBridge.Test.Sampled.part(__ENV__)
  test "calls of others wait until the callback has brought back what was lost", context do
    %{name: name} = context

    start_supervised!(
      {Gang, options(context, handle_rank_lost: {__MODULE__, :directed, [self()]})}
    )

    [first, _lost, third] = refs = RankBridge.put!(name, [[1.0], [2.0], [3.0]])
    ranks = replace(context.ranks, 1)
    {callback, lost} = called(name)
    assert %Lost{ranks: [1], policy: :replace, moved: moved} = lost
    assert moved == %{}
    assert Lost.kept(lost, refs) == [first, third]

    # Calls of another process wait while the callback runs, or fail.
    other =
      Task.async(fn ->
        receive do: ({:sum, refs} -> RankBridge.all_reduce!(name, refs))
      end)

    send(callback, {:do,
     fn gang, lost ->
       # Its own go through, and those of the tasks that it starts.
       [new] = for rank <- lost.ranks, do: RankBridge.put_rank!(gang, rank, [20.0])
       task = Task.async(fn -> RankBridge.all_reduce!(gang, [first, new, third]) end)
       [[24.0], [24.0], [24.0]] = values(gang, Task.await(task, :infinity))
       send(other.pid, {:sum, [first, new, third]})
       await_waiting(gang, other.pid)

       {:error, %Error{reason: :unavailable}} =
         alone(fn -> RankBridge.barrier(gang, unready: :fail) end)

       :ok
     end})

    assert values(name, Task.await(other, @soon)) == [[24.0], [24.0], [24.0]]
    refute_received {:called, _pid, _gang, _lost}

    # Another rank is lost while the callback runs, which fails by that: once more, for both.
    ranks = replace(ranks, 2)
    {callback, %Lost{ranks: [2], generation: generation}} = called(name)
    test = self()

    send(
      callback,
      {:do,
       fn gang, _lost ->
         send(test, {:kill, self()})
         receive do: (:killed -> :ok)
         RankBridge.barrier!(gang)
         :ok
       end}
    )

    assert_receive {:kill, ^callback}, @soon
    ranks = replace(ranks, 0)
    send(callback, :killed)
    {callback, lost} = called(name)
    assert %Lost{ranks: [0, 2]} = lost
    assert lost.generation > generation

    # And once more, where it does not notice.
    send(
      callback,
      {:do,
       fn _gang, _lost ->
         send(test, {:kill, self()})
         receive do: (:killed -> :ok)
       end}
    )

    assert_receive {:kill, ^callback}, @soon
    _ranks = replace(ranks, 1)
    await_news(name)
    send(callback, :killed)
    {callback, lost} = called(name)
    assert %Lost{ranks: [0, 1, 2]} = lost
    send(callback, {:do, fn _gang, _lost -> :ok end})
    assert RankBridge.await_ready(name, @soon) == :ok
    refs = RankBridge.put!(name, [[1.0], [2.0], [3.0]])
    assert values(name, RankBridge.all_reduce!(name, refs)) == [[6.0], [6.0], [6.0]]
    refute_received {:called, _pid, _gang, _lost}
  end

  # The gang has heard of a loss, and lets the callback go on. What it has heard late of the generation before is no news.
  defp await_news(name) do
    %{news: news, generation: generation, pids: pids} = GangChildren.state(name)
    if not Enum.any?(news, &News.concerns?(&1, generation, pids)), do: await_news(name)
  end

  # In a process that nobody lets through.
  defp alone(fun) do
    test = self()
    {pid, monitor} = spawn_monitor(fn -> send(test, {:alone, self(), fun.()}) end)
    receive do: ({:alone, ^pid, result} -> Process.demonitor(monitor, [:flush]) && result)
  end

  @tag sampled: RankBridge.Test.Sampled.part(__ENV__)
  test "a callback that fails by itself ends the gang, as it failed", context do
    %{name: name} = context
    Process.flag(:trap_exit, true)
    test = self()

    for {fun, ended} <- [
          {fn _gang, _lost -> {:error, :no_weights} end,
           &match?({:shutdown, {:handle_rank_lost, {:error, :no_weights}}}, &1)},
          {fn _gang, _lost -> exit({:shutdown, :away}) end, &(&1 == {:shutdown, :away})},
          {fn _gang, _lost -> exit_task() end, &(&1 == {:shutdown, :task})}
        ],
        reduce: context.ranks do
      ranks ->
        handle = fn gang, lost -> directed(gang, lost, test) end

        {:ok, gang} =
          Gang.start_link(options(%{context | ranks: ranks}, handle_rank_lost: handle))

        :ok = RankBridge.await_ready(gang, @soon)
        ranks = replace(ranks, 1)
        {callback, _lost} = called(name)
        send(callback, {:do, fun})
        assert_receive {:EXIT, ^gang, reason}, @soon
        assert ended.(reason), inspect(reason)
        assert {:error, %Error{reason: :unavailable}} = RankBridge.barrier(name)
        ranks
    end
  end

  defp exit_task, do: Task.await(Task.async(fn -> exit({:shutdown, :task}) end), :infinity)

  @tag sampled: RankBridge.Test.Sampled.part(__ENV__)
  test "a callback that raises ends the gang with what it raised", context do
    Process.flag(:trap_exit, true)
    # What OTP logs of a crash is no news here.
    :ok = :logger.set_module_level(:gen_server, :none)
    :ok = :logger.set_module_level(:proc_lib, :none)

    on_exit(fn ->
      for module <- [:gen_server, :proc_lib], do: :logger.unset_module_level(module)
    end)

    handle = fn _gang, _lost -> raise "no weights" end
    {:ok, gang} = Gang.start_link(options(context, handle_rank_lost: handle))
    :ok = RankBridge.await_ready(gang, @soon)
    replace(context.ranks, 1)
    assert_receive {:EXIT, ^gang, {%RuntimeError{message: "no weights"}, [_at | _from]}}, @soon
  end
end
