defmodule Mix.Tasks.Trainer do
  @shortdoc "Trains while ranks are killed, and compares with a training that was not disturbed"

  @moduledoc """
  Trains twice on four ranks: undisturbed, then while ranks are killed. The status is 0 if both have the same weights.

      mix trainer --steps 200 --kills 10 --seed 1

  The program `rankbridge` is the one in the environment's `RANKBRIDGE_COMMAND`, or in the path.
  """

  use Mix.Task

  alias Trainer.Killer

  @requirements ["app.start"]
  @defaults [steps: 200, seed: 1]
  # By default, a kill for so many steps.
  @steps_of_a_kill 20

  @impl true
  def run(arguments) do
    {given, []} =
      OptionParser.parse!(arguments, strict: [steps: :integer, kills: :integer, seed: :integer])

    opts = Keyword.merge(@defaults, given)
    opts = Keyword.put_new(opts, :kills, div(opts[:steps], @steps_of_a_kill))
    plan = Killer.plan(opts[:kills], opts[:steps], opts[:seed])

    say("== undisturbed")
    undisturbed = train(opts, [])
    say("== with #{opts[:kills]} kills")
    disturbed = train(opts, plan)

    if undisturbed == disturbed,
      do: say("equal bit for bit"),
      else: Mix.raise("the weights differ")
  end

  defp train(opts, plan) do
    began = System.monotonic_time(:millisecond)
    log = fn line -> say("#{elapsed(began)} s  #{line}") end

    case Trainer.run(steps: opts[:steps], seed: opts[:seed], plan: plan, log: log) do
      {:ok, report} -> summary(report, opts[:steps])
      {:error, reason} -> Mix.raise("the training has ended: #{inspect(reason)}")
    end
  end

  defp summary(report, steps) do
    say(
      "#{steps} steps in #{report.milliseconds} ms; #{length(report.repeated)} cut off, and done again"
    )

    if report.kills != [] do
      times = for kill <- report.kills, kill.recovered_in, do: kill.recovered_in
      {first, last} = Enum.min_max(times)
      median = times |> Enum.sort() |> Enum.at(div(length(times), 2))

      say(
        "#{length(report.kills)} kills; whole again after #{first} to #{last} ms, median #{median} ms"
      )
    end

    [weights] = Enum.uniq(report.weights)
    digest = :crypto.hash(:sha256, weights) |> Base.encode16(case: :lower)
    say("weights on every rank: sha256 #{digest}")
    digest
  end

  defp elapsed(began) do
    seconds = (System.monotonic_time(:millisecond) - began) / 1_000
    seconds |> :erlang.float_to_binary(decimals: 2) |> String.pad_leading(6)
  end

  defp say(line), do: Mix.shell().info(line)
end
