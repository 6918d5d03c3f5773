defmodule RankBridge.Transport.HTTP2.Protocol.Inbound do
  @moduledoc false
  # What a client does with the peer's frames. A fault of the peer ends the stream or the connection with
  # the code that RFC 9113 asks for, and every caller concerned gets an event.

  alias RankBridge.Transport.HTTP2.{
    Error,
    FlowControl,
    Frame,
    HPACK,
    Headers,
    Parser,
    Settings,
    Stream
  }

  alias RankBridge.Transport.HTTP2.Protocol.{Outbound, State}

  # Sizes of the largest header list that is taken, up to which a header block is read.
  @header_blocks 4

  @doc "Bytes from the peer, cut anywhere."
  @spec receive_bytes(State.t(), binary()) :: State.t()
  def receive_bytes(%{status: :closed} = state, _data), do: state

  def receive_bytes(state, data) do
    case Parser.push(state.parser, data) do
      {:ok, frames, parser} ->
        frames(%{state | parser: parser}, frames)

      {:error, {_scope, _id, code, message}, frames} ->
        state |> frames(frames) |> State.fail(code, message)
    end
  end

  @doc "Makes `bytes` of a stream's receive window free again."
  @spec replenish(State.t(), Stream.t(), non_neg_integer()) :: State.t()
  def replenish(state, stream, bytes) do
    {increment, window} = FlowControl.replenish(stream.receive_window, bytes)
    state = State.put(state, %{stream | receive_window: window})

    if increment > 0,
      do: State.emit(state, Frame.window_update(stream.id, increment)),
      else: state
  end

  defp frames(state, frames), do: Enum.reduce(frames, state, &frame(&2, &1))

  defp frame(%{status: :closed} = state, _frame), do: state

  defp frame(%{status: :handshake} = state, {:settings, pairs}),
    do: settings(%{state | status: :open}, pairs)

  defp frame(%{status: :handshake} = state, _),
    do: protocol_error(state, "the peer did not begin with SETTINGS")

  defp frame(
         %{block: {id, end?, fragments, size}} = state,
         {:continuation, id, fragment, end_headers?}
       ) do
    state = %{state | block: nil}
    # An empty fragment is not free either.
    size = size + byte_size(fragment) + 1
    header_block(state, id, end?, [fragment | fragments], size, end_headers?)
  end

  defp frame(%{block: block} = state, _frame) when block != nil,
    do: protocol_error(state, "a header block was interrupted")

  defp frame(state, {:data, id, data, end?, flow_bytes}),
    do: data(state, id, data, end?, flow_bytes)

  defp frame(state, {:headers, id, fragment, end?, end_headers?}),
    do: header_block(state, id, end?, [fragment], byte_size(fragment), end_headers?)

  defp frame(state, {:continuation, _, _, _}),
    do: protocol_error(state, "CONTINUATION without HEADERS")

  defp frame(state, {:settings, pairs}), do: settings(state, pairs)
  defp frame(state, :settings_ack), do: %{state | acknowledged?: true}
  defp frame(state, {:ping, opaque, false}), do: State.emit(state, Frame.ping(opaque, true))
  defp frame(state, {:ping, _opaque, true}), do: state

  defp frame(state, {:push_promise, _id}),
    do: protocol_error(state, "PUSH_PROMISE, though push is disabled")

  defp frame(state, {:window_update, 0, increment}), do: connection_window(state, increment)
  defp frame(state, {:priority, _id}), do: state
  defp frame(state, {:unknown, _type, _id}), do: state

  defp frame(state, {:goaway, last_id, code, debug}) do
    message =
      "the server sent GOAWAY #{Error.name(code)}#{if debug != "", do: ": " <> printable(debug)}"

    beyond = for {id, ref} <- state.refs, id > last_id, do: state.streams[ref]
    state = %{state | too_many_pings?: code == :enhance_your_calm and debug == "too_many_pings"}
    Enum.reduce(beyond, State.drain(state), &State.give_up(&2, &1, {:refused, message}))
  end

  defp frame(state, {:rst_stream, id, code}) do
    reason =
      if code == :refused_stream,
        do: {:refused, "the server refused the stream"},
        else: {:reset, code}

    on_stream(state, id, "RST_STREAM", &State.give_up(state, &1, reason))
  end

  defp frame(state, {:window_update, id, increment}) do
    on_stream(state, id, "WINDOW_UPDATE", fn stream ->
      case increment > 0 && FlowControl.grow(stream.send_window, increment) do
        {:ok, window} -> reschedule(state, %{stream | send_window: window})
        :error -> stream_error(state, stream, :flow_control_error, "a window above 2^31-1")
        false -> stream_error(state, stream, :protocol_error, "WINDOW_UPDATE of 0")
      end
    end)
  end

  defp frame(state, {:error, {:stream, id, code, message}}) do
    if idle?(state, id),
      do: State.fail(state, code, message),
      else: on_stream(state, id, "a frame", &stream_error(state, &1, code, message))
  end

  defp settings(state, pairs) do
    case Settings.apply_pairs(state.peer, pairs) do
      {:ok, peer} ->
        difference = peer.initial_window_size - state.peer.initial_window_size
        # The acknowledgement precedes every frame that uses the new limits.
        state = State.emit(%{state | peer: peer}, Frame.settings_ack())

        if difference == 0,
          do: state,
          else: Enum.reduce(state.refs, state, &resize(&2, &1, difference))

      {:error, code, message} ->
        State.fail(state, code, message)
    end
  end

  defp resize(%{status: :closed} = state, _entry, _difference), do: state

  defp resize(state, {_id, ref}, difference) do
    stream = state.streams[ref]

    case FlowControl.grow(stream.send_window, difference) do
      {:ok, window} -> reschedule(state, %{stream | send_window: window})
      :error -> State.fail(state, :flow_control_error, "a window above 2^31-1")
    end
  end

  defp reschedule(state, %{pending_bytes: 0} = stream), do: State.put(state, stream)
  defp reschedule(state, stream), do: Outbound.schedule(state, stream)

  defp connection_window(state, increment) do
    case increment > 0 && FlowControl.grow(state.send_window, increment) do
      {:ok, window} -> %{state | send_window: window}
      :error -> State.fail(state, :flow_control_error, "a connection window above 2^31-1")
      false -> protocol_error(state, "WINDOW_UPDATE of 0 for the connection")
    end
  end

  # A header list that is too large is read to its end, for the table's sake; but not without end.
  defp header_block(state, _id, _end?, _fragments, size, _end_headers?)
       when size > @header_blocks * state.max_header_list do
    limit = @header_blocks * state.max_header_list
    State.fail(state, :enhance_your_calm, "a header block above #{limit} bytes")
  end

  defp header_block(state, id, end?, fragments, size, false),
    do: %{state | block: {id, end?, fragments, size}}

  defp header_block(state, id, end?, fragments, _size, true) do
    block = fragments |> Enum.reverse() |> IO.iodata_to_binary()

    # Also for streams that are over: the dynamic table must not miss a block.
    case HPACK.decode(block, state.table, state.max_header_list) do
      {:ok, headers, table} ->
        state = %{state | table: table}
        on_stream(state, id, "HEADERS", &headers(state, &1, headers, end?))

      # One call's headers are no other call's loss.
      {:too_large, table} ->
        message = "a header list above #{state.max_header_list} bytes"
        too_large = &stream_error(%{state | table: table}, &1, :enhance_your_calm, message)
        on_stream(%{state | table: table}, id, "HEADERS", too_large)

      {:error, :compression} ->
        State.fail(state, :compression_error, "a header block that cannot be decoded")
    end
  end

  defp headers(state, %{phase: :headers} = stream, headers, end?) do
    case Headers.check_response(headers) do
      {:ok, "101"} ->
        stream_error(state, stream, :protocol_error, "a switch of protocols")

      {:ok, "1" <> _} when end? ->
        stream_error(state, stream, :protocol_error, "an interim response that ends the stream")

      {:ok, "1" <> _} ->
        state

      {:ok, _status} ->
        deliver(state, Stream.begin_body(stream), {:headers, headers, end?}, end?)

      {:error, message} ->
        stream_error(state, stream, :protocol_error, message)
    end
  end

  defp headers(state, %{phase: :body} = stream, headers, true) do
    case Headers.check_trailers(headers) do
      :ok -> deliver(state, stream, {:headers, headers, true}, true)
      {:error, message} -> stream_error(state, stream, :protocol_error, message)
    end
  end

  defp headers(state, stream, _headers, false),
    do: stream_error(state, stream, :protocol_error, "trailers that do not end the stream")

  defp data(state, id, data, end?, flow_bytes) do
    case FlowControl.charge(state.receive_window, flow_bytes) do
      {:ok, window} ->
        {increment, window} = FlowControl.replenish(window, flow_bytes)
        state = %{state | receive_window: window}

        state =
          if increment > 0, do: State.emit(state, Frame.window_update(0, increment)), else: state

        on_stream(state, id, "DATA", &stream_data(state, &1, data, end?, flow_bytes))

      :error ->
        State.fail(state, :flow_control_error, "more data than the connection's window")
    end
  end

  defp stream_data(state, %{phase: :headers} = stream, _data, _end?, _flow_bytes),
    do: stream_error(state, stream, :protocol_error, "DATA before HEADERS")

  defp stream_data(state, stream, data, end?, flow_bytes) do
    received = stream.received + byte_size(data)

    case FlowControl.charge(stream.receive_window, flow_bytes) do
      :error ->
        stream_error(state, stream, :flow_control_error, "more data than the stream's window")

      {:ok, _window} when received > stream.request.limit ->
        state
        |> State.emit(Frame.rst_stream(stream.id, :cancel))
        |> State.give_up(stream, {:too_large, stream.request.limit})

      {:ok, window} ->
        stream = %{stream | receive_window: window, received: received}
        deliver_data(state, stream, data, end?, flow_bytes)
    end
  end

  defp deliver_data(state, stream, data, true, _flow_bytes),
    do: deliver(state, stream, {:data, data, true}, true)

  defp deliver_data(state, stream, "", false, flow_bytes),
    do: replenish(state, stream, flow_bytes)

  defp deliver_data(state, stream, data, false, flow_bytes) do
    # Padding never reaches the caller, so it is given back here in any case.
    free =
      if stream.request.replenish == :receipt, do: flow_bytes, else: flow_bytes - byte_size(data)

    state = deliver(state, stream, {:data, data, false}, false)
    if free > 0, do: replenish(state, stream, free), else: state
  end

  defp deliver(state, stream, event, false),
    do: state |> State.event(stream.ref, event) |> State.put(stream)

  defp deliver(state, stream, event, true) do
    state = State.event(state, stream.ref, event)
    # The server has answered early: it wants no more of the request.
    state =
      if stream.fin == :sent,
        do: state,
        else: State.emit(state, Frame.rst_stream(stream.id, :no_error))

    State.forget(state, stream)
  end

  # Frames for streams that are over may still come; frames for streams that never were may not.
  defp on_stream(state, id, name, fun) do
    case state.refs do
      %{^id => ref} ->
        fun.(state.streams[ref])

      _ ->
        if idle?(state, id),
          do: protocol_error(state, "#{name} for stream #{id}, which was never opened"),
          else: state
    end
  end

  defp idle?(state, id), do: rem(id, 2) == 0 or id >= state.next_id

  defp stream_error(state, stream, code, message) do
    state
    |> State.emit(Frame.rst_stream(stream.id, code))
    |> State.give_up(stream, {:violation, message})
  end

  defp protocol_error(state, message), do: State.fail(state, :protocol_error, message)

  defp printable(debug), do: if(String.printable?(debug), do: debug, else: inspect(debug))
end
