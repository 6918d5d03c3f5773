defmodule RankBridge.Gang do
  @moduledoc """
  All ranks of one job, as a process in a supervision tree.

      children = [
        {RankBridge.Gang, name: MyGang, endpoints_file: "/run/job/endpoints.json"}
      ]

  It connects to every rank and opens a session on each. Calls (see `RankBridge`) run in the process of their
  caller: this one only owns the connections and the session, and ends both when it ends. The death of a caller cancels
  its calls, which the ranks withdraw if they were not admitted yet.

  The gang outlives its ranks: when one is lost, calls give errors that name it (`:peer_lost`, `:unavailable`,
  `:stale_generation`), and the refs of the others stay. Once a new one is being started at the same endpoints,
  `RankBridge.form/2` waits for it, forms the next generation, and opens the session on it.

  ## Options

    * `:name` - atom under which the gang is known; without it, use its pid
    * `:endpoints` - for each rank, in rank order, a gRPC target or a list of targets that lead to it; a unix
      socket that exists on this host is preferred, but not with `:tls`, which ranks speak on TCP
    * `:endpoints_file` - a file with them, see `RankBridge.Endpoints`
    * `:session` - true (the default): refs are owned by a session of this gang and freed with it; false: they
      are owned by the ranks' shared sessions
    * `:lease` - how long the ranks keep that session when nothing is heard of the gang, in milliseconds; 30,000.
      The gang renews it in the background, three times in that time. nil or 0: until it is closed
    * `:form` - true: form a new generation; false: never; by default only if no rank has had one yet
    * `:groups` - groups for that generation beside "world": a list of `{name, ranks}`
    * `:timeout` - default for calls, and limit for connecting, in milliseconds; 30,000
    * `:tls` - options of `:ssl` for connections with TLS, see `RankBridge.Transport`
    * `:transport` - module that implements `RankBridge.Transport`

  Starting fails with a `RankBridge.Error` if a rank cannot be reached, or is not the one that it should be.
  """

  use GenServer, shutdown: 15_000

  alias RankBridge.{AtOnce, Calls, Endpoints, Error, Id, Ranks, Sessions, Transport}
  alias RankBridge.Gang.View

  @typedoc "Name or pid of a gang."
  @type gang :: atom() | pid()

  @type option ::
          {:name, atom()}
          | {:endpoints, [Endpoints.targets()]}
          | {:endpoints_file, Path.t()}
          | {:session, boolean()}
          | {:lease, non_neg_integer() | nil}
          | {:form, boolean() | nil}
          | {:groups, [{String.t(), [non_neg_integer()]}]}
          | {:timeout, pos_integer()}
          | {:tls, keyword() | nil}
          | {:transport, module()}

  @defaults [
    name: nil,
    endpoints: nil,
    endpoints_file: nil,
    session: true,
    lease: 30_000,
    form: nil,
    groups: [],
    timeout: 30_000,
    tls: nil,
    transport: RankBridge.Transport.HTTP2
  ]

  # A rank that was replaced is back within a second.
  @backoff {20, 200}
  @longest_lease 0xFFFF_FFFF
  # Milliseconds for closing the session when the gang ends.
  @closing 5_000

  @doc false
  def child_spec(opts), do: %{super(opts) | id: opts[:name] || __MODULE__}

  @doc "Starts a gang; see the module for the options."
  @spec start_link([option()]) :: GenServer.on_start()
  def start_link(opts) do
    opts = Keyword.validate!(opts, @defaults)
    process_opts = if opts[:name], do: [name: opts[:name]], else: []

    with {:error, {:shutdown, %Error{} = error}} <-
           GenServer.start_link(__MODULE__, opts, process_opts),
         do: {:error, error}
  end

  @doc "Ends the gang: closes its session, which frees its refs, and its connections."
  @spec stop(gang()) :: :ok
  def stop(gang), do: GenServer.stop(gang)

  @doc "Number of ranks."
  @spec size(gang()) :: {:ok, pos_integer()} | {:error, Error.t()}
  def size(gang), do: with({:ok, view} <- View.fetch(gang), do: {:ok, View.size(view)})

  @doc "Id of the gang's session. Empty: the ranks' shared sessions."
  @spec session_id(gang()) :: {:ok, String.t()} | {:error, Error.t()}
  def session_id(gang), do: with({:ok, view} <- View.fetch(gang), do: {:ok, view.session_id})

  @impl true
  def init(opts) do
    Process.flag(:trap_exit, true)

    with {:ok, endpoints} <- endpoints(opts),
         :ok <- check_lease(opts[:lease] || 0),
         {:ok, view} <- connect(endpoints, opts),
         :ok <- check_ranks(view, opts),
         :ok <- Sessions.open(view) do
      View.publish(view, [self() | List.wrap(opts[:name])])
      renew_later(view)
      {:ok, view}
    else
      # The channels end with this process. As a shutdown it is no crash that OTP would log.
      {:error, error} -> {:stop, {:shutdown, error}}
    end
  end

  defp endpoints(opts) do
    if opts[:endpoints_file],
      do: Endpoints.read(opts[:endpoints_file]),
      else: Endpoints.check(opts[:endpoints])
  end

  defp check_lease(lease) when is_integer(lease) and lease in 0..@longest_lease, do: :ok

  defp check_lease(lease) do
    {:error,
     Error.refusal(:invalid_argument, ":lease is wrong",
       expected: "milliseconds, or nil",
       got: inspect(lease, limit: 3)
     )}
  end

  defp connect(endpoints, opts) do
    targets = Enum.map(endpoints, &Endpoints.choose(&1, opts[:tls] != nil))

    connect_opts = [
      transport: opts[:transport],
      tls: opts[:tls],
      owner: self(),
      backoff: @backoff,
      connect_timeout: opts[:timeout]
    ]

    connected = AtOnce.map(targets, &Transport.connect(&1, connect_opts))

    results =
      for {result, rank} <- Enum.with_index(connected) do
        with {:error, status} <- result,
             do: {rank, {:error, Error.from_status(status, rank: rank, operation: "connect")}},
             else: ({:ok, channel} -> {rank, {:ok, channel}})
      end

    with {:ok, channels} <- Calls.gathered(results, false) do
      {:ok,
       %View{
         ranks: by_rank(channels),
         targets: by_rank(targets),
         session_id: if(opts[:session], do: Id.uuid(), else: ""),
         lease: opts[:lease] || 0,
         timeout: opts[:timeout],
         groups: :ets.new(:rank_bridge_groups, [:public, read_concurrency: true])
       }}
    end
  end

  defp by_rank(list), do: Map.new(Enum.with_index(list), fn {item, rank} -> {rank, item} end)

  defp check_ranks(view, opts) do
    with {:ok, statuses} <- Ranks.status(view, []),
         {:ok, _values} <-
           statuses
           |> Enum.with_index()
           |> Enum.map(&check_rank(&1, view))
           |> Calls.gathered(false),
         do: form(view, statuses, opts)
  end

  defp check_rank({%{error: %Error{} = error}, place}, _view), do: {place, {:error, error}}

  defp check_rank({status, place}, view) do
    size = View.size(view)

    if status.rank == place and status.world_size in [0, size] do
      {place, {:ok, status}}
    else
      {place,
       {:error,
        Error.refusal(
          :invalid_argument,
          "#{view.targets[place]} is not the rank that it should be",
          rank: place,
          expected: "rank #{place} of #{size}",
          got: "rank #{status.rank} of #{status.world_size}"
        )}}
    end
  end

  defp form(view, statuses, opts) do
    none? = Enum.all?(statuses, &(&1.generation_state == :none))
    form? = if opts[:form] == nil, do: none?, else: opts[:form]

    if form? do
      with {:ok, _formed} <- Ranks.form(view, groups: opts[:groups], timeout: opts[:timeout]),
           do: :ok
    else
      :ok
    end
  end

  # The gang is linked to whoever started it, and for a while to tasks of its own.
  @impl true
  def handle_info({:EXIT, _pid, :normal}, view), do: {:noreply, view}
  def handle_info({:EXIT, _pid, reason}, view), do: {:stop, reason, view}

  # A rank that does not answer holds up neither this process nor the next renewing.
  def handle_info({:renew, period}, view) do
    renew_later(view)
    {:ok, _pid} = Task.start_link(Sessions, :renew, [view, period])
    {:noreply, view}
  end

  def handle_info(_other, view), do: {:noreply, view}

  defp renew_later(view) do
    period = Sessions.renewal_period(view)
    _ = period && Process.send_after(self(), {:renew, period}, period)
    :ok
  end

  @impl true
  def terminate(_reason, view) do
    # Whatever comes of it: the sidecars free what a lost controller leaves.
    _ = Sessions.close(view, @closing)
    for {_rank, channel} <- view.ranks, do: Transport.close(channel)
    :ok
  end
end
