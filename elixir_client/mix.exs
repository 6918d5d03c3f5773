defmodule RankBridge.MixProject do
  use Mix.Project

  def project do
    [
      app: :rank_bridge,
      version: "0.1.0",
      elixir: "~> 1.14",
      elixirc_paths: elixirc_paths(Mix.env()),
      start_permanent: Mix.env() == :prod,
      deps: deps(),
      aliases: aliases(),
      docs: [main: "RankBridge", extras: Path.wildcard("guides/*.{md,livemd}")],
      preferred_cli_env: [ci: :test],
      test_coverage: [ignore_modules: [~r/^RankBridge\.Proto\./]]
    ]
  end

  def application do
    [mod: {RankBridge.Application, []}, extra_applications: [:crypto, :ssl]]
  end

  defp elixirc_paths(:test), do: ["lib", "test/support", "examples/trainer/lib"]
  defp elixirc_paths(_env), do: ["lib"]

  # Mix refuses to load a project with any dependency from Hex when Hex is not installed.
  defp deps do
    if Code.ensure_loaded?(Hex),
      do: [{:ex_doc, "~> 0.31", only: :dev, runtime: false}],
      else: []
  end

  defp aliases do
    [
      ci: [
        "format --check-formatted",
        "compile --warnings-as-errors --force",
        "xref graph --format cycles --label compile-connected --fail-above 0",
        "test --warnings-as-errors"
      ]
    ]
  end
end
