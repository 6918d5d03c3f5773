defmodule RankBridge.FunctionsGuideTest do
  @moduledoc "The guide of functions says what is so: its module is loaded into real ranks, and its programs run."

  use ExUnit.Case, async: false

  alias RankBridge.Functions.Source
  alias RankBridge.Test.OsProcess

  @guide Path.expand("../../guides/functions.md", __DIR__)

  defp programs(language) do
    for [_all, code] <- Regex.scan(~r/^```#{language}\n(.*?)^```/sm, File.read!(@guide)), do: code
  end

  # With the program that the tests use, the file of the guide, and patience.
  defp adapted(code, file) do
    opts =
      ~s(size: 4, command: #{inspect(OsProcess.rankbridge())}, ) <>
        ~s(arguments: ["--heartbeat-misses", "100"], timeout: 60_000)

    code |> String.replace("size: 4", opts) |> String.replace("priv/app.py", file)
  end

  @tag :tmp_dir
  @tag timeout: 180_000
  test "its programs run, one after the other", %{tmp_dir: directory} do
    [module] = programs("python")
    file = Path.join(directory, "app.py")
    File.write!(file, module)
    programs = Enum.map(programs("elixir"), &adapted(&1, file))

    {binding, given} =
      Enum.reduce(programs, {[], []}, fn program, {binding, given} ->
        if program =~ "MyApp.Training", do: training()
        {value, binding} = Code.eval_string(program, binding)
        {binding, [value | given]}
      end)

    assert [
             {:ok, pid},
             [_, _, _, _],
             {:error, _cancelled},
             {:ok, [5, 5, 5, 5]},
             raised | _before
           ] = given

    OsProcess.await_gone([pid])
    assert binding[:losses] == [1.0, 1.0, 2.0, 3.0]
    assert binding[:steps] == [1, 2, 3, 4, 5]
    assert raised == {"KeyError", "'v'", "app.py:27 in weight"}
    Supervisor.stop(binding[:_supervisor])
  end

  # As `mix rank_bridge.gen` writes it.
  defp training do
    functions = RankBridge.functions!(Module.concat(MyApp, "Gang"))
    [{_module, _beam}] = Code.compile_string(Source.of(functions, "MyApp.Training", ["app.py"]))
  end
end
