defmodule RankBridge.AveragingNamesTest do
  @moduledoc "By how much gradients are divided, against what OLMo-core was recorded to tell."

  use ExUnit.Case, async: true

  alias RankBridge.{AveragingNames, Error}
  alias RankBridge.Test.Recorded

  doctest RankBridge.AveragingNames

  test "OLMo-core's divide factors" do
    for case <- Recorded.cases("olmo_nondist", ["get_reduce_divide_factor"]),
        {0, factor} <- Recorded.answers(case) do
      size = case["inputs"]["world_size"]
      assert {size, AveragingNames.get_reduce_divide_factor(size)} == {size, factor}
    end

    for wrong <- [0, -1, 2.0, nil],
        do: assert_raise(Error, fn -> AveragingNames.get_reduce_divide_factor(wrong) end)
  end
end
