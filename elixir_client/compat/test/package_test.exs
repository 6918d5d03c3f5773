defmodule RankBridge.Compat.PackageTest do
  @moduledoc "What would be published of this package is complete, and what its first page shows is true."

  use ExUnit.Case, async: true

  alias RankBridge.Compat.MixProject
  alias RankBridge.Test.{LiveRanks, Package}

  @root Path.expand("..", __DIR__)

  defp project, do: MixProject.project()

  test "the metadata is complete, and of the client's version" do
    assert Package.metadata_faults(project()) == []
    assert project()[:version] == Package.python_version()
  end

  test "the files are sources, guides, and those that a package has" do
    files = Package.files(@root, project()[:package][:files])
    assert "lib/rank_bridge/compat.ex" in files and "LICENSE" in files

    allowed =
      ~r"\A((lib|guides)/[a-z0-9_/]+\.(ex|md)|mix\.exs|\.formatter\.exs|README\.md|LICENSE)\z"

    assert Enum.reject(files, &(&1 =~ allowed)) == []
    assert File.read!(Path.join(@root, "LICENSE")) == File.read!(Path.join(@root, "../LICENSE"))
  end

  @tag timeout: 120_000
  test "the example of the first page gathers what members of unlike sizes have" do
    ranks = LiveRanks.start(3, "fake")
    on_exit(fn -> LiveRanks.stop(ranks) end)
    start_supervised!({RankBridge.Gang, name: MyGang, endpoints_file: ranks.file})
    tokens = for rank <- 0..2, do: for(row <- 0..rank, do: [100.0 * rank + row])
    refs = RankBridge.put!(MyGang, tokens)

    page = File.read!(Path.join(@root, "README.md"))
    [_all, example] = Regex.run(~r/<!-- example: begin -->\n```elixir\n(.*?)```/s, page)
    {_result, bound} = Code.eval_string(example, refs: refs)

    gathered =
      for tensor <- RankBridge.get!(MyGang, bound[:gathered]),
          do: RankBridge.Tensor.to_list(tensor)

    assert gathered == List.duplicate(Enum.concat(tokens), 3)
  end
end
