# Tests that fail, run by test/case_test.exs in a VM of its own. They run in this order.
{:ok, _apps} = Application.ensure_all_started(:rank_bridge)
ExUnit.start(seed: 0, colors: [enabled: false], exclude: [], autorun: true)

# Those of the page, which pass.
Code.require_file(hd(System.argv()))

defmodule Failing do
  # A loaded machine is not to lose ranks by itself.
  use RankBridge.Case, size: 3, backend: :gloo, arguments: ["--heartbeat-misses", "300"]

  alias RankBridge.{Gang, Operations}

  defp sum(gang) do
    refs = RankBridge.put!(gang, [[1.0], [2.0], [3.0]])
    [sum | _others] = RankBridge.all_reduce!(gang, refs)
    gang |> RankBridge.get!(sum) |> RankBridge.Tensor.to_list()
  end

  # What a barrier says that waits for a rank while that is killed.
  defp lost(gang, rank) do
    waits = Operations.submit_rank!(gang, 0, :barrier, nil, timeout: 60_000)
    RankBridge.kill_rank!(gang, rank)
    {:error, error} = RankBridge.await(gang, waits)
    error
  end

  test "a call that others keep waiting", %{gang: gang} do
    task = Task.async(fn -> Operations.call_rank(gang, 0, :barrier, nil, timeout: 60_000) end)
    await_waiting(gang)
    assert {sum_of(1, 1), task} == {3, task}
  end

  defp sum_of(a, b), do: a + b

  defp await_waiting(gang) do
    if Enum.all?(RankBridge.pending!(gang), &(&1.admissions == [])), do: await_waiting(gang)
  end

  test "a rank that is lost", %{gang: gang} do
    assert sum(gang) == [6.0]
    error = lost(gang, 2)
    raise error
  end

  test "ranks that are as new", %{gang: gang} do
    assert sum(gang) == [6.0]
    # A loss that the test expects is no failure.
    assert lost(gang, 1).reason == :peer_lost
  end

  test "something that is left behind", %{gang: gang} do
    assert sum(gang) == [6.0]
    RankBridge.new_group!(gang, "left", [0, 1])
    {:ok, view} = Gang.View.fetch(gang)
    endpoints = for rank <- 0..2, do: [Gang.View.target(view, rank)]
    other = start_supervised!({Gang, endpoints: endpoints, session: false})
    RankBridge.put_rank!(other, 0, [1.0])
  end

  test "a test that is killed", %{gang: gang} do
    test = self()

    # As one whose time is over, but not while its ranks are still being made ready.
    spawn(fn ->
      await_waiting(gang)
      Process.exit(test, :kill)
    end)

    Operations.call_rank(gang, 0, :barrier, nil, timeout: 60_000)
  end

  test "the last", %{gang: gang} do
    assert sum(gang) == [6.0]
  end
end
