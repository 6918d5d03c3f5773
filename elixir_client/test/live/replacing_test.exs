defmodule RankBridge.ReplacingTest do
  @moduledoc "A rank that is killed and replaced at the same endpoints: real processes on Gloo."

  use ExUnit.Case, async: true

  alias RankBridge.{Error, Gang, Tensor}
  alias RankBridge.Test.RankProcesses

  setup do
    ranks = RankProcesses.start(2)
    on_exit(fn -> RankProcesses.stop(ranks) end)
    %{ranks: ranks}
  end

  defp pending?(gang, rank),
    do: Enum.at(RankBridge.status!(gang), rank).pending_operations > 0

  # Asks again until it is so; each question waits for an answer of the ranks.
  defp until(question), do: if(question.(), do: :ok, else: until(question))

  for {kind, killed} <- [unix: 0, unix: 1, tcp: 0, tcp: 1] do
    @kind kind
    @killed killed
    @tag sampled: RankBridge.Test.Sampled.part(__ENV__)
    test "a gang outlives rank #{killed} at its #{kind} endpoint, and is formed with a new one",
         %{
           ranks: ranks
         } do
      survivor = 1 - @killed
      targets = RankProcesses.targets(ranks, @kind)
      gang = start_supervised!({Gang, endpoints: targets, timeout: 20_000})
      refs = RankBridge.put!(gang, [[1.0], [2.0]])

      # One call is pending when the rank dies, and others come later.
      waiting =
        Task.async(fn -> RankBridge.Operations.call_rank(gang, survivor, :barrier, nil) end)

      until(fn -> pending?(gang, survivor) end)
      RankProcesses.kill(ranks, @killed)
      assert {:error, %Error{reason: :peer_lost} = error} = Task.await(waiting, 60_000)
      assert [@killed] = for(%{state: :lost, rank: rank} <- error.ranks, do: rank)

      assert {:error, %Error{reason: reason} = later} =
               RankBridge.all_reduce(gang, refs, calls: :ranks)

      assert reason in [:unavailable, :peer_lost]
      assert @killed in for(%{state: :lost, rank: rank} <- later.ranks, do: rank)
      assert {:error, %Error{reason: :unavailable, rank: @killed}} = RankBridge.get(gang, refs)

      kept = Enum.at(refs, survivor)
      assert gang |> RankBridge.get!(kept) |> Tensor.to_list() == [survivor + 1.0]

      _ranks = RankProcesses.replace(ranks, @killed)
      assert %{world_size: 2} = RankBridge.form!(gang, timeout: 60_000)

      # The session is open on the new rank as well, and what the survivor holds is there.
      new = RankBridge.put_rank!(gang, @killed, [10.0])
      assert new.session_id == kept.session_id
      sums = RankBridge.all_reduce!(gang, Enum.sort_by([kept, new], & &1.rank))
      sum = 11.0 + survivor
      assert gang |> RankBridge.get!(sums) |> Enum.map(&Tensor.to_list/1) == [[sum], [sum]]
    end
  end

  @tag sampled: RankBridge.Test.Sampled.part(__ENV__)
  test "forming waits for a rank that does not serve yet", %{ranks: ranks} do
    for killed <- [0, 1], reduce: ranks do
      ranks ->
        targets = RankProcesses.targets(ranks, :unix)
        gang = start_supervised!({Gang, endpoints: targets, timeout: 20_000}, id: killed)
        RankBridge.form!(gang)
        RankProcesses.kill(ranks, killed)

        # Until it is gone for good.
        until(fn -> match?({:error, _gone}, RankBridge.create(gang, :int8, [1], rank: killed)) end)

        forming = Task.async(fn -> RankBridge.form(gang, timeout: 60_000) end)
        ranks = RankProcesses.replace(ranks, killed)
        assert {:ok, %{world_size: 2}} = Task.await(forming, 90_000)
        assert RankBridge.barrier!(gang) == :ok
        assert %{rank: ^killed} = RankBridge.create!(gang, :int8, [1], rank: killed)
        :ok = stop_supervised(killed)
        ranks
    end
  end
end
