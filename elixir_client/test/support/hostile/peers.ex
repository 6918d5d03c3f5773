defmodule RankBridge.Test.Hostile.Peers do
  @moduledoc "Other clients of gRPC against the same servers: how their calls end."

  alias RankBridge.Test.{GRPCServer, JSON}
  alias RankBridge.Test.Hostile.{Case, Server}

  @repository Path.expand("../../../..", __DIR__)
  # Seconds for a call, on a busy machine. No case that peers play waits for it.
  @deadline "15"

  @type codes :: %{String.t() => String.t()}

  @doc "How grpcio's calls end, by the names of the cases, and its version."
  @spec grpcio([Case.t()]) :: {codes(), String.t()}
  def grpcio(cases),
    do: run(cases, GRPCServer.python(), [Path.join(__DIR__, "grpcio_peer.py")])

  @doc "How grpc-js's calls end, and its version."
  @spec grpc_js([Case.t()], Path.t()) :: {codes(), String.t()}
  def grpc_js(cases, modules),
    do: run(cases, "node", [Path.join(__DIR__, "grpc_js_peer.cjs"), modules])

  @doc """
  The folder of Node's modules with grpc-js, which `tests/cross_language` installs; or why there is none.
  """
  @spec node_modules() :: {:ok, Path.t()} | {:error, String.t()}
  def node_modules do
    installed = Path.wildcard(Path.join(@repository, ".cache/node/node-*/node_modules"))

    cond do
      System.find_executable("node") == nil -> {:error, "Node is not installed"}
      installed == [] -> {:error, "grpc-js is not installed: run tests/cross_language once"}
      true -> {:ok, hd(installed)}
    end
  end

  defp run(cases, program, arguments) do
    servers = Enum.map(cases, &Server.start/1)
    arguments = arguments ++ [@deadline | Enum.map(servers, & &1.target)]
    {output, 0} = System.cmd(program, arguments, env: [{"GRPC_VERBOSITY", "NONE"}])
    Enum.each(servers, &Server.stop/1)
    %{"codes" => codes, "version" => version} = JSON.decode!(output)
    {Map.new(Enum.zip(Enum.map(cases, & &1.name), codes)), version}
  end
end
