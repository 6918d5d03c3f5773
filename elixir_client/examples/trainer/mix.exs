defmodule Trainer.MixProject do
  use Mix.Project

  def project do
    [
      app: :trainer,
      version: "0.1.0",
      elixir: "~> 1.14",
      deps: [{:rank_bridge, path: "../.."}]
    ]
  end

  def application do
    [mod: {Trainer.Application, []}, extra_applications: [:crypto]]
  end
end
