defmodule RankBridge.Examples.TrainerTest do
  @moduledoc "The example `examples/trainer`: what is lost on the way changes no bit of what is trained."

  use ExUnit.Case, async: true

  alias RankBridge.Test.OsProcess

  doctest Trainer.Killer

  # A loaded machine is not to lose ranks by itself.
  @gang [command: OsProcess.rankbridge(), arguments: ["--heartbeat-misses", "300"]]
  @seed 3

  # That a supervisor starts something again is what these tests are about.
  setup_all do
    :ok = :logger.set_module_level(:supervisor, :none)
    on_exit(fn -> :logger.unset_module_level(:supervisor) end)
    start_supervised!({DynamicSupervisor, name: Trainer.Runs, strategy: :one_for_one})
    %{undisturbed: for(steps <- [30, 60], into: %{}, do: {steps, train(steps: steps).weights})}
  end

  defp train(opts) do
    {gang, opts} = Keyword.pop(opts, :gang, [])
    opts = Keyword.merge([seed: @seed, gang: @gang ++ gang], opts)
    assert {:ok, report} = Trainer.run(opts)
    # All ranks have the same.
    assert [_weights] = Enum.uniq(report.weights)
    report
  end

  @tag timeout: 300_000
  @tag sampled: RankBridge.Test.Sampled.part(__ENV__)
  test "ranks that are killed at random change no bit", %{undisturbed: undisturbed} do
    plan = Trainer.Killer.plan(4, 60, @seed)
    report = train(steps: 60, plan: plan)
    assert length(report.kills) == 4
    assert report.kills |> Enum.map(& &1.pid) |> Enum.uniq() |> length() == 4

    assert Enum.map(report.kills, & &1.step) ==
             for({step, kills} <- plan, _kill <- kills, do: step)

    # It went on after them, in the middle of the training.
    assert Enum.any?(report.resumed, &(&1 > 0))
    assert report.weights == undisturbed[60]
  end

  @tag timeout: 300_000
  @tag sampled: RankBridge.Test.Sampled.part(__ENV__)
  test "with all ranks lost at once, training goes back to the checkpoint", %{
    undisturbed: undisturbed
  } do
    report = train(steps: 30, plan: [{25, [{0, :all}]}])
    assert report.kills |> Enum.map(& &1.rank) |> Enum.sort() == [0, 1, 2, 3]
    assert 20 in report.resumed
    assert report.weights == undisturbed[30]
  end

  @tag timeout: 300_000
  @tag sampled: RankBridge.Test.Sampled.part(__ENV__)
  test "a gang that gives up is started again, and training goes back to the checkpoint", %{
    undisturbed: undisturbed
  } do
    report = train(steps: 30, plan: [{25, [{0, 1}]}], gang: [on_rank_lost: :stop])
    assert [%{rank: 1}] = report.kills
    assert 20 in report.resumed
    assert report.weights == undisturbed[30]
  end

  @tag timeout: 300_000
  @tag sampled: RankBridge.Test.Sampled.part(__ENV__)
  test "a worker that dies is started again, and goes on with the weights that are on the ranks",
       %{undisturbed: undisturbed} do
    deaths = :counters.new(1, [])

    die_once = fn step ->
      if step == 25 and :counters.get(deaths, 1) == 0 do
        :counters.add(deaths, 1, 1)
        Process.exit(self(), :kill)
      end
    end

    report = train(steps: 30, before_step: die_once)
    assert :counters.get(deaths, 1) == 1
    assert 25 in report.resumed
    assert report.weights == undisturbed[30]
  end
end
