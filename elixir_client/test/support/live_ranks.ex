defmodule RankBridge.Test.LiveRanks do
  @moduledoc "Real sidecars for tests: `rankbridge up`, as a process that ends when its owner does."

  alias RankBridge.Test.OsProcess

  # A loaded machine is not to lose ranks by itself, nor one that a test stops. One that is killed is lost at once.
  @patient ["--heartbeat-misses", "300"]

  @type t :: %{port: port(), file: Path.t(), directory: Path.t(), pids: [pos_integer()]}

  @doc "Starts ranks and waits until their generation is formed. The caller owns them."
  @spec start(pos_integer(), String.t(), [String.t()], [{String.t(), String.t()}]) :: t()
  def start(size, backend, arguments \\ [], environment \\ []) do
    directory = Path.join(System.tmp_dir!(), "rank_bridge-#{RankBridge.Id.uuid()}")
    File.mkdir_p!(directory)
    file = Path.join(directory, "endpoints.json")

    port =
      Port.open({:spawn_executable, OsProcess.rankbridge()}, [
        :binary,
        :exit_status,
        :stderr_to_stdout,
        line: 10_000,
        env: for({name, value} <- environment, do: {~c"#{name}", ~c"#{value}"}),
        args:
          ["up", "--size", "#{size}", "--backend", backend, "--endpoints-file", file] ++
            ["--exit-on-stdin-close" | @patient ++ arguments]
      ])

    await_ready(port, [])
    {:ok, %{"ranks" => ranks}} = file |> File.read!() |> RankBridge.JSON.decode()
    %{port: port, file: file, directory: directory, pids: Enum.map(ranks, & &1["pid"])}
  end

  @doc "Options of a gang by which it reaches the ranks by TCP alone: the endpoints, and the owner's token."
  @spec by_tcp(t()) :: [endpoints: [[String.t()]], token: RankBridge.Token.t()]
  def by_tcp(%{file: file}) do
    {:ok, targets, token} = RankBridge.Endpoints.read_with_token(file)
    tcp = for all <- targets, do: Enum.reject(all, &String.starts_with?(&1, "unix:"))
    [endpoints: tcp, token: token]
  end

  @doc "Tells the ranks to end, and removes their file."
  @spec stop(t()) :: :ok
  def stop(%{port: port, directory: directory}) do
    if Port.info(port), do: Port.close(port)
    File.rm_rf!(directory)
    :ok
  end

  defp await_ready(port, lines) do
    receive do
      {^port, {:data, {:eol, "ready: " <> _rest}}} ->
        :ok

      {^port, {:data, {_eol, line}}} ->
        await_ready(port, [line | lines])

      {^port, {:exit_status, status}} ->
        raise "rankbridge up ended with #{status}: #{Enum.join(lines, "\n")}"
    end
  end
end
