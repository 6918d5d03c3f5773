defmodule RankBridge.Test.StandIns do
  @moduledoc """
  Stand-ins for libraries that need not be there, and what of this library is only compiled beside them: loaded for one
  test, and unloaded with it. Everybody sees them: such a test runs alone.
  """

  @directory Path.expand("../stand_ins", __DIR__)

  @doc "Loads stand-ins by name, and then files, until the test ends."
  @spec load([String.t()], [Path.t()]) :: :ok
  def load(names, files \\ []) do
    stand_ins = for name <- names, do: Path.join(@directory, name <> ".ex")

    for file <- stand_ins ++ files,
        {module, _code} <- Code.compile_file(file),
        do: unload_later(module)

    :ok
  end

  defp unload_later(module) do
    ExUnit.Callbacks.on_exit({__MODULE__, module}, fn ->
      :code.delete(module)
      :code.purge(module)
    end)
  end
end
