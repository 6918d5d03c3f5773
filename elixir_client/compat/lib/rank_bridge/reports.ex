defmodule RankBridge.Reports do
  @moduledoc """
  Reports on how long the steps of a program took on each rank: torchgfn's `report_time_info` and
  `report_load_imbalance`, as rows, and as lines in its words. Nothing here asks a rank.

  `timings` has for each rank its steps with the seconds that each took: a list with one number for each time that the
  step was done, or one number. The steps are a map, or a list of pairs, whose order is that of the report.

      iex> {:ok, report} = RankBridge.Reports.report_load_imbalance([%{"sample" => [1.0, 2.0]}, %{"sample" => [3.0, 2.0]}])
      iex> report.rows
      [%{step: "sample", useful: 4.0, waiting: 1.0}]
      iex> List.last(report.lines)
      {:info, "sample                        4.0000s     1.0000s"}
  """

  alias RankBridge.Error
  alias RankBridge.Reports.{LoadImbalance, Timings, TimeInfo}

  @doc """
  How long each step took: on each rank, and at most and on average among the ranks that have it.

  A step that a rank names and has never done is an `:invalid_argument`.
  """
  @spec report_time_info(Timings.like()) :: {:ok, TimeInfo.t()} | {:error, Error.t()}
  def report_time_info(timings) do
    with {:ok, timings} <- Timings.read(timings, "report_time_info"),
         do: TimeInfo.of(timings)
  end

  @doc """
  How much of each step was work and how much was waiting for the slowest rank: the sum over the times that it was done of
  the ranks' average, and of what the slowest took more. Steps that a rank does not have are left out, with a warning.

  Ranks that have not all done a step equally often are an `:invalid_argument`.
  """
  @spec report_load_imbalance(Timings.like()) :: {:ok, LoadImbalance.t()} | {:error, Error.t()}
  def report_load_imbalance(timings) do
    with {:ok, timings} <- Timings.read(timings, "report_load_imbalance"),
         do: LoadImbalance.of(timings)
  end

  @doc "A report as one text."
  @spec text(TimeInfo.t() | LoadImbalance.t()) :: String.t()
  def text(report), do: Enum.map_join(report.lines, "\n", fn {_level, line} -> line end)
end
