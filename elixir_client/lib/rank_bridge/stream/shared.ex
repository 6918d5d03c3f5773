defmodule RankBridge.Stream.Shared do
  @moduledoc """
  The streams on which a gang's own gang calls go: one for each group, so that calls of one group never wait for those of
  another.

  A stream is opened with a group's first call, by its caller, and ends when it has not been used for a minute; or with its
  connection, and the next call opens another. What would have to wait for the answer to a call that may take longer does not
  go on it.
  """

  alias RankBridge.{Calls, Error, Transport}
  alias RankBridge.Gang.View
  alias RankBridge.Stream.Server
  alias RankBridge.Transport.Status

  @idle 60_000

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
    request = %{bytes: bytes, id: call.operation_id, deadline: call.deadline, wait?: false}

    case Calls.streamed(view, rank, call, fn -> result(view, rank, request, call) end) do
      # Others are before it here, or too many streams are open there.
      {:error, %Error{reason: :resource_exhausted, operation: "execute"}} -> :full
      result -> result
    end
  end

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

    with {:ok, server} <- server(view, rank, key) do
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

  defp server(view, rank, key) do
    case :ets.lookup(view.streams, key) do
      [{^key, server}] -> {:ok, server}
      [] -> open(view, rank, key)
    end
  rescue
    ArgumentError -> {:error, Status.new(:unavailable, "the gang has ended", false)}
  end

  defp open(view, rank, key) do
    with {:ok, server} <- Server.start(Map.fetch!(view.ranks, rank), view.gang, @idle) do
      if :ets.insert_new(view.streams, {key, server}) do
        {:ok, server}
      else
        # Another caller was first.
        :ok = Server.close(server)
        server(view, rank, key)
      end
    end
  end

  defp forget(view, key, server) do
    :ets.delete_object(view.streams, {key, server})
  rescue
    # The table is the gang's, which may have ended.
    ArgumentError -> true
  end
end
