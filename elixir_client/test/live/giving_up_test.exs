defmodule RankBridge.GivingUpTest do
  @moduledoc "A caller that dies takes its call back from real sidecars on the fake backend."

  use ExUnit.Case, async: true

  alias RankBridge.{Error, Gang, Id}
  alias RankBridge.Test.LiveRanks

  # Far below the timeout of what is given up, in milliseconds, and long for a machine that is busy.
  @at_once 30_000
  @timeout 60_000

  setup_all do
    ranks = LiveRanks.start(3, "fake")
    on_exit(fn -> LiveRanks.stop(ranks) end)
    %{ranks: ranks}
  end

  setup %{ranks: ranks}, do: %{gang: start_supervised!({Gang, endpoints_file: ranks.file})}

  defp pending(gang, rank), do: Enum.at(RankBridge.status!(gang), rank).pending_operations

  # Asks again until it is so; each question waits for an answer of the ranks.
  defp until(question), do: if(question.(), do: :ok, else: until(question))

  defp check_withdrawn(gang, rank) do
    began = System.monotonic_time(:millisecond)
    until(fn -> pending(gang, rank) == 0 end)
    assert RankBridge.barrier!(gang, timeout: 20_000) == :ok
    assert System.monotonic_time(:millisecond) - began < @at_once
  end

  for {call, opts} <- [{"call", []}, {"call that has no id", [operation_id: ""]}] do
    test "the death of a caller withdraws its #{call}", %{gang: gang} do
      opts = [timeout: @timeout] ++ unquote(opts)

      {:ok, caller} =
        Task.start(fn -> RankBridge.Operations.call_rank(gang, 1, :barrier, nil, opts) end)

      until(fn -> pending(gang, 1) == 1 end)
      true = Process.exit(caller, :kill)
      check_withdrawn(gang, 1)
    end
  end

  test "the end of a gang withdraws the calls of its callers", %{gang: gang, ranks: ranks} do
    other = start_supervised!({Gang, endpoints_file: ranks.file}, id: :other)

    call =
      Task.async(fn ->
        RankBridge.Operations.call_rank(other, 2, :barrier, nil, timeout: @timeout)
      end)

    until(fn -> pending(gang, 2) == 1 end)
    :ok = stop_supervised(:other)
    assert {:error, %Error{reason: :cancelled}} = Task.await(call, @at_once)
    check_withdrawn(gang, 2)
  end

  test "a call that is withdrawn can be asked for by its id", %{gang: gang} do
    id = Id.uuid()

    {:ok, caller} =
      Task.start(fn ->
        RankBridge.Operations.call_rank(gang, 0, :barrier, nil,
          timeout: @timeout,
          operation_id: id
        )
      end)

    until(fn -> pending(gang, 0) == 1 end)
    true = Process.exit(caller, :kill)

    assert {:error, %Error{reason: :cancelled, indefinite: false}} =
             RankBridge.await(gang, id, rank: 0)
  end
end
