defmodule RankBridge.Conformance.ValuesOnGangsTest do
  @moduledoc """
  What OLMo-core and torchgfn were recorded to do with values, averages and ragged tensors, on real gangs of their size
  on the fake backend.
  """

  use ExUnit.Case, async: true

  alias RankBridge.{Error, Gang, Tensor}
  alias RankBridge.Test.{LiveRanks, Recorded}

  @moduletag timeout: 300_000

  setup_all do
    gangs =
      for world <- [1, 2, 4, 8], into: %{} do
        ranks = LiveRanks.start(world, "fake")
        on_exit(fn -> LiveRanks.stop(ranks) end)
        {:ok, gang} = Gang.start_link(endpoints_file: ranks.file, timeout: 60_000)

        # Of OLMo-core's cases: the first half of the ranks, and the second.
        for {half, number} <- Enum.with_index(halves(world)),
            do: RankBridge.new_group!(gang, "half/#{number}", half)

        {world, gang}
      end

    %{gangs: gangs}
  end

  defp halves(1), do: []
  defp halves(world), do: Enum.chunk_every(Enum.to_list(0..(world - 1)), div(world, 2))

  # The groups of a case: name, ranks, and what each of them brings.
  defp groups(%{"world" => world} = case) do
    inputs = inputs(case)

    case hd(inputs)["group"] do
      "half" ->
        for {ranks, number} <- Enum.with_index(halves(world)),
            do: {"half/#{number}", ranks, Enum.map(ranks, &Enum.at(inputs, &1))}

      _world ->
        [{"world", Enum.to_list(0..(world - 1)), inputs}]
    end
  end

  defp inputs(%{"inputs_per_rank" => inputs}), do: inputs
  defp inputs(%{"inputs" => inputs, "world" => world}), do: List.duplicate(inputs, world)

  defp recorded(case, ranks),
    do: for({rank, answer} <- Recorded.answers(case), rank in ranks, do: answer)

  # OLMo-core counts sources in the gang.
  defp source(ranks, %{"src" => src}), do: Enum.find_index(ranks, &(&1 == src))
  defp source(_ranks, _input), do: 0

  # As OLMo-core's floats, which pass through float32 tensors.
  defp told_by_olmo(value) when is_float(value) do
    <<rounded::float-32>> = <<value::float-32>>
    rounded
  end

  defp told_by_olmo(value), do: value

  test "OLMo-core's values of one rank for all", %{gangs: gangs} do
    for name <- ["synchronize_value", "broadcast_object", "upstream_test_broadcast_object"],
        case <- Recorded.cases("olmo", [name]),
        Recorded.name(case) == name,
        {group, ranks, inputs} <- groups(case) do
      [source] = Enum.uniq(Enum.map(inputs, &source(ranks, &1)))
      input = Enum.at(inputs, source)
      value = if name == "synchronize_value", do: input["value"], else: input["obj"]
      opts = [group: group, src_rank_in_group: source]
      ours_of_all = RankBridge.Compat.synchronize_value!(gangs[case["world"]], value, opts)
      assert ours_of_all === List.duplicate(value, length(ranks))

      olmo =
        if name == "synchronize_value",
          do: Enum.map(ours_of_all, &told_by_olmo/1),
          else: ours_of_all

      assert {case, olmo} == {case, recorded(case, ranks)}
    end
  end

  test "OLMo-core's flags", %{gangs: gangs} do
    for case <- Recorded.cases("olmo", ["synchronize_flag"]),
        Recorded.name(case) == "synchronize_flag",
        {group, ranks, [input | _others]} <- groups(case) do
      ours_of_all =
        RankBridge.Compat.synchronize_flag!(gangs[case["world"]], input["flag"], group: group)

      # Where OLMo-core fails, because its default source is not in the group, ours is the group's first member.
      recorded = recorded(case, ranks)

      if match?([%{} | _others], recorded),
        do: assert(for(it <- ours_of_all, do: %{"ok" => it}) == recorded)

      assert ours_of_all == List.duplicate(input["flag"], length(ranks))
    end
  end

  test "OLMo-core's lists of everybody's values", %{gangs: gangs} do
    for case <- Recorded.cases("olmo", ["all_gather_object"]),
        {group, ranks, inputs} <- groups(case) do
      values = Enum.map(inputs, & &1["obj"])
      ours_of_all = RankBridge.all_gather_object!(gangs[case["world"]], values, group: group)
      assert ours_of_all == recorded(case, ranks)
    end
  end

  test "OLMo-core's reductions of values", %{gangs: gangs} do
    for case <- Recorded.cases("olmo", ["all_reduce_value"]),
        Recorded.name(case) == "all_reduce_value",
        {group, ranks, [%{"op" => op} | _others] = inputs} <- groups(case) do
      values = Enum.map(inputs, & &1["value"])
      opts = [group: group, op: op |> String.downcase() |> String.to_atom()]
      ours_of_all = RankBridge.all_reduce_value!(gangs[case["world"]], values, opts)
      assert [_one] = Enum.uniq(ours_of_all)

      for {ours, theirs} <- Enum.zip(ours_of_all, recorded(case, ranks)) do
        # Theirs went through float32, whose digits are seven, and which holds nothing below 1.0e-45.
        if is_float(theirs),
          do:
            assert({case, abs(ours - theirs) <= abs(theirs) * 1.0e-6 + 1.0e-44} == {case, true}),
          else: assert({case, ours} === {case, theirs})
      end
    end
  end

  test "OLMo-core's tensors of everybody", %{gangs: gangs} do
    for case <- Recorded.cases("olmo", ["all_gather"]),
        Recorded.name(case) == "all_gather",
        {group, ranks, inputs} <- groups(case) do
      gang = gangs[case["world"]]
      refs = RankBridge.put!(gang, Enum.map(inputs, &tensor(&1["tensor"])), group: group)
      lists = RankBridge.all_gather!(gang, refs, group: group, layout: :list, ragged: true)
      ours_of_all = for list <- lists, do: for(it <- RankBridge.get!(gang, list), do: plain(it))
      assert ours_of_all == recorded(case, ranks)
    end
  end

  defp tensor(%{"dtype" => dtype, "shape" => shape, "data" => data}) do
    tensor = Tensor.from_list(data, String.to_atom(dtype))
    %{tensor | shape: shape}
  end

  defp plain(tensor) do
    data = Tensor.to_list(tensor)
    %{"dtype" => "#{tensor.dtype}", "shape" => tensor.shape, "data" => data}
  end

  test "torchgfn's gathers of ragged data", %{gangs: gangs} do
    for case <- Recorded.cases("gfn_ops", ["gather_distributed_data"]) do
      gang = gangs[case["world"]]
      inputs = inputs(case)
      ranks = hd(inputs)["group"] || Enum.to_list(0..(case["world"] - 1))
      group = group(gang, ranks)
      locals = for rank <- ranks, do: tensor(Enum.at(inputs, rank)["local"])
      refs = RankBridge.put!(gang, locals, group: group)
      [first | others] = RankBridge.gather!(gang, refs, group: group, dim: 0, ragged: true)
      assert Enum.all?(others, &is_nil/1)
      ours_of_all = [plain(RankBridge.get!(gang, first)) | others]
      assert {Recorded.name(case), ours_of_all} == {Recorded.name(case), recorded(case, ranks)}
    end
  end

  test "torchgfn's averages, but by the group's size", %{gangs: gangs} do
    for case <- Recorded.cases("gfn_ops", ["average_models", "average_gradients"]),
        not Recorded.refused?(case) do
      gang = gangs[case["world"]]
      name = Recorded.name(case)
      ranks = case["inputs"]["group"] || Enum.to_list(0..(case["world"] - 1))
      group = group(gang, ranks)

      refs =
        for {part, value} <- parts(name), into: %{} do
          {part, RankBridge.put!(gang, Enum.map(ranks, value), group: group)}
        end

      averages = RankBridge.Averaging.average!(gang, refs, group: group)

      ours_of_all =
        for {part, refs} <- averages,
            ref = hd(refs),
            do: {part, plain(RankBridge.get!(gang, ref))}

      [recorded | _others] = recorded(case, ranks)
      recorded = recorded["grads"] || recorded

      # torchgfn divides the group's sum by the world's size.
      factor = case["world"] / length(ranks)

      for {part, ours} <- ours_of_all do
        theirs = Tensor.from_list(recorded[part]["data"])
        assert ours["shape"] == recorded[part]["shape"]
        ours = List.flatten([ours["data"]])

        assert {name, ours} ==
                 {name, for(it <- List.flatten([Tensor.to_list(theirs)]), do: it * factor)}
      end
    end
  end

  # What rank r brings, as the cases' notes say.
  defp parts("average_gradients" <> _rest) do
    %{
      "w" => fn r -> List.duplicate([1.0 * (r + 1), 1.0 * (r + 1)], 2) end,
      "b" => fn r -> [10.0 * r] end
    }
  end

  defp parts("average_models" <> _rest) do
    %{
      "w" => fn r -> for(row <- [[1.0, 2.0], [3.0, 4.0]], do: Enum.map(row, &(&1 * (r + 1)))) end,
      "b" => fn r -> [1.0 * r] end
    }
  end

  defp group(gang, ranks) do
    name = "case-#{System.unique_integer([:positive])}"
    RankBridge.new_group!(gang, name, ranks).name
  end

  test "what torchgfn fails on is refused", %{gangs: gangs} do
    for %{"world" => world} = case <-
          Recorded.cases("gfn_ops", ["average_gradients_missing_grad"]) do
      assert Recorded.refused?(case)
      maps = List.duplicate(%{"w" => nil}, world)

      assert {:error, %Error{reason: :invalid_argument, indefinite: false}} =
               RankBridge.Compat.average_gradients(gangs[world], maps)
    end
  end
end
