defmodule RankBridge.Examples.ForeignJobTest do
  @moduledoc "The example `examples/foreign_job`: what a job that knows nothing of it has, and the replica that differs."

  use ExUnit.Case, async: true

  alias RankBridge.NamedTensors.{Comparison, Difference}
  alias RankBridge.Test.OsProcess

  @script Path.expand("../../examples/foreign_job/priv/train.py", __DIR__)
  @launcher ~w(-m torch.distributed.run --standalone --nproc-per-node 4 -m rankbridge_server.attach)

  @tag timeout: 300_000
  @tag :tmp_dir
  @tag sampled: RankBridge.Test.Sampled.part(__ENV__)
  test "the groups and tensors of a job are seen while it trains, and the replica that differs is found",
       %{tmp_dir: folder} do
    refute File.read!(@script) =~ "rankbridge"
    file = Path.join(folder, "endpoints.json")
    job(["--endpoints-file", file, @script, "--flip", "2", "--steps", "10000"])
    start_supervised!(ForeignJob.gang(file))
    seen = ForeignJob.look(ForeignJob.Gang)

    assert length(Enum.uniq(seen.pids)) == 4

    assert Map.new(seen.groups, &{&1.name, &1.ranks}) ==
             %{"world" => [0, 1, 2, 3], "judges" => [0, 1]}

    # The script has one module, in a variable of a function.
    assert seen.trained == ["Classifier.head.bias", "Classifier.head.weight"]

    still = ~w(Classifier.embedding.weight Classifier.encoder.0.bias Classifier.encoder.0.weight)
    assert Enum.sort(Map.keys(seen.tensors)) == Enum.sort(seen.trained ++ still)
    assert Map.keys(seen.norms) == Map.keys(seen.tensors)

    [norm, norm, other, norm] = seen.norms["Classifier.encoder.0.weight"]
    assert norm != other
    assert [_one_norm] = Enum.uniq(seen.norms["Classifier.embedding.weight"])

    assert [%Comparison{name: "Classifier.encoder.0.weight", reference: 0, differing: differing}] =
             seen.differing

    # Element [5, 7] of a matrix of 32 columns.
    assert %{2 => %Difference{elements: 1, first: 167, most: most}} = differing
    assert map_size(differing) == 1
    assert_in_delta most, 0.25, 1.0e-6
  end

  # A job of four ranks, which ends with the test.
  defp job(arguments) do
    env =
      for {name, value} <- [{"OMP_NUM_THREADS", "1"}, {"GLOO_SOCKET_IFNAME", "lo"}],
          do: {~c"#{name}", ~c"#{value}"}

    options = [:binary, :exit_status, :stderr_to_stdout, env: env, args: @launcher ++ arguments]
    port = Port.open({:spawn_executable, OsProcess.python()}, options)
    {:os_pid, pid} = Port.info(port, :os_pid)

    on_exit(fn ->
      OsProcess.signal(pid, "TERM")
      OsProcess.await_gone([pid], 60_000)
    end)
  end
end
