defmodule RankBridge.HiddenTest do
  @moduledoc "No process shows keys, passwords or headers: neither when it is asked for its state, nor when it crashes."

  # It takes what is logged.
  use ExUnit.Case, async: false

  import RankBridge.Test.FakeServer

  alias RankBridge.{Gang, Hidden, Transport}
  alias RankBridge.Transport.HTTP2.Frame
  alias RankBridge.Test.{GangChildren, Logs}

  @soon 60_000
  @secret "open sesame"
  @tls [password: @secret, key: {:ECPrivateKey, @secret}, verify: :verify_none]

  setup do
    on_exit(Logs.to_test())

    {listener, target} = listen()
    %{listener: listener, target: target}
  end

  defp assert_hidden(term) do
    texts = [
      inspect(term, limit: :infinity, printable_limit: :infinity, structs: false),
      :io_lib.format("~0p", [term]),
      :io_lib.format("~0tp", [term])
    ]

    for text <- texts do
      text = IO.chardata_to_string(text)
      refute text =~ @secret
      # As the bytes of a binary, or the characters of a list.
      refute text =~ "111,112,101,110,32,115,101,115"
      refute text =~ "111, 112, 101, 110, 32, 115, 101, 115"
    end
  end

  # What it shows, and what is logged as it crashes.
  defp assert_secretive(pid) do
    assert_hidden(:sys.get_status(pid, @soon))
    monitor = Process.monitor(pid)
    :ok = :sys.terminate(pid, :told_to_crash, @soon)
    assert_receive {:DOWN, ^monitor, :process, ^pid, _reason}, @soon
    assert_receive {:logged, %{meta: %{pid: ^pid}} = event}, @soon
    assert_hidden(event)
  end

  defp tree(supervisor) do
    for {_id, pid, type, _modules} <- Supervisor.which_children(supervisor), is_pid(pid) do
      [if(type == :supervisor, do: tree(pid), else: []), pid]
    end
    |> List.flatten()
  end

  for role <- [:tables, :tasks, :watchers, :ranks, :channels, :connections, :server, :gang] do
    @role role
    test "the #{role} of a gang with TLS", %{target: target} do
      Process.flag(:trap_exit, true)
      {:ok, gang} = Gang.start_link(endpoints: [target], tls: @tls)
      # It connects.
      {channel, connection} = await_connecting(gang)
      assert_hidden(:sys.get_status(channel))
      assert is_pid(connection)
      assert_secretive(if @role == :gang, do: gang, else: GangChildren.pid(gang, @role))
      assert_receive {:EXIT, ^gang, _reason}, @soon
      assert_hidden(logged())
    end
  end

  defp await_connecting(gang) do
    children = DynamicSupervisor.which_children(GangChildren.pid(gang, :channels))

    with [{_id, channel, _type, _modules}] <- children,
         connection when connection != nil <- connecting(channel),
         do: {channel, connection},
         else: (_not_yet -> await_connecting(gang))
  end

  # The gang closes a channel that could not connect, and opens another.
  defp connecting(channel) do
    :sys.get_state(channel).connecting
  catch
    :exit, _closed -> nil
  end

  defp logged do
    receive do
      {:logged, event} -> [event | logged()]
    after
      0 -> []
    end
  end

  test "the supervisor of a gang, as of a child of it", %{target: target} do
    child = {Gang, endpoints: [target], tls: @tls}
    {:ok, supervisor} = Supervisor.start_link([child], strategy: :one_for_one)
    assert_hidden(:sys.get_status(supervisor))
    for pid <- tree(supervisor), do: assert_hidden(Process.info(pid, :dictionary))
    :ok = Supervisor.stop(supervisor)
  end

  test "a channel and a connection, of the metadata of calls", context do
    metadata = [{"authorization", "Bearer " <> @secret}, {"key-bin", @secret}]
    opts = [metadata: metadata, wait_for_ready: true, timeout: @soon]

    # One that waits for its connection, and has not ended.
    {:ok, waiting} = Transport.connect(context.target, lazy: true, owner: self())
    call = Transport.start_unary(waiting, "/test.Test/Echo", "hi", opts)
    assert_hidden(call)
    %{connecting: connecting} = :sys.get_state(waiting.pid)
    assert :sys.get_state(waiting.pid).waiting != %{}
    assert_secretive(waiting.pid)
    assert is_pid(connecting)

    # One that runs.
    {listener, target} = listen()
    {running, socket} = connect(%{listener: listener, target: target})
    _call = Transport.start_unary(running, "/test.Test/Echo", @secret, opts)
    _id = request(socket)
    [{:current, connection}] = :ets.lookup(running.table, :current)
    # Headers of the answer, too.
    write(
      socket,
      Frame.headers(1, RankBridge.Transport.HTTP2.HPACK.encode(metadata), false, 16_384)
    )

    assert_secretive(connection)
  end

  test "what is hidden is a function, once" do
    hidden = Hidden.hide(@secret)
    assert_hidden(hidden)
    assert Hidden.reveal(hidden) == @secret
    assert Hidden.hide(hidden) == hidden
    assert Hidden.reveal(nil) == nil
  end
end
