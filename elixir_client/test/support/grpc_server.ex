defmodule RankBridge.Test.GRPCServer do
  @moduledoc """
  A Python gRPC server (`grpc_server.py`) in a process of its own, for tests. It belongs to the process
  that starts it, gets its lines as messages, and ends with it: its standard input closes.
  """

  alias RankBridge.Test.JSON

  @script Path.expand("grpc_server.py", __DIR__)

  @enforce_keys [:port, :os_pid, :address]
  defstruct [:port, :os_pid, :address, :tcp_port]

  @type t :: %__MODULE__{
          port: port(),
          os_pid: pos_integer(),
          address: String.t(),
          tcp_port: non_neg_integer()
        }

  @doc "The Python with grpcio: RANKBRIDGE_PYTHON, or the repository's virtual environment."
  @spec python() :: String.t()
  def python do
    System.get_env("RANKBRIDGE_PYTHON") || Path.expand("../../../.venv/bin/python", __DIR__)
  end

  @doc "Starts a server and waits until it listens. Configuration: see the script; maps have text keys."
  @spec start(keyword()) :: t()
  def start(config \\ []) do
    address = Keyword.get(config, :address, "127.0.0.1:0")

    config =
      Map.new([{:address, address} | config], fn {key, value} -> {to_string(key), value} end)

    json = config |> JSON.encode() |> IO.iodata_to_binary()

    port =
      Port.open({:spawn_executable, python()}, [
        :binary,
        :exit_status,
        line: 4096,
        args: ["-u", @script, json]
      ])

    {:os_pid, os_pid} = Port.info(port, :os_pid)
    server = %__MODULE__{port: port, os_pid: os_pid, address: address}
    "port " <> number = line(server, "port ", 30_000)
    tcp_port = String.to_integer(number)
    address = if String.starts_with?(address, "unix:"), do: address, else: "127.0.0.1:#{tcp_port}"
    %{server | address: address, tcp_port: tcp_port}
  end

  @doc "Waits for the next line that begins so; others are left for later. Raises after `timeout` milliseconds."
  @spec line(t(), String.t(), timeout()) :: String.t()
  def line(%{port: port}, beginning, timeout \\ 10_000) do
    size = byte_size(beginning)

    receive do
      {^port, {:data, {:eol, <<^beginning::binary-size(size), _::binary>> = line}}} -> line
      {^port, {:exit_status, status}} -> raise "the server ended with #{status}"
    after
      timeout -> raise "the server did not say #{inspect(beginning)} within #{timeout} ms"
    end
  end

  @doc "Gives the server a command, see the script."
  @spec command(t(), String.t()) :: :ok
  def command(%{port: port}, line) do
    Port.command(port, line <> "\n")
    :ok
  end

  @doc "Sends the server's process a signal, such as \"KILL\", \"STOP\" or \"CONT\"; waits until it has stopped."
  @spec signal(t(), String.t()) :: :ok
  def signal(%{os_pid: os_pid}, name) do
    {_, 0} = System.cmd("kill", ["-#{name}", "#{os_pid}"])
    if name == "STOP", do: await_stopped(os_pid), else: :ok
  end

  # Each thread stops by itself, when it gets to it.
  defp await_stopped(os_pid) do
    stopped? =
      for status <- Path.wildcard("/proc/#{os_pid}/task/*/status"),
          {:ok, text} <- [File.read(status)] do
        text =~ ~r/^State:\s+T/m
      end

    unless Enum.all?(stopped?), do: await_stopped(os_pid)
    :ok
  end

  @doc "Kills the server and waits until it is gone."
  @spec kill(t()) :: :ok
  def kill(%{port: port} = server) do
    signal(server, "KILL")

    receive do
      {^port, {:exit_status, _}} -> :ok
    after
      10_000 -> raise "the server outlived its killing"
    end
  end
end
