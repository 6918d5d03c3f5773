defmodule RankBridge.Stream.Shared do
  @moduledoc """
  The streams on which a gang's own calls go.

  Those of gang calls: one for each group, so that calls of one group never wait for those of another. A stream is opened with
  a group's first call, by its caller and in its time. What would have to wait for the answer to a call that may take longer does not go on it.

  Those of ranks' own parts of operations: one to each rank, for all groups, with one part at a time. What finds none does not
  wait for it: a stream is opened beside the first call of its rank, which goes otherwise, as does what finds it busy. One that
  was over at once, as where the rank has too many, is opened again a second later.

  Both end when they have not been used for a minute; or with their connection, and the next call has another opened.
  """

  alias RankBridge.{Calls, Error, Transport}
  alias RankBridge.Gang.View
  alias RankBridge.Stream.Server
  alias RankBridge.Transport.Status

  @idle 60_000
  # Milliseconds from one opening of a stream for parts to the next.
  @apart 1_000

  @doc "A table for a gang's streams. Of the gang's process."
  @spec new() :: :ets.table()
  def new, do: :ets.new(:rank_bridge_streams, [:public, read_concurrency: true])

  @doc "Whether there can be streams to a rank."
  @spec there?(View.t(), non_neg_integer()) :: boolean()
  def there?(%View{streams: nil}, _rank), do: false
  def there?(view, rank), do: Transport.hears?(Map.fetch!(view.ranks, rank))

  @doc """
  Sends a call to a rank on the stream of its group, and waits for the result. `:full`: it is not to be sent on one, and was
  not.
  """
  @spec ask(View.t(), non_neg_integer(), iodata(), Calls.t()) :: Calls.result() | :full
  def ask(view, rank, bytes, call) do
    request = request(bytes, call, :sooner)

    case Calls.streamed(view, rank, call, fn -> result(view, rank, request, call) end) do
      # Others are before it here, or too many streams are open there.
      {:error, %Error{reason: :resource_exhausted, operation: "execute"}} -> :full
      result -> result
    end
  end

  @doc """
  Sends a part to its rank, for `RankBridge.Stream.Server.await_any/1`. `:none`: there is no stream for it now, and nothing was
  sent.
  """
  @spec push(View.t(), non_neg_integer(), iodata(), Calls.t()) :: {:ok, reference()} | :none
  def push(view, rank, bytes, call) do
    key = {Map.fetch!(view.targets, rank), :parts}

    case part_server(view, rank, key) do
      :none -> :none
      server -> {:ok, Server.push(server, request(bytes, call, :none))}
    end
  end

  defp request(bytes, call, behind),
    do: %{bytes: bytes, id: call.operation_id, deadline: call.deadline, behind: behind}

  defp part_server(view, rank, key) do
    case :ets.lookup(view.streams, key) do
      [{^key, :opening, _since}] ->
        :none

      [{^key, server, _since} = entry] ->
        if alive?(server), do: server, else: again(view, rank, entry)

      [] ->
        open_beside(view, rank, key)
    end
  rescue
    # The table is the gang's, which has ended: so the call itself is told.
    ArgumentError -> :none
  end

  defp alive?(server), do: server != nil and Process.alive?(server)

  defp again(view, rank, {key, _server, since} = entry) do
    if now() < since + @apart do
      :none
    else
      :ets.delete_object(view.streams, entry)
      open_beside(view, rank, key)
    end
  end

  # Who calls does not wait for it: the connection may be one that comes late or never.
  defp open_beside(%{streams: streams, gang: gang} = view, rank, key) do
    channel = Map.fetch!(view.ranks, rank)
    since = now()

    _ =
      if :ets.insert_new(streams, {key, :opening, since}),
        do:
          spawn(fn ->
            opened(streams, key, Server.start(channel, gang, @idle, :infinity), since)
          end)

    :none
  end

  defp opened(streams, key, started, since) do
    server = with({:ok, server} <- started, do: server, else: ({:error, _status} -> nil))
    in_table(fn -> :ets.insert(streams, {key, server, since}) end)
  end

  defp now, do: System.monotonic_time(:millisecond)

  defp result(view, rank, request, call) do
    case answer(view, rank, request, call.group, :again) do
      {:ok, bytes} -> Calls.understand(bytes, rank, call)
      {:error, status} -> {:error, Error.from_status(status, Calls.context(rank, call))}
      :behind -> {:error, behind(rank, call)}
    end
  end

  defp behind(rank, call) do
    message = "calls that may take longer are answered before"

    Error.refusal(:resource_exhausted, message,
      rank: rank,
      group: call.group,
      operation: "execute",
      operation_id: call.operation_id
    )
  end

  defp answer(view, rank, request, group, if_over) do
    key = {Map.fetch!(view.targets, rank), group}

    with {:ok, server, left} <- server(view, rank, key, request.deadline) do
      request = %{request | deadline: left}

      case server |> Server.push(request) |> Server.await() do
        # Nothing was begun: it was at its end, as of a rank that was replaced.
        {:error, %Status{code: code, sent?: false}}
        when code in [:unavailable, :cancelled] and if_over == :again ->
          forget(view, key, server)
          answer(view, rank, request, group, :fail)

        answer ->
          answer
      end
    end
  end

  # With what is left of the call's time: that the stream is opened first takes of it.
  defp server(view, rank, key, deadline) do
    case :ets.lookup(view.streams, key) do
      [{^key, server}] -> {:ok, server, deadline}
      [] -> open(view, rank, key, deadline)
    end
  rescue
    ArgumentError -> {:error, Status.new(:unavailable, "the gang has ended", false)}
  end

  defp open(view, rank, key, deadline) do
    channel = Map.fetch!(view.ranks, rank)
    began = now()

    with {:ok, server} <- Server.start(channel, view.gang, @idle, deadline) do
      left = max(1, deadline - (now() - began))

      if :ets.insert_new(view.streams, {key, server}) do
        {:ok, server, left}
      else
        # Another caller was first.
        :ok = Server.close(server)
        server(view, rank, key, left)
      end
    end
  end

  defp forget(view, key, server),
    do: in_table(fn -> :ets.delete_object(view.streams, {key, server}) end)

  defp in_table(fun) do
    fun.()
  rescue
    # The table is the gang's, which may have ended.
    ArgumentError -> true
  end
end
