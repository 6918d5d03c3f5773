defmodule RankBridge.Gang.SeveralTest do
  @moduledoc "Large gangs, and several in one VM: real processes on Gloo."

  use ExUnit.Case, async: true

  alias RankBridge.{Error, Gang, Tensor}
  alias RankBridge.Test.OsProcess

  # A loaded machine is not to lose ranks by itself. One that is killed is lost at once.
  @patient ["--heartbeat-misses", "300"]

  defp start(name, size) do
    opts =
      [name: name, size: size, command: OsProcess.rankbridge(), arguments: @patient] ++
        [start_timeout: 120_000]

    pid = start_supervised!({Gang, opts}, id: name)
    {name, pid}
  end

  defp sum(gang) do
    {:ok, size} = Gang.size(gang)
    refs = RankBridge.put!(gang, for(rank <- 0..(size - 1), do: [1.0 * rank]))
    sums = RankBridge.all_reduce!(gang, refs)
    [[sum]] = gang |> RankBridge.get!(sums) |> Enum.map(&Tensor.to_list/1) |> Enum.uniq()
    sum
  end

  @tag sampled: RankBridge.Test.Sampled.part(__ENV__)
  test "a gang of 8" do
    {gang, _pid} = start(__MODULE__.Eight, 8)
    :ok = RankBridge.await_ready(gang, 120_000)
    assert sum(gang) == 28.0
    OsProcess.kill(Enum.at(RankBridge.status!(gang), 5).pid)
    assert {:ok, _generation} = next_generation(gang, 1)
    assert sum(gang) == 28.0
  end

  @tag sampled: RankBridge.Test.Sampled.part(__ENV__)
  test "two gangs in one VM know nothing of each other's losses" do
    {one, _pid} = start(__MODULE__.One, 2)
    {other, pid} = start(__MODULE__.Other, 3)
    for gang <- [one, other], do: assert(RankBridge.await_ready(gang, 120_000) == :ok)
    assert [sum(one), sum(other)] == [1.0, 3.0]

    # What belongs to one is nothing to the other.
    [ref | _rest] = RankBridge.put!(one, [[1.0], [2.0]])
    assert {:error, %Error{reason: :unknown_session}} = RankBridge.get(other, ref)

    :ok = Gang.subscribe(other)
    OsProcess.kill(hd(RankBridge.status!(one)).pid)
    assert {:ok, 2} = next_generation(one, 1)
    assert [sum(one), sum(other)] == [1.0, 3.0]
    assert [1] = Enum.uniq(for status <- RankBridge.status!(other), do: status.generation)
    refute_received {:rank_bridge, _other, %{kind: :rank_lost}}

    :ok = stop_supervised(one)
    assert sum(other) == 3.0
    assert Process.alive?(pid)
  end

  # Waits until the gang has noticed and is whole.
  defp next_generation(gang, before) do
    with :ok <- RankBridge.barrier(gang),
         [generation] when generation > before <-
           Enum.uniq(for status <- RankBridge.status!(gang), do: status.generation) do
      {:ok, generation}
    else
      _not_yet -> next_generation(gang, before)
    end
  end
end
