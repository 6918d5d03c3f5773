defmodule RankBridge.Gang do
  @moduledoc """
  All ranks of one job: a supervisor, for a supervision tree.

      children = [
        {RankBridge.Gang, name: MyGang, size: 4, backend: :gloo}
      ]

      {:ok, supervisor} = Supervisor.start_link(children, strategy: :one_for_one)
      :ok = RankBridge.await_ready(MyGang, 10_000)
      {:ok, refs} = RankBridge.create(MyGang, :float32, [2], init: {:full, 1.0})

  With `:size` it starts the ranks itself, by an agent on this host (`rankbridge up`); they end with the gang, and with
  the VM, however it dies. With `:endpoints`, something else runs the ranks (torchrun, a container), and they outlive the gang.

  Calls (see `RankBridge`) run in the process of their caller; the gang's processes only own the connections and the session.
  The death of a caller cancels its calls, which the ranks withdraw if they were not admitted yet.

  ## Processes

  The gang is a `Supervisor` of these, in this order:

    * the owner of the tables that callers read: channels, groups
    * the launcher, with `:size`: the port to `rankbridge up`
    * a `Task.Supervisor` of the gang's own work: joining, forming, `:handle_rank_lost`, renewing the session
    * a `Task.Supervisor` of watchers: one for each rank, if events are watched
    * a `DynamicSupervisor` of the processes in charge of the calls on a rank, and of the memory that it shares: one for each
      rank that was called
    * the channels to the ranks, their connections and writers
    * the server, which decides about losses

  Streams, connections and watchers that end are made again. None of the others can be: tables hold what no other process
  knows, a new agent would start other ranks, a channel's pid is in the hands of callers, and a new server would know neither the
  session nor the losses. So the gang itself restarts nothing (`max_restarts: 0`): it ends with any of them, as a whole, and its
  supervisor starts all of it again.

  The last child ends first: the server closes the session, calls that are running fail, and then the agent ends the ranks.

  ## When ranks are lost

  The gang learns of a loss from its agent, which sees the process end, and from the other ranks, whose links to the lost rank
  are closed or silent. Pending calls get an error that names the rank: `{:error, %RankBridge.Error{reason: :peer_lost, rank: 2}}`; calls
  that need no other rank (`RankBridge.get/3`) `:unavailable`, or, from the new rank, `:unknown_session`.
  `:on_rank_lost` says what the gang does then:

    * `:replace` - a new rank takes the place of each, and the next generation is formed; the refs of the others stay.
      More than `:max_restarts` within `:max_seconds` are too many, as for a supervisor: the gang ends, and its
      supervisor decides. The default with `:size`
    * `:shrink` - the next generation is formed of those that are left, which get new numbers, 0 and up (see
      `RankBridge.Gang.Lost`). `:max_restarts` limits the losses, as above. The default on `:mpi`, which takes no new ranks
    * `:stop` - the gang ends; its supervisor decides. The default on `:fake`, whose ranks share a process
    * `:leave` - the gang does nothing; something else replaces the ranks, as by `RankBridge.form/2`. The default with
      `:endpoints`

  `:handle_rank_lost` is called before calls go on, to bring back what was on the ranks: see `RankBridge.Gang.Lost`.
  Until then, calls wait for as long as their `:timeout` allows, or fail at once, as `:unready` says.

  ## Options

    * `:name` - under which the gang is known on this node: an atom, `{:via, module, term}` or `{:global, term}`; without it,
      use its pid

  of ranks that it starts:

    * `:size` - how many
    * `:backend` - `:gloo` (the default), `:nccl`, `:mpi` or `:fake`
    * `:command` - the program; default: the environment's `RANKBRIDGE_COMMAND`, else `config :rank_bridge, command: "..."`,
      else `rankbridge` in the path
    * `:load` - a Python file, as `"priv/app.py"`, the name of a Python module, or a list of those: each rank imports them, also one
      that takes the place of another, and offers the functions that they mark. See `RankBridge.Functions`
    * `:arguments` - more arguments for it: `["--max-bytes", "4G"]`, see `rankbridge up --help`

  of ranks that are there:

    * `:endpoints` - for each rank, in rank order, a gRPC target or a list of targets that lead to it; a unix
      socket that exists on this host is preferred, but not with `:tls`, which ranks speak on TCP
    * `:endpoints_file` - a file with them, as `rankbridge up --endpoints-file` writes it:
      `{"ranks": [{"rank": 0, "endpoints": ["unix:/run/0.sock", "127.0.0.1:50051"]}, ...]}`
    * `:form` - true: form a new generation; false: never; by default only if no rank has had one yet. Of several gangs that
      join the same ranks at once, more than one may find that: let all but one say false

  of both:

    * `:groups` - groups for that generation beside "world": a list of `{name, ranks}`
    * `:session` - true (the default): refs are owned by a session of this gang and freed with it; false: they
      are owned by the ranks' shared sessions
    * `:lease` - how long the ranks keep that session without a renewal by the gang, in milliseconds; 30,000.
      The gang renews the session in the background, three times in that time. nil or 0: until the session is closed
    * `:shared_memory` - true (the default): large tensors come from ranks at unix sockets, and go to them, by memory
      that both share, where that can be had (`RankBridge.Tensors.transfers/3` counts); false: always over gRPC
    * `:start_timeout` - for starting the ranks, and for joining them, in milliseconds; 60,000. After it, the gang ends
    * `:timeout` - default for calls, and limit for one attempt to connect, in milliseconds; 30,000
    * `:group` - name of the group of calls that say none; "world"
    * `:calls` - how collectives go: `:gang` (the default), as one call to one rank, which passes it on, or `:ranks`, to each
      rank at once. Collectives have this option, too; see `RankBridge.Collectives`
    * `:unready` - what calls do while the gang is started or made whole: `:wait` (the default) or `:fail`. Calls have
      this option, too
    * `:on_rank_lost` - `:replace`, `:shrink`, `:stop` or `:leave`, as above
    * `:max_restarts`, `:max_seconds` - as above; 3 in 5 seconds
    * `:handle_rank_lost` - a function of two arguments, or `{module, function, arguments}`
    * `:recovery_timeout` - for making the gang whole, in milliseconds; 60,000. After it, the gang ends
    * `:token` - what shows ranks at TCP endpoints that this program may call them: a text, or a function that gives it,
      which no report of a supervisor prints. Default: that of the endpoints file, or of the file that
      `RANKBRIDGE_TOKEN_FILE` names
    * `:insecure_token` - true: show it to other hosts without TLS, too, where whoever hears the network has it. So does
      `RANKBRIDGE_INSECURE_TOKEN=1` in the environment. Default false
    * `:tls` - options of `:ssl` for connections with TLS, or a function that returns them, see `RankBridge.Transport`
    * `:keepalive` - milliseconds without a byte from a rank, while a call or a watch is running, after which it is pinged, and
      after as many more given up; 300,000, which every gRPC server permits by default. Ranks permit 1,000; lower it where a
      network drops connections without a word. `:infinity`: never. A server that says that these are too many is pinged half
      as often
    * `:transport` - module that implements `RankBridge.Transport`

  The gang starts at once, and joins its ranks in the background: `RankBridge.await_ready/2` waits for that, and so do calls. A
  rank that cannot be reached yet does not keep the application from starting: the gang tries again, with pauses that grow,
  until `:start_timeout` is over. Then it ends with the reason `{:shutdown, error}`; at once, if waiting cannot help: the ranks do
  not start, or an endpoint is another rank than it should be. Options that are wrong fail the start itself.
  """

  use Supervisor

  alias RankBridge.{Endpoints, Error, Hidden, Token, Transport}
  alias RankBridge.Gang.{Children, EventStream, Launcher, Lost, Server, Settings}
  alias RankBridge.Gang.{Subscribers, Tables, View}

  @typedoc "Name or pid of a gang of this node."
  @type gang :: GenServer.name() | pid()

  @type option ::
          {:name, GenServer.name()}
          | {:size, pos_integer()}
          | {:backend, :gloo | :nccl | :mpi | :fake}
          | {:command, String.t()}
          | {:arguments, [String.t()]}
          | {:load, String.t() | [String.t()]}
          | {:start_timeout, pos_integer()}
          | {:endpoints, [Endpoints.targets()]}
          | {:endpoints_file, Path.t()}
          | {:session, boolean()}
          | {:lease, non_neg_integer() | nil}
          | {:shared_memory, boolean()}
          | {:form, boolean() | nil}
          | {:groups, [{String.t(), [non_neg_integer()]}]}
          | {:group, String.t()}
          | {:timeout, pos_integer()}
          | {:calls, :ranks | :gang}
          | {:unready, :wait | :fail}
          | {:on_rank_lost, Settings.policy()}
          | {:max_restarts, non_neg_integer()}
          | {:max_seconds, pos_integer()}
          | {:recovery_timeout, pos_integer()}
          | {:handle_rank_lost, Lost.callback()}
          | {:tls, keyword() | (() -> keyword()) | nil}
          | {:keepalive, pos_integer() | :infinity}
          | {:token, String.t() | Token.t() | nil}
          | {:insecure_token, boolean()}
          | {:transport, module()}

  @doc "A child of a supervisor: known by the gang's name."
  @spec child_spec([option()]) :: Supervisor.child_spec()
  def child_spec(opts) do
    # Supervisors show the arguments of their children.
    opts = Keyword.replace_lazy(opts, :tls, &(&1 && Hidden.hide(&1)))

    %{
      id: opts[:name] || __MODULE__,
      start: {__MODULE__, :start_link, [opts]},
      type: :supervisor
    }
  end

  @doc "Starts a gang; see the module for the options."
  @spec start_link([option()]) :: Supervisor.on_start() | {:error, Error.t()}
  def start_link(opts) do
    with {:ok, settings} <- Settings.read(opts),
         {:ok, settings} <- with_command(settings) do
      named = if settings.name, do: [name: settings.name], else: []

      Supervisor.start_link(__MODULE__, settings, named)
    end
  end

  defp with_command(settings) do
    if Settings.starts_ranks?(settings) do
      with {:ok, path} <- Launcher.find(settings.command), do: {:ok, %{settings | command: path}}
    else
      {:ok, settings}
    end
  end

  @impl true
  def init(settings) do
    gang = self()
    launcher = if Settings.starts_ranks?(settings), do: [{Launcher, {gang, settings}}], else: []

    children =
      [{Tables, gang}] ++
        launcher ++
        [
          {Task.Supervisor, name: Children.name(gang, :tasks)},
          watchers(gang, settings),
          {DynamicSupervisor, name: Children.name(gang, :ranks), strategy: :one_for_one},
          {Transport.Supervisor, gang},
          {Server, {gang, settings}}
        ]

    Supervisor.init(children, strategy: :rest_for_one, max_restarts: 0)
  end

  # Each watcher may crash as often as a lone child might.
  defp watchers(gang, settings) do
    ranks = settings.size || length(settings.endpoints)
    opts = [name: Children.name(gang, :watchers), max_restarts: 3 * ranks]
    Supervisor.child_spec({Task.Supervisor, opts}, id: :watchers)
  end

  @doc "Ends the gang: closes its session, which frees its refs, and its connections; ends the ranks that it has started."
  @spec stop(gang()) :: :ok
  def stop(gang), do: Supervisor.stop(gang)

  @doc """
  Sends the calling process what happens to the gang from now on, as `{:rank_bridge, gang, %RankBridge.Gang.Event{}}`: that
  it is formed, ranks that were lost, members that disagree, are missing, or late. A gang that is known by its name may
  start later, and be started again.
  """
  @spec subscribe(gang()) :: :ok
  def subscribe(gang) do
    Subscribers.add(gang)
    with {:ok, view} <- View.fetch(gang), do: Server.watch(view.gang)
    :ok
  end

  @doc "Sends the calling process nothing more."
  @spec unsubscribe(gang()) :: :ok
  def unsubscribe(gang), do: Subscribers.remove(gang)

  @doc """
  The gang's events as a lazy enumerable of `RankBridge.Gang.Event`.

      MyGang |> RankBridge.Gang.events() |> Stream.filter(&(&1.kind == :rank_lost)) |> Enum.take(1)

  It subscribes when the enumeration begins, and unsubscribes when that ends, in whichever way: halted, by an exception, or
  with the process that enumerates. The events of before are not in it. Each enumeration has all events of its own time.
  The process that enumerates keeps its mailbox, and its own `subscribe/1`, as they are.

  A gang that is given as a pid ends the enumeration with its own end; one that is given by its name does not, because
  it may start again.

  Options:

    * `:timeout` - milliseconds to wait for the next event; without one by then the enumeration ends. `:infinity`
    * `:max_events` - how many events wait for a slow reader; 1,000. When there are more, the oldest are dropped, and an
      event of kind `:missed` in their place has their number. A slow reader holds up nobody else
  """
  @spec events(gang(), timeout: timeout(), max_events: pos_integer()) :: Enumerable.t()
  def events(gang, opts \\ []), do: EventStream.new(gang, opts)

  @doc "Number of ranks."
  @spec size(gang()) :: {:ok, pos_integer()} | {:error, Error.t()}
  def size(gang), do: with({:ok, view} <- ready(gang, :size), do: {:ok, View.size(view)})

  @doc "Id of the gang's session. Empty: the ranks' shared sessions."
  @spec session_id(gang()) :: {:ok, String.t()} | {:error, Error.t()}
  def session_id(gang),
    do: with({:ok, view} <- ready(gang, :session_id), do: {:ok, view.session_id})

  @doc "The gRPC target at which this gang reaches each rank, in rank order: another gang may join the ranks there (`:endpoints`)."
  @spec endpoints(gang()) :: {:ok, [String.t()]} | {:error, Error.t()}
  def endpoints(gang) do
    with {:ok, view} <- ready(gang, :endpoints),
         do: {:ok, for(rank <- View.all_ranks(view), do: View.target(view, rank))}
  end

  defp ready(gang, operation), do: RankBridge.Gang.Readiness.view(gang, [], operation)
end
