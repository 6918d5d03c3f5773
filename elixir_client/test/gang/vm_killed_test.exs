defmodule RankBridge.Gang.VmKilledTest do
  @moduledoc "The VM that owns a gang dies, and cannot clean up after itself."

  use ExUnit.Case, async: false

  alias RankBridge.JSON
  alias RankBridge.Test.OsProcess

  # Another VM, with the code of this one. Says which ranks it has started, and goes on calling them.
  @program """
  {:ok, _apps} = Application.ensure_all_started(:rank_bridge)
  children = [{RankBridge.Gang, name: Owned, size: 4, command: hd(System.argv())}]
  {:ok, _supervisor} = Supervisor.start_link(children, strategy: :one_for_one)
  :ok = RankBridge.await_ready(Owned, 60_000)
  pids = for status <- RankBridge.status!(Owned), do: status.pid
  IO.puts("[\#{Enum.join(pids, ", ")}]")
  calling = fn calling -> RankBridge.barrier(Owned) && calling.(calling) end
  calling.(calling)
  """

  test "with kill -9: no rank is left behind after seconds, nor the agent" do
    port =
      Port.open({:spawn_executable, System.find_executable("elixir")}, [
        :binary,
        line: 10_000,
        args:
          ["-pa", Path.join(Mix.Project.build_path(), "lib/*/ebin"), "-e", @program] ++
            [OsProcess.rankbridge()]
      ])

    assert_receive {^port, {:data, {:eol, line}}}, 60_000
    {:ok, [_, _, _, _] = ranks} = JSON.decode(line)
    agent = OsProcess.parent(hd(ranks))
    {:os_pid, vm} = Port.info(port, :os_pid)
    assert Enum.all?([vm, agent | ranks], &OsProcess.alive?/1)

    OsProcess.kill(vm)
    assert OsProcess.await_gone([vm, agent | ranks]) < 10_000
  end
end
