defmodule RankBridge.Gang.Watching do
  @moduledoc false
  # Watches the events of a gang's ranks: one task of the gang for each rank, through the gang's channels. A watch continues where
  # it was if a connection is lost, or if its task crashes or is ended with old code.
  #
  # The gang's server gets `{:event, ref, %RankBridge.Gang.Event{}}` for each event. A rank's first event is its state.

  alias RankBridge.Transport
  alias RankBridge.Gang.{Channels, Children, Event, View}
  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf

  # Milliseconds before a watch that has ended begins again, and after which a watch ends to go on with the code that is
  # loaded then.
  @pause 50
  @turn 60_000

  @enforce_keys [:ref, :channels, :positions]
  defstruct @enforce_keys

  @typedoc """
  `ref` - in every event of these watches; `channels` - those that they go through; `positions` - for each rank the log that is
  read, and the number and the generation of its last event.
  """
  @type t :: %__MODULE__{ref: reference(), channels: Channels.t(), positions: :ets.tid()}

  @doc """
  Watches the ranks of a view for the calling process. `before` are the watches so far, maybe through other channels; they stay
  if they are of the right ones.
  """
  @spec of(t() | nil, View.t()) :: t()
  def of(%__MODULE__{channels: channels} = before, %View{channels: channels}), do: before

  def of(before, view) do
    :ok = stop(before, view.gang)
    begin(view)
  end

  defp stop(before, gang) do
    watchers = Children.name(gang, :watchers)

    # One may have crashed meanwhile.
    for pid <- Task.Supervisor.children(watchers),
        do: _ = Task.Supervisor.terminate_child(watchers, pid)

    if before, do: :ets.delete(before.positions)
    :ok
  end

  defp begin(%View{gang: gang, channels: channels}) do
    positions = :ets.new(__MODULE__, [:public])
    watching = %__MODULE__{ref: make_ref(), channels: channels, positions: positions}

    for {{channel, _target}, rank} <- channels |> Channels.rows() |> Enum.with_index() do
      arguments = [channel, self(), watching.ref, rank, positions]

      {:ok, _pid} =
        Task.Supervisor.start_child(
          Children.name(gang, :watchers),
          __MODULE__,
          :run,
          arguments,
          restart: :transient
        )
    end

    watching
  end

  @doc false
  @spec run(Transport.channel(), pid(), reference(), non_neg_integer(), :ets.tid()) :: no_return()
  def run(channel, server, ref, rank, positions),
    do: watch(channel, &send(server, {:event, ref, &1}), rank, positions)

  @doc false
  @spec watch(Transport.channel(), (Event.t() -> term()), non_neg_integer(), :ets.tid()) ::
          no_return()
  def watch(channel, notify, rank, positions) do
    rpc = V1.RankService.watch_events()
    {log, last, _generation} = position(positions, rank)
    request = rpc.request.encode_to_iodata(%V1.WatchEventsRequest{log: log, after: last})
    on_message = &{:cont, handle_response(&1, &2, rank, positions, notify)}

    _ended =
      Transport.server_stream(channel, rpc.path, request, rpc, on_message,
        wait_for_ready: true,
        timeout: @turn
      )

    Process.sleep(@pause)
    __MODULE__.watch(channel, notify, rank, positions)
  end

  defp position(positions, rank) do
    case :ets.lookup(positions, rank) do
      [{_rank, position}] -> position
      [] -> {0, nil, 0}
    end
  end

  defp handle_response(bytes, rpc, rank, positions, notify) do
    {:ok, response} = Protobuf.decode(rpc.response, bytes)

    case response.outcome do
      {:watching, watching} -> began(watching, rank, positions, notify)
      {:event, event} -> notify(event, rank, positions, notify)
      # The rank has too many watchers now: the next try may succeed. Or it is newer, and reports something else.
      _error_or_unknown -> :ok
    end

    rpc
  end

  defp began(watching, rank, positions, notify) do
    case position(positions, rank) do
      {log, _last, _generation} when log == watching.log ->
        :ok

      # Events before the watch are not reported, except for the state.
      {_log, nil, _generation} ->
        :ets.insert(positions, {rank, {watching.log, watching.last, 0}})

        if watching.state,
          do: notify(%{watching.state | number: watching.last}, rank, positions, notify)

      {_log, _last, generation} ->
        :ets.insert(positions, {rank, {watching.log, 0, generation}})
        reason = "was started again"
        notify.(%Event{kind: :over, generation: generation, ranks: [rank], reason: reason})
    end
  end

  # The position first: an event at which the task crashes is not read again.
  defp notify(event, rank, positions, notify) do
    {log, _last, _generation} = position(positions, rank)
    :ets.insert(positions, {rank, {log, event.number, event.generation}})
    event = Event.from_proto(event)
    if event, do: notify.(event)
  end
end
