defmodule RankBridge.Operations.Parts do
  @moduledoc """
  An operation on every member of a group by calls of each rank: to each its own part, all at once.

  Parts go by streams, one to each rank (`GangService.Execute`, or without gRPC beside a unix socket), which takes less time than
  unary calls. Results and errors are those of unary calls, which are what has no stream: the first of a rank, while its stream
  is being opened; what finds the stream busy with another part, or the rank with too many streams; a part that is larger than
  60,000 bytes or has no operation id; and a call of one rank alone. What a stream did not begin goes by itself at once: other
  members may be waiting for it.
  """

  alias RankBridge.{Calls, Error}
  alias RankBridge.Gang.View
  alias RankBridge.Operations.GangCall
  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf
  alias RankBridge.Protobuf.Encode
  alias RankBridge.Stream.{Server, Shared}
  alias RankBridge.Transport.GRPC.Outcome

  # Wire type 2: a length, and so many bytes.
  tag = fn message, name ->
    [number] = for {number, ^name, _type, _presence} <- message.__fields__(), do: number
    number * 8 + 2
  end

  @part tag.(V1.ExecuteRequest, :part)
  @kinds Map.new(V1.Operation.__fields__(), fn {_number, name, _type, _presence} ->
           {name, tag.(V1.Operation, name)}
         end)

  # `sent` - the ranks whose parts a stream has, by the references to which the answers come
  # `alone` - calls that go by themselves, by rank
  # `told` - results, by rank
  # `bytes` - requests, by rank
  # `until` - when the deadline has passed, in milliseconds of monotonic time
  @enforce_keys [:view, :call, :bytes, :until]
  defstruct [:view, :call, :bytes, :until, sent: %{}, alone: %{}, told: %{}]

  @doc """
  Calls each rank for its part, and gives each one's result, as `RankBridge.Calls.each/3` does. `name` is the operation's, and
  `requests` are the ranks', each for one of its own.
  """
  @spec each(View.t(), atom(), [{non_neg_integer(), struct()}], Calls.t()) ::
          [{non_neg_integer(), Calls.result()}]
  def each(view, _name, [_one_rank] = requests, call), do: Calls.each(view, requests, call)

  def each(view, _name, requests, %{operation_id: ""} = call),
    do: Calls.each(view, requests, call)

  def each(view, name, requests, call) do
    Calls.encoded(requests, call, fn encoded ->
      start = fn -> start(view, name, encoded, call) end
      Calls.in_turn(view, GangCall.ranks(requests), call, start, &next/2)
    end)
  end

  # --- what goes ---

  defp start(view, name, encoded, call) do
    until = now() + call.deadline
    state = %__MODULE__{view: view, call: call, bytes: Map.new(encoded), until: until}

    Enum.reduce(encoded, state, fn {rank, bytes}, state ->
      case push(view, rank, name, bytes, call) do
        {:ok, ref} -> %{state | sent: Map.put(state.sent, ref, rank)}
        :none -> alone(state, rank)
      end
    end)
  end

  defp push(view, rank, name, bytes, call) do
    if IO.iodata_length(bytes) <= GangCall.max_part() and Shared.there?(view, rank),
      do: Shared.push(view, rank, part(name, bytes), call),
      else: :none
  end

  # An `ExecuteRequest` of a request that is encoded.
  defp part(name, bytes),
    do: Encode.always(@part, :bytes, Encode.always(Map.fetch!(@kinds, name), :bytes, bytes))

  # In the time that is left of the whole.
  defp alone(%{call: call} = state, rank) do
    call = %{call | deadline: max(state.until - now(), 1)}
    pending = Calls.start(state.view, rank, Map.fetch!(state.bytes, rank), call)
    %{state | alone: Map.put(state.alone, rank, pending)}
  end

  defp now, do: System.monotonic_time(:millisecond)

  # --- what comes ---

  # The result of a rank. While a stream has anything left, that is heard of first: what it did not begin, others wait for.
  defp next(rank, state) do
    case {state.told, state.alone} do
      {%{^rank => result}, _alone} ->
        {result, state}

      {_told, %{^rank => pending}} when state.sent == %{} ->
        {Calls.await(rank, pending, state.call), state}

      _not_yet ->
        {ref, answer} = Server.await_any(state.sent)
        {rank_told, sent} = Map.pop!(state.sent, ref)
        next(rank, heard(%{state | sent: sent}, rank_told, read(answer, rank_told, state.call)))
    end
  end

  defp heard(state, rank, :not_begun), do: alone(state, rank)
  defp heard(state, rank, result), do: %{state | told: Map.put(state.told, rank, result)}

  defp read(:behind, _rank, _call), do: :not_begun

  defp read({:ok, bytes}, rank, call) do
    case Protobuf.decode(V1.ExecuteResponse, bytes) do
      {:ok, %{outcome: {:result, result}}} ->
        Calls.outcome(result, rank, call)

      # What is wrong with the stream, as that the rank has too many.
      {:ok, %{outcome: {:error, _error}}} ->
        :not_begun

      {:ok, _other} ->
        message = "a part that is answered by something else"
        {:error, Error.protocol(message, Calls.context(rank, call))}

      {:error, error} ->
        {:error, Error.protocol(error.message, Calls.context(rank, call))}
    end
  end

  # It is told as a call of its own is.
  defp read({:error, %{code: :deadline_exceeded, sent?: true}}, rank, call),
    do: failed(Outcome.from_reason(:deadline, true), rank, call)

  defp read({:error, status}, rank, call) do
    with {:error, %Error{indefinite: false}} <- failed(status, rank, call), do: :not_begun
  end

  defp failed(status, rank, call),
    do: {:error, Error.from_status(status, Calls.context(rank, call))}
end
