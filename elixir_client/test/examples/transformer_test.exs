defmodule RankBridge.Examples.TransformerTest do
  @moduledoc "The example `examples/transformer`: a rank that is killed changes no bit of what is trained."

  use ExUnit.Case, async: true

  alias RankBridge.Test.OsProcess

  doctest Transformer.Killer

  # A loaded machine is not to lose ranks by itself.
  @gang [arguments: ["--heartbeat-misses", "300"]]

  defp train(opts) do
    gang = [command: OsProcess.rankbridge()] ++ @gang
    assert {:ok, report} = Transformer.run([steps: 40, gang: gang] ++ opts)
    # All ranks have the same.
    assert [_one] = Enum.uniq(report.digests)
    report
  end

  @tag timeout: 300_000
  @tag sampled: RankBridge.Test.Sampled.part(__ENV__)
  test "a rank that is killed in the middle changes no bit" do
    start_supervised!({DynamicSupervisor, name: Transformer.Runs, strategy: :one_for_one})
    undisturbed = train([])
    assert length(undisturbed.losses) == 40
    assert List.last(undisturbed.losses) < hd(undisturbed.losses)

    disturbed = train(plan: [{4, [{0, 2}]}])
    assert [%{rank: 2, recovered_in: milliseconds}] = disturbed.kills
    assert milliseconds != nil
    assert disturbed.cut_off != []
    assert disturbed.digests == undisturbed.digests
    assert disturbed.written == undisturbed.written
  end
end
