defmodule RankBridge.Examples.TensorParallelTest do
  @moduledoc "The example `examples/tensor_parallel`: every answer is right, also of those that a lost rank has cut off."

  use ExUnit.Case, async: true

  alias RankBridge.Error
  alias RankBridge.Test.OsProcess

  @length 6

  @tag timeout: 300_000
  @tag sampled: RankBridge.Test.Sampled.part(__ENV__)
  test "requests that a lost rank cuts off fail with the rank, and are answered when they are asked again" do
    opts = [command: OsProcess.rankbridge(), arguments: ["--heartbeat-misses", "300"]]
    start_supervised!(TensorParallel.gang(opts))
    gang = TensorParallel.Gang
    :ok = RankBridge.await_ready(gang, 120_000)
    texts = TensorParallel.texts(20)
    answered = :counters.new(1, [])

    served =
      TensorParallel.serve(gang, texts, @length, fn _text ->
        :counters.add(answered, 1, 1)
        if :counters.get(answered, 1) == 3, do: TensorParallel.kill(gang, 2)
      end)

    assert [{_text, %Error{reason: :peer_lost, rank: 2}} | _others] = served.lost
    assert served.answers |> Map.keys() |> Enum.sort() == Enum.sort(texts)

    for {text, [answer | _others] = answers} <- served.answers do
      assert String.starts_with?(answer["text"], text)
      assert String.length(answer["text"]) == String.length(text) + @length
      assert TensorParallel.right?(gang, text, @length, answers)
    end
  end
end
