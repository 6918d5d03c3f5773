defmodule RankBridge.PipelineTest do
  @moduledoc "What a pipeline asks of the ranks, when, and what it releases."

  use ExUnit.Case, async: true

  alias RankBridge.{Collectives, Error, Gang, Group, Pipeline, Ref}
  alias RankBridge.Operations.Declaration
  alias RankBridge.Proto.V1
  alias RankBridge.Test.RecordingRanks

  doctest RankBridge.Pipeline

  # What works on refs, by the one declaration of all operations.
  @on_refs for name <- Declaration.names(),
               declaration = Declaration.of(name),
               declaration.takes == :refs and declaration.called_on == :group,
               do: name

  setup do
    ranks = start_supervised!(RecordingRanks)
    gang = start_supervised!({Gang, [calls: :ranks] ++ RecordingRanks.gang(ranks)})
    RecordingRanks.give(ranks, for(rank <- 0..2, do: ref(rank, "n")))
    %{ranks: ranks, gang: gang, refs: for(rank <- 0..2, do: ref(rank, "r"))}
  end

  defp ref(rank, name), do: %Ref{id: "#{name}#{rank}", rank: rank, dtype: :float32, shape: [2]}

  defp requests(ranks) do
    for {rank, requests} <- RecordingRanks.asked(ranks),
        into: %{},
        do: {rank, Enum.map(requests, &without_id/1)}
  end

  # Nor with the line of this file that has made it.
  defp without_id(%{call: call} = request),
    do: %{request | call: %{call | operation_id: "", site: ""}}

  defp without_id(request), do: request

  defp released(ranks) do
    for {rank, requests} <- RecordingRanks.asked(ranks),
        ids = for(%V1.ReleaseRefsRequest{ref_ids: ids} <- requests, do: ids),
        ids != [],
        into: %{},
        do: {rank, ids}
  end

  test "every collective on refs is a step, and no other operation" do
    assert length(@on_refs) > 8
    steps = [:barrier | @on_refs]

    for name <- Declaration.names() do
      exported = for arity <- 1..2, do: function_exported?(Pipeline, name, arity)
      assert {name, exported} == {name, [name in steps, name in steps]}
    end

    for function <- Collectives.__with_bang__(), do: assert(function.name in steps)
  end

  test "a step asks for what the function of its name does, of all members or of one", context do
    %{ranks: ranks, gang: gang, refs: refs} = context

    for name <- @on_refs do
      {:ok, given} = apply(RankBridge, name, [gang, refs])
      asked = requests(ranks)
      assert asked |> Map.keys() |> Enum.sort() == [0, 1, 2]
      assert gang |> Pipeline.of(refs) |> step(name, []) |> Pipeline.refs() == {:ok, given}
      assert requests(ranks) == asked

      {:ok, given} = RankBridge.Operations.call_rank(gang, 1, name, ref(1, "r"))
      asked = requests(ranks)
      pipeline = gang |> Pipeline.of(ref(1, "r")) |> step(name, [])
      assert Pipeline.refs(pipeline) == {:ok, given}
      assert requests(ranks) == asked
    end

    opts = [group: %Group{name: "world", ranks: [0, 1, 2]}, timeout: 7_000]
    RankBridge.scan!(gang, refs, [op: :max] ++ opts)
    asked = requests(ranks)

    assert gang
           |> Pipeline.of(refs, opts)
           |> Pipeline.scan(op: :max)
           |> Pipeline.refs!()
           |> is_list()

    assert requests(ranks) == asked
  end

  defp step(pipeline, name, opts), do: apply(Pipeline, name, [pipeline, opts])

  test "each step works on what the last one gave; a barrier leaves it", context do
    %{ranks: ranks, gang: gang, refs: refs} = context

    pipeline =
      gang
      |> Pipeline.of(refs)
      |> Pipeline.all_reduce(op: :max, timeout: 9_000)
      |> Pipeline.barrier()
      |> Pipeline.broadcast(src_rank_in_group: 1)

    assert requests(ranks) == %{}
    assert Pipeline.refs(pipeline) == {:ok, for(rank <- 0..2, do: ref(rank, "n"))}

    for {rank, requests} <- requests(ranks) do
      before = "r#{rank}"
      after_it = "n#{rank}"

      assert [
               %V1.AllReduceRequest{
                 ref_id: ^before,
                 op: :REDUCE_OP_MAX,
                 call: %{timeout_ms: 9_000}
               },
               %V1.BarrierRequest{},
               %V1.BroadcastRequest{ref_id: ^after_it, src_rank_in_group: 1}
             ] = requests
    end

    # Run again, all is done again.
    assert {:ok, _refs} = Pipeline.refs(pipeline)
    assert [_, _, _] = requests(ranks)[0]
  end

  test "what was made is released, what was there or is given out is not", context do
    %{ranks: ranks, gang: gang, refs: refs} = context
    sums = gang |> Pipeline.of(refs) |> Pipeline.all_reduce() |> Pipeline.barrier()
    assert Pipeline.run(sums) == :ok
    assert released(ranks) == %{0 => [["n0"]], 1 => [["n1"]], 2 => [["n2"]]}
    assert Pipeline.run!(sums) == :ok

    assert {:ok, [%Ref{id: "n0"} | _others]} =
             Pipeline.refs(sums) |> tap(fn _given -> released(ranks) end)

    assert released(ranks) == %{}

    # In place, the result is the input.
    RecordingRanks.give(ranks, refs)

    assert gang |> Pipeline.of(refs) |> Pipeline.all_reduce(in_place: true) |> Pipeline.run() ==
             :ok

    assert released(ranks) == %{}

    # Some get several, some nothing.
    RecordingRanks.give(ranks, [nil, [ref(1, "x"), ref(1, "y")], nil])
    listed = gang |> Pipeline.of(refs) |> Pipeline.gather(layout: :list, dst_rank_in_group: 1)
    assert Pipeline.run(listed) == :ok
    assert released(ranks) == %{1 => [["x1", "y1"]]}
    assert {:ok, [nil, [%Ref{}, %Ref{}], nil]} = Pipeline.refs(listed)
    assert released(ranks) == %{}

    # One rank's part.
    RecordingRanks.give(ranks, [nil, ref(1, "n"), nil])
    assert gang |> Pipeline.of(ref(1, "r")) |> Pipeline.all_reduce() |> Pipeline.run() == :ok
    assert released(ranks) == %{1 => [["n1"]]}
  end

  test "an error ends it, and releases what was made before", context do
    %{ranks: ranks, gang: gang, refs: refs} = context

    failing =
      gang
      |> Pipeline.of(refs)
      |> Pipeline.all_reduce()
      |> Pipeline.then(fn [first | _others] -> {:ok, [first]} end)
      |> Pipeline.all_gather()
      |> Pipeline.tap(fn _refs -> flunk("not reached") end)

    for ending <- [&Pipeline.get/1, &Pipeline.refs/1, &Pipeline.run/1] do
      assert {:error, %Error{reason: :invalid_argument, operation: "all_gather"}} =
               ending.(failing)

      assert released(ranks) == %{0 => [["n0"]], 1 => [["n1"]], 2 => [["n2"]]}
    end

    for ending <- [&Pipeline.get!/1, &Pipeline.refs!/1, &Pipeline.run!/1],
        do: assert_raise(Error, ~r/all_gather/, fn -> ending.(failing) end)
  end

  test "a wrong option of any step is refused before the first one runs", context do
    %{ranks: ranks, gang: gang, refs: refs} = context

    for wrong <- [
          gang |> Pipeline.of(refs) |> Pipeline.all_reduce() |> Pipeline.broadcast(src: 0),
          gang |> Pipeline.of(refs) |> Pipeline.all_reduce() |> Pipeline.gather([:dim]),
          gang |> Pipeline.of(refs) |> Pipeline.all_reduce() |> Pipeline.scan(op: :mean),
          gang |> Pipeline.of(refs) |> Pipeline.barrier() |> Pipeline.barrier(op: :sum),
          # What only a call of all members has.
          gang
          |> Pipeline.of(hd(refs))
          |> Pipeline.barrier()
          |> Pipeline.all_to_all(sizes: [[1]]),
          gang |> Pipeline.of(refs, groups: "world") |> Pipeline.all_reduce(),
          gang |> Pipeline.new(:rank) |> Pipeline.barrier(),
          gang |> Pipeline.new(timeout: -1) |> Pipeline.barrier(),
          gang |> Pipeline.new(rank: 3) |> Pipeline.barrier(),
          # There is nothing to work on.
          gang |> Pipeline.new() |> Pipeline.all_reduce(),
          gang |> Pipeline.new(rank: 1) |> Pipeline.all_reduce()
        ] do
      assert {:error, %Error{reason: reason, indefinite: false}} = Pipeline.run(wrong)
      assert reason in [:invalid_argument, :rank_out_of_range]
      assert requests(ranks) == %{}
    end

    assert :no_gang_of_pipelines |> Pipeline.new() |> Pipeline.run() == :ok

    assert {:error, %Error{reason: :unavailable}} =
             :no_gang_of_pipelines |> Pipeline.of(refs) |> Pipeline.scan() |> Pipeline.refs()
  end

  test "a function makes of it what it likes", context do
    %{ranks: ranks, gang: gang, refs: refs} = context
    test = self()

    pipeline =
      gang
      |> Pipeline.of(refs)
      |> Pipeline.tap(&send(test, {:seen, &1}))
      |> Pipeline.then(&length/1)
      |> Pipeline.then(&{:ok, %{count: &1, none: nil}})

    assert Pipeline.get(pipeline) == {:ok, %{count: 3, none: nil}}
    assert Pipeline.refs(pipeline) == {:ok, %{count: 3, none: nil}}
    assert_received {:seen, ^refs}
    failure = %Error{reason: :internal, message: "on purpose"}

    assert pipeline |> Pipeline.then(fn _it -> {:error, failure} end) |> Pipeline.run() ==
             {:error, failure}

    assert pipeline |> Pipeline.tap(fn _it -> {:error, failure} end) |> Pipeline.run() == :ok

    assert_raise ArgumentError, ~r/enoent/, fn ->
      pipeline |> Pipeline.then(fn _it -> {:error, :enoent} end) |> Pipeline.run()
    end

    # Its refs are its own, unless it gives them away; and those that were there stay whose they are.
    made = [ref(0, "m"), hd(refs)]
    own = gang |> Pipeline.of(refs) |> Pipeline.then(fn _refs -> made end)
    assert Pipeline.run(own) == :ok
    assert released(ranks) == %{}
    given = gang |> Pipeline.of(refs) |> Pipeline.then(fn _refs -> made end, release: true)
    assert Pipeline.run(given) == :ok
    assert released(ranks) == %{0 => [["m0"]]}
  end

  test "what a function raises is raised again, after what was made is released", context do
    %{ranks: ranks, gang: gang, refs: refs} = context
    sums = gang |> Pipeline.of(refs) |> Pipeline.all_reduce()

    for add <- [&Pipeline.then/2, &Pipeline.tap/2] do
      assert_raise RuntimeError, "oh", fn ->
        sums |> add.(fn _refs -> raise "oh" end) |> Pipeline.run()
      end

      assert map_size(released(ranks)) == 3
      assert catch_throw(sums |> add.(fn _refs -> throw(:ball) end) |> Pipeline.get()) == :ball
      assert map_size(released(ranks)) == 3
    end
  end

  test "what is shown of it is short, and asks nobody", %{gang: gang} do
    long = Enum.reduce(1..100, Pipeline.new(gang), fn _n, it -> Pipeline.all_reduce(it) end)
    assert inspect(long) =~ ~r/<#PID<.*>: (all_reduce, ){8}and 92 more>$/

    assert inspect(Pipeline.new(G, group: %Group{name: "g", ranks: Enum.to_list(0..4_095)})) ==
             ~s(#RankBridge.Pipeline<G in "g": nothing>)
  end
end
