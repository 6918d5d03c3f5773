defmodule RankBridge.Test.Soon do
  @moduledoc "What becomes so by itself, of which nothing tells."

  import ExUnit.Assertions

  @doc "Asks again, every 5 milliseconds, until it is so. Fails as `==` does after 30 seconds."
  @spec assert_soon(expected, (() -> expected)) :: :ok when expected: term()
  def assert_soon(expected, question), do: ask(expected, question, now())

  defp ask(expected, question, began) do
    got = question.()

    cond do
      got == expected ->
        :ok

      now() - began > 30_000 ->
        assert got == expected

      true ->
        receive do
        after
          5 -> ask(expected, question, began)
        end
    end
  end

  defp now, do: System.monotonic_time(:millisecond)
end
