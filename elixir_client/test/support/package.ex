defmodule RankBridge.Test.Package do
  @moduledoc """
  The package that `mix hex.build` would make of the project, computed from `mix.exs` without Hex: its files are those
  that match `files:` of `package/0`, folders with all that is in them.
  """

  @root Path.expand("../..", __DIR__)
  @repository Path.expand("..", @root)

  # What Hex demands, and the longest description that it takes.
  @metadata [:app, :version, :elixir, :description, :package, :source_url]
  @longest_description 300

  # Generated code is under lib, and nothing here is compiled to native code.
  @source ~S"\Alib/([a-z0-9_/]+(\.pb)?|mix/tasks/[a-z_.]+)\.ex\z"
  @others ~w(mix.exs .formatter.exs README.md LICENSE)

  @doc "The folder of the project."
  @spec root() :: Path.t()
  def root, do: @root

  @doc "The project as `mix.exs` describes it."
  @spec project() :: keyword()
  def project, do: RankBridge.MixProject.project()

  @doc "The files of the package in a folder, by their paths in it."
  @spec files(Path.t(), [String.t()]) :: [Path.t()]
  def files(root \\ @root, patterns \\ project()[:package][:files]) do
    for(pattern <- patterns, path <- matching(root, pattern), do: Path.relative_to(path, root))
    |> Enum.uniq()
    |> Enum.sort()
  end

  defp matching(root, pattern) do
    for path <- root |> Path.join(pattern) |> Path.wildcard(match_dot: true),
        below <- [path | path |> Path.join("**") |> Path.wildcard(match_dot: true)],
        not real_folder?(below),
        do: below
  end

  defp real_folder?(path), do: match?({:ok, %{type: :directory}}, File.lstat(path))

  @doc "What is wrong with the project's metadata, as sentences."
  @spec metadata_faults(keyword()) :: [String.t()]
  def metadata_faults(project) do
    package = project[:package] || []
    missing = for key <- @metadata, project[key] in [nil, "", []], do: "#{key} is missing"

    missing ++
      for {true, fault} <- [
            {package[:licenses] != ["Apache-2.0"], "licenses are not [\"Apache-2.0\"]"},
            {package[:links] in [nil, %{}], "there are no links"},
            {String.length(project[:description] || "") > @longest_description,
             "the description is longer than #{@longest_description} characters"},
            {Version.parse(project[:version] || "") == :error, "the version is no version"}
          ],
          do: fault
  end

  @doc "What is wrong with the files of a package in a folder, as sentences."
  @spec file_faults(Path.t(), [String.t()]) :: [String.t()]
  def file_faults(root, patterns) do
    files = files(root, patterns)

    for(pattern <- patterns, matching(root, pattern) == [], do: "#{pattern} matches nothing") ++
      for(name <- @others, name not in files, do: "#{name} is missing") ++
      for(path <- missing_stubs(files), do: "#{path} is missing") ++
      for(path <- files, not belongs?(path), do: "#{path} does not belong in it") ++
      for path <- files, not regular?(Path.join(root, path)), do: "#{path} is no regular file"
  end

  defp belongs?(path), do: path in @others or path =~ Regex.compile!(@source)
  defp regular?(path), do: match?({:ok, %{type: :regular}}, File.lstat(path))

  # Every proto file of the public API has generated code, but that which extends the descriptors for generators.
  defp missing_stubs(files) do
    protos =
      for path <- @repository |> Path.join("proto/rankbridge/v1/*.proto") |> Path.wildcard(),
          not (File.read!(path) =~ ~r/^extend google\.protobuf/m),
          do: path

    [_at_least_one | _rest] = protos

    for(proto <- protos, do: "lib/rank_bridge/proto/v1/#{Path.basename(proto, ".proto")}.pb.ex") --
      files
  end

  @doc "The project's version as `pyproject.toml` has it."
  @spec python_version() :: String.t()
  def python_version do
    toml = @repository |> Path.join("pyproject.toml") |> File.read!()
    [_all, version] = Regex.run(~r/^version = "(.+)"$/m, toml)
    version
  end

  @doc "Copies the files of the package into a folder, as an unpacked one has them."
  @spec unpack(Path.t()) :: :ok
  def unpack(folder) do
    for path <- files() do
      target = Path.join(folder, path)
      File.mkdir_p!(Path.dirname(target))
      File.cp!(Path.join(@root, path), target)
    end

    :ok
  end
end
