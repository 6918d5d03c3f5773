defmodule Mix.Tasks.Transformer do
  @shortdoc "Trains a transformer while ranks are killed, and compares with a training that was not disturbed"

  @moduledoc """
  Trains twice on four ranks: undisturbed, then while ranks are killed. The status is 0 if both have the same weights.

      mix transformer --steps 200 --kills 5 --seed 1

  The program `rankbridge` is the one in the environment's `RANKBRIDGE_COMMAND`, or in the path.
  """

  use Mix.Task

  alias Transformer.Killer

  @requirements ["app.start"]
  @defaults [steps: 200, seed: 1]
  # By default, a kill for so many steps.
  @steps_of_a_kill 40

  @impl true
  def run(arguments) do
    {given, []} =
      OptionParser.parse!(arguments, strict: [steps: :integer, kills: :integer, seed: :integer])

    opts = Keyword.merge(@defaults, given)
    opts = Keyword.put_new(opts, :kills, div(opts[:steps], @steps_of_a_kill))

    say("== undisturbed")
    undisturbed = train(opts, [])
    say("== with #{opts[:kills]} kills")
    disturbed = train(opts, Killer.plan(opts[:kills], opts[:steps], opts[:seed]))

    if undisturbed == disturbed,
      do: say("equal bit for bit"),
      else: Mix.raise("the weights differ")
  end

  defp train(opts, plan) do
    began = System.monotonic_time(:millisecond)
    log = fn line -> say("#{elapsed(began)} s  #{line}") end

    case Transformer.run(steps: opts[:steps], plan: plan, log: log) do
      {:ok, report} -> summary(report, opts[:steps])
      {:error, reason} -> Mix.raise("the training has ended: #{inspect(reason)}")
    end
  end

  defp summary(report, steps) do
    rate = Float.round(1_000 * (steps - 1) / report.milliseconds, 1)
    say("#{steps} steps in #{report.milliseconds} ms, #{rate} each second")

    if report.kills != [] do
      times = for kill <- report.kills, kill.recovered_in, do: kill.recovered_in
      {first, last} = Enum.min_max(times)
      median = times |> Enum.sort() |> Enum.at(div(length(times), 2))

      say(
        "#{length(report.kills)} kills, #{length(report.cut_off)} calls cut off; " <>
          "the next step done after #{first} to #{last} ms, median #{median} ms"
      )
    end

    say(~s(it writes: "#{report.written}"))
    [digest] = Enum.uniq(report.digests)
    say("weights on every rank: sha256 #{digest}")
    digest
  end

  defp elapsed(began) do
    seconds = (System.monotonic_time(:millisecond) - began) / 1_000
    seconds |> :erlang.float_to_binary(decimals: 2) |> String.pad_leading(6)
  end

  defp say(line), do: Mix.shell().info(line)
end
