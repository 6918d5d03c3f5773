defmodule RankBridge.Operations.RequestsTest do
  @moduledoc "What each operation asks of each rank, whichever way it is called, and what is refused before."

  use ExUnit.Case, async: true

  alias RankBridge.{Error, Gang, Graph, Operation, Queue, Ref, Value}
  alias RankBridge.Operations.Declaration
  alias RankBridge.Proto.V1
  alias RankBridge.Test.RecordingRanks

  setup do
    ranks = start_supervised!(RecordingRanks)
    gang = start_supervised!({Gang, [calls: :ranks] ++ RecordingRanks.gang(ranks)})
    %{ranks: ranks, gang: gang, refs: for(rank <- 0..2, do: ref(rank))}
  end

  defp ref(rank), do: %Ref{id: "r#{rank}", rank: rank, dtype: :float32, shape: [2]}

  defp value(term) do
    {:ok, value} = Value.to_proto(term)
    value
  end

  # Every operation with what it takes, and a request of each rank that is called: of all three, or of rank 1.
  defp cases(refs) do
    ids = for ref <- refs, do: ref.id
    third = Enum.at(refs, 2)
    one = %V1.TensorSpec{dtype: :DTYPE_INT8, shape: [3, 0]}

    [
      {:barrier, nil, [], for(_id <- ids, do: %V1.BarrierRequest{})},
      {:broadcast, refs, [src_rank_in_group: 1],
       for(id <- ids, do: %V1.BroadcastRequest{ref_id: id, src_rank_in_group: 1})},
      {:gather, refs, [layout: :stacked, dst_rank_in_group: 2, ragged: true],
       for id <- ids do
         %V1.GatherRequest{
           ref_id: id,
           dst_rank_in_group: 2,
           layout: :GATHER_LAYOUT_STACKED,
           ragged: true
         }
       end},
      {:all_gather, refs, [layout: :list, dim: 0, sizes: [1, 0, 2]],
       for id <- ids do
         %V1.AllGatherRequest{ref_id: id, dim: 0, sizes: [1, 0, 2], layout: :GATHER_LAYOUT_LIST}
       end},
      {:all_gather, refs, [],
       for(id <- ids, do: %V1.AllGatherRequest{ref_id: id, layout: :GATHER_LAYOUT_CONCATENATED})},
      {:scan, refs, [op: :max, exclusive: true],
       for(id <- ids, do: %V1.ScanRequest{ref_id: id, op: :REDUCE_OP_MAX, exclusive: true})},
      {:broadcast_object, %{1 => nil}, [src_rank_in_group: 1],
       for place <- 0..2 do
         value = if place == 1, do: value(%{1 => nil})
         %V1.BroadcastObjectRequest{value: value, src_rank_in_group: 1}
       end},
      {:scatter_object, [1, nil, "x"], [src_rank_in_group: 2],
       for place <- 0..2 do
         values = if place == 2, do: value([1, nil, "x"])
         %V1.ScatterObjectRequest{values: values, src_rank_in_group: 2}
       end},
      {:gather_object, [{}, 2 ** 70, <<255>>], [dst_rank_in_group: 1],
       for it <- [{}, 2 ** 70, <<255>>] do
         %V1.GatherObjectRequest{value: value(it), dst_rank_in_group: 1}
       end},
      {:all_gather_object, [nil, false, 0.0], [],
       for(it <- [nil, false, 0.0], do: %V1.AllGatherObjectRequest{value: value(it)})},
      {:all_reduce_value, [1, 2 ** 64, -3], [op: :bxor],
       for it <- [1, 2 ** 64, -3] do
         %V1.AllReduceValueRequest{value: value(it), op: :REDUCE_OP_BXOR}
       end},
      {:broadcast_tensor_dict, %{"w" => third, "n" => [%{"b" => {third, 1}}]},
       [src_rank_in_group: 2],
       for place <- 0..2 do
         dict = if place == 2, do: value(%{"w" => third, "n" => [%{"b" => {third, 1}}]})
         %V1.BroadcastTensorDictRequest{dict: dict, src_rank_in_group: 2}
       end},
      {:send, ref(1), [dst_rank_in_group: 2, tag: 9],
       [%V1.SendRequest{ref_id: "r1", dst_rank_in_group: 2, tag: 9}]},
      {:recv, nil, [], [%V1.RecvRequest{}]},
      {:recv, ref(1), [src_rank_in_group: 0, tag: 1],
       [%V1.RecvRequest{src_rank_in_group: 0, tag: 1, expected: {:ref_id, "r1"}}]},
      {:recv, {:int8, [3, 0]}, [], [%V1.RecvRequest{expected: {:tensor, one}}]},
      {:send_object, [nil], [dst_rank_in_group: 0],
       [%V1.SendObjectRequest{value: value([nil]), dst_rank_in_group: 0}]},
      {:recv_object, nil, [tag: 4_294_967_295], [%V1.RecvObjectRequest{tag: 4_294_967_295}]},
      {:send_tensor_dict, %{"w" => ref(1)}, [dst_rank_in_group: 0],
       [%V1.SendTensorDictRequest{dict: value(%{"w" => ref(1)}), dst_rank_in_group: 0}]},
      {:recv_tensor_dict, nil, [src_rank_in_group: 2],
       [%V1.RecvTensorDictRequest{src_rank_in_group: 2}]},
      {:coalesce, [{:all_reduce, refs, op: :min, in_place: true}, {:barrier, nil}], [],
       for id <- ids do
         all_reduce = %V1.AllReduceRequest{ref_id: id, op: :REDUCE_OP_MIN, in_place: true}

         %V1.CoalesceRequest{
           operations: [
             %V1.Operation{kind: {:all_reduce, all_reduce}},
             %V1.Operation{kind: {:barrier, %V1.BarrierRequest{}}}
           ]
         }
       end},
      {:replay, "g", [], for(_id <- ids, do: %V1.ReplayRequest{graph: "g"})},
      {:replay, %Graph{name: "g", ranks: [0, 1, 2]}, [],
       for(_id <- ids, do: %V1.ReplayRequest{graph: "g"})},
      {:call_function, [refs, 1, RankBridge.each([nil, "b", {3}]), lr: 0.5],
       [function: :train_step],
       for {rank, own} <- Enum.zip(0..2, [nil, "b", {3}]) do
         by_place = for it <- [ref(rank), 1, own], do: %V1.Argument{value: value(it)}
         lr = %V1.Argument{name: "lr", value: value(0.5)}
         %V1.CallFunctionRequest{function: "train_step", arguments: by_place ++ [lr]}
       end},
      {:call_function, %{"batch" => [1, 2]}, [function: "train_step"],
       for _rank <- 0..2 do
         batch = %V1.Argument{name: "batch", value: value([1, 2])}
         %V1.CallFunctionRequest{function: "train_step", arguments: [batch]}
       end},
      {:enqueue, {nil}, [queue: queue()], [%V1.EnqueueRequest{queue: "q", value: value({nil})}]},
      {:dequeue, nil, [queue: "q"], [%V1.DequeueRequest{queue: "q"}]}
    ]
  end

  defp queue do
    %Queue{
      name: "q",
      group: "world",
      ranks: [0, 1, 2],
      writer_rank_in_group: 1,
      reader_ranks_in_group: [0, 2]
    }
  end

  test "every operation says to each rank what it shall do, called or submitted", context do
    %{ranks: ranks, gang: gang, refs: refs} = context
    RecordingRanks.give(ranks, [[1, nil], [2, nil], [3, nil]])

    for {name, input, opts, expected} <- cases(refs) do
      {call, submit} =
        case Declaration.of(name).called_on do
          :group ->
            {fn -> run(gang, name, input, opts) end,
             fn -> RankBridge.submit(gang, name, input, opts) end}

          :rank ->
            {fn -> RankBridge.Operations.call_rank(gang, 1, name, input, opts) end,
             fn -> RankBridge.Operations.submit_rank(gang, 1, name, input, opts) end}
        end

      assert {name, {:ok, given}} = {name, call.()}
      asked = RecordingRanks.asked(ranks)
      requests = for rank <- 0..2, request <- asked[rank] || [], do: request
      assert {name, Enum.map(requests, &%{&1 | call: nil})} == {name, expected}
      assert [%V1.Call{group: "world", timeout_ms: 30_000}] = without_id(requests)

      assert {:ok, %Operation{name: ^name} = operation} = submit.()
      asked = RecordingRanks.asked(ranks)
      assert Map.keys(asked) == operation.ranks

      submitted =
        for rank <- operation.ranks, [%{operation: %{kind: {^name, it}}}] = asked[rank], do: it

      assert Enum.map(submitted, &%{&1 | call: nil}) == expected
      assert without_id(submitted) == without_id(requests)
      assert Enum.uniq(for %{call: call} <- submitted, do: call.operation_id) == [operation.id]

      if Declaration.of(name).called_on == :group do
        assert {name, {:ok, given}} == {name, run(gang, name, input, [calls: :gang] ++ opts)}
        assert %{0 => [%V1.CallRequest{} = whole]} = asked = RecordingRanks.asked(ranks)
        assert map_size(asked) == 1
        parts = for %{kind: {^name, part}} <- whole.operations, do: part

        assert parts ==
                 if(match?([_one], Enum.uniq(expected)), do: [hd(expected)], else: expected)

        assert without_id([whole]) == without_id(requests)
      end

      # However often it is asked for, the outcome is that of the direct call.
      for _time <- 1..2, do: assert(RankBridge.Operations.wait(gang, operation) == {:ok, given})
      assert RankBridge.Operations.is_complete(gang, operation) == {:ok, true}
    end
  end

  defp run(gang, name, input, opts),
    do:
      RankBridge.Entry.call(gang, name, opts, &RankBridge.Collectives.run(&1, name, input, opts))

  # The calls of requests, each once, of which none may have no id.
  defp without_id(requests) do
    for %{call: call} <- requests, assert(call.operation_id != ""), uniq: true do
      assert call.site =~ ~r"^test/operations/requests_test.exs:\d+$"
      %{call | operation_id: "", site: ""}
    end
  end

  test "there is a case for every operation but those that others test", %{refs: refs} do
    there = for {name, _input, _opts, _requests} <- cases(refs), uniq: true, do: name
    elsewhere = [:all_reduce, :reduce, :scatter, :reduce_scatter, :all_to_all, :run_program]
    assert Enum.sort(Declaration.names() -- there) == Enum.sort(elsewhere)
  end

  test "what each member gets comes in group order, and what nobody gets is nil", context do
    %{ranks: ranks, gang: gang, refs: refs} = context
    assert RankBridge.barrier!(gang) == :ok
    assert RankBridge.broadcast_object!(gang, nil) == [nil, nil, nil]
    assert RankBridge.await!(gang, RankBridge.submit!(gang, :barrier, nil)) == nil

    assert RankBridge.await!(gang, RankBridge.submit!(gang, :broadcast_object, nil)) ==
             [nil, nil, nil]

    RecordingRanks.give(ranks, [[nil, 1, [nil]], [nil, 2, [5]], [nil, 3, []]])
    calls = [{:barrier, nil}, {:all_reduce, refs}, {:all_gather, refs, layout: :list}]
    results = [nil, [1, 2, 3], [[nil], [5], []]]
    assert RankBridge.Coalesced.coalesce!(gang, calls) == results
    assert RankBridge.await!(gang, RankBridge.submit!(gang, :coalesce, calls)) == results
    calls = [{:barrier, nil}, {:all_reduce, ref(1)}, {:all_gather, ref(1)}]
    assert RankBridge.Operations.call_rank!(gang, 1, :coalesce, calls) == [nil, 2, [5]]

    results = [nil, [1, 2, 3], [[nil], [5], []]]
    assert RankBridge.Graphs.replay!(gang, "g") == results
    assert RankBridge.await!(gang, RankBridge.submit!(gang, :replay, "g")) == results
    assert RankBridge.Operations.call_rank!(gang, 1, :replay, "g") == [nil, 2, [5]]

    for values <- [[[1], [1, 2], [3]], [[1], [1], 3]] do
      RecordingRanks.give(ranks, values)

      assert {:error, %Error{reason: :protocol}} =
               RankBridge.Coalesced.coalesce(gang, [{:barrier, nil}])

      assert {:error, %Error{reason: :protocol}} = RankBridge.Graphs.replay(gang, "g")
    end
  end

  test "a session is that of the refs, also of those deep in a map", context do
    %{ranks: ranks, gang: gang} = context
    {:ok, own} = Gang.session_id(gang)
    other = %{ref(0) | session_id: "other"}
    shared = ref(0)

    for {call, session} <- [
          {fn -> RankBridge.send!(gang, 0, other, 1) end, "other"},
          {fn -> RankBridge.recv!(gang, 0, expected: other) end, "other"},
          {fn -> RankBridge.recv!(gang, 0) end, own},
          {fn ->
             RankBridge.PointToPoint.send_tensor_dict!(gang, 0, %{1 => [{%{2 => shared}}]}, 1)
           end, ""},
          {fn -> RankBridge.PointToPoint.send_tensor_dict!(gang, 0, %{}, 1) end, own},
          {fn -> RankBridge.send_object!(gang, 0, [other, shared], 1) end, own},
          {fn -> RankBridge.Objects.broadcast_tensor_dict!(gang, %{1 => other}) end, "other"},
          {fn ->
             RankBridge.Graphs.replay(gang, %Graph{name: "g", ranks: [0], session_id: "other"})
           end, "other"},
          {fn -> RankBridge.Graphs.replay(gang, %Graph{name: "g", ranks: [0]}) end, ""},
          {fn -> RankBridge.Graphs.replay(gang, "g") end, own},
          {fn -> RankBridge.Queues.enqueue(gang, %{queue() | writer_rank_in_group: 0}, other) end,
           own}
        ] do
      _given = call.()
      assert [%{call: call} | _others] = RecordingRanks.asked(ranks)[0]
      assert call.session_id == session
    end
  end

  test "what cannot be is refused before any rank is asked", context do
    %{ranks: ranks, gang: gang, refs: [r0, r1, r2] = refs} = context
    other = %{r0 | session_id: "other"}

    for {reason, call} <- [
          # Each member's own.
          invalid_argument: fn -> RankBridge.gather_object(gang, [1, 2]) end,
          invalid_argument: fn -> RankBridge.all_gather_object(gang, %{}) end,
          invalid_argument: fn -> RankBridge.all_gather_object(gang, [1, 2 | 3]) end,
          invalid_argument: fn -> RankBridge.all_gather_object(gang, [1, self(), 3]) end,
          invalid_argument: fn -> RankBridge.scatter_object(gang, [1, 2, 3, 4]) end,
          invalid_argument: fn -> RankBridge.scatter_object(gang, nil) end,
          invalid_argument: fn -> RankBridge.broadcast_object(gang, :atom) end,
          invalid_argument: fn -> RankBridge.Objects.broadcast_object_list(gang, %{}) end,
          rank_out_of_range: fn -> RankBridge.broadcast_object(gang, 1, src_rank_in_group: 3) end,
          rank_out_of_range: fn ->
            RankBridge.scatter_object(gang, [1, 2, 3], src_rank_in_group: 4)
          end,
          invalid_argument: fn -> RankBridge.all_reduce_value(gang, [1, 2]) end,
          invalid_argument: fn -> RankBridge.all_reduce_value(gang, [1, 2, {3}]) end,
          invalid_argument: fn -> RankBridge.all_reduce_value(gang, [1, 2, "3"]) end,
          invalid_argument: fn -> RankBridge.all_reduce_value(gang, [1, 2, nil]) end,
          invalid_argument: fn -> RankBridge.all_reduce_value(gang, [1, 2, 3], op: :mean) end,
          # Maps of tensors.
          invalid_argument: fn -> RankBridge.Objects.broadcast_tensor_dict(gang, refs) end,
          invalid_argument: fn -> RankBridge.Objects.broadcast_tensor_dict(gang, %{1 => r1}) end,
          invalid_argument: fn ->
            RankBridge.Objects.broadcast_tensor_dict(gang, %{1 => [%{2 => {r1}}]})
          end,
          invalid_argument: fn ->
            RankBridge.Objects.broadcast_tensor_dict(gang, %{1 => r0, 2 => other})
          end,
          invalid_argument: fn ->
            RankBridge.PointToPoint.send_tensor_dict(gang, 0, %{1 => r2}, 1)
          end,
          invalid_argument: fn -> RankBridge.PointToPoint.send_tensor_dict(gang, 0, [r0], 1) end,
          # Point to point.
          invalid_argument: fn -> RankBridge.send(gang, 0, r1, 1) end,
          invalid_argument: fn -> RankBridge.send(gang, 0, [r0], 1) end,
          invalid_argument: fn -> RankBridge.send(gang, 0, r0, 1, tag: -1) end,
          invalid_argument: fn -> RankBridge.send(gang, 0, r0, 1, to: 2) end,
          invalid_argument: fn -> RankBridge.send(gang, 0, r0, 1, :to) end,
          rank_out_of_range: fn -> RankBridge.send(gang, 0, r0, -1) end,
          rank_out_of_range: fn -> RankBridge.send(gang, 3, r0, 1) end,
          rank_out_of_range: fn -> RankBridge.recv(gang, 0, src_rank_in_group: :any) end,
          invalid_argument: fn -> RankBridge.recv(gang, 0, expected: r1) end,
          invalid_argument: fn -> RankBridge.recv(gang, 0, expected: [2]) end,
          invalid_argument: fn -> RankBridge.recv(gang, 0, expected: {:int8, [-1]}) end,
          unsupported_dtype: fn -> RankBridge.recv(gang, 0, expected: {:int9, [1]}) end,
          invalid_argument: fn -> RankBridge.recv_object(gang, 0, expected: r0) end,
          invalid_argument: fn -> RankBridge.PointToPoint.irecv(gang, 0, [:tag]) end,
          invalid_argument: fn -> RankBridge.submit(gang, :send, refs, dst_rank_in_group: 1) end,
          invalid_argument: fn -> RankBridge.Operations.call_rank(gang, 0, :recv_object, r0) end,
          # Queues.
          invalid_argument: fn -> RankBridge.Queues.new_queue(gang, :q) end,
          rank_out_of_range: fn ->
            RankBridge.Queues.new_queue(gang, "q", writer_rank_in_group: -1)
          end,
          rank_out_of_range: fn ->
            RankBridge.Queues.new_queue(gang, "q", reader_ranks_in_group: [:a])
          end,
          invalid_argument: fn ->
            RankBridge.Queues.new_queue(gang, "q", reader_ranks_in_group: [])
          end,
          invalid_argument: fn -> RankBridge.Queues.new_queue(gang, "q", max_chunk_bytes: 0) end,
          invalid_argument: fn -> RankBridge.Queues.new_queue(gang, "q", max_chunks: 1.0) end,
          invalid_argument: fn -> RankBridge.Queues.new_queue(gang, <<255>>) end,
          invalid_argument: fn -> RankBridge.Queues.new_queue(gang, "q", readers: [1]) end,
          invalid_argument: fn -> RankBridge.Queues.enqueue(gang, "q", 1) end,
          invalid_argument: fn -> RankBridge.Queues.enqueue(gang, queue(), self()) end,
          invalid_argument: fn ->
            RankBridge.Queues.enqueue(gang, queue(), 1, rank_in_group: 1)
          end,
          invalid_argument: fn -> RankBridge.Queues.broadcast_through(gang, queue(), :atom) end,
          invalid_argument: fn -> RankBridge.Queues.dequeue(gang, nil) end,
          invalid_argument: fn -> RankBridge.Queues.dequeue(gang, queue()) end,
          rank_out_of_range: fn -> RankBridge.Queues.dequeue(gang, queue(), rank_in_group: 3) end,
          invalid_argument: fn -> RankBridge.Operations.call_rank(gang, 1, :dequeue, nil) end,
          invalid_argument: fn ->
            RankBridge.Operations.call_rank(gang, 1, :dequeue, nil, queue: 5)
          end,
          invalid_argument: fn -> RankBridge.submit(gang, :dequeue, nil, queue: queue()) end,
          rank_out_of_range: fn ->
            RankBridge.Queues.shut_down_queue(gang, queue(), rank_in_group: 3)
          end,
          rank_out_of_range: fn ->
            RankBridge.Queues.shut_down_queue(gang, %{queue() | ranks: [3]})
          end,
          rank_out_of_range: fn -> RankBridge.Queues.queues(gang, rank: 3) end,
          # Graphs.
          invalid_argument: fn -> RankBridge.Graphs.begin_capture(gang, :g) end,
          invalid_argument: fn ->
            RankBridge.Graphs.begin_capture(gang, "g", operation_id: "o")
          end,
          invalid_argument: fn -> RankBridge.Graphs.end_capture(gang, "g") end,
          invalid_argument: fn ->
            RankBridge.Graphs.graph_capture(gang, "g", fn -> flunk("run") end, [:group])
          end,
          invalid_argument: fn -> RankBridge.Graphs.replay(gang, :g) end,
          invalid_argument: fn -> RankBridge.Graphs.replay(gang, "g", in_place: true) end,
          invalid_argument: fn -> RankBridge.Coalesced.coalesce(gang, [{:replay, "g"}]) end,
          invalid_argument: fn -> RankBridge.Graphs.release_graph(gang, nil) end,
          rank_out_of_range: fn ->
            RankBridge.Graphs.release_graph(gang, %Graph{name: "g", ranks: [3]})
          end,
          # Functions.
          invalid_argument: fn -> RankBridge.call(gang, nil, []) end,
          invalid_argument: fn -> RankBridge.call(gang, "", []) end,
          invalid_argument: fn -> RankBridge.call(gang, :f, 1) end,
          invalid_argument: fn -> RankBridge.call(gang, :f, [1 | 2]) end,
          invalid_argument: fn -> RankBridge.call(gang, :f, %{1 => 2}) end,
          invalid_argument: fn -> RankBridge.call(gang, :f, [:atom]) end,
          invalid_argument: fn -> RankBridge.call(gang, :f, [{:a, 1}, 2]) end,
          invalid_argument: fn -> RankBridge.call(gang, :f, x: self()) end,
          invalid_argument: fn -> RankBridge.call(gang, :f, [RankBridge.each([1, 2])]) end,
          invalid_argument: fn -> RankBridge.call(gang, :f, [[RankBridge.each([1, 2, 3])]]) end,
          invalid_argument: fn -> RankBridge.call(gang, :f, [r1]) end,
          invalid_argument: fn -> RankBridge.call(gang, :f, [[r1, r0, r2]]) end,
          invalid_argument: fn -> RankBridge.call(gang, :f, [[other, r1, r2]]) end,
          invalid_argument: fn -> RankBridge.call(gang, :f, [], alone: true) end,
          invalid_argument: fn -> RankBridge.start_call(gang, :f, [], calls: :gang) end,
          invalid_argument: fn -> RankBridge.call_alone(gang, 1, :f, [%{1 => {r0}}]) end,
          invalid_argument: fn -> RankBridge.call_alone(gang, 1, :f, [RankBridge.each([1])]) end,
          rank_out_of_range: fn -> RankBridge.start_call_alone(gang, 3, :f, []) end,
          rank_out_of_range: fn -> RankBridge.functions(gang, rank: 3) end,
          rank_out_of_range: fn -> RankBridge.kill_rank(gang, 3) end,
          invalid_argument: fn -> RankBridge.kill_rank(gang, 0, pid: -1) end,
          # Gathers and scans.
          invalid_argument: fn -> RankBridge.all_gather(gang, refs, layout: :stack) end,
          invalid_argument: fn -> RankBridge.gather(gang, refs, ragged: 1) end,
          invalid_argument: fn -> RankBridge.scan(gang, refs, exclusive: nil) end,
          invalid_argument: fn -> RankBridge.reduce_scatter(gang, refs, dim: nil) end,
          # Calls that go as one.
          invalid_argument: fn -> RankBridge.Coalesced.coalesce(gang, []) end,
          invalid_argument: fn -> RankBridge.Coalesced.coalesce(gang, %{}) end,
          invalid_argument: fn -> RankBridge.Coalesced.coalesce(gang, [:barrier]) end,
          invalid_argument: fn ->
            RankBridge.Coalesced.coalesce(gang, [{:all_reduce, tl(refs)}])
          end,
          invalid_argument: fn -> RankBridge.Coalesced.coalesce(gang, [{:all_reduec, refs}]) end,
          invalid_argument: fn ->
            RankBridge.Coalesced.coalesce(gang, [{:all_reduce, refs, group: "world"}])
          end,
          invalid_argument: fn ->
            RankBridge.Coalesced.coalesce(gang, [{:all_reduce, refs, timeout: 5}])
          end,
          invalid_argument: fn ->
            RankBridge.Coalesced.coalesce(gang, [{:all_reduce, refs, op: :mean}])
          end,
          invalid_argument: fn ->
            RankBridge.Coalesced.coalesce(gang, [{:all_gather_object, [1, 2, 3]}])
          end,
          invalid_argument: fn ->
            RankBridge.Coalesced.coalesce(gang, [{:coalesce, [{:barrier, nil}]}])
          end,
          invalid_argument: fn ->
            RankBridge.Coalesced.coalesce(gang, [{:send, r0, dst_rank_in_group: 1}])
          end,
          invalid_argument: fn ->
            RankBridge.Coalesced.coalesce(gang, [{:scatter, refs}, {:scatter, [other, r1, r2]}])
          end,
          invalid_argument: fn ->
            RankBridge.Coalesced.coalesce(gang, [{:all_to_all, refs, sizes: [[1, 1], [1, 1]]}])
          end
        ] do
      assert {:error, %Error{reason: ^reason, indefinite: false} = error} = call.()
      assert error.operation != ""
      assert RecordingRanks.asked(ranks) == %{}
    end
  end

  test "the error of one of several calls names it", %{gang: gang, refs: refs} do
    assert {:error, %Error{operation: "coalesce", group: "world"} = error} =
             RankBridge.Coalesced.coalesce(gang, [{:barrier, nil}, {:all_reduce, tl(refs)}])

    assert {error.message, error.expected, error.got} ==
             {"all_reduce: one ref for each member of the group is needed", "3", "2"}
  end
end
