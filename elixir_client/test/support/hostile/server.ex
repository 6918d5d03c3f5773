defmodule RankBridge.Test.Hostile.Server do
  @moduledoc """
  A server that speaks as much HTTP/2 as a client needs to begin, and then plays a `Case`.

  The first request of the first connection (of the first `repeat`) is answered with the case's play, every other one well, with a
  message that names the connection. The process that starts a server gets what clients do, as `{ref, n, what}` of the `n`th
  connection: `what` is a frame, `{:request, id}` or `:closed`.

  A play is a list of steps:
  * bytes, which are written at once
  * `{:drip, bytes}` - one byte a write
  * `{:await, kind}` - waits for a frame of the client's
  * `{:forever, bytes}` - again and again, until the client closes
  * `:close`, `:reset` - ends the connection in order, or by a TCP reset
  """

  alias RankBridge.Test.Hostile.{Bytes, Case}
  alias RankBridge.Transport.HTTP2.Frame

  @enforce_keys [:target, :ref, :pid]
  defstruct [:target, :ref, :pid]

  @type step ::
          iodata()
          | {:drip | :forever, iodata()}
          | {:await, atom()}
          | :close
          | :reset
  @type t :: %__MODULE__{target: String.t(), ref: reference(), pid: pid()}

  @doc "Starts a server on a port of its own, linked to the caller."
  @spec start(Case.t()) :: t()
  def start(kase) do
    {:ok, listener} =
      :gen_tcp.listen(0, [:binary, active: false, ip: {127, 0, 0, 1}, nodelay: true])

    {:ok, port} = :inet.port(listener)
    {ref, reports} = {make_ref(), self()}

    pid =
      spawn_link(fn ->
        spawn_link(fn -> accept(listener, 1, kase, &send(reports, {ref, &1, &2})) end)
        # Whoever owns the listener must stay.
        receive do: (:never -> :ok)
      end)

    :ok = :gen_tcp.controlling_process(listener, pid)
    %__MODULE__{target: "127.0.0.1:#{port}", ref: ref, pid: pid}
  end

  @doc "Ends the server with all its connections, and forgets what it has reported."
  @spec stop(t()) :: :ok
  def stop(%{pid: pid, ref: ref}) do
    monitor = Process.monitor(pid)
    Process.unlink(pid)
    Process.exit(pid, :kill)
    receive do: ({:DOWN, ^monitor, :process, ^pid, _why} -> :ok)
    forget(ref)
  end

  defp forget(ref) do
    receive do
      {^ref, _n, _what} -> forget(ref)
    after
      0 -> :ok
    end
  end

  defp accept(listener, n, kase, report) do
    case :gen_tcp.accept(listener) do
      {:ok, socket} ->
        spawn_link(fn -> accept(listener, n + 1, kase, report) end)
        connection = %{socket: socket, n: n, report: &report.(n, &1), play: play(kase, n)}
        catch_closed(fn -> serve(connection, kase) end)
        :gen_tcp.close(socket)
        report.(n, :closed)

      {:error, _stopped} ->
        :ok
    end
  end

  defp play(%{repeat: repeat, play: play}, n) when n <= repeat, do: play
  defp play(_kase, _n), do: nil

  defp catch_closed(fun) do
    fun.()
  catch
    :closed -> :ok
  end

  defp serve(%{n: 1} = connection, %{begin: :raw} = kase) do
    _first_bytes = recv(connection, 0)
    steps(connection, kase.play)
    swallow(connection)
  end

  defp serve(connection, kase) do
    # A client that speaks TLS comes again as it came first.
    preface = Frame.preface()
    if recv(connection, byte_size(preface)) != preface, do: throw(:closed)

    steps(connection, (connection.n == 1 && kase.begin) || [Bytes.greeting()])
    requests(connection)
  end

  defp requests(connection) do
    case frame(connection) do
      {:headers, id, _block, true, _end_headers?} -> connection |> request(id) |> requests()
      {:data, id, _data, true, _bytes} -> connection |> request(id) |> requests()
      _other -> requests(connection)
    end
  end

  defp request(connection, id) do
    connection.report.({:request, id})

    if connection.play,
      do: steps(connection, connection.play),
      else: write(connection, Bytes.response(id, "good on #{connection.n}"))

    %{connection | play: nil}
  end

  defp steps(connection, steps), do: Enum.each(steps, &step(connection, &1))

  defp step(connection, {:drip, bytes}) do
    for <<byte <- IO.iodata_to_binary(bytes)>>, do: write(connection, <<byte>>)
  end

  defp step(connection, {:forever, bytes}) do
    case :gen_tcp.send(connection.socket, bytes) do
      :ok -> step(connection, {:forever, bytes})
      {:error, _closed} -> throw(:closed)
    end
  end

  defp step(connection, {:await, kind}) do
    case frame(connection) do
      ^kind -> :ok
      frame when is_tuple(frame) and elem(frame, 0) == kind -> :ok
      _other -> step(connection, {:await, kind})
    end
  end

  defp step(_connection, :close), do: throw(:closed)

  defp step(connection, :reset) do
    :ok = :inet.setopts(connection.socket, linger: {true, 0})
    throw(:closed)
  end

  defp step(connection, bytes), do: write(connection, bytes)

  # What the client has said before it closed is still to be read.
  defp write(connection, bytes), do: _ = :gen_tcp.send(connection.socket, bytes)

  defp swallow(connection) do
    _bytes = recv(connection, 0)
    swallow(connection)
  end

  defp frame(connection) do
    <<length::24, type, flags, _::1, id::31>> = recv(connection, 9)
    payload = if length == 0, do: "", else: recv(connection, length)
    {:ok, frame} = Frame.decode(type, flags, id, payload)

    answer(connection, frame)
    connection.report.(frame)
    frame
  end

  defp answer(connection, {:ping, opaque, false}),
    do: write(connection, Frame.ping(opaque, true))

  # A server that is well-behaved takes data without end.
  defp answer(%{play: nil} = connection, {:data, _id, _data, _end?, bytes}) when bytes > 0,
    do: write(connection, Frame.window_update(0, bytes))

  defp answer(_connection, _frame), do: :ok

  defp recv(connection, length) do
    case :gen_tcp.recv(connection.socket, length) do
      {:ok, bytes} -> bytes
      {:error, _closed} -> throw(:closed)
    end
  end
end
