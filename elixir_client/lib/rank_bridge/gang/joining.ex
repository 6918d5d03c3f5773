defmodule RankBridge.Gang.Joining do
  @moduledoc "Joins a gang to its ranks: connects to each, checks that it is the right one, and opens the session."

  alias RankBridge.{AtOnce, Calls, Endpoints, Error, Id, Ranks, RankStatus, Sessions, Transport}
  alias RankBridge.Gang.{Settings, Tables, View}

  # A rank that was replaced is back within a second.
  @backoff {20, 200}
  # Milliseconds between two attempts to join: about so many, twice as many each time, and at most.
  @first_pause 50
  @longest_pause 1_000

  @doc "The view of a gang that has no rank yet."
  @spec nobody(pid(), Settings.t()) :: View.t()
  def nobody(gang, settings) do
    %{groups: groups, memory: memory} = Tables.fetch(gang)

    %View{
      gang: gang,
      ranks: %{},
      targets: %{},
      session_id: if(settings.session, do: Id.uuid(), else: ""),
      lease: settings.lease,
      timeout: settings.timeout,
      calls: settings.calls,
      when_unready: settings.unready,
      memory: memory,
      groups: groups
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
    attempt(view, endpoints, settings, failed, @first_pause)
  end

  # Ranks that were reached stay connected for the next attempt.
  defp attempt(view, endpoints, settings, failed, pause) do
    {results, view} = connect(view, endpoints, settings)

    with {:error, error} <- once(results, view, settings) do
      if Error.permanent?(error) do
        {:error, error}
      else
        failed.(error)
        # A random part separates gangs that were started together.
        Process.sleep(pause + :rand.uniform(pause))
        attempt(view, endpoints, settings, failed, min(2 * pause, @longest_pause))
      end
    end
  end

  defp once(results, view, settings) do
    with {:ok, _channels} <- Calls.gathered(results, false),
         {:ok, statuses} <- check_ranks(view),
         {:ok, statuses} <- form(view, statuses, settings),
         :ok <- Sessions.open(view),
         do: {:ok, view, statuses}
  end

  # Connects to the ranks that the view has no channel to. Returns each rank's result, and the view with those that were reached.
  defp connect(view, endpoints, settings) do
    opts = [
      transport: settings.transport,
      tls: settings.tls,
      supervisor: view.gang,
      backoff: @backoff,
      connect_timeout: settings.timeout
    ]

    missing =
      for {targets, rank} <- Enum.with_index(endpoints),
          not is_map_key(view.ranks, rank),
          do: {rank, Endpoints.choose(targets, settings.tls != nil)}

    connected = AtOnce.map(missing, fn {_rank, target} -> Transport.connect(target, opts) end)

    {failed, view} =
      for {{rank, target}, result} <- Enum.zip(missing, connected), reduce: {[], view} do
        {failed, view} -> reached(result, rank, target, failed, view)
      end

    results = for {rank, channel} <- view.ranks, do: {rank, {:ok, channel}}
    {Enum.sort_by(results ++ failed, &elem(&1, 0)), view}
  end

  defp reached({:ok, channel}, rank, target, failed, view) do
    ranks = Map.put(view.ranks, rank, channel)
    {failed, %{view | ranks: ranks, targets: Map.put(view.targets, rank, target)}}
  end

  defp reached({:error, status}, rank, _target, failed, view) do
    error = Error.from_status(status, rank: rank, operation: "connect")
    {[{rank, {:error, error}} | failed], view}
  end

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
          "#{view.targets[place]} is not the rank that it should be",
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
