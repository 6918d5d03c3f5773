defmodule RankBridge.Gang.Launcher do
  @moduledoc false
  # Starts the ranks of a gang: it runs their agent, `rankbridge up`, at the other end of a port.
  #
  # The gang's server gets what the agent reports (`t:report/0`, as `{pid, report}`). The agent and its ranks end with this
  # process, and with the VM, however either ends: the agent's standard input is closed then. If the agent ends first, that is
  # its last report.
  #
  # The command is the option `:command` of the gang, else the environment's `RANKBRIDGE_COMMAND`, else
  # `config :rank_bridge, command: "..."`, else `rankbridge` in the path.

  use GenServer, shutdown: 15_000

  alias RankBridge.{Error, JSON, Token}
  alias RankBridge.Gang.{Children, Settings}

  @typedoc "`how` describes an end for people: \"was killed by SIGKILL\"."
  @type report ::
          {:ready, endpoints :: [[String.t()]], token :: Token.t() | nil}
          | {:exited, rank :: non_neg_integer(), pid :: pos_integer(), how :: String.t()}
          | {:replaced, rank :: non_neg_integer(), pid :: pos_integer()}
          | {:ended, Error.t()}

  # What the agent may take to end its ranks; those that do not end by themselves it kills after three seconds.
  @ending 10_000
  @longest_line 1_000_000

  @doc "Starts the agent of a gang. The command is an absolute path, as of `find/1`."
  @spec start_link({pid(), Settings.t()}) :: GenServer.on_start()
  def start_link({gang, settings}),
    do: GenServer.start_link(__MODULE__, settings, name: Children.name(gang, :launcher))

  @doc "Sends the calling process the reports of a gang's agent, those before too. Returns the launcher."
  @spec follow(pid()) :: pid()
  def follow(gang), do: GenServer.call(Children.name(gang, :launcher), :follow)

  @doc "The path of a command; nil: of the one that is set elsewhere."
  @spec find(String.t() | nil) :: {:ok, Path.t()} | {:error, Error.t()}
  def find(nil) do
    named = System.get_env("RANKBRIDGE_COMMAND") || Application.get_env(:rank_bridge, :command)
    find(named || "rankbridge")
  end

  def find(name) do
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
      Enum.flat_map(settings.load, &["--load", &1]) ++
      settings.arguments
  end

  @impl true
  def init(settings) do
    # The ranks end before this process does.
    Process.flag(:trap_exit, true)

    port =
      Port.open({:spawn_executable, settings.command}, [
        :binary,
        :exit_status,
        line: @longest_line,
        args: arguments(settings)
      ])

    {:ok, %{follower: nil, unsent: [], port: port, failed: nil}}
  end

  @impl true
  def handle_call(:follow, {pid, _tag}, state) do
    for report <- Enum.reverse(state.unsent), do: send(pid, {self(), report})
    {:reply, self(), %{state | follower: pid, unsent: []}}
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
    {:noreply, send_report(%{state | port: nil}, {:ended, error})}
  end

  def handle_info(_other, state), do: {:noreply, state}

  defp handle_event("ready", report, state) do
    endpoints = for rank <- report["ranks"], do: rank["endpoints"]
    send_report(state, {:ready, endpoints, Token.of_roles(report["tokens"])})
  end

  defp handle_event("exited", report, state),
    do: send_report(state, {:exited, report["rank"], report["pid"], report["how"]})

  defp handle_event("replaced", report, state),
    do: send_report(state, {:replaced, report["rank"], report["pid"]})

  defp handle_event(event, report, state) when event in ["failed", "ended"],
    do: %{state | failed: report["reason"]}

  defp handle_event(_event, _report, state), do: state

  defp send_report(%{follower: nil} = state, report),
    do: %{state | unsent: [report | state.unsent]}

  defp send_report(state, report) do
    send(state.follower, {self(), report})
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
