defmodule RankBridge.GuidesTest do
  @moduledoc "The guides say what is so: their programs run, on real ranks, and give what is shown below them."

  use ExUnit.Case, async: false

  alias RankBridge.Test.{OsProcess, StandIns}

  @guides Path.expand("../../guides", __DIR__)
  @lib Path.expand("../../lib/rank_bridge", __DIR__)

  # A loaded machine is not to lose ranks by itself.
  @arguments ["--heartbeat-misses", "100"]

  # With the program that the tests use, and patience.
  defp adapted(code) do
    opts =
      "size: 4, command: #{inspect(OsProcess.rankbridge())}, arguments: #{inspect(@arguments)}"

    String.replace(code, "size: 4", opts)
  end

  @tag timeout: 300_000
  test "the project's first page has a first program" do
    page = @guides |> Path.join("../../README.md") |> File.read!()
    programs = for [_all, code] <- Regex.scan(~r/^```elixir\n(.*?)^```/sm, page), do: code
    assert [program] = Enum.filter(programs, &(adapted(&1) != &1))
    assert program =~ "#=> [6.0, 8.0]"
    {given, variables} = program |> adapted() |> Code.eval_string()
    assert given == [6.0, 8.0]
    :ok = Supervisor.stop(variables[:_supervisor])
  end

  describe "the client's first page" do
    # A program that stands between two marks.
    defp marked(name) do
      page = @guides |> Path.join("../README.md") |> File.read!()
      mark = &"<!-- #{name}: #{&1} -->\n"
      [_before, rest] = String.split(page, mark.("begin"))
      [code, _after] = String.split(rest, mark.("end"))
      [_all, program] = Regex.run(~r/\A```elixir\n(.*)```\n\z/s, code)
      program
    end

    @marked ["dependency by path", "dependency by git", "first program", "supervision"] ++
              ["errors", "logger"]

    test "has no other programs than those of these tests" do
      page = @guides |> Path.join("../README.md") |> File.read!()
      assert length(Regex.scan(~r/^```elixir$/m, page)) == length(@marked)
      for name <- @marked, do: assert(marked(name) != "")
    end

    test "names folders that have the package" do
      {{:rank_bridge, by_path}, _} = Code.eval_string(marked("dependency by path"))
      {{:rank_bridge, by_git}, _} = Code.eval_string(marked("dependency by git"))
      assert Path.basename(by_path[:path]) == "elixir_client"
      project = Path.join([@guides, "../..", by_git[:subdir], "mix.exs"])
      assert File.read!(project) =~ "app: :rank_bridge,"
    end

    @tag timeout: 300_000
    test "has a first program" do
      program = marked("first program")
      assert program =~ "#=> [6.0, 8.0]" and program != adapted(program)
      {given, variables} = program |> adapted() |> Code.eval_string()
      assert given == [6.0, 8.0]
      :ok = Supervisor.stop(variables[:_supervisor])
    end

    @tag timeout: 300_000
    test "has a tree whose refs are there, and code that knows the errors" do
      program = marked("supervision")
      # Other guides have modules of this name.
      named = &String.replace(&1, "MyApp", "FirstPage")
      assert program != adapted(program)
      program |> adapted() |> named.() |> Code.compile_string("README.md")
      "errors" |> marked() |> named.() |> Code.compile_string("README.md")
      [ranks, weights, sum, gang] = for name <- ~w(Ranks Weights Sum Gang), do: page_module(name)

      start_supervised!(ranks)
      refs = weights.refs()
      assert {:ok, sums} = sum.sum(gang, refs)
      assert gang |> RankBridge.get!(hd(sums)) |> RankBridge.Tensor.to_list() == [4.0, 8.0]

      other = RankBridge.put!(gang, [[1.0], [2.0], [3.0], [4.0, 5.0]])
      assert {:refused, message} = sum.sum(gang, other)
      assert message =~ "float32[2]"
      assert {:error, :unavailable} = sum.sum(:no_such_gang, refs)
    end

    defp page_module(name), do: Module.concat(FirstPage, name)
  end

  describe "the notebook" do
    @cell ~r/^```elixir\n(.*?)^```\n(?:\n<!-- livebook:\{"output":true\} -->\n\n```\n(.*?)\n```\n)?/sm

    # A child of its supervisor ends with a loss, and is started again.
    @tag capture_log: true
    @tag timeout: 300_000
    test "gives what it shows" do
      # The widget, by a stand-in for Kino.
      StandIns.load(
        ["kino"],
        for(file <- ["kino/widget", "kino"], do: Path.join(@lib, "#{file}.ex"))
      )

      notebook = @guides |> Path.join("rank_bridge.livemd") |> File.read!()
      cells = for [_all, code | shown] <- Regex.scan(@cell, notebook), do: {code, shown}
      assert [{install, []} | cells] = cells
      assert install =~ "Mix.install"
      # Every output belongs to a cell.
      outputs =
        notebook |> String.split(~s(<!-- livebook:{"output":true} -->)) |> tl() |> length()

      assert outputs == Enum.count(cells, &match?({_code, [_shown]}, &1))
      assert Enum.count(cells, fn {code, _shown} -> adapted(code) != code end) == 1

      Enum.reduce(
        cells,
        {[], Code.env_for_eval(file: Path.join(@guides, "rank_bridge.livemd"))},
        &evaluate/2
      )
    end

    test "shows losses as lines where there is no Kino" do
      refute Code.ensure_loaded?(Kino.Frame)
      notebook = @guides |> Path.join("rank_bridge.livemd") |> File.read!()
      [cell] = for [_all, code | _] <- Regex.scan(@cell, notebook), code =~ "show =", do: code
      {show, _binding} = Code.eval_string(cell)
      losses = for step <- 17..1, do: {step, step / 10}

      printed =
        ExUnit.CaptureIO.capture_io(fn ->
          for back <- 16..0, do: show.(Enum.drop(losses, back))
        end)

      assert printed == "   1  █ 0.1\n   9  █████████ 0.9\n  17  █████████████████ 1.7\n"
    end

    defp evaluate({code, shown}, {binding, env}) do
      quoted = Code.string_to_quoted!(adapted(code))
      {given, binding, env} = Code.eval_quoted_with_env(quoted, binding, env)

      case shown do
        [text] -> assert {code, inspect(given, pretty: true)} == {code, text}
        [] -> :ok
      end

      {binding, env}
    end
  end

  describe "the guide of supervision" do
    @tag timeout: 300_000
    test "has a tree that loses a rank, and has its weights again" do
      guide = @guides |> Path.join("supervision.md") |> File.read!()
      programs = for [_all, code] <- Regex.scan(~r/^```elixir\n(.*?)^```/sm, guide), do: code
      assert Enum.count(programs, &(adapted(&1) != &1)) == 1
      programs |> Enum.map_join("\n", &adapted/1) |> Code.compile_string("supervision.md")

      # Its modules are known since now.
      [supervisor, weights, watcher, gang] =
        for name <- [:Supervisor, :Weights, :Watcher, :Gang], do: Module.concat(MyApp, name)

      # Before the tree begins, so that nothing is missed.
      :ok = RankBridge.Gang.subscribe(gang)
      start_supervised!(supervisor)
      assert_receive {:rank_bridge, ^gang, %{kind: :formed, generation: 1}}, 60_000
      :ok = weights.load()
      before = weights.refs()
      OsProcess.kill(Enum.at(RankBridge.status!(gang), 1).pid)
      assert_receive {:rank_bridge, ^gang, %{kind: :rank_lost, rank: 1}}, 60_000
      assert_receive {:rank_bridge, ^gang, %{kind: :formed, generation: 2}}, 60_000
      since = weights.refs()
      assert for({old, new} <- Enum.zip(before, since), old != new, do: new.rank) == [1]
      assert {:ok, tensors} = RankBridge.get(gang, since)
      assert Enum.map(tensors, &RankBridge.Tensor.to_list/1) == List.duplicate([1.0, 2.0], 4)
      assert watcher.losses() == 1
      :ok = stop_supervised(supervisor)
      assert {:error, %{reason: :unavailable}} = RankBridge.barrier(gang)
    end
  end
end
