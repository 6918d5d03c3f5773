defmodule RankBridge.Compat.MixProject do
  use Mix.Project

  @version "0.1.0"
  @source_url "https://github.com/rankbridge/rankbridge"

  def project do
    [
      app: :rank_bridge_compat,
      name: "RankBridge.Compat",
      version: @version,
      elixir: "~> 1.14",
      elixirc_paths: elixirc_paths(Mix.env()),
      start_permanent: Mix.env() == :prod,
      deps: deps(),
      description: description(),
      package: package(),
      source_url: @source_url,
      docs: [
        main: "readme",
        extras: ["README.md", "LICENSE" | Path.wildcard("guides/*.md")],
        source_url_pattern: @source_url <> "/blob/main/elixir_client/compat/%{path}#L%{line}"
      ]
    ]
  end

  def application, do: [extra_applications: []]

  # The tests have real ranks as the client's own tests have them.
  defp elixirc_paths(:test), do: ["lib", "test/support", Path.expand("../test/support", __DIR__)]
  defp elixirc_paths(_env), do: ["lib"]

  defp deps, do: [client(System.get_env("RANK_BRIDGE_FROM_HEX")) | snakebridge(Mix.env())]

  # Hex publishes no package that depends on a path. The version of the client is this one's: the modules here are made of its
  # internal ones.
  defp client(nil), do: {:rank_bridge, path: ".."}
  defp client(_from_hex), do: {:rank_bridge, "== " <> @version}

  # Where an application has SnakeBridge, Mix compiles it before this package. Mix refuses to load a project with any
  # dependency from Hex when Hex is not installed.
  defp snakebridge(:test), do: [{:snakebridge, path: "test/stand_ins/snakebridge"}]

  defp snakebridge(_env) do
    if Code.ensure_loaded?(Hex),
      do: [{:snakebridge, "~> 0.16", optional: true}],
      else: []
  end

  defp description do
    "RankBridge by the names of other systems: vLLM's GroupCoordinator, optimus-dl's MeshCollective, OLMo-core's and " <>
      "torchgfn's helpers, and a runtime for code that SnakeBridge has generated."
  end

  defp package do
    [
      licenses: ["Apache-2.0"],
      links: %{
        "Source" => @source_url,
        "Changelog" => @source_url <> "/blob/main/CHANGELOG.md"
      },
      files: ~w(lib guides mix.exs .formatter.exs README.md LICENSE)
    ]
  end
end
