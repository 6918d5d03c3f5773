defmodule SnakeBridge.StandIn.MixProject do
  use Mix.Project

  def project, do: [app: :snakebridge, version: "0.16.0", elixir: "~> 1.14", deps: []]
  def application, do: []
end
