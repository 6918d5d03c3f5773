# The shared cases of tests/contract/cases, through this client: all of them by gang calls on the fake backend, and on Gloo and
# by calls of each rank those of each kind, and some more.
alias RankBridge.Test.ContractCases
drawn = ContractCases.drawn(100)

for {backend, calls, cases} <- [
      {"fake", :gang, ContractCases.all()},
      {"fake", :ranks, drawn},
      {"gloo", :gang, drawn}
    ] do
  defmodule Module.concat([RankBridge.ContractTest, Macro.camelize("#{backend}_by_#{calls}")]) do
    use ExUnit.Case, async: true

    alias RankBridge.{Error, Gang, Program, Ref}
    alias RankBridge.Test.{ContractCases, ContractValues, Functions, LiveRanks}

    @backend backend
    @calls calls

    setup_all do
      ranks = LiveRanks.start(4, @backend)
      on_exit(fn -> LiveRanks.stop(ranks) end)
      {:ok, gang} = Gang.start_link(endpoints_file: ranks.file, calls: @calls)
      %{gang: gang}
    end

    for case <- cases do
      test case["case"], %{gang: gang} do
        case = unquote(case["case"]) |> ContractCases.named()
        members = case["group"] || Enum.to_list(0..(case["ranks"] - 1))

        group =
          if case["group"],
            do: RankBridge.new_group!(gang, RankBridge.Id.uuid(), members).name,
            else: "world"

        try do
          run(gang, group, members, case)
        after
          if case["group"], do: RankBridge.destroy_group!(gang, group)
          RankBridge.release!(gang, RankBridge.list!(gang))
          # A call that failed leaves the group as healthy as it was.
          assert RankBridge.barrier!(gang, timeout: 10_000) == :ok
        end
      end
    end

    defp run(gang, group, members, %{"receive" => _} = case),
      do: message(gang, group, members, case)

    defp run(gang, group, members, %{"calls" => _} = case),
      do: coalesced(gang, group, members, case)

    defp run(gang, group, members, %{"steps" => _} = case),
      do: program(gang, group, members, case)

    defp run(gang, group, members, %{"value" => value} = case) do
      source = Enum.at(members, case["arguments"]["src_rank_in_group"] || 0, 0)
      on_values(gang, group, members, ContractValues.given(value, gang, source), case)
    end

    defp run(gang, group, members, %{"values" => values} = case) do
      brought =
        for {value, rank} <- Enum.zip(values, members),
            do: ContractValues.given(value, gang, rank)

      on_values(gang, group, members, brought, case)
    end

    defp run(gang, group, members, case) do
      inputs = case["inputs"] && Enum.map(case["inputs"], &ContractCases.tensor/1)
      refs = inputs && RankBridge.put!(gang, inputs, group: group)
      outcomes = call(gang, group, members, refs, case)

      if case["error"] do
        reasons =
          for outcome <- outcomes, error <- errors(outcome), do: {error.reason, error.indefinite}

        assert Enum.uniq(reasons) == [{ContractCases.reason(case), false}]
      else
        results = for outcome <- outcomes, {:ok, result} = outcome, do: result
        # One of the gang is a list of all members', or nil; those of each member are one each.
        results = if case["arguments_by_rank"], do: results, else: hd(results)
        check(gang, refs, results || Enum.map(members, fn _rank -> nil end), case)
      end

      if refs && (case["error"] || !case["arguments"]["in_place"]) do
        assert gang |> RankBridge.get!(refs) |> Enum.map(&ContractCases.tensor_form/1) ==
                 case["inputs"]
      end
    end

    defp message(gang, group, members, case) do
      [source, target] = for end_ <- ["from", "to"], do: Enum.at(members, case[end_])
      opts = [group: group, tag: case["tag"], timeout: ContractCases.timeout(case)]
      from = if case["any_source"], do: [], else: [src_rank_in_group: case["from"]]
      expected = case["expected"] && [expected: ContractValues.expected(case["expected"])]
      value = ContractValues.given(case["value"], gang, source)

      [sent, received] =
        RankBridge.AtOnce.map([:source, :target], fn
          :source ->
            Functions.call(ContractCases.operation(case), [
              gang,
              source,
              value,
              case["to"],
              opts
            ])

          :target ->
            arguments = [gang, target, opts ++ from ++ (expected || [])]
            Functions.call(String.to_atom(case["receive"]), arguments)
        end)

      if case["error"] do
        assert Enum.map([sent, received], fn {:error, error} ->
                 {error.reason, error.indefinite}
               end) ==
                 List.duplicate({ContractCases.reason(case), false}, 2)
      else
        assert {:ok, {:ok, {came, origin}}} = {sent, received}
        assert origin == case["from"]
        ContractValues.assert_is(gang, came, case["value"], target)
      end
    end

    defp coalesced(gang, group, members, case) do
      calls =
        for call <- case["calls"] do
          inputs = call["inputs"] && Enum.map(call["inputs"], &ContractCases.tensor/1)
          refs = inputs && RankBridge.put!(gang, inputs, group: group)
          {ContractCases.operation(call), refs, ContractCases.options(call["arguments"])}
        end

      outcome =
        RankBridge.Coalesced.coalesce(gang, calls,
          group: group,
          timeout: ContractCases.timeout(case)
        )

      if case["error"] do
        assert {:error, %Error{outcomes: outcomes}} = outcome

        assert Enum.map(outcomes, fn {_rank, error} -> error.reason end) ==
                 Enum.map(members, fn _rank -> ContractCases.reason(case) end)
      else
        assert {:ok, given} = outcome

        for {results, {_name, refs, opts}, expected} <- Enum.zip([given, calls, case["results"]]) do
          check(gang, refs, results || Enum.map(members, fn _rank -> nil end), %{
            "results" => expected,
            "arguments" => %{"in_place" => opts[:in_place]}
          })
        end
      end
    end

    defp program(gang, group, members, case) do
      refs =
        Map.new(case["tensors"], fn {name, tensor} ->
          {name, put(gang, group, members, tensor)}
        end)

      program = Enum.reduce(case["steps"], Program.new(), &described(&2, &1, refs))
      opts = [keep: case["keep"], group: group, timeout: ContractCases.timeout(case)]
      outcome = RankBridge.Programs.run_program(gang, program, opts)
      after_it = Map.merge(case["tensors"], case["after"])

      if case["error"] do
        reasons = for error <- errors(outcome), do: {error.reason, error.indefinite}
        assert Enum.uniq(reasons) == [{ContractCases.reason(case), false}]
      else
        assert {:ok, given} = outcome
        assert length(given) == length(case["results"])

        for {results, expected} <- Enum.zip(given, case["results"]) do
          if is_binary(expected), do: assert(ids(results) == ids(refs[expected]))
          check(gang, nil, results, %{"results" => after_it[expected] || expected})
        end
      end

      for {name, own} <- refs do
        assert gang |> RankBridge.get!(own) |> Enum.map(&ContractCases.tensor_form/1) ==
                 Enum.take(after_it[name], length(members))
      end
    end

    defp put(gang, group, members, tensors) do
      tensors = tensors |> Enum.take(length(members)) |> Enum.map(&ContractCases.tensor/1)
      RankBridge.put!(gang, tensors, group: group)
    end

    defp ids(refs), do: Enum.map(refs, & &1.id)

    defp described(program, %{"count" => count, "steps" => steps}, refs),
      do:
        Program.loop(
          program,
          count,
          &Enum.reduce(steps, &1, fn step, p -> described(p, step, refs) end)
        )

    defp described(program, step, refs) do
      opts = [as: step["name"]] ++ ContractCases.options(step["arguments"])

      case step["takes"] do
        nil -> apply(Program, ContractCases.operation(step), [program])
        "%" <> name -> apply(Program, ContractCases.operation(step), [program, name, opts])
        name -> apply(Program, ContractCases.operation(step), [program, refs[name], opts])
      end
    end

    defp on_values(gang, group, members, brought, case) do
      opts = [group: group, timeout: ContractCases.timeout(case)]
      opts = opts ++ ContractCases.options(case["arguments"])
      outcome = Functions.call(ContractCases.operation(case), [gang, brought, opts])

      if case["error"] do
        reasons = for error <- errors(outcome), do: {error.reason, error.indefinite}
        assert Enum.uniq(reasons) == [{ContractCases.reason(case), false}]
      else
        assert {:ok, results} = outcome

        for {result, expected, rank} <- Enum.zip([results, case["results"], members]),
            do: ContractValues.assert_is(gang, result, expected, rank)
      end
    end

    # What each call gave: one of the gang, or one of each member that has arguments.
    defp call(gang, group, members, refs, %{"arguments_by_rank" => by_rank} = case) do
      common = [
        group: group,
        operation_id: RankBridge.Id.uuid(),
        timeout: ContractCases.timeout(case)
      ]

      [members, refs, by_rank]
      |> Enum.zip()
      |> Enum.reject(fn {_rank, _ref, arguments} -> is_nil(arguments) end)
      |> RankBridge.AtOnce.map(fn {rank, ref, arguments} ->
        opts = common ++ ContractCases.options(arguments)
        RankBridge.Operations.call_rank(gang, rank, ContractCases.operation(case), ref, opts)
      end)
    end

    defp call(gang, group, _members, refs, case) do
      opts = [group: group, timeout: ContractCases.timeout(case)]
      opts = opts ++ ContractCases.options(case["arguments"])
      arguments = if refs, do: [gang, refs, opts], else: [gang, opts]
      result = Functions.call(ContractCases.operation(case), arguments)
      # A barrier gives no value.
      [if(result == :ok, do: {:ok, nil}, else: result)]
    end

    # Of every rank that was called; of this client alone, if it has refused the call by itself.
    defp errors({:error, %Error{outcomes: []} = error}), do: [error]

    defp errors({:error, %Error{outcomes: outcomes}}),
      do: for({_rank, outcome} <- outcomes, do: assert(%Error{} = outcome))

    defp check(gang, refs, results, case) do
      assert length(results) == length(case["results"])

      for {result, expected} <- Enum.zip(results, case["results"]) do
        assert_result(gang, result, expected)
      end

      if case["arguments"]["in_place"],
        do: assert(Enum.map(results, & &1.id) == Enum.map(refs, & &1.id))
    end

    defp assert_result(_gang, result, nil), do: assert(result == nil)

    defp assert_result(gang, result, expected) when is_list(expected) do
      assert length(result) == length(expected)
      for {one, each} <- Enum.zip(result, expected), do: assert_result(gang, one, each)
    end

    defp assert_result(gang, result, expected) do
      assert %Ref{} = result
      assert gang |> RankBridge.get!(result) |> ContractCases.tensor_form() == expected
      assert {"#{result.dtype}", result.shape} == {expected["dtype"], expected["shape"]}
    end
  end
end
