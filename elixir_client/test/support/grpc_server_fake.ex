defmodule RankBridge.Test.FakeServer do
  @moduledoc """
  The server's side of HTTP/2 by hand, for what a real server would never do. The test plays the server,
  frame by frame.
  """

  import ExUnit.Assertions

  alias RankBridge.Transport
  alias RankBridge.Transport.HTTP2.{Frame, HPACK}

  @timeout 5_000

  @doc "A listening socket, and the target to connect to."
  @spec listen() :: {:inet.socket(), String.t()}
  def listen do
    {:ok, listener} =
      :gen_tcp.listen(0, [:binary, active: false, ip: {127, 0, 0, 1}, nodelay: true])

    {:ok, port} = :inet.port(listener)
    {listener, "127.0.0.1:#{port}"}
  end

  @doc "Accepts a connection, and reads how the client begins: its SETTINGS."
  @spec accept(:inet.socket()) :: {:inet.socket(), [{non_neg_integer(), non_neg_integer()}]}
  def accept(listener) do
    {:ok, socket} = :gen_tcp.accept(listener, @timeout)
    preface = Frame.preface()
    {:ok, ^preface} = :gen_tcp.recv(socket, byte_size(preface), @timeout)
    {:settings, settings} = next(socket)
    {socket, settings}
  end

  @doc "Accepts a connection and makes it ready, with the server's settings."
  @spec serve(:inet.socket(), [{non_neg_integer(), non_neg_integer()}]) :: :inet.socket()
  def serve(listener, settings \\ []) do
    {socket, _} = accept(listener)
    write(socket, [Frame.settings(settings), Frame.settings_ack()])
    :settings_ack = next(socket, :settings_ack)
    socket
  end

  @doc "A channel, and the server's end of its connection. Options: `:settings` of the server, and the channel's."
  @spec connect(%{listener: :inet.socket(), target: String.t()}, keyword()) ::
          {Transport.channel(), :inet.socket()}
  def connect(context, opts \\ []) do
    {settings, opts} = Keyword.pop(opts, :settings, [])
    {:ok, channel} = Transport.connect(context.target, [lazy: true, owner: self()] ++ opts)
    {channel, serve(context.listener, settings)}
  end

  @doc "Starts a unary call."
  @spec unary(Transport.channel(), iodata(), keyword()) :: Transport.call()
  def unary(channel, message \\ "hi", opts \\ []) do
    opts = Keyword.put_new(opts, :timeout, 2 * @timeout)
    Transport.start_unary(channel, "/test.Test/Echo", message, opts)
  end

  @doc "The next frame; `:closed` if the client closes."
  @spec next(:inet.socket()) :: Frame.t() | :closed
  def next(socket) do
    case :gen_tcp.recv(socket, 9, @timeout) do
      {:ok, <<length::24, type, flags, 0::1, id::31>>} ->
        {:ok, frame} = Frame.decode(type, flags, id, payload(socket, length))
        frame

      {:error, reason} when reason in [:closed, :econnreset] ->
        :closed
    end
  end

  defp payload(_socket, 0), do: ""

  defp payload(socket, length) do
    {:ok, payload} = :gen_tcp.recv(socket, length, @timeout)
    payload
  end

  @doc "The next frame of a kind; others are skipped."
  @spec next(:inet.socket(), atom()) :: Frame.t() | :closed
  def next(socket, kind) do
    case next(socket) do
      ^kind -> kind
      frame when is_tuple(frame) and elem(frame, 0) == kind -> frame
      :closed -> flunk("the client closed; expected #{kind}")
      _ -> next(socket, kind)
    end
  end

  @doc "Reads a whole request with one HEADERS frame: its stream id."
  @spec request(:inet.socket()) :: pos_integer()
  def request(socket) do
    {:headers, id, _block, end?, true} = next(socket, :headers)
    unless end?, do: drain(socket, id)
    id
  end

  defp drain(socket, id) do
    case next(socket, :data) do
      {:data, ^id, _data, true, _} -> :ok
      {:data, _id, _data, _end?, _} -> drain(socket, id)
    end
  end

  @doc "Writes bytes."
  @spec write(:inet.socket(), iodata()) :: :ok
  def write(socket, data), do: :ok = :gen_tcp.send(socket, data)

  @doc "A response's headers as a frame."
  @spec headers(pos_integer()) :: iodata()
  def headers(id), do: Frame.headers(id, headers_block(), false, 16_384)

  @doc "The header block of a response that goes well."
  @spec headers_block() :: binary()
  def headers_block, do: HPACK.encode([{":status", "200"}, {"content-type", "application/grpc"}])

  @doc "A message as a DATA frame."
  @spec message(pos_integer(), binary()) :: iodata()
  def message(id, message),
    do: Frame.data(id, [<<0, byte_size(message)::32>>, message], byte_size(message) + 5, false)

  @doc "Trailers that end a call well."
  @spec trailers(pos_integer()) :: iodata()
  def trailers(id), do: Frame.headers(id, HPACK.encode([{"grpc-status", "0"}]), true, 16_384)

  @doc "A whole response."
  @spec respond(:inet.socket(), pos_integer(), binary()) :: :ok
  def respond(socket, id, message),
    do: write(socket, [headers(id), message(id, message), trailers(id)])
end
