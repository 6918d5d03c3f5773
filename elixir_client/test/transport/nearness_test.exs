defmodule RankBridge.Transport.NearnessTest do
  @moduledoc "Who is connected to: no socket of another user, and no other host with a token in plain text."

  # The environment is everybody's.
  use ExUnit.Case, async: false

  alias RankBridge.{Error, Gang, Id, Transport}
  alias RankBridge.Transport.{Nearness, Status}

  @insecure "RANKBRIDGE_INSECURE_TOKEN"
  # Of a network for documentation: nobody is there.
  @far "192.0.2.7"

  setup do
    on_exit(fn -> System.delete_env(@insecure) end)
  end

  test "a socket of this user or root is connected to, and one of another user is not" do
    path = Path.join(System.tmp_dir!(), "nearness-#{Id.uuid()}")
    File.touch!(path)
    on_exit(fn -> File.rm(path) end)
    %File.Stat{uid: owner} = File.stat!(path)
    assert Nearness.check_owner(path) == :ok
    assert Nearness.check_owner(path, owner) == :ok
    File.chown(path, 12_345)

    if File.stat!(path).uid == 12_345 do
      assert {:error, why} = Nearness.check_owner(path, 54_321)
      assert why =~ "belongs to another user, of number 12345"
      assert Nearness.check_owner(path, 12_345) == :ok
      # Root may be told anything by anybody.
      assert Nearness.check_owner(path, 0) == :ok
    end

    assert Nearness.check_owner("/proc/self/none", 54_321) == :ok
    assert Nearness.check_owner("/proc/1", 54_321) == :ok
    assert Nearness.check_owner(<<0, "abstract">>, 54_321) == :ok
  end

  test "nobody beyond this host hears what goes to a loopback address" do
    for host <- ["127.0.0.1", "127.8.9.10", "::1", "::ffff:127.0.0.1", "localhost"],
        do: assert(Nearness.check_hearers(host) == :ok)

    for host <- [@far, "2001:db8::7", "::ffff:192.0.2.7", "0.0.0.0"] do
      assert {:error, why} = Nearness.check_hearers(host)
      assert why =~ "the token would go to #{host} in plain text"
    end

    System.put_env(@insecure, "1")
    assert Nearness.check_hearers(@far) == :ok
  end

  test "no transport shows a token in plain text to another host unless it is told to" do
    token = String.duplicate("t", 43)

    assert {:error, %Status{code: :invalid_argument, message: why}} =
             Transport.connect("#{@far}:1", token: token, lazy: true)

    assert why =~ "insecure_token: true"

    for opts <- [[token: token, insecure_token: true], [token: token, tls: true], []] do
      assert {:ok, channel} = Transport.connect("#{@far}:1", opts ++ [lazy: true])
      Transport.close(channel)
    end
  end

  test "a gang says so, and does not try again" do
    Process.flag(:trap_exit, true)
    token = String.duplicate("t", 43)
    {:ok, gang} = Gang.start_link(endpoints: [["#{@far}:1"]], token: token)
    assert_receive {:EXIT, ^gang, {:shutdown, %Error{indefinite: false} = error}}, 10_000
    assert error.message =~ "in plain text"
  end
end
