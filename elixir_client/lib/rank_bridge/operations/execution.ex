defmodule RankBridge.Operations.Execution do
  @moduledoc false
  # Requests to ranks on their streams: to each its own part of an operation, or to one a gang call. All are sent at once, and
  # awaited within one deadline.

  alias RankBridge.{Calls, Error}
  alias RankBridge.Gang.View
  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.Encode
  alias RankBridge.Rank.Server
  alias RankBridge.Transport.GRPC.Outcome

  # Wire type 2: a length, and so many bytes.
  @kinds Map.new(V1.Operation.__fields__(), fn {number, name, _type, _presence} ->
           {name, number * 8 + 2}
         end)

  @type results :: [{non_neg_integer(), Calls.result()}]

  @doc """
  Asks each rank for its part, and gives each one's result, as `RankBridge.Calls.each/3` does. `name` is the operation's, and
  `requests` are the ranks', each for one of its own.
  """
  @spec parts(View.t(), atom(), [{non_neg_integer(), struct()}], Calls.t()) :: results()
  def parts(view, name, requests, call) do
    tag = Map.fetch!(@kinds, name)

    Calls.encoded(requests, call, fn encoded ->
      parts = for {rank, bytes} <- encoded, do: {rank, Encode.always(tag, :bytes, bytes)}
      each(view, :part, parts, call)
    end)
  end

  @doc "Asks one rank for a gang call, whose bytes these are, and gives the members' outcomes."
  @spec call(View.t(), non_neg_integer(), iodata(), Calls.t()) :: Calls.result()
  def call(view, rank, bytes, call) do
    [{^rank, result}] = each(view, :call, [{rank, bytes}], call)
    result
  end

  defp each(view, kind, requests, call) do
    request = %{kind: kind, id: call.operation_id, stream: nil, until: now() + call.deadline}

    start = fn ->
      for {rank, bytes} <- requests do
        request = Map.put(request, :bytes, bytes)
        server = Server.of(view, rank)
        {server, Server.push(server, request), request}
      end
    end

    next = fn rank, [pushed | others] ->
      {view |> answer(rank, pushed) |> understand(kind, rank, call), others}
    end

    Calls.in_turn(view, for({rank, _bytes} <- requests, do: rank), call, start, next)
  end

  defp answer(view, rank, {server, ref, request}) do
    case Server.await(server, ref, left(request)) do
      # It came when that process was at its end.
      :never -> again(view, rank, request)
      answer -> answer
    end
  end

  defp again(view, rank, request) do
    server = Server.of(view, rank)
    Server.await(server, Server.push(server, request), left(request))
  end

  defp left(request), do: max(request.until - now(), 0)

  @doc "The result in what a stream has answered to a request of a kind."
  @spec understand(
          Server.answer() | :late | :never,
          :call | :part,
          non_neg_integer(),
          Calls.t()
        ) :: Calls.result()
  def understand({:ok, bytes}, kind, rank, call) do
    case {kind, Calls.understand(bytes, rank, call)} do
      {:call, {:ok, %V1.MemberOutcomes{}} = result} ->
        result

      {:part, {:ok, %V1.OperationResult{} = result}} ->
        Calls.outcome(result, rank, call)

      {_kind, {:error, error}} ->
        {:error, error}

      {_kind, {:ok, _other}} ->
        message = "a #{kind} that is answered by something else"
        {:error, Error.protocol(message, Calls.context(rank, call))}
    end
  end

  def understand({:error, status}, _kind, rank, call),
    do: {:error, Error.from_status(status, Calls.context(rank, call))}

  def understand(:late, kind, rank, call),
    do: understand({:error, Outcome.from_reason(:deadline, true)}, kind, rank, call)

  def understand(:never, kind, rank, call) do
    status = Outcome.from_reason({:unavailable, "the stream is over"}, false)
    understand({:error, status}, kind, rank, call)
  end

  defp now, do: System.monotonic_time(:millisecond)
end
