defmodule RankBridge.Transport.Local do
  @moduledoc false
  # A stream of operations to a rank on this host, without gRPC: the functions of `RankBridge.Transport` for a process that must
  # not block on a call that streams both ways.
  #
  # A rank whose target is the unix socket PATH listens at PATH.stream, too. Each connection there is one stream, of the same
  # messages as `GangService.Execute`, as `RankBridge.Transport.Local.Framing` writes them. A connection that ends without the
  # end of the stream is lost; the stream ends also with the channel to the rank.
  #
  # No function here waits for the rank. Reading starts after the first message was sent, so that a rank's refusal of the stream,
  # which comes unasked, is the answer to that message.

  alias RankBridge.Transport
  alias RankBridge.Transport.GRPC.Outcome
  alias RankBridge.Transport.Local.Framing
  alias RankBridge.Transport.{Nearness, Socket, Status}

  @suffix ".stream"
  # Bytes of a read: of several answers, if they are there.
  @buffer 65_536
  # Bytes that may wait to be written, as of gRPC streams.
  @write_cap 2_097_152

  @enforce_keys [:socket, :monitor]
  defstruct [
    :socket,
    :monitor,
    :reading,
    :writing,
    received: %Framing{},
    unwritten: [],
    waiting: 0,
    asked?: false,
    broken?: false,
    closed?: false,
    transport: __MODULE__
  ]

  @typedoc """
  * `monitor` - of the channel, which is `closed?` since
  * `reading`, `writing` - handles of pending socket operations; nil: none is pending
  * `received` - the part of an incomplete message that has arrived
  * `unwritten`, `waiting` - the bytes to write, and how many they are
  * `asked?`, `broken?` - whether anything was written, and whether nothing more can be
  """
  @type t :: %__MODULE__{
          socket: :socket.socket(),
          monitor: reference(),
          reading: reference() | nil,
          writing: reference() | nil,
          received: Framing.t(),
          unwritten: iodata(),
          waiting: non_neg_integer(),
          asked?: boolean(),
          broken?: boolean(),
          closed?: boolean(),
          transport: module()
        }

  @doc "A stream to the rank of a channel, of the calling process; `:none`: it cannot be had, and gRPC's is to be taken."
  @spec open(Transport.channel()) :: {:ok, t()} | :none
  def open(channel) do
    with {:ok, path, pid} <- Transport.unix_socket(channel),
         true <- Process.alive?(pid),
         :ok <- Nearness.check_owner(path <> @suffix),
         {:ok, socket} <- connect(path <> @suffix) do
      {:ok, %__MODULE__{socket: socket, monitor: Process.monitor(pid)}}
    else
      _cannot -> :none
    end
  end

  # A local socket is connected to at once or, as where a stopped rank has too many to accept, not at all.
  defp connect(path),
    do: Socket.open(%{family: :local, path: path}, [{{:otp, :rcvbuf}, @buffer}], :nowait)

  @doc "Sends a message without waiting. `:closed`: it cannot be sent, and `arrived/1` returns why."
  @spec send_message(t(), iodata()) :: {:ok | :closed, t()}
  def send_message(%{broken?: true} = call, _message), do: {:closed, call}

  def send_message(%{writing: nil} = call, message) do
    case write(call, Framing.encode(message)) do
      # A rank that has refused the stream reads nothing. This is to have its answer.
      %{broken?: true, asked?: false} = call -> {:ok, call}
      %{broken?: true} = call -> {:closed, call}
      call -> {:ok, call}
    end
  end

  def send_message(call, message) do
    bytes = Framing.encode(message)
    waiting = call.waiting + byte_size(bytes)
    {:ok, %{call | unwritten: [call.unwritten, bytes], waiting: waiting}}
  end

  defp write(call, bytes) do
    case :socket.send(call.socket, bytes, [], :nowait) do
      :ok -> %{call | asked?: true, unwritten: [], waiting: 0}
      {:ok, rest} -> write(%{call | asked?: true}, rest)
      {:select, {info, rest}} when is_binary(rest) -> await_room(call, info, rest)
      {:select, info} -> await_room(call, info, bytes)
      {:error, _why} -> %{call | broken?: true, unwritten: [], waiting: 0}
    end
  end

  defp await_room(call, {:select_info, _tag, handle}, rest) do
    %{call | asked?: true, writing: handle, unwritten: rest, waiting: byte_size(rest)}
  end

  @doc """
  Whether more is to be sent. Where there is no room, a call is among what waits, and its answer is the time to ask again.
  """
  @spec room?(t()) :: boolean()
  def room?(call), do: call.waiting < @write_cap

  @doc "Takes a message of the mailbox, if it is this stream's."
  @spec hear(t(), term()) :: {:ok, t()} | :unknown
  def hear(%{socket: socket} = call, {:"$socket", socket, kind, what}),
    do: {:ok, on_socket(call, kind, what)}

  def hear(%{monitor: monitor} = call, {:DOWN, monitor, :process, _pid, _why}),
    do: {:ok, %{call | closed?: true}}

  def hear(_call, _message), do: :unknown

  defp on_socket(%{reading: handle} = call, :select, handle), do: %{call | reading: nil}

  defp on_socket(%{writing: handle} = call, :select, handle),
    do: write(%{call | writing: nil}, IO.iodata_to_binary(call.unwritten))

  # The next read returns what has become of the connection.
  defp on_socket(call, :abort, _why), do: %{call | reading: nil}
  defp on_socket(call, _kind, _what), do: call

  @doc """
  The messages that are there, without waiting, and the end, after which the stream must not be used. To be asked again until
  there are none: only then more is heard of.
  """
  @spec arrived(t()) ::
          {:ok, [binary()], t()} | {:done, [binary()], []} | {:error, [binary()], Status.t()}
  def arrived(%{closed?: true} = call) do
    cancel(call)
    {:error, [], Outcome.from_reason({:shutdown, "the channel was closed"}, true)}
  end

  def arrived(%{reading: nil} = call) do
    case :socket.recv(call.socket, 0, [], :nowait) do
      {:ok, bytes} -> received(call, Framing.decode(call.received, bytes))
      {:select, {:select_info, _tag, handle}} -> {:ok, [], %{call | reading: handle}}
      {:error, why} -> lost(call, why)
    end
  end

  def arrived(call), do: {:ok, [], call}

  defp received(call, {[], {:more, framing}}), do: arrived(%{call | received: framing})
  defp received(call, {messages, {:more, more}}), do: {:ok, messages, %{call | received: more}}

  defp received(call, {messages, :over}) do
    cancel(call)
    {:done, messages, []}
  end

  defp received(call, {messages, {:too_large, limit}}) do
    cancel(call)
    {:error, messages, Outcome.from_message_error(:too_large, limit)}
  end

  # What could never be written was not begun either.
  defp lost(call, why) do
    cancel(call)
    {:error, [], Outcome.from_reason({:lost, explanation(why)}, call.asked?)}
  end

  # As of a connection for gRPC: what the rank has left unread is no other end.
  defp explanation(why) when why in [:closed, :econnreset], do: "the server closed the connection"
  defp explanation(why), do: inspect(why)

  @doc "Whether the rank is known to have ended a stream that nothing was sent on; such a stream is not read yet."
  @spec ended_unused?(t()) :: boolean()
  def ended_unused?(%{asked?: true}), do: false

  def ended_unused?(call) do
    case :socket.recv(call.socket, 1, [:peek], 0) do
      {:ok, _refusal} -> false
      {:error, :timeout} -> false
      {:error, _closed} -> true
    end
  end

  @doc "Ends the stream: what the rank has not admitted is withdrawn."
  @spec cancel(t()) :: :ok
  def cancel(call) do
    Process.demonitor(call.monitor, [:flush])
    _ = :socket.close(call.socket)
    flush(call.socket)
  end

  defp flush(socket) do
    receive do
      {:"$socket", ^socket, _kind, _what} -> flush(socket)
    after
      0 -> :ok
    end
  end
end
