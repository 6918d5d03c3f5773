defmodule RankBridge.Conformance.DocsTest do
  @moduledoc "The documentation's example does what it says: its matches are what it claims."

  use ExUnit.Case, async: true

  alias RankBridge.Test.LiveRanks

  @docs Path.expand("../../../docs/groups_and_meshes.md", __DIR__)

  @tag timeout: 120_000
  test "the example of groups, meshes and layouts" do
    ranks = LiveRanks.start(4, "fake")
    on_exit(fn -> LiveRanks.stop(ranks) end)

    [_all, program] =
      Regex.run(~r/<!-- elixir example: begin -->\n```elixir\n(.*?)```/s, File.read!(@docs))

    assert program =~ ~s("endpoints.json")
    Code.eval_string(String.replace(program, "endpoints.json", ranks.file))
  end
end
