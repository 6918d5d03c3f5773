defmodule RankBridge.Gang.Joining do
  @moduledoc "Joins a gang to its ranks: connects to each, checks that it is the right one, and opens the session."

  alias RankBridge.{AtOnce, Calls, Endpoints, Error, Id, Ranks, RankStatus, Sessions, Transport}
  alias RankBridge.Gang.{Settings, Tables, View}

  # A rank that was replaced is back within a second.
  @backoff {20, 200}

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
  """
  @spec join(View.t(), [[String.t()]], Settings.t()) ::
          {:ok, View.t(), [RankStatus.t()]} | {:error, Error.t()}
  def join(view, endpoints, settings) do
    with {:ok, view} <- connect(view, endpoints, settings),
         {:ok, statuses} <- check_ranks(view),
         {:ok, statuses} <- form(view, statuses, settings),
         :ok <- Sessions.open(view),
         do: {:ok, view, statuses}
  end

  defp connect(view, endpoints, settings) do
    targets = Enum.map(endpoints, &Endpoints.choose(&1, settings.tls != nil))

    connect_opts = [
      transport: settings.transport,
      tls: settings.tls,
      supervisor: view.gang,
      backoff: @backoff,
      connect_timeout: settings.timeout
    ]

    connected = AtOnce.map(targets, &Transport.connect(&1, connect_opts))

    results =
      for {result, rank} <- Enum.with_index(connected) do
        with {:error, status} <- result,
             do: {rank, {:error, Error.from_status(status, rank: rank, operation: "connect")}},
             else: ({:ok, channel} -> {rank, {:ok, channel}})
      end

    with {:ok, channels} <- Calls.gathered(results, false),
         do: {:ok, %{view | ranks: by_rank(channels), targets: by_rank(targets)}}
  end

  defp by_rank(list), do: Map.new(Enum.with_index(list), fn {item, rank} -> {rank, item} end)

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
