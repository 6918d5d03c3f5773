defmodule RankBridge.Transport.HTTP2.Writer do
  @moduledoc false
  # The process that writes to a connection's socket. Sending blocks while the peer takes nothing, and the
  # connection must never block. Only the writer waits; `{:written, bytes}` reports to the owner how much is written.
  #
  # A GenServer, so that a writer with nothing to do has no code of ours on its stack: it outlives code that is loaded anew.

  use GenServer, restart: :temporary

  alias RankBridge.Transport.Socket

  # Writes that wait are joined up to about so many bytes.
  @join 262_144

  @typep attached :: %{
           socket: Socket.t(),
           owner: pid(),
           grain: pos_integer(),
           done: non_neg_integer(),
           failed?: boolean()
         }

  @doc "Starts a writer, which waits for its socket."
  @spec start_link(term()) :: GenServer.on_start()
  def start_link(_opts), do: GenServer.start_link(__MODULE__, nil)

  @doc "Gives the writer the calling process's socket; it reports to that process every `grain` bytes."
  @spec attach(pid(), Socket.t(), pos_integer()) :: :ok
  def attach(writer, socket, grain) do
    send(writer, {:attach, self(), socket, grain})
    :ok
  end

  @doc "Hands over bytes to write."
  @spec write(pid(), iodata(), non_neg_integer()) :: :ok
  def write(writer, data, bytes) do
    send(writer, {:write, data, bytes})
    :ok
  end

  @doc "Waits until all that was handed over is written: false if that takes more than `timeout` milliseconds."
  @spec flush(pid(), timeout()) :: boolean()
  def flush(writer, timeout) do
    ref = make_ref()
    send(writer, {:flush, ref})

    receive do
      {^ref, :flushed} -> true
    after
      timeout -> false
    end
  end

  @impl GenServer
  @spec init(nil) :: {:ok, nil}
  def init(nil), do: {:ok, nil}

  @impl GenServer
  @spec handle_info(term(), nil | attached()) :: {:noreply, attached()}
  def handle_info({:attach, owner, socket, grain}, nil),
    do: {:noreply, %{socket: socket, owner: owner, grain: grain, done: 0, failed?: false}}

  # Why the connection ended may still be waiting to be read, so this is not the end yet.
  def handle_info({:write, _data, _bytes}, %{failed?: true} = state), do: {:noreply, state}

  def handle_info({:write, data, bytes}, state) do
    {data, bytes} = join(data, bytes)

    case Socket.send(state.socket, data) do
      :ok ->
        {:noreply, report(%{state | done: state.done + bytes})}

      {:error, reason} ->
        send(state.owner, {:write_failed, reason})
        {:noreply, %{state | failed?: true}}
    end
  end

  def handle_info({:flush, ref}, state) do
    send(state.owner, {ref, :flushed})
    {:noreply, state}
  end

  # The owner has closed the socket while this process waited to send.
  def handle_info({:"$socket", _socket, _kind, _info}, state), do: {:noreply, state}

  defp join(data, bytes) when bytes >= @join, do: {data, bytes}

  defp join(data, bytes) do
    receive do
      {:write, more, more_bytes} -> join([data | more], bytes + more_bytes)
    after
      0 -> {data, bytes}
    end
  end

  defp report(%{done: done, grain: grain} = state) when done >= grain do
    send(state.owner, {:written, done})
    %{state | done: 0}
  end

  defp report(state), do: state
end
