defmodule RankBridge.GangTest do
  use ExUnit.Case, async: true

  alias RankBridge.{Endpoints, Error, Gang}

  setup do
    Process.flag(:trap_exit, true)
    :ok
  end

  test "a gang whose ranks cannot be reached does not start, and says which" do
    {:ok, socket} = :gen_tcp.listen(0, ip: {127, 0, 0, 1})
    {:ok, port} = :inet.port(socket)
    :ok = :gen_tcp.close(socket)

    assert {:error, %Error{reason: :unavailable, rank: 0, operation: "connect"} = error} =
             Gang.start_link(endpoints: ["127.0.0.1:#{port}"], timeout: 2_000)

    refute error.indefinite
    assert [{0, %Error{}}] = error.outcomes
  end

  test "endpoints that are none are refused" do
    for opts <- [
          [],
          [endpoints: []],
          [endpoints: [[]]],
          [endpoints: [:a]],
          [endpoints: ["unix:"]],
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
