defmodule RankBridge.Gang.LongRunTest do
  @moduledoc "What a VM that has a gang for long must bear: many calls, and code that is loaded anew."

  use ExUnit.Case, async: false

  import RankBridge.Test.Soon

  alias RankBridge.{Error, Gang}
  alias RankBridge.Test.OsProcess

  @calls 10_000

  setup_all do
    opts = [
      name: __MODULE__,
      size: 2,
      backend: :fake,
      on_rank_lost: :stop,
      command: OsProcess.rankbridge()
    ]

    start_supervised!({Gang, opts})
    :ok = RankBridge.await_ready(__MODULE__, 60_000)
  end

  defp call, do: :ok = RankBridge.barrier(__MODULE__)

  defp usage do
    for pid <- Process.list(), do: :erlang.garbage_collect(pid)

    %{
      processes: length(Process.list()),
      ports: length(Port.list()),
      atoms: :erlang.system_info(:atom_count),
      tables: length(:ets.all()),
      memory: Map.new(:erlang.memory())
    }
  end

  @tag timeout: 600_000
  @tag sampled: RankBridge.Test.Sampled.part(__ENV__)
  test "#{@calls} calls leave no process, port, table or atom behind, and no memory" do
    # What is loaded or grown once, is by now.
    {:ok, modules} = :application.get_key(:rank_bridge, :modules)
    for module <- modules, do: {:module, ^module} = Code.ensure_loaded(module)
    for _call <- 1..1_000, do: call()
    _warm = usage()
    before = usage()

    grown =
      for _block <- 1..4 do
        memory = usage().memory
        for _call <- 1..div(@calls, 4), do: call()
        Map.merge(usage().memory, memory, fn _kind, since, before -> since - before end)
      end

    # What is there for a moment, as while the session's lease is renewed, is not left behind.
    assert_soon([], fn ->
      since = usage()

      for what <- [:processes, :ports, :atoms, :tables],
          since[what] > before[what],
          do: {what, before[what], since[what]}
    end)

    # A hundred bytes for each call would be twice this, in every block of calls.
    least = Enum.min_by(grown, & &1.total)
    assert least.total < 128 * 1024, "every block of calls took memory: #{inspect(grown)}"
  end

  test "code that is loaded anew does not disturb a call, nor the gang" do
    gang = Process.whereis(__MODULE__)
    # It waits for the other rank.
    waiting =
      Task.async(fn ->
        RankBridge.Operations.call_rank(__MODULE__, 0, :barrier, nil, operation_id: "both")
      end)

    until(fn -> hd(RankBridge.status!(__MODULE__)).pending_operations == 1 end)

    {:ok, modules} = :application.get_key(:rank_bridge, :modules)

    for module <- modules do
      :code.soft_purge(module)
      {:module, ^module} = :code.load_file(module)
    end

    assert {:ok, nil} =
             RankBridge.Operations.call_rank(__MODULE__, 1, :barrier, nil, operation_id: "both")

    assert Task.await(waiting, 30_000) == {:ok, nil}
    assert Process.whereis(__MODULE__) == gang
    call()
    connections = connections(gang)

    # Whoever still runs what was there before is ended now: a watch, but neither the gang nor its connections.
    for module <- modules, do: :code.purge(module)
    call()
    assert Process.whereis(__MODULE__) == gang
    assert connections(gang) == connections
    :ok = Gang.subscribe(__MODULE__)

    # Time enough to be admitted: a call that is still in its queue then is withdrawn, and blames nobody.
    assert {:error, %Error{reason: :peer_missing}} =
             RankBridge.Operations.call_rank(__MODULE__, 0, :barrier, nil, timeout: 2_000)

    assert_receive {:rank_bridge, __MODULE__, %{kind: :peer_missing, ranks: [1]}}, 30_000
  end

  defp connections(gang) do
    supervisor = {RankBridge.Transport.Supervisor, gang, :connections}

    children =
      DynamicSupervisor.which_children({:via, Registry, {RankBridge.Registry, supervisor}})

    children |> Enum.map(fn {_id, pid, _type, [module]} -> {module, pid} end) |> Enum.sort()
  end

  defp until(question), do: if(question.(), do: :ok, else: until(question))
end
