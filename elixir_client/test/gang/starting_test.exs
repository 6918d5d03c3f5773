defmodule RankBridge.Gang.StartingTest do
  @moduledoc "A gang that starts its own ranks, in a supervision tree: real processes on Gloo and on the fake."

  use ExUnit.Case, async: true

  alias RankBridge.{Error, Gang, Tensor}
  alias RankBridge.Test.OsProcess

  defp child(opts), do: {Gang, [command: OsProcess.rankbridge()] ++ opts}

  defp pids(gang), do: gang |> RankBridge.status!() |> Enum.map(& &1.pid) |> Enum.uniq()

  @tag sampled: RankBridge.Test.Sampled.part(__ENV__)
  test "a gang is a child of a supervisor, is awaited by its name, and takes its ranks along" do
    children = [child(name: __MODULE__.Owned, size: 2, backend: :gloo, groups: [{"second", [1]}])]
    {:ok, supervisor} = Supervisor.start_link(children, strategy: :one_for_one)

    assert RankBridge.await_ready(__MODULE__.Owned, 60_000) == :ok
    assert Gang.size(__MODULE__.Owned) == {:ok, 2}

    sums =
      __MODULE__.Owned
      |> RankBridge.put!([[1.0, 2.0], [10.0, 20.0]])
      |> then(&RankBridge.all_reduce!(__MODULE__.Owned, &1))

    assert __MODULE__.Owned |> RankBridge.get!(sums) |> Enum.map(&Tensor.to_list/1) ==
             [[11.0, 22.0], [11.0, 22.0]]

    assert ["second", "world"] =
             for(group <- RankBridge.Grouping.groups!(__MODULE__.Owned), do: group.name)

    ranks = pids(__MODULE__.Owned)
    agent = OsProcess.parent(hd(ranks))
    assert Enum.all?([agent | ranks], &OsProcess.alive?/1)

    # When the supervisor has ended, so have they.
    :ok = Supervisor.stop(supervisor)
    refute Enum.any?([agent | ranks], &OsProcess.alive?/1)
    assert {:error, %Error{reason: :unavailable}} = RankBridge.barrier(__MODULE__.Owned)
  end

  @tag sampled: RankBridge.Test.Sampled.part(__ENV__)
  test "calls made while the ranks are being started wait for them, or fail, as they ask" do
    {:ok, gang} = start_supervised(child(size: 2, backend: :fake))

    assert {:error, %Error{reason: :unavailable, indefinite: false, operation: "barrier"}} =
             RankBridge.barrier(gang, unready: :fail)

    assert {:error, %Error{reason: :deadline_exceeded, indefinite: false}} =
             RankBridge.barrier(gang, timeout: 1)

    assert RankBridge.barrier(gang, timeout: 60_000) == :ok
    assert RankBridge.await_ready(gang) == :ok
  end

  @tag sampled: RankBridge.Test.Sampled.part(__ENV__)
  test "a gang whose process is killed leaves no rank behind" do
    Process.flag(:trap_exit, true)
    {Gang, opts} = child(size: 2, backend: :fake)
    {:ok, gang} = Gang.start_link(opts)
    :ok = RankBridge.await_ready(gang, 60_000)
    ranks = pids(gang)
    agent = OsProcess.parent(hd(ranks))
    Process.exit(gang, :kill)
    assert_receive {:EXIT, ^gang, :killed}
    OsProcess.await_gone([agent | ranks])
  end

  @tag sampled: RankBridge.Test.Sampled.part(__ENV__)
  test "a gang that cannot be started says why, to its supervisor as well" do
    Process.flag(:trap_exit, true)

    assert {:error, %Error{reason: :invalid_argument, got: ~S("no-such-program")}} =
             Gang.start_link(size: 1, command: "no-such-program")

    {Gang, opts} = child(size: 1, backend: :fake, arguments: ["--max-bytes", "nonsense"])
    {:ok, gang} = Gang.start_link(opts)
    assert_receive {:EXIT, ^gang, {:shutdown, %Error{reason: :unavailable} = error}}, 60_000
    assert error.message =~ "status 2"
    assert {:error, %Error{reason: :unavailable}} = RankBridge.await_ready(gang, 1_000)

    {Gang, opts} = child(size: 2, backend: :fake, start_timeout: 1)
    {:ok, gang} = Gang.start_link(opts)
    assert_receive {:EXIT, ^gang, {:shutdown, %Error{reason: :deadline_exceeded}}}, 60_000
  end

  test "what says nothing, or twice, where the ranks come from is refused" do
    for opts <- [
          [],
          [size: 1, endpoints: ["a:1"]],
          [backend: :gloo, endpoints: ["a:1"]],
          [size: 0]
        ] do
      assert {:error, %Error{reason: :invalid_argument, indefinite: false}} =
               Gang.start_link(opts)
    end
  end
end
