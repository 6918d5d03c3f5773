defmodule RankBridge.Gang.Joining do
  @moduledoc false
  # Joins a gang to its ranks: connects to each, checks that it is the right one, and opens the session.

  alias RankBridge.{
    AtOnce,
    Calls,
    Endpoints,
    Error,
    Hidden,
    Id,
    Ranks,
    RankStatus,
    Sessions,
    Transport
  }

  alias RankBridge.Gang.{Channels, Settings, Tables, View}

  # A rank that was replaced is back within a second.
  @backoff {20, 200}
  # Milliseconds between two attempts to join: about so many, twice as many each time, and at most.
  @first_pause 50
  @longest_pause 1_000

  @doc "The view of a gang that has no rank yet."
  @spec nobody(pid(), Settings.t()) :: View.t()
  def nobody(gang, settings) do
    tables = Tables.fetch(gang)

    %View{
      gang: gang,
      channels: Channels.put(tables.channels, []),
      session_id: if(settings.session, do: Id.uuid(), else: ""),
      lease: settings.lease,
      timeout: settings.timeout,
      group: settings.group,
      calls: settings.calls,
      when_unready: settings.unready,
      shared_memory?: settings.session and settings.shared_memory,
      groups: tables.groups
    }
  end

  @doc """
  The view with a channel to every rank, on which the session is open, and what the ranks say of themselves. Forms the
  first generation if there was none, or as the settings say. The channels end with the view's gang.

  Tries again, after pauses that grow, until it succeeds or waiting cannot help: who calls this limits the time. `failed` is
  called with the error of each attempt that is not the last.
  """
  @spec join(View.t(), [[String.t()]], Settings.t(), (Error.t() -> term())) ::
          {:ok, View.t(), [RankStatus.t()]} | {:error, Error.t()}
  def join(view, endpoints, settings, failed) do
    # A transport that is not ours need not know of tokens.
    shown = if settings.token, do: [token: settings.token], else: []
    shown = if settings.insecure_token, do: [insecure_token: true] ++ shown, else: shown

    opts =
      [
        transport: settings.transport,
        tls: Hidden.reveal(settings.tls),
        keepalive: settings.keepalive,
        supervisor: view.gang,
        backoff: @backoff,
        connect_timeout: settings.timeout
      ] ++ shown

    # Ranks that were reached stay connected for the next attempt.
    with {:ok, rows} <- persist(%{}, &connect(&1, endpoints, opts), failed, @first_pause) do
      view = %{view | channels: Channels.put(view.channels.table, rows)}
      persist(view, &prepare(&1, settings), failed, @first_pause)
    end
  end

  # Each attempt returns what the next one begins with.
  defp persist(state, attempt, failed, pause) do
    with {:error, error, state} <- attempt.(state) do
      if Error.permanent?(error) do
        {:error, error}
      else
        failed.(error)
        # A random part separates gangs that were started together.
        Process.sleep(pause + :rand.uniform(pause))
        persist(state, attempt, failed, min(2 * pause, @longest_pause))
      end
    end
  end

  defp prepare(view, settings) do
    with {:ok, statuses} <- check_ranks(view),
         {:ok, statuses} <- form(view, statuses, settings),
         :ok <- Sessions.open(view) do
      {:ok, view, statuses}
    else
      {:error, error} -> {:error, error, view}
    end
  end

  # `reached` has rows by rank.
  defp connect(reached, endpoints, opts) do
    missing =
      for {targets, rank} <- Enum.with_index(endpoints),
          not is_map_key(reached, rank),
          do: {rank, Endpoints.choose(targets, opts[:tls] != nil)}

    connected = AtOnce.map(missing, fn {_rank, target} -> Transport.connect(target, opts) end)

    results =
      for {{rank, target}, result} <- Enum.zip(missing, connected) do
        case result do
          {:ok, channel} -> {rank, {:ok, {channel, target}}}
          {:error, status} -> {rank, {:error, unreached(status, rank)}}
        end
      end

    since = for {rank, {:ok, row}} <- results, into: reached, do: {rank, row}
    before = for {rank, row} <- reached, do: {rank, {:ok, row}}

    with {:error, error} <- (before ++ results) |> Enum.sort() |> Calls.gathered(false),
         do: {:error, error, since}
  end

  defp unreached(status, rank), do: Error.from_status(status, rank: rank, operation: "connect")

  defp check_ranks(view) do
    with {:ok, statuses} <- Ranks.status(view, []) do
      statuses |> Enum.with_index() |> Enum.map(&check_rank(&1, view)) |> Calls.gathered(false)
    end
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
          "#{View.target(view, place)} is not the rank that it should be",
          rank: place,
          expected: "rank #{place} of #{size}",
          got: "rank #{status.rank} of #{status.world_size}"
        )}}
    end
  end

  defp form(view, statuses, settings) do
    none? = Enum.all?(statuses, &(&1.generation_state == :none))
    # The agent has formed a generation, without groups.
    started? = Settings.starts_ranks?(settings) and settings.groups != []
    form? = if settings.form == nil, do: none? or started?, else: settings.form

    if form? do
      with {:ok, _formed} <-
             Ranks.form(view, groups: settings.groups, timeout: settings.timeout),
           do: Ranks.status(view, [])
    else
      {:ok, statuses}
    end
  end
end
