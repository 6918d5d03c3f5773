defmodule RankBridge.Calls do
  @moduledoc false
  # Calls on one rank or on several at once, in the process of the caller: unary ones, where nothing else is said.
  #
  # A response's `oneof outcome` becomes `{:ok, value}` or `{:error, error}`; a response without one is the value.
  #
  # Every call is a span, see `RankBridge.Telemetry`.

  alias RankBridge.{Error, Telemetry, Transport}
  alias RankBridge.Gang.View
  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf
  alias RankBridge.Protobuf.{EncodeError, Rpc}
  alias RankBridge.Transport.Status

  # Milliseconds by which an RPC's deadline exceeds the timeout in its request, so that the rank's own verdict arrives first.
  @margin 2_000

  @enforce_keys [:rpc, :operation, :deadline]
  defstruct [
    :rpc,
    :operation,
    :deadline,
    group: "",
    operation_id: "",
    changes?: true,
    begun?: false,
    wait_for_ready?: false
  ]

  @typedoc """
  What all ranks are asked for.

  * `deadline` - the RPC's, in milliseconds
  * `changes?`, `begun?` - as in `t:RankBridge.Error.context/0`
  * `wait_for_ready?` - whether to wait for ranks that cannot be reached yet, as long as the deadline allows
  """
  @type t :: %__MODULE__{
          rpc: Rpc.t(),
          operation: String.t(),
          deadline: pos_integer(),
          group: String.t(),
          operation_id: String.t(),
          changes?: boolean(),
          begun?: boolean(),
          wait_for_ready?: boolean()
        }

  @type result :: {:ok, term()} | {:error, Error.t()}

  @doc "Deadline of an RPC whose request has a timeout for the rank. Both in milliseconds."
  @spec deadline(pos_integer()) :: pos_integer()
  def deadline(timeout), do: timeout + @margin

  @doc "Calls one rank."
  @spec one(View.t(), non_neg_integer(), struct(), t()) :: result()
  def one(view, rank, request, call) do
    [{^rank, result}] = each(view, [{rank, request}], call)
    result
  end

  @doc "Calls ranks at once: all values in the order of the requests, or one error with every rank's outcome."
  @spec all(View.t(), [{non_neg_integer(), struct()}], t()) :: {:ok, list()} | {:error, Error.t()}
  def all(view, requests, call),
    do: view |> each(requests, call) |> gathered(call.changes?)

  @doc "All values, or one error with every rank's outcome; `changes?` as in `t:RankBridge.Error.context/0`."
  @spec gathered([{non_neg_integer(), result()}], boolean()) ::
          {:ok, list()} | {:error, Error.t()}
  def gathered(results, changes?) do
    if Enum.all?(results, &match?({_rank, {:ok, _value}}, &1)) do
      {:ok, for({_rank, {:ok, value}} <- results, do: value)}
    else
      {:error, Error.combine(Enum.map(results, &ended/1), changes?)}
    end
  end

  defp ended({rank, {:ok, _value}}), do: {rank, :ok}
  defp ended({rank, {:error, error}}), do: {rank, error}

  @doc "Calls ranks at once. Returns each rank's result."
  @spec each(View.t(), [{non_neg_integer(), struct()}], t()) :: [{non_neg_integer(), result()}]
  def each(view, requests, call) do
    encoded(requests, call, fn encoded ->
      start = fn -> for {rank, bytes} <- encoded, do: start(view, rank, bytes, call) end
      next = fn rank, [pending | others] -> {await(rank, pending, call), others} end
      in_turn(view, for({rank, _bytes} <- encoded, do: rank), call, start, next)
    end)
  end

  @doc "The results that `fun` returns for the encoded requests; or an error for each, if any request is not well-formed."
  @spec encoded(
          [{non_neg_integer(), struct()}],
          t(),
          ([{non_neg_integer(), iodata()}] -> [{non_neg_integer(), result()}])
        ) :: [{non_neg_integer(), result()}]
  def encoded(requests, call, fun) do
    # Nothing is sent before every request is known to be well-formed.
    encoded = for {rank, request} <- requests, do: {rank, encode(request, call)}

    case Enum.find(encoded, &match?({_rank, {:error, _error}}, &1)) do
      nil -> fun.(for {rank, {:ok, bytes}} <- encoded, do: {rank, bytes})
      {_rank, {:error, error}} -> for {rank, _request} <- requests, do: {rank, {:error, error}}
    end
  end

  @doc """
  Calls ranks at once. `start` sends everything and returns a state; `next` takes that state and returns each rank's result in
  turn.
  """
  @spec in_turn(
          View.t(),
          [non_neg_integer()],
          t(),
          (() -> state),
          (non_neg_integer(), state -> {result(), state})
        ) :: [{non_neg_integer(), result()}]
        when state: term()
  def in_turn(view, ranks, call, start, next) do
    begun = for rank <- ranks, do: {rank, begin(view, rank, call)}
    outcomes(begun, ending(begun, start), next)
  end

  @doc "The bytes of a request."
  @spec encode(struct(), t()) :: {:ok, iodata()} | {:error, Error.t()}
  def encode(%module{} = request, call) do
    {:ok, module.encode_to_iodata(request)}
  rescue
    error in EncodeError ->
      fields = [group: call.group, operation: call.operation]
      {:error, Error.refusal(:invalid_argument, error.message, fields)}
  end

  defp start(view, rank, bytes, call) do
    with {:ok, channel} <- View.channel(view, rank) do
      Transport.start_unary(channel, call.rpc.path, bytes,
        timeout: call.deadline,
        wait_for_ready: call.wait_for_ready?
      )
    end
  end

  @doc "Begins the span of a call. The caller ends it."
  @spec begin(View.t(), non_neg_integer(), t()) :: Telemetry.span()
  def begin(view, rank, call) do
    if Telemetry.loaded?(),
      do: Telemetry.start([:rank_bridge, :rank, :call], metadata(view, rank, call))
  end

  defp metadata(view, rank, call) do
    %{
      gang: view.known_as,
      rank: rank,
      operation: call.operation,
      group: call.group,
      operation_id: call.operation_id,
      rpc: call.rpc.path,
      call_span_context: view.call_span_context
    }
  end

  defp outcomes([], _state, _next), do: []

  defp outcomes([{rank, span} | others] = running, state, next) do
    {result, state} = ending(running, fn -> next.(rank, state) end)
    Telemetry.stop(span, Telemetry.outcome(result))
    [{rank, result} | outcomes(others, state, next)]
  end

  # With one call all that are still running end.
  defp ending(running, fun) do
    fun.()
  catch
    kind, reason ->
      for {_rank, span} <- running,
          do: Telemetry.exception(span, kind, reason, __STACKTRACE__)

      :erlang.raise(kind, reason, __STACKTRACE__)
  end

  @doc "A call of another kind than unary, by a function that makes it and gives its result."
  @spec streamed(View.t(), non_neg_integer(), t(), (() -> {:ok, value} | {:error, Error.t()})) ::
          {:ok, value} | {:error, Error.t()}
        when value: term()
  def streamed(view, rank, call, fun) do
    Telemetry.run(begin(view, rank, call), fn ->
      result = fun.()
      {result, Telemetry.outcome(result)}
    end)
  end

  defp await(rank, :gone, call), do: {:error, gone(rank, call)}

  defp await(rank, pending, call) do
    case Transport.await(pending) do
      {:ok, bytes} -> understand(bytes, rank, call)
      {:error, status} -> {:error, Error.from_status(status, context(rank, call))}
    end
  end

  @doc "The result in the bytes of a response."
  @spec understand(binary(), non_neg_integer(), t()) :: result()
  def understand(bytes, rank, call) do
    case Protobuf.decode(call.rpc.response, bytes) do
      {:ok, response} -> outcome(response, rank, call)
      {:error, error} -> {:error, Error.protocol(error.message, context(rank, call))}
    end
  end

  @doc "The result in a message with an `oneof outcome`; a message without one is the value."
  @spec outcome(struct(), non_neg_integer(), t()) :: result()
  def outcome(%{outcome: {:error, %V1.Error{} = error}}, _rank, _call),
    do: {:error, Error.from_proto(error)}

  def outcome(%{outcome: {_name, value}}, _rank, _call), do: {:ok, value}

  def outcome(%{outcome: nil}, rank, call),
    do:
      {:error,
       Error.protocol("the answer holds neither a value nor an error", context(rank, call))}

  def outcome(response, _rank, _call), do: {:ok, response}

  @doc "The error of a call on a rank whose gang has ended."
  @spec gone(non_neg_integer(), t()) :: Error.t()
  def gone(rank, call) do
    status = Status.new(:unavailable, "the gang has ended", false)
    Error.from_status(status, context(rank, call))
  end

  @doc "What is known of a call, for its errors."
  @spec context(non_neg_integer(), t()) :: Error.context()
  def context(rank, call) do
    [
      rank: rank,
      group: call.group,
      operation: call.operation,
      operation_id: call.operation_id,
      changes?: call.changes?,
      begun?: call.begun?
    ]
  end
end
