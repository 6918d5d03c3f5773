defmodule RankBridge.Gang.NamesTest do
  @moduledoc "Gangs by every kind of name, and a hundred of them under one supervisor: on ranks within this VM."

  use ExUnit.Case, async: true

  alias RankBridge.{Error, Gang}
  alias RankBridge.Gang.Event
  alias RankBridge.Test.WatchedRanks

  @soon 60_000

  setup do
    %{ranks: start_supervised!({WatchedRanks, 2}), registry: __MODULE__.Registry}
  end

  setup context do
    start_supervised!({Registry, keys: :unique, name: context.registry})
    :ok
  end

  test "a gang has a name of any kind, and is called by it and by its pid", context do
    names = [
      __MODULE__.Atom,
      {:via, Registry, {context.registry, "one"}},
      {:global, {__MODULE__, "one"}}
    ]

    for name <- names do
      :ok = Gang.subscribe(name)
      assert {:error, %Error{reason: :unavailable}} = RankBridge.barrier(name)
      gang = start_supervised!({Gang, [name: name] ++ WatchedRanks.gang(context.ranks)})
      assert GenServer.whereis(name) == gang
      assert_receive {:rank_bridge, ^name, %Event{kind: :formed}}, @soon

      for known_as <- [name, gang] do
        assert RankBridge.await_ready(known_as, @soon) == :ok
        assert RankBridge.barrier(known_as) == :ok
        assert Gang.size(known_as) == {:ok, 2}
        assert {:ok, session} = Gang.session_id(known_as)
        assert session != ""
      end

      # A second one of the same name is no gang.
      opts = [name: name] ++ WatchedRanks.gang(context.ranks)
      assert {:error, {:already_started, ^gang}} = Gang.start_link(opts)
      :ok = stop_supervised(name)
      assert {:error, %Error{reason: :unavailable}} = RankBridge.barrier(name)
      assert GenServer.whereis(name) == nil
    end
  end

  test "a gang is stopped by any name", context do
    for name <- [{:via, Registry, {context.registry, 2}}, {:global, {__MODULE__, 2}}] do
      {:ok, gang} = Gang.start_link([name: name] ++ WatchedRanks.gang(context.ranks))
      assert RankBridge.await_ready(name, @soon) == :ok
      assert Gang.stop(name) == :ok
      refute Process.alive?(gang)
    end
  end

  test "a hundred gangs under one supervisor", context do
    supervisor = start_supervised!({DynamicSupervisor, strategy: :one_for_one})
    name = &{:via, Registry, {context.registry, &1}}

    gangs =
      for number <- 1..100 do
        opts = [name: name.(number)] ++ WatchedRanks.gang(context.ranks)
        {:ok, gang} = DynamicSupervisor.start_child(supervisor, {Gang, opts})
        gang
      end

    for number <- 1..100, do: assert(RankBridge.await_ready(name.(number), @soon) == :ok)
    for number <- 1..100, do: assert(RankBridge.barrier(name.(number)) == :ok)
    assert DynamicSupervisor.count_children(supervisor).supervisors == 100

    {half, others} = Enum.split(gangs, 50)
    for gang <- half, do: :ok = DynamicSupervisor.terminate_child(supervisor, gang)
    for number <- 51..100, do: assert(RankBridge.barrier(name.(number)) == :ok)
    :ok = stop_supervised(DynamicSupervisor)
    refute Enum.any?(half ++ others, &Process.alive?/1)

    for number <- 1..100,
        do: assert({:error, %Error{reason: :unavailable}} = RankBridge.barrier(name.(number)))
  end
end
