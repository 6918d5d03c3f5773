defmodule RankBridge.Compat.MixProject do
  use Mix.Project

  def project do
    [
      app: :rank_bridge_compat,
      version: "0.1.0",
      elixir: "~> 1.14",
      elixirc_paths: elixirc_paths(Mix.env()),
      start_permanent: Mix.env() == :prod,
      deps: deps(),
      docs: [main: "RankBridge.Compat", extras: Path.wildcard("guides/*.md")]
    ]
  end

  def application, do: [extra_applications: []]

  # The tests have real ranks as the client's own tests have them.
  defp elixirc_paths(:test), do: ["lib", "test/support", Path.expand("../test/support", __DIR__)]
  defp elixirc_paths(_env), do: ["lib"]

  # The version of the client is this one's: the modules here are made of its internal ones.
  defp deps, do: [{:rank_bridge, path: ".."} | snakebridge(Mix.env())]

  # Where an application has SnakeBridge, Mix compiles it before this package. Mix refuses to load a project with any
  # dependency from Hex when Hex is not installed.
  defp snakebridge(:test), do: [{:snakebridge, path: "test/stand_ins/snakebridge"}]

  defp snakebridge(_env) do
    if Code.ensure_loaded?(Hex),
      do: [{:snakebridge, "~> 0.16", optional: true}],
      else: []
  end
end
