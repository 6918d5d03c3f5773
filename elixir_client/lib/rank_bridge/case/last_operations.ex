defmodule RankBridge.Case.LastOperations do
  @moduledoc false
  # A section of `RankBridge.Case.Report`: what each rank did last in the test's group.

  alias RankBridge.{Entry, Error, Ranks, RecordedOperation}
  alias RankBridge.Case.Lent

  @of_each 5

  @doc "The lines of the section. `timeout` in milliseconds."
  @spec lines(Lent.t(), pos_integer()) :: [String.t()]
  def lines(lent, timeout) do
    opts = [limit: @of_each, group: lent.group, timeout: timeout]

    case Entry.call(lent.ranks, :record, opts, &Ranks.each_record(&1, opts)) do
      {:ok, records} ->
        now_us = System.os_time(:microsecond)
        ["last operations in group #{lent.group}:" | Enum.flat_map(records, &rank(&1, now_us))]

      {:error, error} ->
        ["last operations: #{Exception.message(error)}"]
    end
  end

  @spec rank({non_neg_integer(), {:ok, [RecordedOperation.t()]} | {:error, Error.t()}}, integer()) ::
          [String.t()]
  defp rank({rank, {:ok, []}}, _now_us), do: ["  rank #{rank}: none"]

  defp rank({rank, {:ok, operations}}, now_us),
    do: ["  rank #{rank}:" | Enum.map(operations, &"    #{operation(&1, now_us)}")]

  defp rank({rank, {:error, error}}, _now_us),
    do: ["  rank #{rank}: not known: #{Exception.message(error)}"]

  defp operation(it, now_us) do
    site = if it.site == "", do: "", else: ", #{it.site}"
    ago = max(now_us - it.called_us, 0)
    "#{what(it)}#{site}: #{ended(it)}, called #{milliseconds(ago)} ago"
  end

  # A contract begins with the operation.
  defp what(%{contract: "", function: ""} = it), do: it.operation
  defp what(%{contract: ""} = it), do: "#{it.operation} #{it.function}"
  defp what(it), do: it.contract

  defp ended(%{done_us: nil} = it), do: "in #{it.phase}"
  defp ended(%{code: nil} = it), do: "done in #{milliseconds(it.done_us)}"
  defp ended(%{indefinite: true} = it), do: "#{failed(it)} (others may have done it)"
  defp ended(it), do: failed(it)

  defp failed(it), do: "#{it.code} after #{milliseconds(it.done_us)}"

  defp milliseconds(microseconds), do: "#{div(microseconds, 1_000)} ms"
end
