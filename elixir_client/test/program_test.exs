defmodule RankBridge.ProgramTest do
  @moduledoc "What programs say to each rank, on ranks that answer by themselves, and what is refused before."

  use ExUnit.Case, async: true

  alias RankBridge.{Collectives, Error, Gang, Program, Ref}
  alias RankBridge.Operations.Declaration
  alias RankBridge.Proto.V1
  alias RankBridge.Test.RecordingRanks

  doctest RankBridge.Program

  setup do
    ranks = start_supervised!(RecordingRanks)
    gang = start_supervised!({Gang, [calls: :ranks] ++ RecordingRanks.gang(ranks)})
    %{ranks: ranks, gang: gang, refs: for(rank <- 0..2, do: ref(rank))}
  end

  defp ref(rank), do: %Ref{id: "r#{rank}", rank: rank}

  defp operation(name \\ "", kind),
    do: %V1.ProgramStep{
      kind: {:operation, %V1.ProgramOperation{operation: %V1.Operation{kind: kind}, name: name}}
    }

  defp loop(count, steps),
    do: %V1.ProgramStep{kind: {:loop, %V1.ProgramLoop{count: count, steps: steps}}}

  test "every collective on tensors can be a step, and nothing else" do
    Code.ensure_loaded!(Program)

    for name <- [:ping | Declaration.names()] do
      step? = Keyword.has_key?(functions(Collectives), name)
      assert {name, Keyword.has_key?(functions(Program), name)} == {name, step?}
    end
  end

  defp functions(module), do: module.__info__(:functions)

  test "each rank is told its own refs, and the names of what steps take", context do
    %{ranks: ranks, gang: gang, refs: refs} = context

    program =
      Program.new()
      |> Program.loop(1_000, fn step ->
        step
        |> Program.all_reduce(refs, in_place: true, op: :max)
        |> Program.loop(2, &Program.barrier/1)
      end)
      |> Program.all_reduce(refs, as: :total)
      |> Program.all_gather(:total, as: "rows", dim: 0)
      |> Program.broadcast("total", as: :dropped)

    RecordingRanks.give(ranks, [[1, nil], [2, nil], [3, nil]])
    opts = [keep: ["rows", :total], operation_id: "it"]
    assert RankBridge.Programs.run_program!(gang, program, opts) == [[1, 2, 3], [nil, nil, nil]]

    asked = RecordingRanks.asked(ranks)
    assert map_size(asked) == 3

    for {rank, [request]} <- asked do
      reduced = %V1.AllReduceRequest{ref_id: "r#{rank}", op: :REDUCE_OP_MAX, in_place: true}
      total = %V1.AllReduceRequest{ref_id: "r#{rank}", op: :REDUCE_OP_SUM}
      layout = :GATHER_LAYOUT_CONCATENATED
      barrier = operation({:barrier, %V1.BarrierRequest{}})

      assert %V1.RunProgramRequest{results: ["rows", "total"], call: call, steps: steps} = request
      assert call.operation_id == "it"

      assert steps == [
               loop(1_000, [operation({:all_reduce, reduced}), loop(2, [barrier])]),
               operation("total", {:all_reduce, total}),
               operation(
                 "rows",
                 {:all_gather, %V1.AllGatherRequest{ref_id: "%total", dim: 0, layout: layout}}
               ),
               operation({:broadcast, %V1.BroadcastRequest{ref_id: "%total"}})
             ]
    end
  end

  test "sizes are each member's own; a loop can be made of another program", context do
    %{ranks: ranks, gang: gang, refs: refs} = context
    RecordingRanks.give(ranks, [[], [], []])
    sizes = [[1, 2, 0], [3, 4, 5], [0, 1, 2]]
    exchange = Program.all_to_all(Program.new(), refs, sizes: sizes)
    assert RankBridge.Programs.run_program!(gang, Program.loop(Program.new(), 3, exchange)) == []

    for {rank, [%{steps: [step]}]} <- RecordingRanks.asked(ranks) do
      request = %V1.AllToAllRequest{
        ref_id: "r#{rank}",
        input_sizes: Enum.at(sizes, rank),
        output_sizes: Enum.map(sizes, &Enum.at(&1, rank))
      }

      assert step == loop(3, [operation({:all_to_all, request})])
    end
  end

  test "it can be submitted, be a gang call, or one rank's part", context do
    %{ranks: ranks, gang: gang, refs: refs} = context
    program = Program.all_reduce(Program.new(), refs, as: :sum)
    RecordingRanks.give(ranks, [[1], [2], [3]])
    submitted = RankBridge.submit!(gang, :run_program, program, keep: [:sum])
    assert RankBridge.await!(gang, submitted) == [[1, 2, 3]]
    _asked = RecordingRanks.asked(ranks)

    assert RankBridge.Programs.run_program!(gang, program, keep: [:sum], calls: :gang) == [
             [1, 2, 3]
           ]

    assert %{0 => [%V1.CallRequest{operations: [_, _, _]}]} = RecordingRanks.asked(ranks)

    # Without refs, all parts are alike.
    RecordingRanks.give(ranks, [[], [], []])

    assert RankBridge.Programs.run_program!(gang, Program.barrier(Program.new()), calls: :gang) ==
             []

    assert %{0 => [%V1.CallRequest{operations: [_]}]} = RecordingRanks.asked(ranks)

    RecordingRanks.give(ranks, [[1], [2], [3]])
    part = Program.new() |> Program.all_reduce(ref(1), as: :sum) |> Program.scan(:sum)
    assert RankBridge.Operations.call_rank!(gang, 1, :run_program, part, keep: [:sum]) == [2]
    assert %{1 => [%V1.RunProgramRequest{}]} = RecordingRanks.asked(ranks)
  end

  test "what is wrong is refused, by the number of the step, and no rank is asked", context do
    %{ranks: ranks, gang: gang, refs: refs} = context
    none = Program.new()
    sum = Program.all_reduce(none, refs, as: :sum)
    inner = Program.barrier(none)
    deep = Enum.reduce(1..33, inner, fn _depth, body -> Program.loop(none, 1, body) end)

    for {program, opts, message} <- [
          {none, [], "the program is empty"},
          {[], [], "this is no program"},
          {Program.loop(none, 2, none), [], "step 0: the loop is empty"},
          {Program.loop(sum, 0, inner), [], "step 1: this is no count"},
          {Program.loop(none, 0x1_0000_0000, inner), [], "step 0: this is no count"},
          {deep, [], "too many loops within loops"},
          {Program.all_reduce(none, :sum), [], "step 0, all_reduce: nothing of that name"},
          {Program.loop(sum, 1, &Program.scan(&1, "s")), [],
           "step 1.0, scan: nothing of that name"},
          {Program.all_reduce(none, Enum.reverse(refs)), [], "step 0, all_reduce: ref 0 is of"},
          {Program.all_reduce(none, tl(refs)), [], "step 0, all_reduce: one ref for each"},
          {Program.all_reduce(none, refs, op: :both), [], "step 0, all_reduce: op is wrong"},
          {Program.all_reduce(none, refs, group: "g"), [], "step 0, all_reduce: :group is an"},
          {Program.all_reduce(none, refs, calls: :gang), [], "step 0, all_reduce: :calls is an"},
          {Program.all_reduce(none, refs, [1]), [], "step 0, all_reduce: not options"},
          {Program.all_reduce(none, refs, as: 3), [],
           "step 0, all_reduce: this cannot be a name"},
          {%Program{steps: [{:barrier, nil, as: :b}]}, [], "step 0, barrier: it gives nothing"},
          {%Program{steps: [{:ping, nil, []}]}, [], "step 0, ping: ping cannot go with others"},
          {%Program{steps: [{:send, refs, []}]}, [], "step 0, send: "},
          {%Program{steps: [{:both, refs, []}]}, [], "step 0, both: there is no such operation"},
          {sum, [keep: [:total]], "nothing to keep has that name"},
          {sum, [keep: [:sum, "sum"]], "keep is wrong"},
          {sum, [keep: :sum], "keep is wrong"}
        ] do
      assert {:error, %Error{} = error} = RankBridge.Programs.run_program(gang, program, opts)
      assert {error.reason, error.operation} == {:invalid_argument, "run_program"}
      assert error.message =~ message
      refute error.indefinite
    end

    foreign = for ref <- refs, do: %{ref | session_id: "other"}
    mixed = Program.all_reduce(sum, foreign)
    assert {:error, %Error{message: message}} = RankBridge.Programs.run_program(gang, mixed)
    assert message =~ "several sessions"
    assert RecordingRanks.asked(ranks) == %{}
  end

  test "it is shown by what it does" do
    program = Enum.reduce(1..9, Program.new(), fn _time, program -> Program.barrier(program) end)
    assert inspect(program) =~ ~r/<barrier(, barrier){7}, and 1 more>/
  end
end
