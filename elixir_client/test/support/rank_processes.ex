defmodule RankBridge.Test.RankProcesses do
  @moduledoc """
  Real ranks on Gloo, each a process that can be killed and started again at the same endpoints.

  The program is `tests/unit/client/rank_processes.py`: it forks a rank for each line "RANK SIZE PORT" that it gets,
  and says "RANK PID PORT" when the rank serves. All ends with the port's owner.
  """

  alias RankBridge.Test.OsProcess

  @program Path.expand("../../../tests/unit/client/rank_processes.py", __DIR__)

  @enforce_keys [:port, :directory, :size]
  defstruct [:port, :directory, :size, ranks: %{}]

  @type t :: %__MODULE__{
          port: port(),
          directory: Path.t(),
          size: pos_integer(),
          ranks: %{non_neg_integer() => {pid :: pos_integer(), port :: pos_integer()}}
        }

  @doc "Starts ranks, of which no generation is formed yet. The caller owns them."
  @spec start(pos_integer()) :: t()
  def start(size) do
    directory = Path.join(System.tmp_dir!(), "rank_bridge-#{RankBridge.Id.uuid()}")
    File.mkdir_p!(directory)

    port =
      Port.open({:spawn_executable, OsProcess.python()}, [
        :binary,
        :exit_status,
        line: 10_000,
        args: [@program, directory]
      ])

    processes = %__MODULE__{port: port, directory: directory, size: size}
    Enum.reduce(0..(size - 1), processes, &launch(&2, &1, 0))
  end

  @doc "Ends all of them."
  @spec stop(t()) :: :ok
  def stop(processes) do
    if Port.info(processes.port), do: Port.close(processes.port)
    File.rm_rf!(processes.directory)
    :ok
  end

  @doc "Kills a rank. It may be there for a moment yet."
  @spec kill(t(), non_neg_integer()) :: :ok
  def kill(processes, rank) do
    {pid, _port} = processes.ranks[rank]
    {_output, 0} = System.cmd("kill", ["-9", "#{pid}"])
    :ok
  end

  @doc "Starts a rank that was killed at the endpoints that it had."
  @spec replace(t(), non_neg_integer()) :: t()
  def replace(processes, rank) do
    {pid, port} = processes.ranks[rank]
    await_gone(pid)
    launch(processes, rank, port)
  end

  # Until then its port is taken. It is reaped at once, when its last thread has ended.
  defp await_gone(pid) do
    if File.exists?("/proc/#{pid}") do
      receive do
      after
        5 -> await_gone(pid)
      end
    end
  end

  @doc "Each rank's target: its unix socket, or its port."
  @spec targets(t(), :unix | :tcp) :: [String.t()]
  def targets(processes, kind) do
    for rank <- 0..(processes.size - 1) do
      {_pid, port} = processes.ranks[rank]
      if kind == :unix, do: "unix:#{processes.directory}/rank-#{rank}", else: "127.0.0.1:#{port}"
    end
  end

  defp launch(processes, rank, port) do
    true = Port.command(processes.port, "#{rank} #{processes.size} #{port}\n")
    {^rank, pid, port} = answer(processes.port)
    %{processes | ranks: Map.put(processes.ranks, rank, {pid, port})}
  end

  defp answer(port) do
    receive do
      {^port, {:data, {:eol, line}}} ->
        line |> String.split() |> Enum.map(&String.to_integer/1) |> List.to_tuple()

      {^port, {:exit_status, status}} ->
        raise "#{@program} ended with #{status}"
    end
  end
end
