defmodule RankBridge.Reports.LoadImbalance do
  @moduledoc """
  How much of each step was work, and how much was waiting for the slowest rank. All in seconds.

  * `rows` - each step that all ranks have, in the order of the first rank
  * `skipped` - steps of the first rank that another one does not have
  * `lines` - the report, line by line, with the level at which torchgfn logs each
  """

  alias RankBridge.Error
  alias RankBridge.Reports.Timings

  @type row :: %{step: String.t(), useful: float(), waiting: float()}

  @type t :: %__MODULE__{
          rows: [row()],
          skipped: [String.t()],
          lines: [{:info | :warning, String.t()}]
        }

  @enforce_keys [:rows, :skipped, :lines]
  defstruct [:rows, :skipped, :lines]

  @name 25
  @column 12

  @doc "The report on some timings."
  @spec of(Timings.t()) :: {:ok, t()} | {:error, Error.t()}
  def of([first | _others] = timings) do
    by_rank = Enum.map(timings, &Map.new/1)

    rows =
      for {step, _seconds} <- first do
        seconds = Enum.map(by_rank, & &1[step])
        if nil in seconds, do: {:skipped, step}, else: row(step, seconds)
      end

    with nil <- Enum.find(rows, &match?({:error, _error}, &1)) do
      {:ok,
       %__MODULE__{
         rows: for(%{} = row <- rows, do: row),
         skipped: for({:skipped, step} <- rows, do: step),
         lines: header() ++ Enum.map(rows, &line/1)
       }}
    end
  end

  defp row(step, seconds) do
    case seconds |> Enum.map(&length/1) |> Enum.uniq() do
      [_length] ->
        times = Enum.zip_with(seconds, &{Enum.sum(&1) / length(&1), Enum.max(&1)})
        work = for({mean, _slowest} <- times, do: mean) |> Enum.sum()
        waiting = for({mean, slowest} <- times, do: slowest - mean) |> Enum.sum()
        %{step: step, useful: work * 1.0, waiting: waiting * 1.0}

      several ->
        {:error,
         Error.refusal(:invalid_argument, "ranks have done step #{inspect(step)} unequally often",
           operation: "report_load_imbalance",
           expected: "as many times on each rank",
           got: "#{Enum.join(several, " or ")} times"
         )}
    end
  end

  defp header do
    columns =
      for title <- ["Useful Work", "Waiting"], do: " " <> String.pad_leading(title, @column)

    [{:info, Enum.join([String.pad_trailing("Step Name", @name) | columns])}] ++
      [{:info, String.duplicate("-", 80)}]
  end

  defp line({:skipped, step}),
    do: {:warning, "Time for Step - '#{step}' not found in all ranks, skipping..."}

  defp line(%{step: step, useful: work, waiting: waiting}) do
    columns =
      for seconds <- [work, waiting],
          do: String.pad_leading(Timings.written(seconds), @column - 1) <> "s"

    {:info, Enum.join([String.pad_trailing(step, @name) | columns])}
  end

  defimpl Inspect do
    def inspect(report, _options) do
      counts = "#{length(report.rows)} steps, #{length(report.skipped)} skipped"
      "#RankBridge.Reports.LoadImbalance<#{counts}>"
    end
  end
end
