defmodule Mix.Tasks.RankBridge.GenTest do
  @moduledoc "The task writes a module for a real Python file, and ranks do what its functions say."

  use ExUnit.Case, async: false

  alias Mix.Tasks.RankBridge.Gen
  alias RankBridge.{Gang, Tensor}
  alias RankBridge.Test.{LiveRanks, OsProcess}

  @modules Path.expand("../support/functions", __DIR__)
  @app Path.join(@modules, "app.py")
  @command ["--command", OsProcess.rankbridge()]

  setup do
    shell = Mix.shell()
    Mix.shell(Mix.Shell.Process)
    on_exit(fn -> Mix.shell(shell) end)
  end

  @tag :tmp_dir
  test "what is written compiles, and calls the functions", %{tmp_dir: directory} do
    file = Path.join(directory, "deep/app.ex")
    Gen.run([@app, "--module", "RankBridge.Test.GeneratedApp", "--output", file | @command])
    assert [{app, _beam}] = Code.compile_file(file)

    ranks = LiveRanks.start(2, "fake", ["--load", @app])
    gang = start_supervised!({Gang, endpoints_file: ranks.file})
    assert app.place!(gang) == [{0, 2}, {1, 2}]
    refs = RankBridge.put!(gang, [[1.0], [2.0]])
    assert {:ok, scaled} = app.scaled(gang, refs, factor: 3, shift: RankBridge.each([0, 1]))
    assert [[3.0], [7.0]] = gang |> RankBridge.get!(scaled) |> Enum.map(&Tensor.to_list/1)

    assert app.collected!(gang, [1, 2], a: "b") ==
             List.duplicate(%{"numbers" => [1, 2], "named" => %{"a" => "b"}}, 2)

    assert_raise RankBridge.Error, ~r/LookupError: no/, fn -> app.fail!(gang, "no", 1) end
    LiveRanks.stop(ranks)
  end

  test "what cannot be written for is an error, and nothing is written" do
    for {arguments, message} <- [
          {[], ~r/which module/},
          {[@app, "--modul", "A"], ~r/--modul/},
          {[@app, "--module", "my_app"], ~r/no name of a module: my_app/},
          {[@app, "--command", "no-such-program"], ~r/no-such-program/},
          {[Path.join(@modules, "broken.py"), "--output", "-" | @command],
           ~r/RuntimeError: no weights at/}
        ] do
      assert_raise Mix.Error, message, fn -> Gen.run(arguments) end
    end

    refute_received {:mix_shell, :info, _written}
  end
end
