defmodule RankBridge.Operations.GangCall do
  @moduledoc false
  # A collective on every member of a group by one call to one rank, which passes it on: see `RankBridge.Collectives`.

  alias RankBridge.{Calls, Error}
  alias RankBridge.Error.RankDetail
  alias RankBridge.Gang.View
  alias RankBridge.Operations.Execution
  alias RankBridge.Proto.V1

  # The ranks take a little more.
  @max_part 60_000

  @doc """
  Calls all members as one, and gives each one's result, as a call to each rank does. `name` is the operation's, and
  `requests` are the members', in group order, of one session.
  """
  @spec each(View.t(), atom(), [{non_neg_integer(), struct()}], Calls.t()) :: Execution.results()
  def each(view, name, [{leader, _first} | _others] = requests, call) do
    case encode(name, requests, call) do
      {:ok, bytes} ->
        results(view, Execution.call(view, leader, bytes, call), ranks(requests), call)

      :large ->
        Execution.parts(view, name, requests, call)

      {:refused, error} ->
        for rank <- ranks(requests), do: {rank, {:error, error}}
    end
  end

  @doc "The ranks of requests."
  @spec ranks([{non_neg_integer(), struct()}]) :: [non_neg_integer()]
  def ranks(requests), do: for({rank, _request} <- requests, do: rank)

  @doc "The bytes of a gang call. `:large`: a member's part is too large to be passed on."
  @spec encode(atom(), [{non_neg_integer(), struct()}], Calls.t()) ::
          {:ok, iodata()} | :large | {:refused, Error.t()}
  def encode(name, [{_leader, first} | _others] = requests, call) do
    request = %V1.CallRequest{call: first.call, operations: parts(name, requests)}

    case Calls.encode(request, call) do
      {:ok, bytes} -> if small?(bytes, request, call), do: {:ok, bytes}, else: :large
      {:error, error} -> {:refused, error}
    end
  end

  @doc """
  Each member's result, by its rank, in what the first of these ranks has answered to a gang call; fetches what that rank did
  not pass on.
  """
  @spec results(View.t(), Calls.result(), [non_neg_integer()], Calls.t()) ::
          Execution.results()
  def results(view, {:ok, outcomes}, ranks, call),
    do: member_results(view, outcomes.members, ranks, call)

  # What is wrong with the call as a whole is every member's outcome, but only the rank that was asked can be out of reach.
  def results(_view, {:error, error}, [leader | _others] = ranks, _call) do
    error = if error.ranks == [], do: %{error | ranks: [detail(error, leader)]}, else: error
    for rank <- ranks, do: {rank, {:error, error}}
  end

  # One stands for all of them, if they are alike.
  defp parts(name, [{_leader, first} | others] = requests) do
    if Enum.all?(others, fn {_rank, request} -> request == first end),
      do: [part(name, first)],
      else: for({_rank, request} <- requests, do: part(name, request))
  end

  defp part(name, request), do: %V1.Operation{kind: {name, %{request | call: nil}}}

  # Where all of it is small, so is each part.
  defp small?(bytes, request, call) do
    IO.iodata_length(bytes) <= @max_part or Enum.all?(request.operations, &small_part?(&1, call))
  end

  defp small_part?(part, call) do
    {:ok, bytes} = Calls.encode(part, call)
    IO.iodata_length(bytes) <= @max_part
  end

  defp detail(error, leader) do
    state = if error.reason == :unavailable, do: :lost, else: :failed
    text = "#{error.reason}: #{error.message}"
    %RankDetail{rank: leader, rank_in_group: 0, state: state, detail: text}
  end

  defp member_results(view, members, expected, call) do
    case for member <- members, do: member.rank do
      ^expected ->
        kept(view, for(member <- members, do: {member.rank, result(member, call)}), call)

      got ->
        message = "the outcomes are not those of the members"
        sides = %{expected: inspect(expected), got: inspect(got)}

        for rank <- expected do
          error = Error.protocol(message, Calls.context(rank, call))
          {rank, {:error, struct!(error, sides)}}
        end
    end
  end

  defp result(%{result: nil}, _call), do: :kept
  defp result(member, call), do: Calls.outcome(member.result, member.rank, call)

  # Fetches what is too large to be passed on; each is on its rank.
  defp kept(view, results, call) do
    case for {rank, :kept} <- results, do: rank do
      [] -> results
      ranks -> fetched(view, results, ranks, call)
    end
  end

  defp fetched(view, results, ranks, call) do
    rpc = V1.OperationService.await()
    request = %V1.AwaitRequest{operation_id: call.operation_id}
    requests = for rank <- ranks, do: {rank, request}
    given = view |> Calls.each(requests, %{call | rpc: rpc, begun?: true}) |> Map.new()
    for {rank, result} <- results, do: {rank, Map.get(given, rank, result)}
  end
end
