defmodule Mix.Tasks.RankBridge.Gen do
  @shortdoc "Writes an Elixir module for functions in Python that ranks load"

  @moduledoc """
  Writes an Elixir module for functions in Python that ranks load: a function with a type and documentation for each, and one
  with a `!`.

      mix rank_bridge.gen priv/app.py
      mix rank_bridge.gen priv/app.py --module MyApp.Training --output lib/my_app/training.ex

  It takes what a gang takes as `load:`, one or more, and imports them in a rank that it starts (`rankbridge up`), on the fake
  backend. The same functions always give the same source.

  Options:

    * `--module` - name of the module; default: that of the project and of the first file, `MyApp.App`
    * `--output` - the file that is written; default: that of the module below `lib`; `-`: standard output
    * `--command` - the program that starts ranks; default: as of `RankBridge.Gang`
  """

  use Mix.Task

  alias RankBridge.{Error, Gang}
  alias RankBridge.Functions.Source

  @requirements ["app.config"]
  @options [module: :string, output: :string, command: :string]
  # Importing torch may take long.
  @timeout 120_000
  @ending 5_000

  @impl true
  def run(arguments) do
    {opts, loaded, wrong} = OptionParser.parse(arguments, strict: @options)

    if wrong != [], do: Mix.raise("no such option: #{Enum.map_join(wrong, ", ", &elem(&1, 0))}")
    if loaded == [], do: Mix.raise("which module? mix rank_bridge.gen priv/app.py")

    module = opts[:module] || default_module(hd(loaded))

    if not (module =~ ~r/\A[A-Z]\w*(\.[A-Z]\w*)*\z/),
      do: Mix.raise("no name of a module: #{module}")

    source = loaded |> functions(opts[:command]) |> source(module, loaded)
    write(opts[:output] || Path.join("lib", Macro.underscore(module) <> ".ex"), source)
  end

  defp default_module(python) do
    name = python |> Path.basename(".py") |> String.split(".") |> List.last()
    project = Mix.Project.config()[:app]
    Enum.map_join([project, name], ".", &Macro.camelize("#{&1}"))
  end

  defp functions(loaded, command) do
    {:ok, _started} = Application.ensure_all_started(:rank_bridge)

    # In a process of its own: the gang's end is a message, and no end of this task.
    task =
      Task.async(fn ->
        Process.flag(:trap_exit, true)
        opts = [size: 1, backend: :fake, load: loaded, command: command, start_timeout: @timeout]

        case Gang.start_link(opts) do
          {:ok, gang} -> described(gang)
          {:error, error} -> {:error, error}
        end
      end)

    case Task.await(task, :infinity) do
      {:ok, []} -> Mix.raise("no function is marked: @rankbridge_server.function")
      {:ok, functions} -> functions
      {:error, %Error{} = error} -> Mix.raise(Exception.message(error))
      {:error, other} -> Mix.raise("the gang did not start: #{inspect(other)}")
    end
  end

  defp described(gang) do
    with {:error, error} <- RankBridge.functions(gang, timeout: @timeout) do
      # A gang that cannot start ends, and its end says why.
      receive do
        {:EXIT, ^gang, {:shutdown, why}} -> {:error, why}
      after
        @ending -> {:error, error}
      end
    else
      {:ok, functions} ->
        Gang.stop(gang)
        {:ok, functions}
    end
  end

  defp source(functions, module, loaded) do
    Source.of(functions, module, loaded)
  rescue
    error in ArgumentError -> Mix.raise(error.message)
  end

  defp write("-", source), do: Mix.shell().info(String.trim_trailing(source))

  defp write(path, source) do
    Mix.Generator.create_file(path, source, force: true)
    :ok
  end
end
