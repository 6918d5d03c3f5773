defmodule RankBridge.Gang.Watching do
  @moduledoc """
  Hears what happens on the ranks, for a gang: a process that watches each of them, through the gang's channels, and
  begins again where it was if a connection is lost.

  It tells the gang `{:event, watching, %RankBridge.Gang.Event{}}`, of each rank's; the first that a rank tells is what it
  is doing.
  """

  alias RankBridge.Transport
  alias RankBridge.Gang.{Event, View}
  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf

  # Milliseconds before a watch that has ended begins again, and after which one ends that has nothing to tell: then it goes
  # on with the code that is loaded.
  @pause 50
  @turn 60_000

  @doc """
  Watches the ranks of a view. `before` is the process that does so, or did for ranks that have changed since; it stays if
  it watches the right ones.
  """
  @spec of(pid() | nil, View.t()) :: pid()
  def of(before, view) do
    if before && watched(before) == view.ranks do
      before
    else
      _ = before && stop(before)
      gang = self()
      {:ok, watching} = Agent.start_link(fn -> begin(view.ranks, gang) end)
      watching
    end
  end

  defp watched(watching), do: Agent.get(watching, & &1)

  defp stop(watching) do
    Process.unlink(watching)
    Agent.stop(watching, :shutdown)
  end

  # One process for each rank, linked to the one that knows them.
  defp begin(ranks, gang) do
    watching = self()

    for {rank, channel} <- ranks do
      {:ok, _pid} =
        Task.start_link(fn -> watch(channel, &send(gang, {:event, watching, &1}), rank) end)
    end

    ranks
  end

  # The log that is read, the last event of it that was told, and the last generation that it told of.
  @unread {0, nil, 0}

  @doc false
  @spec watch(Transport.channel(), (Event.t() -> term()), non_neg_integer()) :: no_return()
  def watch(channel, notify, rank) do
    rpc = V1.RankService.watch_events()
    # How far it has come is kept in this process: a stream that fails gives nothing back.
    {log, last, _generation} = Process.get(__MODULE__, @unread)
    request = rpc.request.encode_to_iodata(%V1.WatchEventsRequest{log: log, after: last})
    on_message = &{:cont, handle_response(&1, &2, rank, notify)}

    _ended =
      Transport.server_stream(channel, rpc.path, request, rpc, on_message,
        wait_for_ready: true,
        timeout: @turn
      )

    Process.sleep(@pause)
    __MODULE__.watch(channel, notify, rank)
  end

  defp handle_response(bytes, rpc, rank, notify) do
    {:ok, response} = Protobuf.decode(rpc.response, bytes)

    case response.outcome do
      {:watching, watching} -> began(watching, rank, notify)
      {:event, event} -> notify(event, notify)
      # The rank has too many watchers: there may be room later.
      {:error, _error} -> :ok
    end

    rpc
  end

  defp began(watching, rank, notify) do
    case Process.get(__MODULE__, @unread) do
      {log, _last, _generation} when log == watching.log ->
        :ok

      # What was before the watch is no news, but for the state.
      {_log, nil, _generation} ->
        Process.put(__MODULE__, {watching.log, watching.last, 0})
        if watching.state, do: notify(%{watching.state | number: watching.last}, notify)

      {_log, _last, generation} ->
        Process.put(__MODULE__, {watching.log, 0, generation})
        reason = "was started again"
        notify.(%Event{kind: :over, generation: generation, ranks: [rank], reason: reason})
    end
  end

  defp notify(event, notify) do
    {log, _last, _generation} = Process.get(__MODULE__)
    Process.put(__MODULE__, {log, event.number, event.generation})
    event = Event.from_proto(event)
    if event, do: notify.(event)
  end
end
