defmodule Transformer.MixProject do
  use Mix.Project

  def project do
    [
      app: :transformer,
      version: "0.1.0",
      elixir: "~> 1.14",
      deps: [{:rank_bridge, path: "../.."}]
    ]
  end

  def application do
    [mod: {Transformer.Application, []}, extra_applications: [:crypto]]
  end
end
