defmodule RankBridge.GangTest do
  use ExUnit.Case, async: true

  alias RankBridge.{Endpoints, Error, Gang}
  alias RankBridge.Test.WatchedRanks

  setup do
    Process.flag(:trap_exit, true)
    :ok
  end

  @soon 60_000

  # An address at which nobody is, nor comes: it is taken while the test lasts, and nobody listens there.
  defp nobody do
    {:ok, socket} = :socket.open(:inet, :stream, :tcp)
    :ok = :socket.bind(socket, %{family: :inet, addr: {127, 0, 0, 1}, port: 0})
    {:ok, %{port: port}} = :socket.sockname(socket)
    "127.0.0.1:#{port}"
  end

  test "a gang starts while its ranks cannot be reached, and says which; it ends when it has tried for long enough" do
    opts = [endpoints: [nobody()], start_timeout: 2_000, name: __MODULE__.Unreached]
    {:ok, gang} = Gang.start_link(opts)

    assert {:error, %Error{reason: :deadline_exceeded, operation: "await_ready"}} =
             RankBridge.await_ready(gang, 1)

    assert {:error, %Error{reason: :unavailable, operation: "barrier", indefinite: false}} =
             RankBridge.barrier(__MODULE__.Unreached, unready: :fail)

    assert_receive {:EXIT, ^gang, {:shutdown, %Error{} = error}}, @soon
    assert %Error{reason: :deadline_exceeded, rank: 0, operation: "connect"} = error
    assert error.message =~ ~r/did not start within 2.0 s: .* refused/
    refute error.indefinite
    assert [{0, %Error{reason: :unavailable}}] = error.outcomes
  end

  test "an application starts with a gang whose ranks are not there" do
    children = [{Gang, endpoints: [nobody(), nobody()], name: __MODULE__.Boot}]
    {:ok, supervisor} = Supervisor.start_link(children, strategy: :one_for_one)
    waiting = Task.async(fn -> RankBridge.await_ready(__MODULE__.Boot, 200) end)
    assert {:error, %Error{reason: :deadline_exceeded} = error} = Task.await(waiting)
    assert error.message =~ "the gang was not ready in time: the gang is being started"
    # It ends at once, in the middle of an attempt.
    :ok = Supervisor.stop(supervisor, :normal, 30_000)
  end

  test "ranks that come later are joined, each when it is there" do
    ranks = start_supervised!({WatchedRanks, 3})
    for rank <- 1..2, do: WatchedRanks.lose(ranks, [rank])
    {:ok, gang} = Gang.start_link(WatchedRanks.gang(ranks) ++ [form: true])
    waiting = Task.async(fn -> RankBridge.barrier(gang, timeout: @soon) end)

    for rank <- [2, 1] do
      before = WatchedRanks.asked(ranks, "DescribeRank", 0)
      await_asked(ranks, before)
      assert Task.yield(waiting, 0) == nil
      WatchedRanks.replace(ranks, rank)
    end

    assert Task.await(waiting, @soon) == :ok
    :ok = Gang.stop(gang)
  end

  # It tries again.
  defp await_asked(ranks, before),
    do:
      if(WatchedRanks.asked(ranks, "DescribeRank", 0) > before,
        do: :ok,
        else: await_asked(ranks, before)
      )

  test "endpoints that no waiting mends end the gang at once" do
    ranks = start_supervised!({WatchedRanks, 2})
    [first, second] = WatchedRanks.gang(ranks)[:endpoints]
    opts = Keyword.put(WatchedRanks.gang(ranks), :endpoints, [second, first])
    {:ok, gang} = Gang.start_link(opts)
    assert_receive {:EXIT, ^gang, {:shutdown, %Error{reason: :invalid_argument} = error}}, @soon
    assert {error.expected, error.got} == {"rank 0 of 2", "rank 1 of 2"}

    {:ok, gang} = Gang.start_link(endpoints: ["unix:"])
    assert_receive {:EXIT, ^gang, {:shutdown, %Error{reason: :protocol}}}, @soon
  end

  test "endpoints that are none are refused" do
    for opts <- [
          [],
          [endpoints: []],
          [endpoints: [[]]],
          [endpoints: [:a]],
          [endpoints_file: "/nonexistent/endpoints.json"]
        ] do
      assert {:error, %Error{indefinite: false}} = Gang.start_link(opts)
    end
  end

  test "unknown options are a mistake of the program" do
    assert_raise ArgumentError, fn -> Gang.start_link(endpoint: "x") end
  end

  test "a child spec carries the gang's name" do
    assert %{id: MyGang, start: {Gang, :start_link, [[name: MyGang]]}} =
             Gang.child_spec(name: MyGang)

    assert %{id: Gang} = Gang.child_spec([])
  end

  @tag :tmp_dir
  test "a file of endpoints is read in rank order", %{tmp_dir: directory} do
    path = Path.join(directory, "endpoints.json")

    File.write!(
      path,
      ~S({"ranks": [{"rank": 1, "endpoints": ["b:1"]}, {"rank": 0, "endpoints": ["a:1", "unix:x"]}]})
    )

    assert Endpoints.read(path) == {:ok, [["a:1", "unix:x"], ["b:1"]]}

    for text <- [
          "",
          "[]",
          ~S({"ranks": []}),
          ~S({"ranks": [{"rank": 1, "endpoints": ["b:1"]}]}),
          ~S({"ranks": [{"rank": 0, "endpoints": [1]}]}),
          ~S({"ranks": [3]})
        ] do
      File.write!(path, text)
      assert {:error, %Error{reason: :invalid_argument}} = Endpoints.read(path)
    end
  end

  @tag :tmp_dir
  test "a unix socket that exists here is preferred", %{tmp_dir: directory} do
    here = Path.join(directory, "socket")
    File.write!(here, "")
    assert Endpoints.choose(["10.0.0.1:1", "unix:#{here}"]) == "unix:#{here}"
    assert Endpoints.choose(["unix:#{here}-not", "10.0.0.1:1"]) == "10.0.0.1:1"
    assert Endpoints.choose(["unix:#{here}-not"]) == "unix:#{here}-not"
    assert Endpoints.choose(["unix:#{here}", "10.0.0.1:1"], true) == "10.0.0.1:1"
    assert Endpoints.choose(["unix:#{here}"], true) == "unix:#{here}"
  end
end
