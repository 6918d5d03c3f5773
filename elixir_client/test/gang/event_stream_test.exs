defmodule RankBridge.Gang.EventStreamTest do
  @moduledoc "The events of a gang as an enumerable: of ranks within this VM, whose events a test brings about."

  use ExUnit.Case, async: true

  import RankBridge.Test.Soon

  alias RankBridge.Gang
  alias RankBridge.Gang.{Event, Subscribers}
  alias RankBridge.Proto.V1
  alias RankBridge.Test.WatchedRanks

  @soon 60_000

  # Gangs that are stopped here are started again by their supervisor, which says so.
  setup_all do
    :ok = :logger.set_module_level(:supervisor, :none)
    on_exit(fn -> :logger.unset_module_level(:supervisor) end)
  end

  setup context do
    ranks = start_supervised!({WatchedRanks, 2})
    name = Module.concat(__MODULE__, "Gang#{context.line}")
    gang = start_supervised!({Gang, [name: name] ++ WatchedRanks.gang(ranks)})

    # The ranks are watched from the first subscription on, which is this one: the events of before are past then.
    keeper = spawn_link(fn -> keep(name) end)
    assert_soon([1, 1], fn -> for rank <- 0..1, do: WatchedRanks.watchers(ranks, rank) end)
    %{ranks: ranks, name: name, gang: gang, keeper: keeper}
  end

  defp keep(name) do
    Gang.subscribe(name)
    Process.hibernate(Process, :sleep, [:infinity])
  end

  defp report(ranks, id) do
    error = %V1.Error{code: :ERROR_CODE_MISMATCH, message: "sides", operation_id: id}
    WatchedRanks.report(ranks, 0, {:mismatch, error})
  end

  # Runs `fun` as soon as somebody more has subscribed.
  defp when_subscribed(name, fun) do
    before = subscribers(name)

    Task.async(fn ->
      assert_soon(true, fn -> subscribers(name) > before end)
      fun.()
    end)
  end

  defp subscribers(name), do: length(Registry.lookup(Subscribers, name))

  test "events come in order, and only once the enumeration has begun", context do
    %{ranks: ranks, name: name} = context
    events = Gang.events(name)
    assert subscribers(name) == 1
    :ok = Gang.subscribe(name)
    report(ranks, "before")
    assert_receive {:rank_bridge, ^name, %Event{operation_id: "before"}}, @soon

    task = when_subscribed(name, fn -> for n <- 1..3, do: report(ranks, "#{n}") end)
    assert ["1", "2", "3"] = events |> Enum.take(3) |> Enum.map(& &1.operation_id)
    Task.await(task, @soon)

    # The reader's own subscription has all of them too.
    for n <- 1..3 do
      id = "#{n}"
      assert_receive {:rank_bridge, ^name, %Event{operation_id: ^id}}, @soon
    end

    # The keeper's and the reader's own are left.
    assert subscribers(name) == 2
    refute_received _nothing_else
  end

  test "a second enumeration has the events of its own time", %{ranks: ranks, name: name} do
    events = Gang.events(name)

    for id <- ["first", "second"] do
      task = when_subscribed(name, fn -> report(ranks, id) end)
      assert [%Event{kind: :mismatch, operation_id: ^id}] = Enum.take(events, 1)
      Task.await(task, @soon)
    end
  end

  test "it unsubscribes when it is halted, raises, or its process is killed", context do
    %{ranks: ranks, name: name} = context
    task = when_subscribed(name, fn -> report(ranks, "raises") end)

    assert_raise RuntimeError, "no more", fn ->
      Enum.each(Gang.events(name), fn _event -> raise "no more" end)
    end

    assert subscribers(name) == 1
    Task.await(task, @soon)
    {pid, monitor} = spawn_monitor(fn -> Stream.run(Gang.events(name)) end)
    assert_soon(2, fn -> subscribers(name) end)
    Process.exit(pid, :kill)
    assert_receive {:DOWN, ^monitor, :process, ^pid, :killed}, @soon
    assert_soon(1, fn -> subscribers(name) end)
  end

  test "a reader that traps exits finds nothing in its mailbox", %{name: name} do
    Process.flag(:trap_exit, true)
    assert Enum.to_list(Gang.events(name, timeout: 10)) == []
    refute_received _anything
  end

  test "the timeout is between two events", %{ranks: ranks, name: name} do
    task = when_subscribed(name, fn -> for n <- 1..2, do: report(ranks, "#{n}") end)
    events = Gang.events(name, timeout: 4_000)
    assert ["1", "2"] = Enum.map(events, & &1.operation_id)
    Task.await(task, @soon)
  end

  test "a slow reader loses the oldest, and is told how many", %{ranks: ranks, name: name} do
    test = self()

    reader =
      Task.async(fn ->
        name
        |> Gang.events(max_events: 2)
        |> Stream.each(fn event ->
          send(test, {:read, event})
          if event.operation_id == "0", do: receive(do: (:go_on -> :ok))
        end)
        |> Enum.take(4)
      end)

    assert_soon(2, fn -> subscribers(name) end)
    report(ranks, "0")
    assert_receive {:read, %Event{operation_id: "0"}}, @soon
    :ok = Gang.subscribe(name)
    for n <- 1..5, do: report(ranks, "#{n}")

    # The buffer's turn is before this process's, which has subscribed later; what it holds is what it has handled.
    assert_receive {:rank_bridge, ^name, %Event{operation_id: "5"}}, @soon
    [buffer] = for {pid, _} <- Registry.lookup(Subscribers, name), buffer?(pid), do: pid
    assert %{count: 2, missed: 3} = :sys.get_state(buffer)
    send(reader.pid, :go_on)

    assert [
             %Event{kind: :mismatch, operation_id: "0"},
             %Event{kind: :missed, missed: 3},
             %Event{operation_id: "4"},
             %Event{operation_id: "5"}
           ] = Task.await(reader, @soon)
  end

  defp buffer?(pid) do
    {:dictionary, dictionary} = Process.info(pid, :dictionary)
    dictionary[:"$initial_call"] == {RankBridge.Gang.EventBuffer, :init, 1}
  end

  test "the end of a gang that is given as a pid ends it, after the last event", context do
    %{ranks: ranks, gang: gang} = context

    task =
      when_subscribed(gang, fn ->
        :ok = Gang.subscribe(gang)
        report(ranks, "last")
        assert_receive {:rank_bridge, ^gang, %Event{operation_id: "last"}}, @soon
        Gang.stop(gang)
      end)

    assert [%Event{operation_id: "last"}] = Enum.to_list(Gang.events(gang))
    Task.await(task, @soon)
  end

  test "a gang that is known by its name may start again", %{ranks: ranks, name: name} do
    task =
      when_subscribed(name, fn ->
        :ok = Gang.subscribe(name)
        report(ranks, "of the first")
        assert_receive {:rank_bridge, ^name, %Event{operation_id: "of the first"}}, @soon
        Gang.stop(name)
      end)

    assert [:mismatch, :formed] = name |> Gang.events() |> Enum.take(2) |> Enum.map(& &1.kind)
    Task.await(task, @soon)
  end

  test "wrong options are refused at once", %{name: name} do
    assert_raise ArgumentError, ~r/unknown keys/, fn -> Gang.events(name, max: 1) end
    assert_raise ArgumentError, ~r/:timeout/, fn -> Gang.events(name, timeout: 0) end
    assert_raise ArgumentError, ~r/:max_events/, fn -> Gang.events(name, max_events: :all) end
  end
end
