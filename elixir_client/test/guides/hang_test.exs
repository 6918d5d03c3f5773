defmodule RankBridge.HangGuideTest do
  @moduledoc "The guide of a hang says what is so: its gang hangs, its verdict names the rank, and it goes on."

  use ExUnit.Case, async: false

  alias RankBridge.Test.OsProcess
  alias RankBridge.Verdict

  import RankBridge.Test.Soon

  @guide Path.expand("../../guides/hang.md", __DIR__)

  defp programs(language) do
    for [_all, code] <- Regex.scan(~r/^```#{language}\n(.*?)^```/sm, File.read!(@guide)), do: code
  end

  # With the program that the tests use, patience, the guide's module, and a folder of the test's own.
  defp adapted(code, directory) do
    opts =
      ~s(size: 4, command: #{inspect(OsProcess.rankbridge())}, ) <>
        ~s(arguments: ["--heartbeat-misses", "100"], timeout: 60_000)

    code
    |> String.replace("size: 4", opts)
    |> String.replace("priv/app.py", Path.join(directory, "app.py"))
    |> String.replace("priv/batches", directory)
  end

  defp healthy? do
    {:ok, verdict} = RankBridge.Doctor.diagnose(Module.concat(MyApp, "Gang"))
    RankBridge.Verdict.healthy?(verdict)
  end

  @tag :tmp_dir
  @tag timeout: 180_000
  test "its programs run, one after the other", %{tmp_dir: directory} do
    [module] = programs("python")
    File.write!(Path.join(directory, "app.py"), module)

    [start, work, ask, data, go_on, look, let_go, watchman] =
      Enum.map(programs("elixir"), &adapted(&1, directory))

    {_batches, binding} = Code.eval_string(start, [])
    {workers, binding} = Code.eval_string(work, binding)

    # Three wait: the hang of which the guide speaks.
    assert_soon(true, fn ->
      {:ok, verdict} = RankBridge.Doctor.diagnose(Module.concat(MyApp, "Gang"))
      verdict.kind == :never_called and length(verdict.waits) == 3
    end)

    {{printed, binding}, page} =
      ExUnit.CaptureIO.with_io(fn -> Code.eval_string(ask, binding) end)

    assert printed == :ok
    assert page =~ "NEVER_CALLED: rank 2 has not called all_reduce world"
    {found, binding} = Code.eval_string(data, binding)
    assert found == {:never_called, "all_reduce world", 2, "next_batch"}
    {healthy, binding} = Code.eval_string(go_on, binding)
    # A rank that has just begun may be too busy to say what it does. Nobody is blamed for that.
    assert healthy or binding[:verdict].kind == :unknown, inspect(binding[:verdict])
    assert_soon(true, fn -> healthy?() end)
    assert length(binding[:failed]) == length(workers)

    {looked, binding} = Code.eval_string(look, binding)
    assert looked == {2, "NaN in input 0", 1, [:nan]}
    {{:ok, sums}, binding} = Code.eval_string(let_go, binding)
    assert length(sums) == 4

    [{watching, _beam}] = Code.compile_string(String.replace(watchman, ~r/^:ok = .*\n/, ""))
    test = self()

    waits =
      RankBridge.Operations.submit_rank!(Module.concat(MyApp, "Gang"), 1, :barrier, nil,
        operation_id: "last"
      )

    opts = [
      gang: Module.concat(MyApp, "Gang"),
      every: 100,
      patience: 0.2,
      report: &send(test, {:verdict, &1})
    ]

    start_supervised!({watching, opts})
    assert_receive {:verdict, %Verdict{kind: :never_called, call: "barrier world"}}, 30_000
    _cancelled = RankBridge.cancel(Module.concat(MyApp, "Gang"), waits)
    Supervisor.stop(binding[:_supervisor])
  end
end
