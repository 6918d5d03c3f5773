defmodule RankBridge.Gang.ChannelsTest do
  @moduledoc "What calls read of a gang: a row for each rank that they call, however many ranks there are."

  use ExUnit.Case, async: true

  alias RankBridge.{Gang, Tensor}
  alias RankBridge.Gang.{Channels, View}
  alias RankBridge.Test.TensorRanks

  @soon 60_000

  defp rows(ranks), do: for(rank <- ranks, do: {%{transport: Test, rank: rank}, "target #{rank}"})

  test "a set has a channel and a target for each rank, and never changes" do
    table = Channels.table()
    channels = Channels.put(table, rows(0..3))
    fewer = Channels.only(channels, [1, 3])
    assert {channels.size, fewer.size} == {4, 2}
    assert Channels.rows(channels) == rows(0..3)
    assert Channels.rows(fewer) == rows([1, 3])
    assert Channels.fetch(channels, 1) == {:ok, %{transport: Test, rank: 1}}
    assert Channels.fetch(fewer, 1) == {:ok, %{transport: Test, rank: 3}}
    assert Channels.target(fewer, 0) == "target 1"

    :ok = Channels.drop(fewer)
    assert Channels.fetch(fewer, 1) == :gone
    assert Channels.rows(channels) == rows(0..3)
    assert Channels.rows(Channels.put(table, [])) == []

    :ets.delete(table)
    assert {Channels.fetch(channels, 0), Channels.target(channels, 0)} == {:gone, ""}
  end

  test "the view that a call copies is as large for 256 ranks as for 4" do
    [small, large] =
      for size <- [4, 256] do
        gang = start_supervised!({Gang, TensorRanks.gang(size)}, id: size)
        :ok = RankBridge.await_ready(gang, @soon)
        {:ok, view} = View.fetch(gang)
        assert View.size(view) == size
        :erts_debug.flat_size(view)
      end

    assert small == large
  end

  test "put and get at 256 ranks read a row for each, and one at a rank reads one" do
    gang = start_supervised!({Gang, TensorRanks.gang(256)})
    :ok = RankBridge.await_ready(gang, @soon)
    tensors = for rank <- 0..255, do: [1.0 * rank]

    {refs, read} = counted(fn -> RankBridge.put!(gang, tensors) end)
    assert {length(refs), read} == {256, 256}
    {got, read} = counted(fn -> RankBridge.get!(gang, refs) end)
    assert Enum.map(got, &Tensor.to_list/1) == tensors
    assert read == 256

    {ref, read} = counted(fn -> RankBridge.put_rank!(gang, 200, [7.0]) end)
    assert {ref.rank, read} == {200, 1}
    assert {_tensor, 1} = counted(fn -> RankBridge.get!(gang, ref) end)
  end

  # What a function gives, and how many rows it and the processes that it starts have read.
  defp counted(fun) do
    :erlang.trace_pattern({Channels, :fetch, 2}, true, [:local])

    task =
      Task.async(fn ->
        receive do: (:begin -> fun.())
      end)

    :erlang.trace(task.pid, true, [:call, :set_on_spawn])
    send(task.pid, :begin)
    result = Task.await(task, @soon)
    delivered = :erlang.trace_delivered(:all)
    assert_receive {:trace_delivered, :all, ^delivered}, @soon
    {result, read(0)}
  end

  defp read(count) do
    receive do
      {:trace, _pid, :call, {Channels, :fetch, _arguments}} -> read(count + 1)
    after
      0 -> count
    end
  end
end
