defmodule RankBridge.Transport.HTTP2.Protocol.Outbound do
  @moduledoc false
  # What a client sends: queued streams as MAX_CONCURRENT_STREAMS allows, then the data of all streams in
  # turns, within the windows of stream and connection and within the cap on unwritten bytes.
  #
  # Waiting streams get no bytes written at all, so that calls which come and go while the peer is stopped
  # leave nothing behind.

  alias RankBridge.Hidden
  alias RankBridge.Transport.HTTP2.{Frame, HPACK, Stream}
  alias RankBridge.Transport.HTTP2.Protocol.State

  # Bytes of one stream before it is the next one's turn.
  @turn 65_536

  @doc "Stores a stream that has more to send, and puts it in the queue of those that can."
  @spec schedule(State.t(), Stream.t()) :: State.t()
  def schedule(state, %{id: nil} = stream), do: State.put(state, stream)

  # An end without data needs no window, so it must not wait behind those that do.
  def schedule(state, %{pending_bytes: 0} = stream), do: finish(state, stream)

  def schedule(state, %{scheduled?: false, send_window: window} = stream) when window > 0 do
    State.put(%{state | ready: :queue.in(stream.ref, state.ready)}, %{stream | scheduled?: true})
  end

  def schedule(state, stream), do: State.put(state, stream)

  @doc "Sends what can be sent now."
  @spec flush(State.t()) :: State.t()
  def flush(state), do: state |> admit() |> turns()

  defp admit(%{status: :open} = state) do
    if room?(state) and map_size(state.refs) < state.peer.max_concurrent_streams do
      case :queue.out(state.opens) do
        {:empty, _} -> state
        {{:value, ref}, opens} -> admit(%{state | opens: opens}, state.streams[ref])
      end
    else
      state
    end
  end

  defp admit(state), do: state

  # Cancelled while it was queued.
  defp admit(state, nil), do: admit(state)

  defp admit(%{peer: %{max_header_list_size: limit}} = state, %{request: request} = stream)
       when request.header_list > limit do
    state |> State.refuse(stream, {:large_headers, request.header_list, limit}) |> admit()
  end

  defp admit(state, stream) do
    case State.take_id(state) do
      {:ok, id, state} -> state |> begin(stream, id) |> admit()
      # The stream is still known as queued, so that draining moves it.
      :exhausted -> State.drain(state)
    end
  end

  defp begin(state, stream, id) do
    stream = Stream.admit(stream, id, state.peer.initial_window_size, state.stream_window)
    end? = stream.fin == :pending and stream.pending_bytes == 0
    stream = if end?, do: %{stream | fin: :sent}, else: stream
    {prefix, state} = first_block(state)
    block = prefix <> Hidden.reveal(stream.request.block)

    %{state | refs: Map.put(state.refs, id, stream.ref)}
    |> State.emit(Frame.headers(id, block, end?, state.peer.max_frame_size))
    |> turn(stream)
  end

  defp first_block(%{first_block?: true} = state),
    do: {HPACK.no_dynamic_table(), %{state | first_block?: false}}

  defp first_block(state), do: {"", state}

  defp turns(state) do
    with true <- state.send_window > 0 and room?(state),
         {{:value, ref}, ready} <- :queue.out(state.ready) do
      state = %{state | ready: ready}

      case state.streams do
        %{^ref => stream} -> state |> turn(%{stream | scheduled?: false}) |> turns()
        _ -> turns(state)
      end
    else
      _ -> state
    end
  end

  defp turn(state, %{pending_bytes: 0} = stream), do: finish(state, stream)

  defp turn(state, stream) do
    bytes = Enum.min([stream.pending_bytes, stream.send_window, state.send_window, @turn])

    if bytes > 0 do
      state = %{state | send_window: state.send_window - bytes}
      stream = %{stream | send_window: stream.send_window - bytes}
      {state, stream} = frames(state, stream, bytes)

      state =
        if stream.request.report_sent?,
          do: State.event(state, stream.ref, {:sent, bytes}),
          else: state

      if stream.pending_bytes > 0, do: schedule(state, stream), else: State.put(state, stream)
    else
      schedule(state, stream)
    end
  end

  defp frames(state, stream, 0), do: {state, stream}

  defp frames(state, stream, bytes) do
    size = min(bytes, state.peer.max_frame_size)
    {data, stream} = Stream.take(stream, size)
    end? = stream.fin == :pending and stream.pending_bytes == 0
    stream = if end?, do: %{stream | fin: :sent}, else: stream

    state
    |> State.emit(Frame.data(stream.id, data, size, end?), size + 9)
    |> frames(stream, bytes - size)
  end

  defp finish(state, %{fin: :pending} = stream) do
    state |> State.emit(Frame.data(stream.id, [], 0, true)) |> State.put(%{stream | fin: :sent})
  end

  defp finish(state, stream), do: State.put(state, stream)

  defp room?(state), do: state.unwritten + state.out_bytes < state.write_cap
end
