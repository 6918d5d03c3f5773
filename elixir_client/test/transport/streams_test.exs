defmodule RankBridge.Transport.StreamsTest do
  @moduledoc "Back-pressure both ways, and calls that end before their time."

  use ExUnit.Case, async: true

  alias RankBridge.Test.GRPCServer
  alias RankBridge.Transport

  # Milliseconds that a busy machine may need beyond a deadline. What is not kept would last for ever.
  @late 20_000

  setup do
    server = GRPCServer.start()
    {:ok, channel} = Transport.connect(server.address, owner: self())
    %{server: server, channel: channel}
  end

  # Mailboxes must be as they were: only what the server's process prints may be there.
  defp assert_nothing_left(server) do
    {:messages, messages} = Process.info(self(), :messages)
    assert Enum.reject(messages, &match?({port, {:data, _}} when port == server.port, &1)) == []
    assert {:monitors, monitors} = Process.info(self(), :monitors)
    assert monitors == []
  end

  test "a slow reader holds the server back", %{server: server, channel: channel} do
    total = 200 * 1_048_576
    wish = ~s({"count": 200, "size": 1048576, "name": "slow"})
    parent = self()

    reader =
      spawn_link(fn ->
        read = fn message, bytes ->
          if bytes == 0 do
            send(parent, {:first, self()})
            receive do: (:go_on -> :ok)
          end

          {:cont, bytes + byte_size(message)}
        end

        send(
          parent,
          {:read,
           Transport.server_stream(channel, "/test.Test/Stream", wish, 0, read, timeout: 60_000)}
        )
      end)

    assert_receive {:first, ^reader}, 10_000
    sent = steady(channel, nil)
    # 4 MiB of window, and what the sockets and the server's own queue hold.
    assert sent < 40 * 1_048_576
    {:memory, memory} = Process.info(reader, :memory)
    {:binary, binaries} = Process.info(reader, :binary)
    held = Enum.sum(for {_id, bytes, _count} <- Enum.uniq_by(binaries, &elem(&1, 0)), do: bytes)
    assert memory + held < 16 * 1_048_576

    send(reader, :go_on)
    assert_receive {:read, {:ok, ^total}}, 60_000
    assert GRPCServer.line(server, "stream over") == "stream over slow"
  end

  # Asks until two answers in a row are the same: the server no longer gets on.
  defp steady(channel, last) do
    {:ok, sent} = Transport.unary(channel, "/test.Test/SentBytes", "", timeout: 5_000)

    if sent == last and sent != "0" do
      String.to_integer(sent)
    else
      receive do
      after
        200 -> steady(channel, sent)
      end
    end
  end

  test "messages larger than the stream's window pass", %{server: server} do
    {:ok, channel} = Transport.connect(server.address, owner: self(), stream_window: 65_535)
    wish = ~s({"count": 3, "size": 5000000})
    sum = fn message, acc -> {:cont, acc + byte_size(message)} end

    assert {:ok, 15_000_000} =
             Transport.server_stream(channel, "/test.Test/Stream", wish, 0, sum, timeout: 20_000)

    assert {:ok, large} =
             Transport.unary(channel, "/test.Test/Download", "5000000", timeout: 20_000)

    assert byte_size(large) == 5_000_000
  end

  test "a server that reads nothing holds the sender back", %{server: server, channel: channel} do
    counter = :counters.new(1, [])
    chunk = :binary.copy("c", 1_048_576)

    chunks =
      Stream.repeatedly(fn ->
        :counters.add(counter, 1, 1)
        chunk
      end)

    assert {:error, %{code: :deadline_exceeded}} =
             Transport.client_stream(channel, "/test.Test/ReadNone", chunks, timeout: 1_000)

    # The cap, the server's windows, and the sockets' buffers; without back-pressure it would be thousands.
    assert :counters.get(counter, 1) < 40
    assert {:ok, "alive"} = Transport.unary(channel, "/test.Test/Echo", "alive", timeout: 5_000)
    assert_nothing_left(server)
  end

  test "a client stream ends when the server answers early", %{server: server, channel: channel} do
    endless = Stream.iterate(0, &(&1 + 1)) |> Stream.map(&"message #{&1}")

    assert {:ok, "message 0"} =
             Transport.client_stream(channel, "/test.Test/FirstOnly", endless, timeout: 10_000)

    assert_nothing_left(server)
  end

  test "an open stream tells that the server ended it", %{channel: channel} do
    {:ok, call} = Transport.open_stream(channel, "/test.Test/FirstOnly", timeout: 10_000)
    {:ok, call} = Transport.send_message(call, "only")
    call = send_until_closed(call)
    assert {:closed, call} = Transport.half_close(call)
    assert {:ok, "only", call} = Transport.recv_message(call)
    assert {:done, []} = Transport.recv_message(call)
  end

  defp send_until_closed(call) do
    case Transport.send_message(call, "more") do
      {:ok, call} -> send_until_closed(call)
      {:closed, call} -> call
    end
  end

  test "many messages may be underway both ways", %{channel: channel} do
    {:ok, call} = Transport.open_stream(channel, "/test.Test/Chat", timeout: 20_000)

    call =
      for n <- 1..1_000, reduce: call do
        call ->
          {:ok, call} = Transport.send_message(call, "#{n}")
          call
      end

    {:ok, call} = Transport.half_close(call)

    call =
      for n <- 1..1_000, reduce: call do
        call ->
          expected = "re: #{n}"
          assert {:ok, ^expected, call} = Transport.recv_message(call)
          call
      end

    assert {:done, []} = Transport.recv_message(call)
  end

  test "a process that does not wait for a stream hears of what arrives", %{channel: channel} do
    {:ok, call} = Transport.open_stream(channel, "/test.Test/Chat", timeout: 20_000)
    assert Transport.hear(call, {:another, :message}) == :unknown
    assert {:ok, [], call} = Transport.arrived(call)
    assert Transport.room?(call)

    {call, messages_so_far} =
      for n <- 1..200, reduce: {call, []} do
        {call, messages_so_far} ->
          {:ok, call} = Transport.send_message(call, "#{n}")
          # What has come meanwhile was taken in by that.
          {:ok, messages, call} = Transport.arrived(call)
          {call, messages_so_far ++ messages}
      end

    {:ok, call} = Transport.half_close(call)
    assert {:done, messages, []} = receive_all(call)
    assert messages_so_far ++ messages == for(n <- 1..200, do: "re: #{n}")
  end

  test "a stream that hears is told of the end of its connection, after what came", context do
    {:ok, call} = Transport.open_stream(context.channel, "/test.Test/Chat", timeout: 20_000)
    {:ok, call} = Transport.send_message(call, "1")
    assert {:ok, ["re: 1"], call} = receive_some(call)
    Transport.close(context.channel)
    assert {:error, [], %{sent?: true}} = receive_all(call)
  end

  test "there is no room while the server takes nothing", %{channel: channel} do
    {:ok, call} = Transport.open_stream(channel, "/test.Test/Chat", timeout: 20_000)
    call = fill(call)
    refute Transport.room?(call)
    {:ok, call} = Transport.half_close(call)
    assert {:done, [_ | _], []} = receive_all(call)
  end

  # One message is far more than the cap.
  defp fill(call) do
    {:ok, call} = Transport.send_message(call, String.duplicate("x", 8_000_000))
    call
  end

  # All messages until the end.
  defp receive_all(call, before \\ []) do
    case receive_some(call) do
      {:ok, messages, call} -> receive_all(call, before ++ messages)
      {how, messages, why} -> {how, before ++ messages, why}
    end
  end

  defp receive_some(call) do
    receive do
      message ->
        case Transport.hear(call, message) do
          {:ok, call} -> at_least_one(Transport.arrived(call))
          :unknown -> receive_some(call)
        end
    end
  end

  # Headers and words of what was sent bring no message.
  defp at_least_one({:ok, [], call}), do: receive_some(call)
  defp at_least_one(told), do: told

  test "halting cancels the call at the server", %{server: server, channel: channel} do
    wish = ~s({"count": 1000000, "size": 100000, "name": "halted"})
    halt = fn message, _acc -> {:halt, byte_size(message)} end

    assert {:ok, 100_000} =
             Transport.server_stream(channel, "/test.Test/Stream", wish, 0, halt, timeout: 60_000)

    assert GRPCServer.line(server, "stream over") == "stream over halted"
    assert_nothing_left(server)
  end

  test "what the caller's functions raise cancels the call, and goes on", %{
    server: server,
    channel: channel
  } do
    wish = ~s({"count": 1000000, "size": 100000, "name": "raised"})
    raise_it = fn _message, _acc -> raise "in fun" end

    assert_raise RuntimeError, "in fun", fn ->
      Transport.server_stream(channel, "/test.Test/Stream", wish, 0, raise_it, timeout: 60_000)
    end

    assert GRPCServer.line(server, "stream over") == "stream over raised"

    messages = Stream.map(1..3, fn n -> if n == 3, do: throw(:in_stream), else: "x" end)

    assert catch_throw(
             Transport.client_stream(channel, "/test.Test/Count", messages, timeout: 60_000)
           ) == :in_stream

    assert_nothing_left(server)
  end

  test "the server sees a call cancelled", %{server: server, channel: channel} do
    call = Transport.start_unary(channel, "/test.Test/Hang", "mine", timeout: 60_000)
    assert GRPCServer.line(server, "hanging") == "hanging mine"
    assert :ok = Transport.cancel(call)
    assert GRPCServer.line(server, "cancelled") == "cancelled mine"
    assert_nothing_left(server)
  end

  test "a caller's death cancels its calls, and no others", %{server: server, channel: channel} do
    mine = Transport.start_unary(channel, "/test.Test/HangUntilTold", "mine", timeout: 60_000)
    assert GRPCServer.line(server, "waiting") == "waiting mine"

    caller =
      spawn(fn ->
        Transport.start_unary(channel, "/test.Test/Hang", "theirs", timeout: 60_000)
        {:ok, _call} = Transport.open_stream(channel, "/test.Test/Chat", timeout: 60_000)
        Process.sleep(:infinity)
      end)

    assert GRPCServer.line(server, "hanging") == "hanging theirs"
    Process.exit(caller, :kill)
    assert GRPCServer.line(server, "cancelled") == "cancelled theirs"
    GRPCServer.command(server, "release")
    assert {:ok, "mine"} = Transport.await(mine)
  end

  test "the deadline is kept, and the server told", %{server: server, channel: channel} do
    started = now()

    assert {:error, %{code: :deadline_exceeded}} =
             Transport.unary(channel, "/test.Test/Hang", "late", timeout: 300)

    assert (now() - started) in 300..@late

    # A server that has not begun with a call by then says nothing of its end.
    call = Transport.start_unary(channel, "/test.Test/Hang", "begun", timeout: 60_000)
    assert GRPCServer.line(server, "hanging begun") == "hanging begun"
    assert {:error, %{code: :deadline_exceeded}} = Transport.await(%{call | deadline: now()})
    assert GRPCServer.line(server, "cancelled begun") == "cancelled begun"

    assert {:error, %{code: :deadline_exceeded, sent?: false}} =
             Transport.unary(channel, "/test.Test/Echo", "", timeout: 0)

    assert_nothing_left(server)
  end

  test "one deadline is for the whole stream, not for each message", %{channel: channel} do
    {:ok, call} = Transport.open_stream(channel, "/test.Test/Chat", timeout: 300)
    started = now()
    assert {:error, %{code: :deadline_exceeded}} = ping_pong(call)
    assert (now() - started) in 250..@late
  end

  defp now, do: System.monotonic_time(:millisecond)

  defp ping_pong(call) do
    with {_, call} <- Transport.send_message(call, "ping"),
         {:ok, _pong, call} <- Transport.recv_message(call),
         do: ping_pong(call)
  end

  test "a call that is over can be asked again, and does not hang", %{channel: channel} do
    call = Transport.start_unary(channel, "/test.Test/Echo", "x")
    assert {:ok, "x"} = Transport.await(call)
    assert {:error, %{code: :cancelled}} = Transport.await(call)

    call = Transport.start_unary(channel, "/test.Test/Hang", "again")
    Transport.cancel(call)
    assert {:error, %{code: :cancelled}} = Transport.await(call)
  end

  test "a call belongs to the process that started it", %{channel: channel} do
    call = Transport.start_unary(channel, "/test.Test/Echo", "x", timeout: 5_000)
    task = Task.async(fn -> catch_error(Transport.await(call)) end)
    assert %ArgumentError{} = Task.await(task)
    assert {:ok, "x"} = Transport.await(call)
  end
end
