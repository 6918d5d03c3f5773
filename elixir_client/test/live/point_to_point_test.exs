# Sends and receives between real sidecars, on every backend.
for backend <- ["fake", "gloo"] do
  defmodule Module.concat(RankBridge.PointToPointTest, Macro.camelize(backend)) do
    use ExUnit.Case, async: true

    alias RankBridge.{AtOnce, Error, Gang, Id, Operation, Tensor}
    alias RankBridge.Test.LiveRanks

    @backend backend
    @moduletag timeout: 120_000

    setup_all do
      ranks = LiveRanks.start(3, @backend)
      on_exit(fn -> LiveRanks.stop(ranks) end)
      %{ranks: ranks}
    end

    setup %{ranks: ranks} do
      gang = start_supervised!({Gang, endpoints_file: ranks.file, timeout: 60_000})
      %{gang: gang, refs: RankBridge.put!(gang, for(rank <- 0..2, do: [1.0 * rank, 0.5]))}
    end

    defp list(gang, ref), do: gang |> RankBridge.get!(ref) |> Tensor.to_list()

    test "a tensor goes from one rank to another", %{gang: gang, refs: [first | _others]} do
      [:ok, {ref, 0}] =
        AtOnce.map([:send, :recv], fn
          :send -> RankBridge.send!(gang, 0, first, 2)
          :recv -> RankBridge.recv!(gang, 2, src_rank_in_group: 0)
        end)

      assert {ref.rank, ref.dtype, list(gang, ref)} == {2, :float32, [0.0, 0.5]}
    end

    test "all send to the next one at once", %{gang: gang, refs: refs} do
      sending =
        for rank <- 0..2,
            do: RankBridge.PointToPoint.isend!(gang, rank, Enum.at(refs, rank), rem(rank + 1, 3))

      received =
        for rank <- 0..2 do
          {ref, source} = RankBridge.recv!(gang, rank)
          {ref.rank, source, list(gang, ref)}
        end

      assert received == [{0, 2, [2.0, 0.5]}, {1, 0, [0.0, 0.5]}, {2, 1, [1.0, 0.5]}]
      assert Enum.map(sending, &RankBridge.Operations.wait!(gang, &1)) == [nil, nil, nil]
    end

    test "what is expected takes the place of a tensor, or says what must come", context do
      %{gang: gang, refs: [r0, r1, r2]} = context
      receiving = RankBridge.PointToPoint.irecv!(gang, 1, expected: r1)
      RankBridge.send!(gang, 0, r0, 1)
      assert {received, 0} = RankBridge.Operations.wait!(gang, receiving)
      assert {received.id, list(gang, r1)} == {r1.id, [0.0, 0.5]}

      receiving =
        RankBridge.PointToPoint.irecv!(gang, 1, expected: {:float32, [2]}, src_rank_in_group: 2)

      RankBridge.send!(gang, 2, r2, 1)
      assert {new, 2} = RankBridge.Operations.wait!(gang, receiving)
      assert {new.id == r1.id, list(gang, new), list(gang, r1)} == {false, [2.0, 0.5], [0.0, 0.5]}
    end

    test "what is not expected is refused on both ends", %{gang: gang, refs: [r0, r1, _r2]} do
      for {receive, send} <- [
            {fn -> RankBridge.PointToPoint.irecv!(gang, 1, expected: {:float32, [3]}) end,
             fn -> RankBridge.send(gang, 0, r0, 1) end},
            {fn -> RankBridge.PointToPoint.irecv!(gang, 1, expected: {:float64, [2]}) end,
             fn -> RankBridge.send(gang, 0, r0, 1) end},
            {fn -> RankBridge.PointToPoint.irecv_object!(gang, 1) end,
             fn -> RankBridge.send(gang, 0, r0, 1) end},
            {fn -> RankBridge.PointToPoint.irecv!(gang, 1, expected: r1) end,
             fn -> RankBridge.send_object(gang, 0, 5, 1) end},
            {fn -> RankBridge.PointToPoint.irecv_tensor_dict!(gang, 1) end,
             fn -> RankBridge.send_object(gang, 0, %{}, 1) end}
          ] do
        receiving = receive.()
        assert {:error, %Error{reason: :mismatch, indefinite: false, rank: 0}} = send.()

        assert {:error, %Error{reason: :mismatch, indefinite: false, rank: 1} = error} =
                 RankBridge.Operations.wait(gang, receiving)

        assert error.expected != "" and error.got != ""
        # It is the rank's own: of the two ends, the other one disagrees.
        assert [%{rank: 1, state: :arrived}, %{rank: 0, rank_in_group: 0, state: :disagrees}] =
                 error.ranks

        assert error.outcomes == []
      end

      assert list(gang, r1) == [1.0, 0.5]
    end

    test "values come as they were, in the order in which they went", %{gang: gang} do
      values = [nil, 0, 2 ** 90, "a", <<255>>, {:bytes, "a"}, [{%{nil => 1.0}}], %{}]

      sending = for value <- values, do: RankBridge.PointToPoint.isend_object!(gang, 2, value, 0)

      assert for(_value <- values, do: RankBridge.recv_object!(gang, 0)) ==
               for(value <- values, do: {value, 2})

      assert Enum.map(sending, &RankBridge.Operations.wait!(gang, &1)) ==
               Enum.map(values, fn _value -> nil end)
    end

    test "tags and sources tell messages apart", %{gang: gang} do
      sending =
        for {rank, value, tag} <- [{0, "zero", 0}, {0, "one", 1}, {1, "two", 1}],
            do: RankBridge.PointToPoint.isend_object!(gang, rank, value, 2, tag: tag)

      assert RankBridge.recv_object!(gang, 2, tag: 1, src_rank_in_group: 1) == {"two", 1}
      assert RankBridge.recv_object!(gang, 2, tag: 1) == {"one", 0}
      assert RankBridge.recv_object!(gang, 2) == {"zero", 0}
      assert Enum.map(sending, &RankBridge.Operations.wait!(gang, &1)) == [nil, nil, nil]
    end

    test "a map of tensors goes with what is in it", %{gang: gang, refs: [r0 | _others]} do
      scalar = RankBridge.put_rank!(gang, 0, 7)
      dict = %{"t" => r0, "n" => %{1 => scalar, "v" => {nil, "x"}}, "empty" => %{}}
      receiving = RankBridge.PointToPoint.irecv_tensor_dict!(gang, 1, src_rank_in_group: 0)
      assert RankBridge.PointToPoint.send_tensor_dict!(gang, 0, dict, 1) == :ok
      assert {received, 0} = RankBridge.Operations.wait!(gang, receiving)
      assert %{"t" => t, "n" => %{1 => s, "v" => {nil, "x"}}, "empty" => %{}} = received
      assert {t.rank, list(gang, t), s.rank, list(gang, s)} == {1, [0.0, 0.5], 1, 7}
      assert RankBridge.Operations.wait!(gang, receiving) == {received, 0}
    end

    test "an operation tells whether it is complete, and gives the same however often", context do
      %{gang: gang, refs: [r0 | _others]} = context
      sending = RankBridge.PointToPoint.isend!(gang, 0, r0, 1)
      assert %Operation{name: :send, ranks: [0]} = sending
      refute RankBridge.Operations.is_complete!(gang, sending)

      assert {:error, %Error{reason: :deadline_exceeded}} =
               RankBridge.Operations.wait(gang, sending, timeout: 50)

      receiving = RankBridge.PointToPoint.irecv!(gang, 1)
      assert {ref, 0} = RankBridge.Operations.wait!(gang, receiving)
      assert RankBridge.Operations.wait!(gang, receiving) == {ref, 0}
      assert RankBridge.Operations.is_complete!(gang, receiving)
      for _time <- 1..2, do: assert(RankBridge.Operations.wait!(gang, sending) == nil)
      assert RankBridge.cancel!(gang, sending) == [false]
    end

    test "what was cancelled meets nobody", %{gang: gang, refs: [r0 | _others]} do
      receiving = RankBridge.PointToPoint.irecv!(gang, 1)
      assert RankBridge.cancel!(gang, receiving) == [true]

      assert {:error, %Error{reason: :cancelled, indefinite: false}} =
               RankBridge.Operations.wait(gang, receiving)

      assert {:error, %Error{reason: :peer_missing, indefinite: false}} =
               RankBridge.send(gang, 0, r0, 1, timeout: 1_000)
    end

    @tag sampled: RankBridge.Test.Sampled.part(__ENV__)
    test "nobody waits for one that does not come, and the group is as good as before", context do
      %{gang: gang, refs: [r0 | _others]} = context

      for call <- [
            fn -> RankBridge.recv(gang, 1, timeout: 1_000) end,
            fn -> RankBridge.recv_object(gang, 1, src_rank_in_group: 0, timeout: 1_000) end,
            fn -> RankBridge.send(gang, 0, r0, 2, timeout: 1_000) end,
            fn ->
              RankBridge.PointToPoint.send_tensor_dict(gang, 0, %{1 => r0}, 2, timeout: 1_000)
            end
          ] do
        assert {:error, %Error{reason: :peer_missing, indefinite: false, group: "world"}} =
                 call.()
      end

      receiving = RankBridge.PointToPoint.irecv!(gang, 2)
      assert RankBridge.barrier!(gang) == :ok
      assert RankBridge.all_reduce_value!(gang, [1, 2, 3]) == [6, 6, 6]
      RankBridge.send!(gang, 0, r0, 2)
      assert {%{rank: 2}, 0} = RankBridge.Operations.wait!(gang, receiving)
    end

    test "who sends to itself or out of the group is refused at once", context do
      %{gang: gang, refs: [r0, r1, _r2]} = context
      name = "pair-" <> Id.uuid()
      RankBridge.new_group!(gang, name, [2, 0])

      assert {:error, %Error{reason: reason, indefinite: false}} = RankBridge.send(gang, 0, r0, 0)
      assert reason in [:invalid_argument, :rank_out_of_range]

      assert {:error, %Error{reason: :rank_out_of_range}} = RankBridge.send(gang, 0, r0, 3)
      assert {:error, %Error{indefinite: false}} = RankBridge.send(gang, 1, r1, 0, group: name)

      # In the group, rank 2 is the first.
      receiving = RankBridge.PointToPoint.irecv!(gang, 2, group: name)
      RankBridge.send!(gang, 0, r0, 0, group: name)
      assert {%{rank: 2}, 1} = RankBridge.Operations.wait!(gang, receiving)
      RankBridge.destroy_group!(gang, name)
    end
  end
end
