defmodule RankBridge.LiveDashboardTest do
  @moduledoc "The dashboard's page, by a stand-in for Phoenix.LiveDashboard: test/stand_ins/phoenix.ex."

  use ExUnit.Case, async: false

  import RankBridge.Test.Soon

  alias RankBridge.Gang
  alias RankBridge.Gang.Event
  alias RankBridge.Proto.V1
  alias RankBridge.Test.{StandIns, WatchedRanks}

  @page Path.expand("../../lib/rank_bridge/live_dashboard.ex", __DIR__)

  setup do
    StandIns.load(["phoenix"], [@page])
    ranks = start_supervised!({WatchedRanks, 2})
    name = __MODULE__.Gang
    start_supervised!({Gang, [name: name] ++ WatchedRanks.gang(ranks)})
    :ok = RankBridge.await_ready(name, 60_000)
    {:ok, session} = dashboard().init(gang: name)
    %{name: name, session: session, ranks: ranks}
  end

  # Not known when this is compiled.
  defp dashboard, do: Module.concat(RankBridge, "LiveDashboard")
  defp socket, do: struct!(Phoenix.LiveView.Socket, connected?: true)
  defp page, do: struct!(Phoenix.LiveDashboard.PageBuilder, node: node())

  defp rendered(socket),
    do: dashboard().render(Map.put(socket.assigns, :page, page()))

  test "shows the ranks, and the events as they come", context do
    %{name: name, session: session, ranks: ranks} = context
    assert {:ok, "Gang " <> _name} = dashboard().menu_link(session, %{})
    {:ok, socket} = dashboard().mount(%{}, session, socket())
    page = rendered(socket)
    assert page =~ "[card Gang/Generation: 1]"
    assert page =~ "[card /Pending operations: 0]"

    assert page =~
             "[table Ranks (2 ranks): Rank|Host|Pid|Backend|Generation|State|Pending|Note\n0|"

    assert page =~ ~r/\n1\|.*\|1\|formed\|0\|\]/

    assert_soon(1, fn -> WatchedRanks.watchers(ranks, 0) end)
    error = %V1.Error{code: :ERROR_CODE_MISMATCH, operation: "all_reduce", group: "world"}
    WatchedRanks.report(ranks, 0, {:mismatch, error})
    assert_receive {:rank_bridge, ^name, %Event{kind: :mismatch}} = message, 60_000
    {:noreply, socket} = dashboard().handle_info(message, socket)
    assert rendered(socket) =~ "the members do not agree about all_reduce of group world"

    late = %Event{
      kind: :straggler,
      ranks: [1],
      group: "world",
      operation: "barrier",
      operation_id: "x"
    }

    {:noreply, socket} = dashboard().handle_info({:rank_bridge, name, late}, socket)
    assert rendered(socket) =~ "[card /Operations that wait for stragglers: 1]"
    assert rendered(socket) =~ "<li>barrier of group world waits for rank 1, since 0 ms</li>"
    assert rendered(socket) =~ "|others wait for it]"
    {:noreply, ^socket} = dashboard().handle_info(:of_somebody_else, socket)

    :ok = stop_supervised(name)
    {:noreply, socket} = dashboard().handle_refresh(socket)
    assert rendered(socket) =~ "there is no gang"
  end

  test "a page that has no connection yet subscribes to nothing", %{name: name, session: session} do
    {:ok, _socket} = dashboard().mount(%{}, session, %{socket() | connected?: false})
    assert Registry.lookup(RankBridge.Gang.Subscribers, name) == []
  end
end
