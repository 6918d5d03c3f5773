defmodule RankBridge.Transport.HTTP2.Protocol do
  @moduledoc false
  # The client's side of one HTTP/2 connection, as a value: no socket, no process, no clock.
  #
  # Bytes that arrived go in by `receive_bytes/2`, wishes of callers by `open/3`, `send_data/5`,
  # `consume/3` and `cancel/3`. Whatever follows from them is collected and handed out by `take/1`: bytes
  # to write and events for callers. `written/2` reports what the socket has taken since; not more than
  # `write_cap` bytes of requests are handed out beyond that.
  #
  # `status` goes from `:handshake` (no SETTINGS yet) to `:open`, `:draining` (running streams end, no new
  # ones) and `:closed`.
  #
  # Events, by the reference that the caller chose:
  # * `{:headers, headers, end?}` - the response's headers, or its trailers
  # * `{:data, binary, end?}`
  # * `{:sent, bytes}` - so much of the stream's data was handed out, if its request asks for that
  # * `{:closed, reason, sent?}` - the stream is over without the peer's END_STREAM; `sent?` is false if the
  #   peer certainly has not processed the request
  # * `{:moved, request}` - for the connection's owner: nothing was processed, another connection can take it
  # * `{:again, request}` - for the connection's owner: the peer has refused it more than once, so that it is to be opened
  #   again after a pause

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

  alias RankBridge.Transport.HTTP2.Protocol.{Inbound, Outbound, State}

  # Answers to the peer (ACKs, window updates) that may wait beyond the cap before it counts as a flood.
  @control_allowance 4_194_304

  @type t :: State.t()

  @doc """
  A connection that is about to be opened. Options, in bytes: `:stream_window`, `:connection_window`,
  `:max_frame_size`, `:max_header_list`, `:write_cap`; and `:first_stream_id`, which is odd.
  """
  @spec new(keyword()) :: t()
  def new(opts \\ []) do
    stream_window = Keyword.get(opts, :stream_window, 4_194_304)
    connection_window = max(Keyword.get(opts, :connection_window, 67_108_864), 65_535)
    max_frame_size = Keyword.get(opts, :max_frame_size, 16_384)
    max_header_list = Keyword.get(opts, :max_header_list, 262_144)

    state = %State{
      next_id: Keyword.get(opts, :first_stream_id, 1),
      receive_window: FlowControl.new(connection_window),
      stream_window: stream_window,
      max_header_list: max_header_list,
      write_cap: Keyword.get(opts, :write_cap, 2_097_152),
      parser: Parser.new(max_frame_size),
      table: HPACKTable.new()
    }

    state =
      state
      |> State.emit(Frame.preface())
      |> State.emit(
        Frame.settings(Settings.local(stream_window, max_frame_size, max_header_list))
      )

    # The connection's window cannot be set otherwise.
    case connection_window - 65_535 do
      0 -> state
      increment -> State.emit(state, Frame.window_update(0, increment))
    end
  end

  @doc "Bytes from the peer, cut anywhere."
  @spec receive_bytes(t(), binary()) :: t()
  def receive_bytes(state, data) do
    state = Inbound.receive_bytes(state, data)

    if state.unwritten + state.out_bytes > state.write_cap + @control_allowance,
      do:
        State.fail(state, :enhance_your_calm, "the peer asks for answers and does not read them"),
      else: state
  end

  @doc "A new stream, which is sent as soon as the peer's limits allow it."
  @spec open(t(), reference(), Request.t()) :: t()
  def open(%{status: status} = state, ref, request) when status in [:handshake, :open] do
    State.enqueue(state, Stream.new(ref, request))
  end

  def open(state, ref, request),
    do: State.give_up(state, Stream.new(ref, request), {:refused, "the connection is closing"})

  @doc "More data of a stream, and its end if `fin?`. Ignored if the stream is over."
  @spec send_data(t(), reference(), [binary()], non_neg_integer(), boolean()) :: t()
  def send_data(state, ref, data, bytes, fin?) do
    case state.streams do
      %{^ref => stream} -> Outbound.schedule(state, Stream.append(stream, data, bytes, fin?))
      _ -> state
    end
  end

  @doc "The caller has used `bytes` of a stream's data, and can take as many more."
  @spec consume(t(), reference(), non_neg_integer()) :: t()
  def consume(state, ref, bytes) do
    case state.streams do
      %{^ref => %{id: id} = stream} when id != nil -> Inbound.replenish(state, stream, bytes)
      _ -> state
    end
  end

  @doc "Ends a stream without an event. The peer gets RST_STREAM if it knows the stream."
  @spec cancel(t(), reference(), Error.code()) :: t()
  def cancel(state, ref, code) do
    case state.streams do
      %{^ref => %{id: nil} = stream} ->
        State.forget(state, stream)

      %{^ref => stream} ->
        state |> State.emit(Frame.rst_stream(stream.id, code)) |> State.forget(stream)

      _ ->
        state
    end
  end

  @doc "Asks the peer for a sign of life."
  @spec ping(t(), <<_::64>>) :: t()
  def ping(state, opaque), do: State.emit(state, Frame.ping(opaque, false))

  @doc "The socket has taken `bytes` of what `take/1` gave."
  @spec written(t(), non_neg_integer()) :: t()
  def written(state, bytes), do: %{state | unwritten: state.unwritten - bytes}

  @doc "Opens what can be opened, sends what can be sent: bytes to write, their number, and events in order."
  @spec take(t()) :: {iodata(), non_neg_integer(), [{reference(), State.event()}], t()}
  def take(state) do
    state = if state.status in [:open, :draining], do: Outbound.flush(state), else: state
    %{out: out, out_bytes: bytes, events: events} = state
    state = %{state | out: [], out_bytes: 0, events: [], unwritten: state.unwritten + bytes}
    {Enum.reverse(out), bytes, Enum.reverse(events), state}
  end

  @doc "How many streams are running or queued."
  @spec stream_count(t()) :: non_neg_integer()
  def stream_count(state), do: map_size(state.streams)

  @doc "Fails the connection unless the peer has acknowledged our SETTINGS (RFC 9113, section 6.5.3)."
  @spec require_settings_ack(t()) :: t()
  def require_settings_ack(%{acknowledged?: true} = state), do: state

  def require_settings_ack(state),
    do: State.fail(state, :settings_timeout, "the peer has not acknowledged SETTINGS")

  @doc "See `State.drain/1`."
  @spec drain(t()) :: t()
  defdelegate drain(state), to: State

  @doc "See `State.terminate/2`."
  @spec terminate(t(), {:lost | :shutdown, String.t()}) :: t()
  defdelegate terminate(state, reason), to: State
end
