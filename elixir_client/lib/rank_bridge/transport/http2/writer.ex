defmodule RankBridge.Transport.HTTP2.Writer do
  @moduledoc false
  # The process that writes to a connection's socket. Sending blocks while the peer takes nothing, and the
  # connection must never block. Only the writer waits; `{:written, bytes}` reports to the owner how much is written.

  use Task, restart: :temporary

  alias RankBridge.Transport.Socket

  # Writes that wait are joined up to about so many bytes.
  @join 262_144

  @doc "Starts a writer, which waits for its socket."
  @spec start_link(term()) :: {:ok, pid()}
  def start_link(_opts), do: Task.start_link(__MODULE__, :run, [])

  @doc "Gives the writer the calling process's socket; it reports to that process every `grain` bytes."
  @spec attach(pid(), Socket.t(), pos_integer()) :: :ok
  def attach(writer, socket, grain) do
    send(writer, {:attach, self(), socket, grain})
    :ok
  end

  @doc false
  @spec run() :: no_return()
  def run do
    receive do: ({:attach, owner, socket, grain} -> loop(socket, owner, grain, 0))
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

  defp loop(socket, owner, grain, done) do
    receive do
      {:write, data, bytes} ->
        {data, bytes} = join(data, bytes)

        case Socket.send(socket, data) do
          :ok -> loop(socket, owner, grain, report(owner, done + bytes, grain))
          {:error, reason} -> failed(owner, reason)
        end

      {:flush, ref} ->
        send(owner, {ref, :flushed})
        loop(socket, owner, grain, done)
    end
  end

  defp join(data, bytes) when bytes >= @join, do: {data, bytes}

  defp join(data, bytes) do
    receive do
      {:write, more, more_bytes} -> join([data | more], bytes + more_bytes)
    after
      0 -> {data, bytes}
    end
  end

  defp report(owner, done, grain) when done >= grain do
    send(owner, {:written, done})
    0
  end

  defp report(_owner, done, _grain), do: done

  # Why the connection ended may still be waiting to be read, so this is not the end yet.
  defp failed(owner, reason) do
    send(owner, {:write_failed, reason})
    ignore(owner)
  end

  defp ignore(owner) do
    receive do
      {:flush, ref} ->
        send(owner, {ref, :flushed})
        ignore(owner)

      _ ->
        ignore(owner)
    end
  end
end
