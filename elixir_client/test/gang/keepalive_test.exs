defmodule RankBridge.Gang.KeepaliveTest do
  @moduledoc "A gang notices that a rank's host says nothing any more: real sidecars."

  use ExUnit.Case, async: true

  alias RankBridge.{Error, Gang}
  alias RankBridge.Test.{GangChildren, LiveRanks, OsProcess}

  @soon 60_000

  setup do
    ranks = LiveRanks.start(2, "gloo")

    on_exit(fn ->
      LiveRanks.stop(ranks)
    end)

    %{ranks: ranks}
  end

  defp keepalives(gang) do
    for {_id, pid, _type, _modules} <-
          DynamicSupervisor.which_children(GangChildren.pid(gang, :channels)),
        do: :sys.get_state(pid).opts[:keepalive]
  end

  test "ranks are pinged, by default as often as every gRPC server permits", %{ranks: ranks} do
    for {opts, keepalive} <- [{[], 300_000}, {[keepalive: :infinity], :infinity}] do
      gang = start_supervised!({Gang, [endpoints_file: ranks.file] ++ opts}, id: keepalive)
      :ok = RankBridge.await_ready(gang, @soon)
      assert keepalives(gang) == [keepalive, keepalive]
    end
  end

  @tag sampled: RankBridge.Test.Sampled.part(__ENV__)
  test "a rank that answers no ping is given up, long before its calls are", %{ranks: ranks} do
    gang = start_supervised!({Gang, endpoints_file: ranks.file, keepalive: 3_000, timeout: @soon})
    :ok = RankBridge.await_ready(gang, @soon)
    # Ranks permit it: well beyond the strikes that other servers count, nothing is given up.
    assert RankBridge.barrier!(gang) == :ok
    OsProcess.stop(Enum.at(ranks.pids, 1))
    asked = Task.async(fn -> RankBridge.Ranks.status_of(view(gang), 1, []) end)
    assert {:error, %Error{reason: :unavailable, rank: 1} = error} = Task.await(asked, @soon)
    assert error.message =~ "keepalive"
    :ok = OsProcess.signal(Enum.at(ranks.pids, 1), "CONT")
  end

  defp view(gang) do
    {:ok, view} = Gang.View.fetch(gang)
    view
  end
end
