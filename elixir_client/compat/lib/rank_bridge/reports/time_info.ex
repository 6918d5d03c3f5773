defmodule RankBridge.Reports.TimeInfo do
  @moduledoc """
  How long each step took. All in seconds.

  * `ranks` - for each rank, its steps: `mean` of the times that it was done, and `total`
  * `rows` - each step: the `maximum` and the `mean` of the totals of the ranks that have it
  * `lines` - the report, line by line, with the level at which torchgfn logs each
  """

  alias RankBridge.Error
  alias RankBridge.Reports.Timings

  @type t :: %__MODULE__{
          ranks: [[%{step: String.t(), mean: float(), total: number()}]],
          rows: [%{step: String.t(), maximum: number(), mean: float()}],
          lines: [{:info, String.t()}]
        }

  @enforce_keys [:ranks, :rows, :lines]
  defstruct [:ranks, :rows, :lines]

  @doc "The report on some timings."
  @spec of(Timings.t()) :: {:ok, t()} | {:error, Error.t()}
  def of(timings) do
    case for(steps <- timings, {step, []} <- steps, do: step) do
      [] -> {:ok, report(timings)}
      [never | _others] -> refuse(never)
    end
  end

  defp report(timings) do
    ranks = for steps <- timings, do: for({step, seconds} <- steps, do: of_rank(step, seconds))
    of_ranks = Enum.concat(ranks)
    rows = for step <- Enum.uniq(Enum.map(of_ranks, & &1.step)), do: row(step, of_ranks)

    %__MODULE__{
      ranks: ranks,
      rows: rows,
      lines: for(line <- lines(ranks, rows), do: {:info, line})
    }
  end

  defp of_rank(step, seconds) do
    total = Enum.sum(seconds)
    %{step: step, mean: total / length(seconds), total: total}
  end

  defp row(step, of_ranks) do
    totals = for %{step: ^step, total: total} <- of_ranks, do: total
    %{step: step, maximum: Enum.max(totals), mean: Enum.sum(totals) / length(totals)}
  end

  defp lines(ranks, rows) do
    of_ranks =
      for {steps, rank} <- Enum.with_index(ranks) do
        ["Rank #{rank} timing information:" | Enum.map(steps, &of_step/1)]
      end

    ["Timing information for each rank:"] ++
      Enum.concat(of_ranks) ++
      ["\nMaximum timing information:"] ++
      for(row <- rows, do: "  #{row.step}: #{Timings.written(row.maximum)} seconds") ++
      ["\nAverage timing information:"] ++
      for(row <- rows, do: "  #{row.step}: #{Timings.written(row.mean)} seconds")
  end

  defp of_step(%{step: step, mean: mean, total: total}) do
    "  #{step}: #{Timings.written(mean)} seconds (total: #{Timings.written(total)} seconds)"
  end

  defp refuse(step) do
    {:error,
     Error.refusal(:invalid_argument, "a rank has never done step #{inspect(step)}",
       operation: "report_time_info",
       expected: "once or more",
       got: "never"
     )}
  end

  defimpl Inspect do
    def inspect(report, _options) do
      counts = "#{length(report.ranks)} ranks, #{length(report.rows)} steps"
      "#RankBridge.Reports.TimeInfo<#{counts}>"
    end
  end
end
