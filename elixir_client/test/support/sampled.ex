defmodule RankBridge.Test.Sampled do
  @moduledoc """
  Which tests and cases a commit runs, where all of them take too long: others with each commit.

  Of cases all are run if the environment has `RANK_BRIDGE_WHOLE`. Of the tests that are tagged `sampled: part(__ENV__)` a sixteenth
  is run if it has `RANK_BRIDGE_SAMPLED`.
  """

  @parts 16

  @doc "The part of all these tests that has the next one, by its place."
  @spec part(Macro.Env.t()) :: non_neg_integer()
  def part(env), do: :erlang.phash2({env.module, env.line}, @parts)

  @doc "What ExUnit leaves out: all parts but one."
  @spec excluded() :: [{:sampled, non_neg_integer()}]
  def excluded do
    if System.get_env("RANK_BRIDGE_SAMPLED") do
      drawn = :erlang.phash2(commit(), @parts)
      for part <- 0..(@parts - 1), part != drawn, do: {:sampled, part}
    else
      []
    end
  end

  @doc "Whether all cases are run."
  @spec whole?() :: boolean()
  def whole?, do: System.get_env("RANK_BRIDGE_WHOLE") != nil

  @doc "The commit that is checked out. Where there is none, always the same."
  @spec commit() :: String.t()
  def commit do
    {commit, _status} =
      System.cmd("git", ["rev-parse", "HEAD"], cd: __DIR__, stderr_to_stdout: true)

    commit
  end
end
