defmodule RankBridge.DocsTest do
  @moduledoc "The documentation's examples do what they say: their matches are what they claim."

  use ExUnit.Case, async: true

  alias RankBridge.{Gang, Tensor}
  alias RankBridge.Test.LiveRanks

  @docs Path.expand("../../../docs", __DIR__)

  setup_all do
    ranks = LiveRanks.start(4, "fake")
    on_exit(fn -> LiveRanks.stop(ranks) end)
    %{ranks: ranks}
  end

  # The Elixir programs in a page.
  defp programs(page) do
    for [_all, program] <- Regex.scan(~r/```elixir\n(.*?)```/s, page(page)), do: program
  end

  defp page(name), do: @docs |> Path.join(name) |> File.read!()

  # What its variables are after a program that has a gang and a ref on each of its ranks.
  defp run(program, ranks) do
    gang = start_supervised!({Gang, endpoints_file: ranks.file, timeout: 60_000})
    refs = RankBridge.put!(gang, for(rank <- 0..3, do: [1.0 * rank]))
    {given, variables} = Code.eval_string(program, gang: gang, refs: refs)
    {given, Map.new(variables)}
  end

  @tag timeout: 120_000
  test "the example of groups, meshes and layouts", %{ranks: ranks} do
    [_all, program] =
      Regex.run(
        ~r/<!-- elixir example: begin -->\n```elixir\n(.*?)```/s,
        page("groups_and_meshes.md")
      )

    assert program =~ ~s("endpoints.json")
    Code.eval_string(String.replace(program, "endpoints.json", ranks.file))
  end

  @tag timeout: 120_000
  test "the example of values and maps of tensors", %{ranks: ranks} do
    assert [program] = programs("objects.md")
    {given, variables} = run(program, ranks)
    assert variables.config == %{"steps" => 100, "names" => ["a", "b"]}
    assert variables.losses == for(rank <- 0..3, do: %{"rank" => rank, "loss" => 0.5})
    assert {variables.total, variables.weights.rank} == {9, 0}
    assert {given.rank, given.dtype, given.shape} == {3, :bfloat16, [256, 256]}
  end

  @tag timeout: 120_000
  test "the example of point to point", %{ranks: ranks} do
    assert [program] = programs("point_to_point.md")
    {{:ok, nil}, %{received: received, gang: gang}} = run(program, ranks)
    assert received.rank == 2
    assert gang |> RankBridge.get!(received) |> Tensor.to_list() == [0.0]
  end
end
