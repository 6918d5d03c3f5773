defmodule RankBridge.PackageTest do
  @moduledoc "What would be published is complete, holds nothing else, and works by itself."

  use ExUnit.Case, async: true

  alias RankBridge.Test.Package

  @repository Path.expand("../..", __DIR__)

  defp patterns, do: Package.project()[:package][:files]

  test "the licence is the repository's" do
    here = File.read!(Path.join(Package.root(), "LICENSE"))
    assert here == File.read!(Path.join(@repository, "LICENSE"))
    assert here =~ "Apache License\n                           Version 2.0, January 2004"
    assert here =~ "END OF TERMS AND CONDITIONS"
  end

  test "the metadata is complete, and of the version that Python's is" do
    project = Package.project()
    assert Package.metadata_faults(project) == []
    assert project[:version] == Package.python_version()
    changelog = File.read!(Path.join(@repository, "CHANGELOG.md"))
    assert changelog =~ "## Unreleased" or changelog =~ "## #{project[:version]}"
  end

  test "metadata that Hex would refuse is found" do
    project = Package.project()

    for {wrong, fault} <- [
          {Keyword.delete(project, :description), "description is missing"},
          {Keyword.put(project, :description, String.duplicate("a", 301)),
           "the description is longer than 300 characters"},
          {put_in(project, [:package, :licenses], ["Apache"]),
           "licenses are not [\"Apache-2.0\"]"},
          {put_in(project, [:package, :links], %{}), "there are no links"},
          {Keyword.put(project, :version, "1"), "the version is no version"}
        ] do
      assert Package.metadata_faults(wrong) == [fault]
    end
  end

  test "the files are those that belong in it" do
    assert Package.file_faults(Package.root(), patterns()) == []
    files = Package.files()
    assert "lib/rank_bridge.ex" in files and "lib/rank_bridge/proto/v1/tensor.pb.ex" in files
    refute Enum.any?(files, &(&1 =~ ~r/\A(test|codegen|compat|scripts|_build)/))
  end

  @tag :tmp_dir
  test "files that do not belong, or are missing, are found", %{tmp_dir: folder} do
    :ok = Package.unpack(folder)
    assert Package.file_faults(folder, patterns()) == []
    File.rm!(Path.join(folder, "lib/rank_bridge/proto/v1/tensor.pb.ex"))
    File.rm!(Path.join(folder, "LICENSE"))
    File.ln_s!("README.md", Path.join(folder, "LICENSE"))
    File.write!(Path.join(folder, "lib/rank_bridge/nif.so"), "")
    File.write!(Path.join(folder, "lib/.leftover.swp"), "")
    File.mkdir_p!(Path.join(folder, "test"))
    File.write!(Path.join(folder, "test/some_test.exs"), "")

    assert Package.file_faults(folder, patterns() ++ ["test", "priv"]) == [
             "priv matches nothing",
             "lib/rank_bridge/proto/v1/tensor.pb.ex is missing",
             "lib/.leftover.swp does not belong in it",
             "lib/rank_bridge/nif.so does not belong in it",
             "test/some_test.exs does not belong in it",
             "LICENSE is no regular file"
           ]
  end

  @tag :tmp_dir
  @tag timeout: 900_000
  @tag sampled: RankBridge.Test.Sampled.part(__ENV__)
  test "unpacked alone, it compiles without a warning and its application starts", context do
    # Outside of the repository, so that nothing of it is found by chance.
    name = "rank_bridge-#{System.pid()}-#{System.unique_integer([:positive])}"
    folder = Path.join(System.tmp_dir!(), name)
    File.mkdir_p!(folder)
    on_exit(fn -> File.rm_rf!(folder) end)
    :ok = Package.unpack(folder)
    mix = &System.cmd("mix", &1, cd: folder, stderr_to_stdout: true, env: environment(context))

    assert {compiled, 0} = mix.(["compile", "--warnings-as-errors"])
    assert compiled =~ "Generated rank_bridge app"

    program = """
    {:ok, started} = Application.ensure_all_started(:rank_bridge)
    true = is_pid(Process.whereis(RankBridge.Supervisor))
    {:error, %RankBridge.Error{reason: :unavailable}} = RankBridge.status(:no_such_gang)
    IO.puts("started #{"\#{Application.spec(:rank_bridge, :vsn)} \#{inspect(started)}"}")
    """

    assert {output, 0} = mix.(["run", "--no-compile", "--no-start", "-e", program])
    assert output =~ ~r/^started #{Regex.escape(Package.python_version())} \[.*:rank_bridge\]$/m
    # No dependency was compiled or fetched.
    assert File.ls!(Path.join(folder, "_build/prod/lib")) == ["rank_bridge"]
    refute File.exists?(Path.join(folder, "deps"))
  end

  # The environment of a machine that has Elixir, and nothing of this project.
  defp environment(%{tmp_dir: home}) do
    [
      {"MIX_ENV", "prod"},
      {"MIX_HOME", home},
      {"MIX_BUILD_PATH", nil},
      {"MIX_EXS", nil},
      {"RANKBRIDGE_COMMAND", nil}
    ]
  end

  describe "the documentation" do
    # The proto files describe generated code.
    @inside ["RankBridge.Proto."]
    # Compiled where their libraries are.
    @optional [RankBridge.Kino, RankBridge.LiveDashboard]

    defp grouped,
      do: Package.project()[:docs][:groups_for_modules] |> Keyword.values() |> List.flatten()

    test "has every public module in one group, and no other" do
      assert length(grouped()) in 25..65
      assert grouped() == Enum.uniq(grouped())
      others = for module <- described() -- grouped(), not within?(module, @inside), do: module
      assert {:in_no_group, others} == {:in_no_group, []}
      assert {:unknown, (grouped() -- described()) -- @optional} == {:unknown, []}
    end

    test "shows the modules of the groups alone" do
      shown? = Package.project()[:docs][:filter_modules]
      assert Enum.filter(described(), &shown?.(&1, %{})) == Enum.sort(grouped() -- @optional)
      assert shown?.(RankBridge, %{})
    end

    test "has no link to a module that it does not show" do
      # The namespace of generated code is no module.
      shown = [RankBridge, RankBridge.Proto | grouped()] ++ of_compat()

      links =
        for module <- [RankBridge | grouped()],
            # Those of optional libraries are not compiled here.
            {:docs_v1, _, _, _, %{"en" => text}, _, docs} <- [Code.fetch_docs(module)],
            text <- [text | for({_, _, _, %{"en" => text}, _} <- docs, do: text)],
            [_all, name] <- Regex.scan(~r/`(?:[tc]:)?(RankBridge(?:\.[A-Z][A-Za-z0-9]*)*)/, text),
            do: {module, Module.concat([name])}

      assert length(links) > 30
      assert Enum.uniq(for({_from, to} = link <- links, to not in shown, do: link)) == []
    end

    # Another package shows these.
    defp of_compat do
      for path <- Package.root() |> Path.join("compat/lib/**/*.ex") |> Path.wildcard(),
          [_all, name] <-
            Regex.scan(~r/^ *defmodule (RankBridge[A-Za-z.]*) do$/m, File.read!(path)),
          do: Module.concat([name])
    end

    defp described do
      {:ok, modules} = :application.get_key(:rank_bridge, :modules)

      for module <- Enum.sort(modules) -- [RankBridge],
          within?(module, ["RankBridge."]) and not within?(module, ["RankBridge.Test."]),
          {:docs_v1, _, _, _, %{}, _, _} <- [Code.fetch_docs(module)],
          do: module
    end

    defp within?(module, names), do: String.starts_with?(inspect(module), names)
  end
end
