defmodule RankBridge.Gang do
  @moduledoc """
  All ranks of one job, in a supervision tree.

      children = [
        {RankBridge.Gang, name: MyGang, size: 4, backend: :gloo}
      ]

      {:ok, supervisor} = Supervisor.start_link(children, strategy: :one_for_one)
      :ok = RankBridge.await_ready(MyGang, 10_000)
      {:ok, refs} = RankBridge.create(MyGang, :float32, [2], init: {:full, 1.0})

  With `:size` it starts the ranks itself, by an agent on this host (`rankbridge up`); they end with the gang, and with
  the VM, however it dies. With `:endpoints`, something else runs the ranks (torchrun, a container), and they outlive the gang.

  Calls (see `RankBridge`) run in the process of their caller; the gang's only owns the connections and the session. The
  death of a caller cancels its calls, which the ranks withdraw if they were not admitted yet.

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

    * `:name` - atom under which the gang is known; without it, use its pid

  of ranks that it starts:

    * `:size` - how many
    * `:backend` - `:gloo` (the default), `:nccl`, `:mpi` or `:fake`
    * `:command` - the program `rankbridge`, see `RankBridge.Gang.Agent`
    * `:arguments` - more arguments for it: `["--max-bytes", "4G"]`, see `rankbridge up --help`
    * `:start_timeout` - for starting them, in milliseconds; 60,000

  of ranks that are there:

    * `:endpoints` - for each rank, in rank order, a gRPC target or a list of targets that lead to it; a unix
      socket that exists on this host is preferred, but not with `:tls`, which ranks speak on TCP
    * `:endpoints_file` - a file with them, see `RankBridge.Endpoints`
    * `:form` - true: form a new generation; false: never; by default only if no rank has had one yet

  of both:

    * `:groups` - groups for that generation beside "world": a list of `{name, ranks}`
    * `:session` - true (the default): refs are owned by a session of this gang and freed with it; false: they
      are owned by the ranks' shared sessions
    * `:lease` - how long the ranks keep that session without a renewal by the gang, in milliseconds; 30,000.
      The gang renews the session in the background, three times in that time. nil or 0: until the session is closed
    * `:shared_memory` - true (the default): large tensors come from ranks at unix sockets, and go to them, by memory
      that both share, where that can be had (`RankBridge.SharedMemory`); false: always over gRPC
    * `:timeout` - default for calls, and limit for connecting, in milliseconds; 30,000
    * `:calls` - how collectives go: `:gang` (the default), as one call to one rank, which passes it on, or `:ranks`, to each
      rank at once. Collectives have this option, too; see `RankBridge.Operations.GangCall`
    * `:unready` - what calls do while the gang is started or made whole: `:wait` (the default) or `:fail`. Calls have
      this option, too
    * `:on_rank_lost` - `:replace`, `:shrink`, `:stop` or `:leave`, as above
    * `:max_restarts`, `:max_seconds` - as above; 3 in 5 seconds
    * `:handle_rank_lost` - a function of two arguments, or `{module, function, arguments}`
    * `:recovery_timeout` - for making the gang whole, in milliseconds; 60,000. After it, the gang ends
    * `:tls` - options of `:ssl` for connections with TLS, see `RankBridge.Transport`
    * `:transport` - module that implements `RankBridge.Transport`

  With `:endpoints`, starting fails with a `RankBridge.Error` if a rank cannot be reached, or is not the one that it should
  be. With `:size`, the gang starts at once, and its ranks meanwhile: `RankBridge.await_ready/2` waits for them. If they do
  not start, the gang ends with the reason `{:shutdown, error}`.
  """

  alias RankBridge.{Endpoints, Error}
  alias RankBridge.Gang.{Lost, Server, Settings, Subscribers, View}

  @typedoc "Name or pid of a gang."
  @type gang :: atom() | pid()

  @type option ::
          {:name, atom()}
          | {:size, pos_integer()}
          | {:backend, :gloo | :nccl | :mpi | :fake}
          | {:command, String.t()}
          | {:arguments, [String.t()]}
          | {:start_timeout, pos_integer()}
          | {:endpoints, [Endpoints.targets()]}
          | {:endpoints_file, Path.t()}
          | {:session, boolean()}
          | {:lease, non_neg_integer() | nil}
          | {:shared_memory, boolean()}
          | {:form, boolean() | nil}
          | {:groups, [{String.t(), [non_neg_integer()]}]}
          | {:timeout, pos_integer()}
          | {:calls, :ranks | :gang}
          | {:unready, :wait | :fail}
          | {:on_rank_lost, Settings.policy()}
          | {:max_restarts, non_neg_integer()}
          | {:max_seconds, pos_integer()}
          | {:recovery_timeout, pos_integer()}
          | {:handle_rank_lost, Lost.callback()}
          | {:tls, keyword() | nil}
          | {:transport, module()}

  @doc "A child of a supervisor: known by the gang's name."
  @spec child_spec([option()]) :: Supervisor.child_spec()
  def child_spec(opts),
    do: %{
      Server.child_spec(opts)
      | id: opts[:name] || __MODULE__,
        start: {__MODULE__, :start_link, [opts]}
    }

  @doc "Starts a gang; see the module for the options."
  @spec start_link([option()]) :: GenServer.on_start() | {:error, Error.t()}
  def start_link(opts) do
    with {:ok, settings} <- Settings.read(opts), do: Server.start_link(settings)
  end

  @doc "Ends the gang: closes its session, which frees its refs, and its connections; ends the ranks that it has started."
  @spec stop(gang()) :: :ok
  def stop(gang), do: GenServer.stop(gang)

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

  @doc "Number of ranks."
  @spec size(gang()) :: {:ok, pos_integer()} | {:error, Error.t()}
  def size(gang), do: with({:ok, view} <- ready(gang, :size), do: {:ok, View.size(view)})

  @doc "Id of the gang's session. Empty: the ranks' shared sessions."
  @spec session_id(gang()) :: {:ok, String.t()} | {:error, Error.t()}
  def session_id(gang),
    do: with({:ok, view} <- ready(gang, :session_id), do: {:ok, view.session_id})

  defp ready(gang, operation), do: RankBridge.Gang.Readiness.view(gang, [], operation)
end
