defmodule RankBridge.RunTest do
  @moduledoc "A function for each member of a group, all at once."

  use ExUnit.Case, async: true

  alias RankBridge.{Error, Gang, Id, Operation, Ref}
  alias RankBridge.Proto.V1
  alias RankBridge.Test.RecordingRanks

  doctest RankBridge.Run.Outcome

  setup do
    ranks = start_supervised!(RecordingRanks)

    %{
      ranks: ranks,
      gang: start_supervised!({Gang, [calls: :ranks] ++ RecordingRanks.gang(ranks)})
    }
  end

  defp ref(rank), do: %Ref{id: "r#{rank}", rank: rank, dtype: :float32, shape: [2]}

  # What each rank was asked for, by its operation's id.
  defp ids(ranks),
    do: for({_rank, requests} <- RecordingRanks.asked(ranks), do: Enum.map(requests, &id/1))

  defp id(%V1.SubmitRequest{operation: %{kind: {_name, request}}}), do: request.call.operation_id
  defp id(request), do: request.call.operation_id

  # One member waits until all have come: with fewer processes than members this would not end.
  defp meet(test) do
    send(test, {:here, self()})

    receive do
      :all -> :ok
    end
  end

  test "all run at once, and what they give comes in group order", %{gang: gang} do
    test = self()

    run =
      Task.async(fn ->
        RankBridge.run(gang, fn rank ->
          :ok = meet(test)
          10 * rank
        end)
      end)

    pids =
      for _rank <- 0..2 do
        assert_receive {:here, pid}, 60_000
        pid
      end

    assert length(Enum.uniq([run.pid | pids])) == 4
    Enum.each(pids, &send(&1, :all))
    assert Task.await(run, 60_000) == {:ok, [0, 10, 20]}
    assert RankBridge.run!(gang, & &1) == [0, 1, 2]
  end

  test "what is taken as what", %{gang: gang} do
    given = %{0 => {:ok, nil}, 1 => nil, 2 => {:ok, {:ok, 1}}}
    assert RankBridge.run(gang, &given[&1]) == {:ok, [nil, nil, {:ok, 1}]}
    assert RankBridge.run(gang, fn _rank -> :error end) == {:ok, [:error, :error, :error]}

    failed = fn rank, reason -> {:error, %Error{reason: reason, message: "m", rank: rank}} end
    given = %{0 => failed.(0, :peer_missing), 1 => failed.(1, :unknown_ref), 2 => :fine}

    assert {:error, %Error{reason: :unknown_ref, rank: 1} = error} =
             RankBridge.run(gang, &given[&1])

    assert [{0, %Error{reason: :peer_missing}}, {1, %Error{}}, {2, :ok}] = error.outcomes
    assert_raise Error, ~r/unknown_ref/, fn -> RankBridge.run!(gang, &given[&1]) end

    # Of no gang's errors: it must not pass for a value.
    assert_raise ArgumentError, ~r/enoent/, fn ->
      RankBridge.run(gang, fn rank -> if rank == 1, do: {:error, :enoent} end)
    end
  end

  defp raises, do: raise("oh")

  test "what is raised, thrown or exited with is so again when all have ended", %{gang: gang} do
    test = self()

    ended = fn rank, fun ->
      send(test, {:ended, rank})
      fun.()
    end

    assert_raise RuntimeError, "oh", fn ->
      RankBridge.run(gang, fn rank ->
        ended.(rank, if(rank == 0, do: &raises/0, else: fn -> 1 end))
      end)
    end

    for rank <- 0..2, do: assert_received({:ended, ^rank})

    assert catch_throw(RankBridge.run(gang, fn rank -> if rank == 2, do: throw(:ball) end)) ==
             :ball

    assert catch_exit(RankBridge.run(gang, fn rank -> if rank == 1, do: exit(:bye) end)) == :bye

    stacktrace =
      try do
        RankBridge.run(gang, fn _rank -> raises() end)
      rescue
        RuntimeError -> __STACKTRACE__
      end

    assert {__MODULE__, :raises, 0, _where} = hd(stacktrace)
  end

  test "what was raised comes before what others raise because of it", %{gang: gang} do
    missing = fn -> raise(%Error{reason: :peer_missing, message: "rank 2 did not come"}) end

    assert_raise RuntimeError, "oh", fn ->
      RankBridge.run(gang, fn rank -> if rank == 2, do: raises(), else: missing.() end)
    end

    error =
      assert_raise Error, fn ->
        RankBridge.run(gang, fn
          0 -> missing.()
          1 -> raise(%Error{reason: :unknown_ref, message: "no such ref", rank: 1})
          2 -> :fine
        end)
      end

    assert {error.reason, error.rank} == {:unknown_ref, 1}
    assert [{0, %Error{reason: :peer_missing}}, {1, %Error{}}, {2, :ok}] = error.outcomes

    # A given cause is the cause also of what is raised.
    assert_raise Error, ~r/no such ref/, fn ->
      RankBridge.run(gang, fn
        0 -> missing.()
        1 -> {:error, %Error{reason: :unknown_ref, message: "no such ref", rank: 1}}
        2 -> :fine
      end)
    end
  end

  test "the members are the caller's, and end with it", %{gang: gang} do
    test = self()

    assert RankBridge.run!(gang, fn _rank -> hd(Process.get(:"$callers")) end) == [
             test,
             test,
             test
           ]

    {caller, monitor} = spawn_monitor(fn -> RankBridge.run(gang, fn _rank -> meet(test) end) end)

    members =
      for _rank <- 0..2 do
        assert_receive {:here, pid}, 60_000
        Process.monitor(pid)
      end

    Process.exit(caller, :kill)
    assert_receive {:DOWN, ^monitor, :process, ^caller, :killed}, 60_000
    for member <- members, do: assert_receive({:DOWN, ^member, :process, _pid, :killed}, 60_000)
  end

  test "a caller that traps exits learns of a killed member, and finds no messages", %{gang: gang} do
    Process.flag(:trap_exit, true)
    assert RankBridge.run!(gang, & &1) == [0, 1, 2]

    assert catch_exit(
             RankBridge.run(gang, fn rank -> if rank == 1, do: Process.exit(self(), :kill) end)
           ) == :killed

    refute_received _any
  end

  test "wrong options call nobody", %{gang: gang} do
    for opts <- [[groups: "world"], [timeout: 0], :world, [group: 5]] do
      assert {:error, %Error{reason: :invalid_argument, operation: "run"}} =
               RankBridge.run(gang, fn _rank -> flunk("called") end, opts)
    end
  end

  test "a rank's collectives have the ids of the others', by group and order", context do
    %{ranks: ranks, gang: gang} = context

    program = fn rank ->
      RankBridge.Operations.call_rank!(gang, rank, :barrier, nil)
      RankBridge.Operations.call_rank!(gang, rank, :all_reduce, ref(rank), group: "pair")
      # Refused: it counts as well, as the others may have been asked for theirs.
      {:error, %Error{}} = RankBridge.Operations.call_rank(gang, rank, :all_reduce, nil)
      %Operation{id: id} = RankBridge.Operations.submit_rank!(gang, rank, :all_gather, ref(rank))
      RankBridge.Operations.call_rank!(gang, rank, :barrier, nil, group: "")
      id
    end

    given = RankBridge.run!(gang, program)
    assert [ids, ids, ids] = ids(ranks)
    assert [barrier, pair, gather, last] = ids
    assert given == [gather, gather, gather]
    assert Enum.all?(ids, &(byte_size(&1) in 1..128))
    assert Enum.uniq(ids) == ids

    count = fn id -> id |> String.split("-") |> List.last() end
    assert Enum.map([barrier, pair, gather, last], count) == ~w(0 0 2 3)

    # Another run has others, and so has what is called outside.
    RankBridge.run!(gang, program)
    assert [others, others, others] = ids(ranks)
    assert others -- ids == others

    for rank <- 0..2, do: RankBridge.Operations.call_rank!(gang, rank, :barrier, nil)
    assert length(Enum.uniq(ids(ranks))) == 3
  end

  test "an id that is given is that; point to point, and in other processes, none is shared",
       context do
    %{ranks: ranks, gang: gang} = context
    id = Id.uuid()

    RankBridge.run!(
      gang,
      &RankBridge.Operations.call_rank!(gang, &1, :barrier, nil, operation_id: id)
    )

    assert ids(ranks) == [[id], [id], [id]]

    RankBridge.run!(
      gang,
      &RankBridge.Operations.call_rank!(gang, &1, :barrier, nil, operation_id: "")
    )

    assert ids(ranks) == [[""], [""], [""]]

    apart = fn rank ->
      call = fn -> RankBridge.Operations.call_rank!(gang, rank, :barrier, nil) end
      call |> Task.async() |> Task.await(60_000)
    end

    for fun <- [&RankBridge.send!(gang, &1, ref(&1), 0), apart] do
      RankBridge.run!(gang, fun)
      assert ranks |> ids() |> Enum.concat() |> Enum.uniq() |> length() == 3
    end
  end

  test "a run within a run has ids of its own, and leaves the outer one's alone", context do
    %{ranks: ranks, gang: gang} = context
    barrier = fn rank -> RankBridge.Operations.call_rank!(gang, rank, :barrier, nil) end

    RankBridge.run!(gang, fn rank ->
      barrier.(rank)
      if rank == 0, do: RankBridge.run!(gang, barrier)
      barrier.(rank)
    end)

    assert [[first, inner, second] = own | others] = ids(ranks)
    # The inner run may be quicker than what the outer one has on other ranks.
    for ids <- others, do: assert(Enum.sort(ids) == Enum.sort(own))
    assert length(Enum.uniq([first, inner, second])) == 3
  end
end
