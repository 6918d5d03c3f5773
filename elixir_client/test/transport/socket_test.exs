defmodule RankBridge.Transport.SocketTest do
  @moduledoc "What a server has sent is read, also where nothing more can be sent to it."

  use ExUnit.Case, async: true

  alias RankBridge.Id
  alias RankBridge.Transport.{Socket, Target}

  setup do
    directory = Path.join(System.tmp_dir!(), "rank_bridge-#{Id.uuid()}")
    File.mkdir_p!(directory)
    on_exit(fn -> File.rm_rf!(directory) end)
    %{path: Path.join(directory, "server")}
  end

  for family <- [:local, :inet, :inet6] do
    @tag family: family
    test "an answer is read although the server that gave it has ended, #{family}", context do
      {listening, target} = listen(context.family, context.path)
      {:ok, target} = Target.parse(target)
      {:ok, socket} = Socket.connect(target, nil, 5_000)
      {:ok, accepted} = :gen_tcp.accept(listening, 5_000)
      :ok = :gen_tcp.send(accepted, "the answer")
      :ok = :gen_tcp.close(accepted)
      assert send_until_it_fails(socket) in [:epipe, :econnreset, :closed]

      :ok = Socket.activate(socket)
      assert next(socket) == {:data, "the answer"}
      assert next(socket) == {:closed, "the server closed the connection"}
      Socket.close(socket, true)
    end
  end

  defp listen(:local, path) do
    {:ok, listening} = :gen_tcp.listen(0, [:binary, active: false, ifaddr: {:local, path}])

    {listening, "unix:" <> path}
  end

  defp listen(family, _path) do
    address = if family == :inet, do: {127, 0, 0, 1}, else: {0, 0, 0, 0, 0, 0, 0, 1}
    {:ok, listening} = :gen_tcp.listen(0, [family, :binary, active: false, ip: address])
    {:ok, port} = :inet.port(listening)
    host = if family == :inet, do: "127.0.0.1", else: "[::1]"
    {listening, "#{host}:#{port}"}
  end

  # Over TCP the first is still taken.
  defp send_until_it_fails(socket) do
    case Socket.send(socket, "more") do
      :ok -> send_until_it_fails(socket)
      {:error, reason} -> reason
    end
  end

  defp next(socket) do
    receive do: (message -> Socket.message(socket, message) || next(socket))
  end
end
