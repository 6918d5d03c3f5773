defmodule ForeignJob.MixProject do
  use Mix.Project

  def project do
    [
      app: :foreign_job,
      version: "0.1.0",
      elixir: "~> 1.14",
      deps: [{:rank_bridge, path: "../.."}]
    ]
  end

  def application, do: [extra_applications: [:logger]]
end
