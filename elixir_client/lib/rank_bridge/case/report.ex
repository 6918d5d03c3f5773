defmodule RankBridge.Case.Report do
  @moduledoc """
  How the ranks of a test were when it failed: a verdict, which says which rank keeps which others waiting or what has failed last;
  each one's process and generation, which ranks wait for which, and what each rank did last in the test's group.
  """

  alias RankBridge.{Doctor, Generations, Pending, RankStatus}
  alias RankBridge.Case.{LastOperations, Lent}

  @type t :: %__MODULE__{message: String.t()}

  defexception [:message]

  # A rank that does not answer by then is said to be silent.
  @patience 2_000
  # Seconds. A test that fails has seldom waited for long. Ranks that have done little yet have 2.5 times as long.
  @stuck_after 0.04

  @doc "Asks the ranks of a test. nil: it has none."
  @spec of(Lent.t() | nil) :: t()
  def of(nil), do: %__MODULE__{message: "the test has no gang"}

  def of(lent) do
    asked =
      for ask <- [&Generations.status/2, &Generations.pending/2],
          do: ask.(lent.ranks, timeout: @patience)

    lines =
      case asked do
        [{:ok, statuses}, {:ok, pending}] ->
          statuses |> Enum.zip(pending) |> Enum.flat_map(&rank/1)

        [{:error, error} | _other] ->
          ["not reached: #{Exception.message(error)}"]

        [_statuses, {:error, error}] ->
          ["not reached: #{Exception.message(error)}"]
      end

    verdict = verdict(lent)
    last = LastOperations.lines(lent, @patience)
    head = "#{lent.wanted}, group #{lent.group}"
    %__MODULE__{message: Enum.join([head | verdict] ++ lines ++ last, "\n")}
  end

  defp verdict(lent) do
    case Doctor.diagnose(lent.ranks, patience: @stuck_after, timeout: @patience) do
      {:ok, verdict} -> ["verdict:" | indented("#{verdict}")]
      {:error, error} -> ["verdict: no rank has answered: #{Exception.message(error)}"]
    end
  end

  defp indented(text), do: for(line <- String.split(text, "\n", trim: true), do: "  #{line}")

  defp rank({%RankStatus{error: nil} = status, %Pending{error: nil} = pending}) do
    why = if it = status.generation_error, do: ": #{it.message}", else: ""
    state = "generation #{status.generation} #{status.generation_state}#{why}"

    ["rank #{status.rank}: pid #{status.pid}, #{state}"] ++
      Enum.map(pending.operations, &operation/1) ++ Enum.map(pending.admissions, &admission/1)
  end

  defp rank({status, pending}),
    do: ["rank #{status.rank}: not reached: #{Exception.message(status.error || pending.error)}"]

  defp operation(it),
    do:
      "  pending: #{it.operation} on #{it.group}, #{it.phase}, for #{div(it.waited_us, 1_000)} ms"

  defp admission(it),
    do: "  #{it.group} waits for ranks #{Enum.join(it.missing, ", ")} in #{it.operation}"
end
