defmodule RankBridge.Transport.HTTP2.Protocol.State do
  @moduledoc false
  # The state of one connection, and the few ways in which all of it changes: output and events are added,
  # streams stored and forgotten, the connection drained or closed.

  alias RankBridge.Transport.HTTP2.{
    Error,
    FlowControl,
    Frame,
    HPACKTable,
    Parser,
    Request,
    Settings,
    Stream
  }

  @max_stream_id 2_147_483_647
  # Servers count a stream a little longer than clients do: on a busy machine for many round trips. With the pauses between
  # them these take more than a second.
  @max_refusals 8

  @enforce_keys [:receive_window, :parser, :table]
  defstruct [
    :error,
    :receive_window,
    :parser,
    :table,
    :block,
    status: :handshake,
    acknowledged?: false,
    too_many_pings?: false,
    next_id: 1,
    streams: %{},
    refs: %{},
    opens: :queue.new(),
    ready: :queue.new(),
    send_window: 65_535,
    stream_window: 4_194_304,
    max_header_list: 262_144,
    peer: %Settings{},
    first_block?: true,
    out: [],
    out_bytes: 0,
    unwritten: 0,
    write_cap: 2_097_152,
    events: []
  ]

  @type reason ::
          {:reset, Error.code()}
          | {:refused, String.t()}
          | {:violation, String.t()}
          | {:too_large, pos_integer()}
          | {:lost, String.t()}
          | {:shutdown, String.t()}
          | {:large_headers, pos_integer(), non_neg_integer()}

  @type event ::
          {:headers, [{String.t(), binary()}], boolean()}
          | {:data, binary(), boolean()}
          | {:sent, non_neg_integer()}
          | {:closed, reason(), boolean()}
          | {:moved, Request.t()}
          | {:again, Request.t()}

  @typedoc """
  `streams` by the caller's reference, `refs` by stream id (only of streams that were sent), `opens` and
  `ready` queues of references: not yet sent, and with data that may go now. `block` is a header block of
  which CONTINUATION is still to come. `error` says why the connection was closed.
  """
  @type t :: %__MODULE__{
          error: {Error.code(), String.t()} | nil,
          receive_window: FlowControl.t(),
          parser: Parser.t(),
          table: HPACKTable.t(),
          block: {pos_integer(), boolean(), [binary()], non_neg_integer()} | nil,
          status: :handshake | :open | :draining | :closed,
          acknowledged?: boolean(),
          too_many_pings?: boolean(),
          next_id: pos_integer(),
          streams: %{reference() => Stream.t()},
          refs: %{pos_integer() => reference()},
          opens: :queue.queue(reference()),
          ready: :queue.queue(reference()),
          send_window: integer(),
          stream_window: pos_integer(),
          max_header_list: pos_integer(),
          peer: Settings.t(),
          first_block?: boolean(),
          out: [iodata()],
          out_bytes: non_neg_integer(),
          unwritten: integer(),
          write_cap: pos_integer(),
          events: [{reference(), event()}]
        }

  @doc "Adds bytes to write."
  @spec emit(t(), iodata()) :: t()
  def emit(state, data), do: emit(state, data, IO.iodata_length(data))

  @doc "Adds bytes to write, of known number."
  @spec emit(t(), iodata(), non_neg_integer()) :: t()
  def emit(state, data, bytes),
    do: %{state | out: [data | state.out], out_bytes: state.out_bytes + bytes}

  @doc "Adds an event for a caller."
  @spec event(t(), reference(), event()) :: t()
  def event(state, ref, event), do: %{state | events: [{ref, event} | state.events]}

  @doc "Stores a stream."
  @spec put(t(), Stream.t()) :: t()
  def put(state, stream), do: %{state | streams: Map.put(state.streams, stream.ref, stream)}

  @doc "Forgets a stream. Frames that still come for it are ignored."
  @spec forget(t(), Stream.t()) :: t()
  def forget(state, %{id: nil, ref: ref}) do
    %{state | streams: Map.delete(state.streams, ref), opens: :queue.delete(ref, state.opens)}
  end

  def forget(state, %{id: id, ref: ref, scheduled?: scheduled?}) do
    ready = if scheduled?, do: :queue.delete(ref, state.ready), else: state.ready

    %{
      state
      | streams: Map.delete(state.streams, ref),
        refs: Map.delete(state.refs, id),
        ready: ready
    }
  end

  @doc "The next stream id, if there is one left."
  @spec take_id(t()) :: {:ok, pos_integer(), t()} | :exhausted
  def take_id(%{next_id: id}) when id > @max_stream_id, do: :exhausted
  def take_id(state), do: {:ok, state.next_id, %{state | next_id: state.next_id + 2}}

  @doc """
  Ends a stream with an event. A complete request that the server certainly has not processed is no loss:
  it is queued again if the server refused it, and given back as `:moved` if the connection is ending.
  """
  @spec give_up(t(), Stream.t(), reason()) :: t()
  def give_up(state, %{id: nil, request: request} = stream, reason) do
    movable? = request.fin? and not match?({:shutdown, _}, reason)
    event = if movable?, do: {:moved, request}, else: {:closed, reason, false}
    state |> event(stream.ref, event) |> forget(stream)
  end

  def give_up(state, %{phase: :headers, request: %{fin?: true} = request} = stream, {:refused, _})
      when request.refusals < @max_refusals do
    state = forget(state, stream)
    again = %{request | refusals: request.refusals + 1}

    # One retry at once, as gRFC A6 has it; the others after a pause, which is the owner's business.
    cond do
      state.status != :open -> event(state, stream.ref, {:moved, again})
      request.refusals == 0 -> enqueue(state, Stream.new(stream.ref, again))
      true -> event(state, stream.ref, {:again, again})
    end
  end

  def give_up(state, stream, reason) do
    # A server that has begun to answer cannot say that it has processed nothing.
    sent? = stream.phase == :body or not match?({:refused, _}, reason)
    state |> event(stream.ref, {:closed, reason, sent?}) |> forget(stream)
  end

  @doc "Ends a queued stream that the peer would not take from any connection."
  @spec refuse(t(), Stream.t(), reason()) :: t()
  def refuse(state, %{id: nil} = stream, reason),
    do: state |> event(stream.ref, {:closed, reason, false}) |> forget(stream)

  @doc "Adds a stream to those that wait to be sent."
  @spec enqueue(t(), Stream.t()) :: t()
  def enqueue(state, stream),
    do: put(%{state | opens: :queue.in(stream.ref, state.opens)}, stream)

  @doc "No new streams from now on. Those that were not sent are given up, the others may end."
  @spec drain(t()) :: t()
  def drain(%{status: :closed} = state), do: state

  def drain(state) do
    queued = for {_ref, %{id: nil} = stream} <- state.streams, do: stream
    state = %{state | status: :draining, opens: :queue.new()}
    Enum.reduce(queued, state, &give_up(&2, &1, {:refused, "the connection is closing"}))
  end

  @doc "Ends the connection for a fault of the peer: GOAWAY with `code`, and an event for every stream."
  @spec fail(t(), Error.code(), String.t()) :: t()
  def fail(%{status: :closed} = state, _code, _message), do: state

  def fail(state, code, message) do
    state
    |> emit(Frame.goaway(0, code, message))
    |> close({:lost, "#{Error.name(code)}: #{message}"}, {code, message})
  end

  @doc "Ends the connection because the socket did, or because its owner wants it: an event for every stream."
  @spec terminate(t(), {:lost | :shutdown, String.t()}) :: t()
  def terminate(%{status: :closed} = state, _reason), do: state

  def terminate(state, {_kind, message} = reason) do
    state |> emit(Frame.goaway(0, :no_error, "")) |> close(reason, {:no_error, message})
  end

  defp close(state, reason, error) do
    state = %{state | opens: :queue.new(), ready: :queue.new()}
    state = Enum.reduce(Map.values(state.streams), state, &give_up(&2, &1, reason))
    %{state | status: :closed, error: error}
  end
end
