defmodule RankBridge.MixProject do
  use Mix.Project

  @examples ~w(foreign_job tensor_parallel trainer transformer)
  @source_url "https://github.com/rankbridge/rankbridge"

  def project do
    [
      app: :rank_bridge,
      name: "RankBridge",
      version: "0.1.0",
      elixir: "~> 1.14",
      elixirc_paths: elixirc_paths(Mix.env()),
      start_permanent: Mix.env() == :prod,
      deps: deps(),
      aliases: aliases(),
      description: description(),
      package: package(),
      source_url: @source_url,
      docs: docs(),
      test_coverage: [ignore_modules: [~r/^RankBridge\.Proto\./]]
    ] ++ before_1_15()
  end

  def application do
    [mod: {RankBridge.Application, []}, extra_applications: [:crypto, :logger, :ssl]]
  end

  def cli, do: [preferred_envs: [ci: :test]]

  # Elixir calls `cli/0` from 1.15 on, and warns of the option since.
  defp before_1_15 do
    if Version.match?(System.version(), "< 1.15.0-dev"),
      do: [preferred_cli_env: cli()[:preferred_envs]],
      else: []
  end

  defp elixirc_paths(:test),
    do: ["lib", "test/support" | for(it <- @examples, do: "examples/#{it}/lib")]

  defp elixirc_paths(_env), do: ["lib"]

  # Mix refuses to load a project with any dependency from Hex when Hex is not installed. The tests have stand-ins.
  defp deps do
    if Code.ensure_loaded?(Hex),
      do: [
        {:telemetry, "~> 1.0", optional: true, only: [:dev, :prod]},
        {:telemetry_metrics, "~> 1.0", optional: true, only: [:dev, :prod]},
        {:nx, "~> 0.6", optional: true, only: [:dev, :prod]},
        {:kino, "~> 0.12", optional: true, only: [:dev, :prod]},
        {:phoenix_live_dashboard, "~> 0.8", optional: true, only: [:dev, :prod]},
        {:ex_doc, "~> 0.31", only: :dev, runtime: false}
      ],
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

  defp description do
    "Drive the collectives of a torch.distributed job from a supervision tree: tensors stay on the ranks, " <>
      "calls give refs, values or errors, and lost ranks are replaced."
  end

  defp package do
    [
      licenses: ["Apache-2.0"],
      links: %{
        "Source" => @source_url,
        "Changelog" => @source_url <> "/blob/main/CHANGELOG.md"
      },
      files: ~w(lib mix.exs .formatter.exs README.md LICENSE)
    ]
  end

  defp docs do
    [
      main: "readme",
      extras: ["README.md", "LICENSE"] ++ Path.wildcard("guides/*.{md,livemd}"),
      groups_for_extras: [Guides: Path.wildcard("guides/*.{md,livemd}")],
      source_url_pattern: @source_url <> "/blob/main/elixir_client/%{path}#L%{line}",
      groups_for_modules: groups_for_modules(),
      filter_modules: fn module, _metadata -> module in documented() end
    ]
  end

  # Internal modules whose processes or protocol the source explains are not for users, nor is generated code.
  defp documented, do: [RankBridge | groups_for_modules() |> Keyword.values() |> List.flatten()]

  # RankBridge itself stands above the groups.
  defp groups_for_modules do
    [
      Gang: [
        RankBridge.Gang,
        RankBridge.Gang.Event,
        RankBridge.Gang.Lost,
        RankBridge.Gang.Overview,
        RankBridge.Error,
        RankBridge.Generations,
        RankBridge.CallSite,
        RankBridge.Doctor,
        RankBridge.Pending,
        RankBridge.RankStatus,
        RankBridge.RecordedOperation,
        RankBridge.ThreadStack,
        RankBridge.Token,
        RankBridge.Traces,
        RankBridge.Verdict,
        RankBridge.Verdict.Culprit,
        RankBridge.Verdict.Side,
        RankBridge.Verdict.Wait
      ],
      Collectives: [
        RankBridge.Averaging,
        RankBridge.CallStream,
        RankBridge.Coalesced,
        RankBridge.Collectives,
        RankBridge.Graph,
        RankBridge.Graphs,
        RankBridge.Objects,
        RankBridge.Operations,
        RankBridge.Pipeline,
        RankBridge.PointToPoint,
        RankBridge.Program,
        RankBridge.Programs,
        RankBridge.Queue,
        RankBridge.Queues,
        RankBridge.Run
      ],
      Data: [
        RankBridge.Container,
        RankBridge.Dtype,
        RankBridge.Ref,
        RankBridge.Tensor,
        RankBridge.Tensors,
        RankBridge.Value
      ],
      Functions: [
        RankBridge.Function,
        RankBridge.Functions,
        RankBridge.Report
      ],
      "Named tensors": [
        RankBridge.NamedTensors,
        RankBridge.NamedTensors.Comparison,
        RankBridge.NamedTensors.Difference,
        RankBridge.NamedTensors.NamedTensor,
        RankBridge.NamedTensors.Summary
      ],
      Groups: [
        RankBridge.Group,
        RankBridge.Grouping,
        RankBridge.Layout,
        RankBridge.Mesh,
        RankBridge.Meshes
      ],
      "Events and telemetry": [
        RankBridge.Kino,
        RankBridge.LiveDashboard,
        RankBridge.Telemetry
      ],
      Breakpoints: [
        RankBridge.HeldCall,
        RankBridge.Hold,
        RankBridge.Inspection
      ],
      Tests: [
        RankBridge.Case,
        RankBridge.Case.Left,
        RankBridge.Case.Report
      ],
      Transport: [
        RankBridge.Transport
      ]
    ]
  end
end
