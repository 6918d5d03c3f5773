defmodule RankBridge.Gang.ReadinessTest do
  @moduledoc "Waiting for a gang that is not ready: by what is known of it, without ranks."

  use ExUnit.Case, async: true

  alias RankBridge.{Error, Tensors}
  alias RankBridge.Gang.{Channels, Readiness, View}

  # A gang as far as callers know it: it says what the test tells it to say, until it is told to end.
  defp begin(name, unready, fields \\ []) do
    gang = spawn_link(fn -> known([self() | List.wrap(name)]) end)
    set_unready(gang, unready, fields)
    gang
  end

  defp set_unready(gang, unready, fields \\ []) do
    channels = Channels.put(Channels.table(), [])
    view = %View{gang: gang, channels: channels, timeout: 60_000, groups: nil}
    view = struct!(view, [unready: unready && Error.refusal(:unavailable, unready)] ++ fields)
    send(gang, {:say, self(), view})
    assert_receive {:said, ^gang}
    :ok
  end

  defp ended(gang) do
    Process.unlink(gang)
    monitor = Process.monitor(gang)
    send(gang, :end)
    assert_receive {:DOWN, ^monitor, :process, ^gang, _reason}
    :ok
  end

  defp known(names) do
    receive do
      {:say, from, view} ->
        View.publish(view, names)
        Readiness.changed(names)
        send(from, {:said, self()})
        known(names)

      :end ->
        :ok
    end
  end

  # Another process that waits; given back when it does.
  defp waiting(gang, fun) do
    test = self()

    task =
      Task.async(fn ->
        send(test, {:begun, self()})
        result = fun.()
        {result, Process.info(self(), :messages), Process.info(self(), :monitors)}
      end)

    pid = task.pid
    assert_receive {:begun, ^pid}
    await_waiter(gang, pid)
    task
  end

  # It is known to wait, and does nothing else.
  defp await_waiter(gang, pid) do
    known? = Enum.any?(Registry.lookup(Readiness, gang), &match?({^pid, _alias}, &1))
    asleep? = Process.info(pid, :status) == {:status, :waiting}
    if not (known? and asleep?), do: await_waiter(gang, pid)
  end

  # Nothing is left of having waited.
  defp waited(task) do
    {result, messages, monitors} = Task.await(task, 60_000)
    assert messages == {:messages, []}
    assert monitors == {:monitors, []}
    result
  end

  defp nobody_waits(gang), do: assert(Registry.lookup(Readiness, gang) == [])

  test "a call waits until the gang is ready, through everything that is said meanwhile" do
    gang = begin(nil, "it is started")
    task = waiting(gang, fn -> Readiness.view(gang, [], :put) end)
    for _time <- 1..3, do: set_unready(gang, "it is formed again")
    assert Task.yield(task, 0) == nil
    set_unready(gang, nil)
    assert {:ok, %View{gang: ^gang, unready: nil, known_as: ^gang}} = waited(task)
    nobody_waits(gang)
    assert {:ok, %View{}} = Readiness.view(gang, [], :put)
  end

  test "a call fails at once where it, or the gang, says so" do
    gang = begin(nil, "it is started")

    assert {:error, %Error{reason: :unavailable, operation: "put", indefinite: false} = error} =
             Readiness.view(gang, [unready: :fail], :put)

    assert error.message == "it is started"
    set_unready(gang, "it is started", when_unready: :fail)
    assert {:error, %Error{reason: :unavailable}} = Readiness.view(gang, [], :put)
    # What are no options is refused later.
    assert {:error, %Error{reason: :unavailable}} = Readiness.view(gang, [:unready], :put)

    task = waiting(gang, fn -> Readiness.view(gang, [unready: :wait], :put) end)
    set_unready(gang, nil)
    assert {:ok, %View{}} = waited(task)
  end

  test "a call waits for as long as it, or the gang, allows" do
    gang = begin(nil, "it is formed again: rank 1")

    assert {:error, %Error{reason: :deadline_exceeded, operation: "put"} = error} =
             Readiness.view(gang, [timeout: 1], :put)

    assert error.message =~ "it is formed again: rank 1"
    refute error.indefinite
    set_unready(gang, "it is formed again", timeout: 1)
    assert {:error, %Error{reason: :deadline_exceeded}} = Readiness.view(gang, [], :put)
    nobody_waits(gang)
    refute_received _left
  end

  test "functions on a gang heed the option, and refuse what is none" do
    gang = begin(nil, "it is started")

    assert {:error, %Error{operation: "groups"}} =
             RankBridge.Grouping.groups(gang, unready: :fail)

    assert {:error, %Error{operation: "put"}} = RankBridge.put(gang, [], unready: :fail)

    assert {:error, %Error{operation: "release"}} = Tensors.release(gang, [], unready: :fail)

    set_unready(gang, nil)
    assert {:error, %Error{reason: :invalid_argument}} = RankBridge.status(gang, unready: :maybe)
  end

  test "whoever is let through does not wait, nor what it starts" do
    gang = begin(nil, "it is formed again")
    test = self()
    set_unready(gang, "it is formed again", but_for: test, when_unready: :fail)
    assert {:ok, %View{}} = Readiness.view(gang, [], :put)
    assert {:ok, %View{}} = Readiness.await(gang, 0)
    ask = fn -> Readiness.view(gang, [], :put) end
    assert {:ok, %View{}} = Task.await(Task.async(ask))
    assert {:ok, %View{}} = Task.await(Task.async(fn -> Task.await(Task.async(ask)) end))

    spawn(fn -> send(test, {:other, ask.()}) end)
    assert_receive {:other, {:error, %Error{reason: :unavailable}}}, 30_000
  end

  test "who may be let through while it waits is" do
    gang = begin(nil, "it is formed again")
    task = waiting(gang, fn -> Readiness.view(gang, [], :put) end)
    set_unready(gang, "it is formed again", but_for: task.pid)
    assert {:ok, %View{}} = waited(task)
  end

  test "how the ranks are can be asked of a gang that is not ready, once it has any" do
    gang = begin(nil, "it is started", when_unready: :fail)
    assert {:error, %Error{reason: :unavailable}} = Readiness.view(gang, [], :status)
    one = Channels.put(Channels.table(), [{nil, ""}])
    set_unready(gang, "it is formed again", when_unready: :fail, channels: one)
    assert {:ok, %View{}} = Readiness.view(gang, [], :status)
  end

  test "a gang is awaited by its name before it is there" do
    name = __MODULE__.Later
    task = waiting(name, fn -> RankBridge.await_ready(name, 60_000) end)
    gang = begin(name, "it is started")
    assert Task.yield(task, 0) == nil
    set_unready(gang, nil)
    assert waited(task) == :ok
    nobody_waits(name)
  end

  test "a gang is awaited by its name through its end, and the start of the next" do
    name = __MODULE__.Again
    first = begin(name, "it is started")
    task = waiting(name, fn -> RankBridge.await_ready(name, 60_000) end)
    by_pid = waiting(first, fn -> RankBridge.await_ready(first, 60_000) end)
    call = waiting(name, fn -> Readiness.view(name, [], :put) end)
    ended(first)

    # It does not come back under its pid; and a call is told of the end.
    assert {:error, %Error{reason: :unavailable, operation: "await_ready"}} = waited(by_pid)
    assert {:error, %Error{reason: :unavailable, operation: "put"}} = waited(call)

    second = begin(name, "it is started")
    set_unready(second, nil)
    assert waited(task) == :ok
    assert {:ok, %View{gang: ^second}} = View.fetch(name)
  end

  test "awaiting ends in time, and leaves nothing behind" do
    gang = begin(nil, "it is formed again: rank 1")

    assert {:error, %Error{reason: :deadline_exceeded, operation: "await_ready"} = error} =
             RankBridge.await_ready(gang, 1)

    assert error.message =~ "rank 1"
    assert {:error, %Error{reason: :deadline_exceeded}} = RankBridge.await_ready(gang, 0)

    assert {:error, %Error{reason: :deadline_exceeded} = error} =
             RankBridge.await_ready(__MODULE__.Never, 1)

    assert error.message =~ "there is no gang"
    for _time <- 1..3, do: set_unready(gang, "still")
    nobody_waits(gang)
    nobody_waits(__MODULE__.Never)
    refute_received _left
  end

  test "many can wait, each for as long as it likes" do
    gang = begin(nil, "it is started")

    tasks =
      for _one <- 1..20, do: waiting(gang, fn -> RankBridge.await_ready(gang, :infinity) end)

    set_unready(gang, nil)
    assert Enum.map(tasks, &waited/1) == List.duplicate(:ok, 20)
    nobody_waits(gang)
  end
end
