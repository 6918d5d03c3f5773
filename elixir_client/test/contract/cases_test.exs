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
      outcome = call(gang, group, members, refs, case)

      if case["error"] do
        assert {:error, %Error{} = error} = outcome
        assert {error.reason, error.indefinite} == {ContractCases.reason(case), false}
      else
        assert {:ok, results} = outcome
        check(gang, refs, results || Enum.map(members, fn _rank -> nil end), case)
      end

      if refs && (case["error"] || !case["arguments"]["in_place"]) do
        assert gang |> RankBridge.get!(refs) |> Enum.map(&ContractCases.told/1) == case["inputs"]
      end
    end

    defp call(gang, group, members, refs, %{"arguments_by_rank" => by_rank} = case) do
      common = [group: group, operation_id: RankBridge.Id.uuid(), timeout: 10_000]

      [first | _rest] =
        [members, refs, by_rank]
        |> Enum.zip()
        |> RankBridge.AtOnce.map(fn {rank, ref, arguments} ->
          opts = common ++ ContractCases.options(arguments)
          RankBridge.call_rank(gang, rank, ContractCases.operation(case), ref, opts)
        end)

      first
    end

    defp call(gang, group, _members, refs, case) do
      opts = [group: group, timeout: 10_000] ++ ContractCases.options(case["arguments"])
      arguments = if refs, do: [gang, refs, opts], else: [gang, opts]
      apply(RankBridge, ContractCases.operation(case), arguments)
    end

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
