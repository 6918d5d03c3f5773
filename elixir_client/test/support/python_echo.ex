defmodule RankBridge.Test.PythonEcho do
  @moduledoc """
  A Python process that decodes and encodes messages: `tests/vectors/echo.py`.

  It ends by itself when the port is closed, also when this VM dies. The interpreter is `RANKBRIDGE_PYTHON`, or
  the repository's `.venv`.
  """

  alias RankBridge.Test.JSON

  @repository Path.expand("../../..", __DIR__)

  @doc "Starts the process. The caller owns the port."
  @spec start() :: port()
  def start do
    python = System.get_env("RANKBRIDGE_PYTHON") || Path.join(@repository, ".venv/bin/python")

    Port.open({:spawn_executable, python}, [
      :binary,
      :exit_status,
      line: 1_000_000,
      args: ["-m", "tests.vectors.echo"],
      cd: @repository,
      env: [{~c"PYTHONPATH", ~c"pyclient"}]
    ])
  end

  @doc "Sends requests, and gathers `count` answers."
  @spec ask(port(), [term()], non_neg_integer()) :: [map()]
  def ask(port, requests, count) do
    Enum.each(requests, &Port.command(port, [JSON.encode(&1), ?\n]))
    for _answer <- 1..count//1, do: JSON.decode!(line(port))
  end

  defp line(port, gathered \\ []) do
    receive do
      {^port, {:data, {:eol, part}}} -> IO.iodata_to_binary([gathered, part])
      {^port, {:data, {:noeol, part}}} -> line(port, [gathered, part])
      {^port, {:exit_status, status}} -> raise "the Python process ended with #{status}"
    end
  end
end
