defmodule RankBridge.PhoenixGuideTest do
  @moduledoc """
  The guide for Phoenix says what is so: its page is compiled and run, on real ranks, by a stand-in for Phoenix.LiveView:
  test/stand_ins/phoenix.ex. What else its application starts is stood in for by agents.
  """

  use ExUnit.Case, async: false

  alias RankBridge.Test.{OsProcess, StandIns}

  @guide Path.expand("../../guides/phoenix.md", __DIR__)
  @soon 60_000

  setup do
    StandIns.load(["phoenix"])
    guide = File.read!(@guide)
    programs = for [_all, code] <- Regex.scan(~r/^```elixir\n(.*?)^```/sm, guide), do: code

    opts =
      ~s(size: 2, command: #{inspect(OsProcess.rankbridge())}, ) <>
        ~s(arguments: ["--heartbeat-misses", "100"])

    agents =
      for name <- ["Phoenix.PubSub", "MyAppWeb.Endpoint"],
          do:
            "defmodule #{name} do\n  use Agent\n  def start_link(_), do: Agent.start_link(fn -> nil end)\nend\n"

    directory = Path.join(System.tmp_dir!(), "rank_bridge-#{RankBridge.Id.uuid()}")
    File.mkdir_p!(directory)
    on_exit(fn -> File.rm_rf!(directory) end)
    file = Path.join(directory, "phoenix.ex")
    assert Enum.any?(programs, &(&1 =~ "size: 4"))
    code = Enum.map_join(agents ++ programs, "\n", &String.replace(&1, "size: 4", opts))
    File.write!(file, code)
    StandIns.load([], [file])
    %{page: Module.concat(MyAppWeb, "GangLive"), application: Module.concat(MyApp, "Application")}
  end

  # As the page's process would: every message, until the page shows this.
  defp until(page, socket, pattern) do
    shown = page.render(socket.assigns)

    if shown =~ pattern do
      {shown, socket}
    else
      receive do
        message ->
          {:noreply, socket} = page.handle_info(message, socket)
          until(page, socket, pattern)
      after
        @soon -> flunk("the page never showed #{inspect(pattern)}: #{shown}")
      end
    end
  end

  # A page asks the ranks for a second at most, in which a busy one may not answer.
  defp refreshed(page, socket, pattern) do
    if page.render(socket.assigns) =~ pattern do
      socket
    else
      {:noreply, socket} = page.handle_info(:refresh, socket)
      refreshed(page, socket, pattern)
    end
  end

  @tag timeout: 180_000
  test "the page shows a gang that starts, loses a rank, and is whole again", context do
    %{page: page, application: application} = context
    gang = Module.concat(MyApp, "Gang")
    # A page without a connection subscribes to nothing.
    {:ok, dead} = page.mount(%{}, %{}, struct!(Phoenix.LiveView.Socket))
    assert page.render(dead.assigns) =~ "<h1>Generation 0</h1>"
    assert Registry.lookup(RankBridge.Gang.Subscribers, gang) == []

    {:ok, supervisor} = application.start(:normal, [])
    socket = struct!(Phoenix.LiveView.Socket, connected?: true)
    {:ok, socket} = page.mount(%{}, %{}, socket)
    {_shown, socket} = until(page, socket, "generation 1 is formed, of 2 ranks")
    {_shown, socket} = until(page, socket, ~s(<tr id="rank-1">))
    socket = refreshed(page, socket, "<td>formed</td>")

    OsProcess.kill(Enum.at(RankBridge.status!(gang), 1).pid)
    {_shown, socket} = until(page, socket, "rank 1 is lost in generation 1: ")
    # The ranks may have said before what generation they are in.
    {shown, _socket} = until(page, socket, "generation 2 is formed, of 2 ranks")
    assert shown =~ "<h1>Generation 2</h1>"
    refs = RankBridge.create!(gang, :float32, [1], init: {:full, 2.0})
    task = Module.concat(MyAppWeb, "Sum").start(refs)
    assert {:ok, sums} = Task.await(task, @soon)
    assert [4.0] = gang |> RankBridge.get!(hd(sums)) |> RankBridge.Tensor.to_list()
    :ok = Supervisor.stop(supervisor)
  end
end
