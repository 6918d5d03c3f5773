# Every shared case of tests/contract/cases, through this client, on every backend.
for backend <- ["fake", "gloo"] do
  defmodule Module.concat(RankBridge.ContractTest, Macro.camelize(backend)) do
    use ExUnit.Case, async: false

    alias RankBridge.{Error, Gang, Ref}
    alias RankBridge.Test.{ContractCases, LiveRanks}

    @backend backend

    setup_all do
      ranks = LiveRanks.start(4, @backend)
      on_exit(fn -> LiveRanks.stop(ranks) end)
      {:ok, gang} = Gang.start_link(endpoints_file: ranks.file)
      %{gang: gang}
    end

    for case <- ContractCases.all() do
      test case["case"], %{gang: gang} do
        case = ContractCases.named(unquote(case["case"]))
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
          assert RankBridge.barrier!(gang, timeout: 10_000) == nil
        end
      end
    end

    defp run(gang, group, members, case) do
      inputs = case["inputs"] && Enum.map(case["inputs"], &ContractCases.tensor/1)
      refs = inputs && RankBridge.put!(gang, inputs, group: group)
      outcomes = call(gang, group, members, refs, case)

      if case["error"] do
        told =
          for outcome <- outcomes, error <- errors(outcome), do: {error.reason, error.indefinite}

        assert Enum.uniq(told) == [{ContractCases.reason(case), false}]
      else
        results = for outcome <- outcomes, {:ok, result} = outcome, do: result
        # One of the gang is a list of all members', or nil; those of each member are one each.
        results = if case["arguments_by_rank"], do: results, else: hd(results)
        check(gang, refs, results || Enum.map(members, fn _rank -> nil end), case)
      end

      if refs && (case["error"] || !case["arguments"]["in_place"]) do
        assert gang |> RankBridge.get!(refs) |> Enum.map(&ContractCases.told/1) == case["inputs"]
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
        RankBridge.call_rank(gang, rank, ContractCases.operation(case), ref, opts)
      end)
    end

    defp call(gang, group, _members, refs, case) do
      opts = [group: group, timeout: ContractCases.timeout(case)]
      opts = opts ++ ContractCases.options(case["arguments"])
      arguments = if refs, do: [gang, refs, opts], else: [gang, opts]
      [apply(RankBridge, ContractCases.operation(case), arguments)]
    end

    # Of every rank that was called; of this client alone, if it has refused the call by itself.
    defp errors({:error, %Error{outcomes: []} = error}), do: [error]

    defp errors({:error, %Error{outcomes: outcomes}}),
      do: for({_rank, outcome} <- outcomes, do: assert(%Error{} = outcome))

    defp check(gang, refs, results, case) do
      assert length(results) == length(case["results"])

      for {result, expected} <- Enum.zip(results, case["results"]) do
        if expected == nil do
          assert result == nil
        else
          assert %Ref{} = result
          assert gang |> RankBridge.get!(result) |> ContractCases.told() == expected
          assert {"#{result.dtype}", result.shape} == {expected["dtype"], expected["shape"]}
        end
      end

      if case["arguments"]["in_place"],
        do: assert(Enum.map(results, & &1.id) == Enum.map(refs, & &1.id))
    end
  end
end
