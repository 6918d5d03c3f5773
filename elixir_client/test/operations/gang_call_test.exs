defmodule RankBridge.Operations.GangCallTest do
  @moduledoc "What is sent for a gang call, to ranks that answer by themselves, and how the answer is read."

  use ExUnit.Case, async: true

  alias RankBridge.{Error, Gang, Ref}
  alias RankBridge.Proto.V1
  alias RankBridge.Test.RecordingRanks

  setup do
    ranks = start_supervised!(RecordingRanks)
    gang = start_supervised!({Gang, RecordingRanks.gang(ranks)})
    %{ranks: ranks, gang: gang, refs: for(rank <- 0..2, do: %Ref{id: "r#{rank}", rank: rank})}
  end

  test "the gang's way is every collective's, unless that says otherwise", context do
    %{ranks: ranks, gang: gang, refs: refs} = context
    assert RankBridge.barrier!(gang) == :ok
    assert %{0 => [%V1.CallRequest{call: call, operations: [part]}]} = RecordingRanks.asked(ranks)
    assert part == %V1.Operation{kind: {:barrier, %V1.BarrierRequest{}}}
    assert %V1.Call{group: "world", timeout_ms: 30_000} = call
    assert call.session_id == RankBridge.Gang.session_id(gang) |> elem(1)
    assert byte_size(call.operation_id) == 36

    RecordingRanks.give(ranks, [1, 2, 3])
    assert RankBridge.all_reduce!(gang, refs, timeout: 7, operation_id: "it") == [1, 2, 3]
    assert %{0 => [%V1.CallRequest{call: call, operations: parts}]} = RecordingRanks.asked(ranks)
    assert %V1.Call{operation_id: "it", timeout_ms: 7} = call
    assert for(%{kind: {:all_reduce, it}} <- parts, do: it.ref_id) == ["r0", "r1", "r2"]

    assert RankBridge.barrier!(gang, calls: :ranks) == :ok

    assert %{0 => [%V1.BarrierRequest{}], 1 => [_one], 2 => [_two]} = RecordingRanks.asked(ranks)
  end

  test "a ping is a gang call always, or submitted", %{ranks: ranks, gang: gang} do
    other =
      start_supervised!({Gang, [calls: :ranks] ++ RecordingRanks.gang(ranks)}, id: :of_ranks)

    ping = %V1.Operation{kind: {:ping, %V1.PingRequest{}}}

    for gang <- [gang, other] do
      assert RankBridge.Generations.ping!(gang) == :ok
      assert %{0 => [%V1.CallRequest{operations: [^ping]}]} = RecordingRanks.asked(ranks)
      assert RankBridge.await!(gang, RankBridge.submit!(gang, :ping, nil)) == nil
      assert %{0 => [%V1.SubmitRequest{}], 1 => [_one]} = RecordingRanks.asked(ranks)

      assert {:error, %Error{reason: :invalid_argument}} =
               RankBridge.Operations.call_rank(gang, 1, :ping, nil)

      assert RecordingRanks.asked(ranks) == %{}
    end
  end

  test "what is submitted, or of one rank, is no gang call", %{ranks: ranks, gang: gang} do
    assert %{id: id} = RankBridge.submit!(gang, :barrier, nil)
    assert %{0 => [%V1.SubmitRequest{}], 1 => [_one], 2 => [_two]} = RecordingRanks.asked(ranks)
    assert id != ""
    assert RankBridge.Operations.call_rank!(gang, 1, :barrier, nil) == nil
    assert %{1 => [%V1.BarrierRequest{}]} = RecordingRanks.asked(ranks)

    for refused <- [
          RankBridge.submit(gang, :barrier, nil, calls: :gang),
          RankBridge.Operations.call_rank(gang, 1, :barrier, nil, calls: :gang),
          RankBridge.barrier(gang, calls: :both),
          RankBridge.Coalesced.coalesce(gang, [{:barrier, nil, calls: :gang}])
        ] do
      assert {:error, %Error{reason: :invalid_argument, indefinite: false}} = refused
    end

    assert RecordingRanks.asked(ranks) == %{}
  end

  test "a part that is too large to be passed on lets each rank be called", context do
    %{ranks: ranks, gang: gang} = context
    # The whole is too large, no part is.
    assert RankBridge.all_gather_object!(gang, List.duplicate(text(30_000), 3)) != nil
    assert %{0 => [%V1.CallRequest{}]} = asked = RecordingRanks.asked(ranks)
    assert map_size(asked) == 1

    assert RankBridge.all_gather_object!(gang, [1, text(70_000), 3]) != nil

    assert %{0 => [%V1.AllGatherObjectRequest{}], 1 => [_one], 2 => [_two]} =
             RecordingRanks.asked(ranks)
  end

  defp text(bytes), do: String.duplicate("x", bytes)

  test "an outcome that is too large to be passed on is fetched from its rank", context do
    %{ranks: ranks, gang: gang, refs: refs} = context
    RecordingRanks.give(ranks, [1, 2, 3])

    RecordingRanks.pass_on(ranks, fn members ->
      List.update_at(members, 1, &%{&1 | result: nil})
    end)

    assert RankBridge.all_reduce!(gang, refs) == [1, 2, 3]
    RecordingRanks.pass_on(ranks, fn members -> for it <- members, do: %{it | result: nil} end)
    assert RankBridge.all_reduce!(gang, refs) == [1, 2, 3]
  end

  test "an answer of other members, or in another order, is none", context do
    %{ranks: ranks, gang: gang, refs: refs} = context

    for {change, got} <- [
          {&Enum.reverse/1, "[2, 1, 0]"},
          {&Enum.take(&1, 2), "[0, 1]"},
          {fn _members -> [] end, "[]"}
        ] do
      RecordingRanks.pass_on(ranks, change)
      assert {:error, %Error{} = error} = RankBridge.all_reduce(gang, refs)
      assert %{reason: :protocol, indefinite: true, expected: "[0, 1, 2]", got: ^got} = error
      assert for({rank, %Error{reason: :protocol}} <- error.outcomes, do: rank) == [0, 1, 2]
    end
  end

  test "a member's own error is its own", %{ranks: ranks, gang: gang, refs: refs} do
    code = :ERROR_CODE_DEADLINE_EXCEEDED
    late = %V1.OperationResult{outcome: {:error, %V1.Error{code: code, rank: 2}}}
    silent = %V1.OperationResult{}

    for {result, reason} <- [{late, :deadline_exceeded}, {silent, :protocol}] do
      RecordingRanks.pass_on(ranks, fn members ->
        List.update_at(members, 2, &%{&1 | result: result})
      end)

      assert {:error, %Error{reason: ^reason} = error} = RankBridge.all_reduce(gang, refs)
      assert [{0, :ok}, {1, :ok}, {2, %Error{reason: ^reason}}] = error.outcomes
      # Others have done it.
      assert error.indefinite
    end
  end

  test "a way to call that is none is refused" do
    assert {:error, %Error{reason: :invalid_argument} = error} =
             Gang.start_link(endpoints: ["unix:/nowhere"], calls: :both)

    assert error.expected == ":ranks or :gang"
  end
end
