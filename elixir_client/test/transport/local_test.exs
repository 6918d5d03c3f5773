defmodule RankBridge.Transport.LocalTest do
  @moduledoc "Streams by a unix socket, to a rank that is played by the test."

  use ExUnit.Case, async: true

  alias RankBridge.{Id, Transport}
  alias RankBridge.Transport.{HTTP2, Local}

  defmodule Channel do
    @moduledoc "A channel that tells what a test says."

    defstruct [:socket, transport: __MODULE__]

    def unix_socket(%{socket: socket}), do: socket
  end

  @timeout 10_000

  setup do
    directory = Path.join(System.tmp_dir!(), "rank_bridge-#{Id.uuid()}")
    File.mkdir_p!(directory)
    on_exit(fn -> File.rm_rf!(directory) end)
    path = Path.join(directory, "rank")
    channel = start_supervised!({Agent, fn -> nil end})
    %{path: path, pid: channel, channel: %Channel{socket: {:ok, path, channel}}}
  end

  defp listen(path, opts \\ []) do
    opts = [:binary, ifaddr: {:local, path <> ".stream"}, packet: 4, active: false] ++ opts
    {:ok, listener} = :gen_tcp.listen(0, opts)
    listener
  end

  # A stream, and the rank's end of it.
  defp connect(context) do
    listener = listen(context.path)
    {:ok, call} = Local.open(context.channel)
    {:ok, rank} = :gen_tcp.accept(listener, @timeout)
    {call, rank}
  end

  defp answer(rank, messages), do: for(it <- messages, do: :ok = :gen_tcp.send(rank, it))

  defp sent(call, message) do
    {:ok, call} = Transport.send_message(call, message)
    call
  end

  # All that arrives until the end.
  defp receive_all(call, before \\ []) do
    case Transport.arrived(call) do
      {:ok, [], call} -> call |> handle_next() |> receive_all(before)
      {:ok, messages, call} -> receive_all(call, before ++ messages)
      {how, messages, why} -> {how, before ++ messages, why}
    end
  end

  # Until something arrives.
  defp receive_some(call) do
    with {:ok, [], call} <- Transport.arrived(call), do: call |> handle_next() |> receive_some()
  end

  # Other processes of a test may tell it something, too.
  defp handle_next(%{monitor: monitor} = call) do
    message =
      receive do
        {:"$socket", _socket, _kind, _what} = message -> message
        {:DOWN, ^monitor, :process, _pid, _why} = message -> message
      after
        @timeout -> flunk("nothing was heard of")
      end

    {:ok, call} = Transport.hear(call, message)
    call
  end

  defp assert_nothing_left do
    assert Process.info(self(), [:messages, :monitors]) == [messages: [], monitors: []]
  end

  test "messages go and come in order, and the last one is the end", context do
    {call, rank} = connect(context)
    assert Transport.hear(call, {:another, :message}) == :unknown
    call = call |> sent("one") |> sent(["t", ["wo"]])
    assert {:ok, [], call} = Transport.arrived(call)
    for message <- ["one", "two"], do: assert({:ok, ^message} = :gen_tcp.recv(rank, 0, @timeout))

    answer(rank, ["first"])
    assert {:ok, ["first"], call} = receive_some(call)
    large = String.duplicate("x", 3_000_000)
    answer = Task.async(fn -> answer(rank, ["second", large, "last", ""]) end)
    assert receive_all(call) == {:done, ["second", large, "last"], []}
    Task.await(answer, @timeout)
    assert {:error, :closed} = :gen_tcp.recv(rank, 0, @timeout)
    assert_nothing_left()
  end

  test "a connection that ends otherwise is lost, also within a message", context do
    for last <- [[], [<<0, 0>>], [<<0, 0, 0, 9>>, "half"]] do
      File.rm(context.path <> ".stream")
      {call, rank} = connect(context)
      call = sent(call, "one")
      answer(rank, ["first"])
      :ok = :inet.setopts(rank, packet: :raw)
      answer(rank, last)
      :ok = :gen_tcp.close(rank)
      assert {:error, ["first"], %{code: :unavailable, sent?: true}} = receive_all(call)
      assert_nothing_left()
    end
  end

  test "what the rank has said unasked is the answer to the first message", context do
    {call, rank} = connect(context)
    answer(rank, ["too many", ""])
    :ok = :gen_tcp.shutdown(rank, :read_write)
    call = sent(call, "one")
    assert {:closed, call} = Transport.send_message(call, "two")
    assert receive_all(call) == {:done, ["too many"], []}
  end

  test "what could never be written was not sent", context do
    {call, rank} = connect(context)
    :ok = :gen_tcp.close(rank)

    assert {:error, [], %{code: :unavailable, sent?: false}} =
             call |> sent("one") |> receive_all()
  end

  test "what has come before a message could not be sent is told", context do
    {call, rank} = connect(context)
    call = sent(call, "one")
    assert {:ok, [], call} = Transport.arrived(call)
    answer(rank, ["first", ""])
    :ok = :gen_tcp.shutdown(rank, :read_write)
    assert {:closed, call} = Transport.send_message(call, "two")
    assert receive_all(call) == {:done, ["first"], []}
  end

  test "a rank that reads nothing lets nobody wait, and there is no room until it does",
       context do
    {call, rank} = connect(context)
    call = sent(call, "one")
    assert Transport.room?(call)
    message = String.duplicate("x", 1_000_000)
    call = Enum.reduce(1..4, call, fn _time, call -> sent(call, message) end)
    refute Transport.room?(call)
    assert {:ok, [], call} = Transport.arrived(call)

    reading =
      Task.async(fn -> for _time <- 1..5, do: elem(:gen_tcp.recv(rank, 0, @timeout), 1) end)

    call = until_room(call)
    call = until_written(call)
    assert Task.await(reading, @timeout) == ["one" | List.duplicate(message, 4)]
    answer(rank, [""])
    assert receive_all(call) == {:done, [], []}
  end

  defp until_room(call),
    do: if(Transport.room?(call), do: call, else: call |> handle_next() |> until_room())

  defp until_written(%{waiting: 0} = call), do: call
  defp until_written(call), do: call |> handle_next() |> until_written()

  test "a rank that goes while much is to be written is lost", context do
    {call, rank} = connect(context)
    call = sent(call, String.duplicate("x", 4_000_000))
    refute Transport.room?(call)
    :ok = :gen_tcp.close(rank)
    assert {:error, [], %{code: :unavailable, sent?: true}} = receive_all(call)
    assert_nothing_left()
  end

  test "an answer of more than 256 MiB is refused", context do
    {call, rank} = connect(context)
    call = sent(call, "one")
    answer(rank, ["first"])
    :ok = :inet.setopts(rank, packet: :raw)
    answer(rank, [<<256 * 1_048_576 + 1::32>>])
    assert {:error, ["first"], %{code: :resource_exhausted, sent?: true}} = receive_all(call)
    assert {:ok, <<3::32, "one">>} = :gen_tcp.recv(rank, 7, @timeout)
    assert {:error, :closed} = :gen_tcp.recv(rank, 0, @timeout)
  end

  test "cancelling hangs up", context do
    {call, rank} = connect(context)
    assert {:ok, [], call} = call |> sent("one") |> Transport.arrived()
    assert Transport.cancel(call) == :ok
    assert {:ok, "one"} = :gen_tcp.recv(rank, 0, @timeout)
    assert {:error, :closed} = :gen_tcp.recv(rank, 0, @timeout)
    assert_nothing_left()
  end

  test "the death of its process hangs up", context do
    listener = listen(context.path)
    test = self()

    {:ok, owner} =
      Task.start(fn ->
        {:ok, _call} = Local.open(context.channel)
        send(test, :open)
        receive do: (:never -> :ok)
      end)

    assert_receive :open, @timeout
    {:ok, rank} = :gen_tcp.accept(listener, @timeout)
    Process.exit(owner, :kill)
    assert {:error, :closed} = :gen_tcp.recv(rank, 0, @timeout)
  end

  test "it ends with its channel", context do
    {call, rank} = connect(context)
    call = sent(call, "one")
    stop_supervised!(Agent)
    assert {:error, [], %{code: :cancelled, sent?: true}} = receive_all(call)
    assert {:ok, "one"} = :gen_tcp.recv(rank, 0, @timeout)
    assert {:error, :closed} = :gen_tcp.recv(rank, 0, @timeout)
    assert Local.open(context.channel) == :none
  end

  test "there is none where it cannot be connected to", context do
    %{path: path, pid: pid, channel: channel} = context
    assert Local.open(channel) == :none
    :ok = path |> listen() |> :gen_tcp.close()
    assert File.exists?(path <> ".stream")
    assert Local.open(channel) == :none
    assert Local.open(%Channel{socket: {:ok, String.duplicate("x", 200), pid}}) == :none
    assert Local.open(%Channel{socket: :none}) == :none
    # An implementation that tells nothing.
    assert Local.open(%{transport: __MODULE__}) == :none
    assert_nothing_left()
  end

  test "there is none where the rank accepts nobody more", context do
    _listener = listen(context.path, backlog: 1)
    opened = for _time <- 1..4, do: Local.open(context.channel)
    assert [{:ok, _call} | _others] = opened
    assert List.last(opened) == :none
  end

  test "a channel of gRPC tells the path of its socket, if it has one" do
    for {target, path} <- [
          {"unix:there/rank", "there/rank"},
          {"unix:/there/rank", "/there/rank"},
          {"unix:///there/rank", "/there/rank"},
          {"unix-abstract:rank", nil},
          {"127.0.0.1:1", nil}
        ] do
      {:ok, channel} = HTTP2.connect(target, lazy: true, owner: self())
      expected = if path, do: {:ok, path, channel.pid}, else: :none
      assert Transport.unix_socket(channel) == expected
      :ok = Transport.close(channel)
    end
  end
end
