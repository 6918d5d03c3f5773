defmodule RankBridge.OperationsTest do
  @moduledoc "Operations that are submitted, and outcomes by id, against real sidecars on the fake backend."

  use ExUnit.Case, async: true

  alias RankBridge.{AtOnce, Error, Gang, Id, Operation, Tensor}
  alias RankBridge.Test.{Functions, LiveRanks}

  setup_all do
    ranks = LiveRanks.start(3, "fake")
    on_exit(fn -> LiveRanks.stop(ranks) end)
    %{ranks: ranks}
  end

  setup %{ranks: ranks} do
    gang = start_supervised!({Gang, endpoints_file: ranks.file, timeout: 20_000})
    %{gang: gang, refs: RankBridge.put!(gang, for(rank <- 0..2, do: [1.0 * rank, 2.0]))}
  end

  defp values(gang, refs), do: gang |> RankBridge.get!(refs) |> Enum.map(&Tensor.to_list/1)

  test "a submitted operation gives what the direct call gives", %{gang: gang, refs: refs} do
    for {name, opts} <- [
          all_reduce: [op: :max],
          broadcast: [src_rank_in_group: 1],
          all_gather: []
        ] do
      operation = RankBridge.submit!(gang, name, refs, opts)
      assert %Operation{name: ^name, ranks: [0, 1, 2]} = operation
      direct = Functions.call(:"#{name}!", [gang, refs, opts])
      assert values(gang, RankBridge.await!(gang, operation)) == values(gang, direct)
    end

    gather = RankBridge.submit!(gang, :gather, refs, dst_rank_in_group: 1)
    assert [nil, %{rank: 1}, nil] = RankBridge.await!(gang, gather)

    parts =
      [RankBridge.put_rank!(gang, 0, [1, 2, 3])] ++
        for(rank <- 1..2, do: RankBridge.put_rank!(gang, rank, [0]))

    scatter = RankBridge.submit!(gang, :scatter, parts)
    assert values(gang, RankBridge.await!(gang, scatter)) == [[1], [2], [3]]
    whole = RankBridge.put!(gang, for(rank <- 0..2, do: [rank, 1, 2]))
    reduce_scatter = RankBridge.submit!(gang, :reduce_scatter, whole, sizes: [2, 0, 1])
    assert values(gang, RankBridge.await!(gang, reduce_scatter)) == [[3, 3], [], [6]]
    ragged = RankBridge.put!(gang, for(rank <- 0..2, do: List.duplicate(rank, rank + 1)))
    all_gather = RankBridge.submit!(gang, :all_gather, ragged, sizes: [1, 2, 3])

    assert values(gang, RankBridge.await!(gang, all_gather)) ==
             List.duplicate([0, 1, 1, 2, 2, 2], 3)

    sizes = [[0, 0, 1], [1, 1, 0], [0, 3, 0]]
    all_to_all = RankBridge.submit!(gang, :all_to_all, ragged, sizes: sizes)
    assert values(gang, RankBridge.await!(gang, all_to_all)) == [[1], [1, 2, 2, 2], [0]]
    reduce = RankBridge.submit!(gang, :reduce, refs, dst_rank_in_group: 2, op: :max)
    assert [nil, nil, %{rank: 2}] = RankBridge.await!(gang, reduce)
    assert RankBridge.await(gang, RankBridge.submit!(gang, :barrier, nil)) == {:ok, nil}
  end

  test "a submitted operation fails as the direct call fails", %{gang: gang, refs: refs} do
    wrong = List.replace_at(refs, 2, RankBridge.put_rank!(gang, 2, [1.0, 2.0, 3.0]))
    assert {:error, %Error{} = direct} = RankBridge.all_reduce(gang, wrong)
    operation = RankBridge.submit!(gang, :all_reduce, wrong)
    assert {:error, %Error{} = submitted} = RankBridge.await(gang, operation)

    for error <- [direct, submitted] do
      assert {error.reason, error.operation, error.group, error.indefinite} ==
               {:mismatch, "all_reduce", "world", false}

      assert Enum.map(error.ranks, & &1.state) == Enum.map(direct.ranks, & &1.state)
    end

    assert_raise Error, fn -> RankBridge.await!(gang, operation) end
  end

  test "an operation is followed from the queue to its end", %{gang: gang} do
    [first, second] = [Id.uuid(), Id.uuid()]
    RankBridge.Operations.submit_rank!(gang, 1, :barrier, nil, operation_id: first)
    until(fn -> state(gang, first, 1) == :admission end)
    RankBridge.Operations.submit_rank!(gang, 1, :barrier, nil, operation_id: second)
    assert state(gang, second, 1) == :queued

    for id <- [first, second], rank <- [0, 2] do
      assert %Operation{id: ^id, ranks: [^rank]} =
               RankBridge.Operations.submit_rank!(gang, rank, :barrier, nil, operation_id: id)
    end

    for id <- [first, second] do
      assert RankBridge.await!(gang, id) == nil

      assert RankBridge.Operations.poll!(gang, id) ==
               for(rank <- 0..2, do: %{rank: rank, state: :done, result: {:ok, nil}})
    end
  end

  defp state(gang, id, rank) do
    [%{rank: ^rank, state: state}] = RankBridge.Operations.poll!(gang, id, rank: rank)
    state
  end

  test "an outcome is asked for by id by whoever knows it", %{
    gang: gang,
    refs: refs,
    ranks: ranks
  } do
    id = Id.uuid()
    direct = RankBridge.all_reduce!(gang, refs, operation_id: id)
    other = start_supervised!({Gang, endpoints_file: ranks.file, session: false}, id: :other)
    assert RankBridge.await!(other, id) == direct
    assert RankBridge.await!(other, id, rank: 1) == [Enum.at(direct, 1)]

    assert Enum.map(RankBridge.Operations.poll!(other, id), & &1.result) ==
             Enum.map(direct, &{:ok, &1})
  end

  test "an outcome of a group is asked for at its members", %{gang: gang} do
    name = "pair-" <> Id.uuid()
    RankBridge.new_group!(gang, name, [2, 0])
    operation = RankBridge.submit!(gang, :barrier, nil, group: name)
    assert operation.ranks == [2, 0]
    assert RankBridge.await!(gang, operation.id, group: name) == nil

    assert {:error, %Error{reason: :unknown_operation}} =
             RankBridge.Operations.poll(gang, operation.id)

    RankBridge.destroy_group!(gang, name)
  end

  test "waiting ends before the operation and leaves it as it is", %{gang: gang} do
    operation = RankBridge.Operations.submit_rank!(gang, 0, :barrier, nil)

    assert {:error, %Error{reason: :deadline_exceeded, indefinite: true}} =
             RankBridge.await(gang, operation, timeout: 50)

    for rank <- [1, 2],
        do:
          RankBridge.Operations.submit_rank!(gang, rank, :barrier, nil, operation_id: operation.id)

    assert RankBridge.await!(gang, operation.id, timeout: 10_000) == nil
  end

  test "a cancelled operation is withdrawn, and its outcome says so", %{gang: gang} do
    operation = RankBridge.Operations.submit_rank!(gang, 2, :barrier, nil)
    assert RankBridge.cancel!(gang, operation) == [true]

    assert {:error, %Error{reason: :cancelled, indefinite: false, rank: 2}} =
             RankBridge.await(gang, operation)

    assert [%{state: :done, result: {:error, %Error{reason: :cancelled}}}] =
             RankBridge.Operations.poll!(gang, operation)

    assert RankBridge.barrier!(gang, timeout: 5_000) == :ok
  end

  test "what is done is not cancelled", %{gang: gang, refs: refs} do
    operation = RankBridge.submit!(gang, :all_reduce, refs)
    result = RankBridge.await!(gang, operation)
    assert RankBridge.cancel!(gang, operation) == [false, false, false]
    assert RankBridge.await!(gang, operation) == result
  end

  test "a rank that never got the operation explains why the others missed it", %{gang: gang} do
    id = Id.uuid()
    opts = [operation_id: id, timeout: 1_000]
    AtOnce.map([0, 1], &RankBridge.Operations.submit_rank!(gang, &1, :barrier, nil, opts))

    assert {:error, %Error{reason: :unknown_operation, rank: 2} = error} =
             RankBridge.await(gang, id)

    assert [:peer_missing, :peer_missing, :unknown_operation] =
             for({_rank, outcome} <- error.outcomes, do: outcome.reason)
  end

  test "what one rank refuses has failed on the others", %{gang: gang, refs: refs} do
    id = Id.uuid()
    RankBridge.release!(gang, List.last(refs))

    assert {:error, %Error{reason: :released_ref, rank: 2, indefinite: false}} =
             RankBridge.submit(gang, :all_reduce, refs, operation_id: id)

    for rank <- [0, 1] do
      # Whichever was quicker: the leader, who learns of the refusal, or this client.
      assert [%{result: {:error, %Error{reason: reason}}}] =
               RankBridge.Operations.poll!(gang, id, rank: rank)

      assert reason in [:cancelled, :released_ref]
    end

    assert RankBridge.barrier!(gang, timeout: 5_000) == :ok
  end

  test "what cannot be asked for is refused before anything is sent", %{gang: gang, refs: refs} do
    for {reason, call} <- [
          invalid_argument: fn -> RankBridge.submit(gang, :put, refs) end,
          invalid_argument: fn -> RankBridge.submit(gang, :barrier, refs) end,
          invalid_argument: fn -> RankBridge.submit(gang, :all_reduce, nil) end,
          invalid_argument: fn -> RankBridge.submit(gang, :all_reduce, tl(refs)) end,
          invalid_argument: fn -> RankBridge.submit(gang, :all_reduce, refs, op: :mean) end,
          invalid_argument: fn ->
            RankBridge.Operations.call_rank(gang, 0, :all_redcue, hd(refs))
          end,
          invalid_argument: fn -> RankBridge.Operations.poll(gang, :id) end,
          invalid_argument: fn -> RankBridge.Operations.poll(gang, "id", ranks: [1]) end,
          rank_out_of_range: fn -> RankBridge.await(gang, "id", rank: 3) end,
          unknown_operation: fn -> RankBridge.Operations.poll(gang, Id.uuid()) end,
          unknown_operation: fn -> RankBridge.await(gang, Id.uuid()) end,
          unknown_operation: fn -> RankBridge.cancel(gang, Id.uuid()) end
        ] do
      assert {:error, %Error{reason: ^reason, indefinite: false}} = call.()
    end
  end

  test "what was begun stays open when its outcome cannot be asked for", %{gang: gang} do
    operation = RankBridge.submit!(gang, :barrier, nil)
    {:ok, view} = RankBridge.Gang.View.fetch(gang)
    {:ok, channel} = RankBridge.Gang.View.channel(view, 1)
    RankBridge.Transport.close(channel)

    assert {:error, %Error{indefinite: true, rank: 1}} = RankBridge.await(gang, operation)

    assert {:error, %Error{indefinite: false, rank: 1}} =
             RankBridge.Operations.poll(gang, operation)
  end

  # Asks again until it is so; each question waits for an answer of the ranks.
  defp until(question), do: if(question.(), do: :ok, else: until(question))
end
