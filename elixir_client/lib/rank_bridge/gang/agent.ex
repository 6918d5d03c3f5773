defmodule RankBridge.Gang.Agent do
  @moduledoc """
  The agent of a gang that this VM starts: `rankbridge up`, at the other end of a port.

  The owner gets what the agent reports (`t:report/0`, as `{pid, report}`). The agent and its ranks end with this
  process, and with the VM, however either ends: the agent's standard input is closed then. If the agent ends first,
  this process does, too.

  The command is the option `:command` of the gang, else the environment's `RANKBRIDGE_COMMAND`, else
  `config :rank_bridge, command: "..."`, else `rankbridge` in the path.
  """

  use GenServer, restart: :temporary, shutdown: 15_000

  alias RankBridge.{Error, JSON}
  alias RankBridge.Gang.Settings

  @typedoc "`how` describes an end for people: \"was killed by SIGKILL\"."
  @type report ::
          {:ready, endpoints :: [[String.t()]]}
          | {:exited, rank :: non_neg_integer(), pid :: pos_integer(), how :: String.t()}
          | {:replaced, rank :: non_neg_integer(), pid :: pos_integer()}

  # What the agent may take to end its ranks; those that do not end by themselves it kills after three seconds.
  @ending 10_000
  @longest_line 1_000_000

  @doc "Starts the agent, for the calling process."
  @spec start_link(Settings.t()) :: {:ok, pid()} | {:error, Error.t()}
  def start_link(settings) do
    with {:ok, command} <- command(settings.command),
         do: GenServer.start_link(__MODULE__, {self(), command, arguments(settings)})
  end

  @doc "Ends the ranks and the agent, and waits until they have."
  @spec stop(pid()) :: :ok
  def stop(agent) do
    GenServer.stop(agent, :normal, @ending + 1_000)
  catch
    :exit, _reason -> :ok
  end

  defp command(nil) do
    named = System.get_env("RANKBRIDGE_COMMAND") || Application.get_env(:rank_bridge, :command)
    command(named || "rankbridge")
  end

  defp command(name) do
    case System.find_executable(name) do
      nil ->
        {:error,
         Error.refusal(:invalid_argument, "the agent cannot be started",
           operation: "start_link",
           expected: "a command, by :command or RANKBRIDGE_COMMAND",
           got: inspect(name)
         )}

      path ->
        {:ok, path}
    end
  end

  defp arguments(settings) do
    on_exit = if settings.on_rank_lost == :replace, do: "replace", else: "leave"
    name = if settings.name, do: inspect(settings.name), else: "gang"

    ["up", "--size", "#{settings.size}", "--backend", "#{settings.backend}", "--name", name] ++
      ["--on-rank-exit", on_exit, "--report", "json", "--exit-on-stdin-close"] ++
      settings.arguments
  end

  @impl true
  def init({owner, command, arguments}) do
    port =
      Port.open({:spawn_executable, command}, [
        :binary,
        :exit_status,
        line: @longest_line,
        args: arguments
      ])

    {:ok, %{owner: owner, port: port, failed: nil}}
  end

  @impl true
  def handle_info({port, {:data, {:eol, line}}}, %{port: port} = state) do
    case JSON.decode(line) do
      {:ok, %{"event" => event} = report} -> {:noreply, handle_event(event, report, state)}
      _other -> {:noreply, state}
    end
  end

  def handle_info({port, {:data, {:noeol, _part}}}, %{port: port} = state), do: {:noreply, state}

  def handle_info({port, {:exit_status, status}}, %{port: port} = state) do
    message = "the agent ended with status #{status}: #{state.failed || "it did not say why"}"
    error = Error.refusal(:unavailable, message, operation: "up")
    {:stop, {:shutdown, error}, %{state | port: nil}}
  end

  def handle_info(_other, state), do: {:noreply, state}

  defp handle_event("ready", report, state) do
    send_report(state, {:ready, for(rank <- report["ranks"], do: rank["endpoints"])})
  end

  defp handle_event("exited", report, state),
    do: send_report(state, {:exited, report["rank"], report["pid"], report["how"]})

  defp handle_event("replaced", report, state),
    do: send_report(state, {:replaced, report["rank"], report["pid"]})

  defp handle_event(event, report, state) when event in ["failed", "ended"],
    do: %{state | failed: report["reason"]}

  defp handle_event(_event, _report, state), do: state

  defp send_report(state, report) do
    send(state.owner, {self(), report})
    state
  end

  @impl true
  def terminate(_reason, %{port: nil}), do: :ok

  # The agent ends at this word as it does when the port is closed, but then its end could not be seen.
  def terminate(_reason, %{port: port}) do
    Port.command(port, "stop\n")

    receive do
      {^port, {:exit_status, _status}} -> :ok
    after
      @ending -> Port.close(port)
    end
  rescue
    # It has ended meanwhile.
    ArgumentError -> :ok
  end
end
