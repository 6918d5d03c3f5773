defmodule RankBridge.LocalCallStreamsTest do
  @moduledoc "Streams of gang calls by the unix socket beside a rank's own, on real ranks, on Gloo."

  use ExUnit.Case, async: true

  import RankBridge.Test.Soon

  alias RankBridge.{CallStream, Error, Gang, Id, Rank, Ranks, Transport}
  alias RankBridge.Proto.V1
  alias RankBridge.Test.{LiveRanks, OsProcess}

  # That a rank takes.
  @streams 64

  setup do
    # A rank that was killed stays away, however long the test takes to look.
    ranks = LiveRanks.start(2, "gloo", ["--on-rank-exit", "leave"])
    on_exit(fn -> LiveRanks.stop(ranks) end)
    gang = start_supervised!({Gang, endpoints_file: ranks.file})
    :ok = RankBridge.await_ready(gang, 60_000)
    {:ok, view} = Gang.View.fetch(gang)
    "unix:" <> path = Gang.View.target(view, 0)
    %{ranks: ranks, gang: gang, view: view, socket: path <> ".stream"}
  end

  # The connections to a socket that the operating system knows; the one that listens is none.
  defp connections(socket) do
    for line <- "/proc/net/unix" |> File.read!() |> String.split("\n"),
        [_at, _references, _protocol, _flags, _type, "03", _inode, ^socket] <-
          [String.split(line)],
        reduce: 0,
        do: (count -> count + 1)
  end

  defp channel(view) do
    {:ok, channel} = Gang.View.channel(view, 0)
    channel
  end

  # The rank's stream ends; the next call has another opened.
  defp ended(gang) do
    {:ok, view} = Gang.View.fetch(gang)
    GenServer.stop(Rank.Server.of(view, 0))
  end

  @tag sampled: RankBridge.Test.Sampled.part(__ENV__)
  test "all that a rank is asked for shares a connection, which ends with the gang", context do
    %{gang: gang, socket: socket} = context
    assert connections(socket) == 0
    for _time <- 1..3, do: assert(RankBridge.barrier!(gang) == :ok)
    assert connections(socket) == 1
    {:ok, stream} = CallStream.open(gang)
    assert stream |> CallStream.push!(:ping) |> CallStream.await() == {:ok, nil}
    assert RankBridge.barrier!(gang, calls: :ranks) == :ok
    assert connections(socket) == 1
    stop_supervised!(Gang)
    assert_soon(0, fn -> connections(socket) end)
  end

  @tag sampled: RankBridge.Test.Sampled.part(__ENV__)
  test "where the socket is not to be had, they go by gRPC, until it is", context do
    %{gang: gang, socket: socket} = context
    away = socket <> ".away"
    File.rename!(socket, away)
    assert RankBridge.barrier!(gang) == :ok
    assert connections(socket) == 0
    ended(gang)

    # Nobody listens there.
    {:ok, listener} = :gen_tcp.listen(0, ifaddr: {:local, socket})
    :ok = :gen_tcp.close(listener)
    assert RankBridge.barrier!(gang) == :ok
    assert connections(socket) == 0
    ended(gang)

    File.rename!(away, socket)
    assert RankBridge.barrier!(gang) == :ok
    assert connections(socket) == 1
  end

  @tag sampled: RankBridge.Test.Sampled.part(__ENV__)
  test "ranks that are reached by TCP are called by gRPC", %{ranks: ranks, socket: socket} do
    gang = start_supervised!({Gang, LiveRanks.by_tcp(ranks)}, id: :tcp)
    assert RankBridge.barrier!(gang) == :ok
    assert connections(socket) == 0
  end

  @tag sampled: RankBridge.Test.Sampled.part(__ENV__)
  test "a rank that has too many streams says so, and is called without one", context do
    %{gang: gang, view: view, ranks: ranks, socket: socket} = context

    # Of other controllers.
    opened =
      for _time <- 1..@streams do
        {:ok, call} = Transport.Local.open(channel(view))
        ping = %V1.CallRequest{operations: [%V1.Operation{kind: {:ping, %V1.PingRequest{}}}]}
        request = V1.ExecuteRequest.encode(%V1.ExecuteRequest{kind: {:call, ping}})
        {:ok, call} = Transport.send_message(call, request)
        call
      end

    assert_soon(@streams, fn -> connections(socket) end)
    {:ok, refused} = CallStream.open(gang)
    result = refused |> CallStream.push!(:ping) |> CallStream.await()
    assert {:error, %Error{reason: :resource_exhausted, indefinite: false} = error} = result
    assert error.operation == "execute"
    after_it = refused |> CallStream.push!(:ping) |> CallStream.await()
    assert {:error, %Error{reason: :unavailable, indefinite: false}} = after_it

    other = start_supervised!({Gang, endpoints_file: ranks.file}, id: :other)

    for calls <- [:gang, :ranks, :gang],
        do: assert(RankBridge.barrier!(other, calls: calls) == :ok)

    Enum.each(opened, &Transport.cancel/1)

    # The rank has seen them end, and a second later there is another one.
    assert_soon(1, fn ->
      assert RankBridge.barrier!(other) == :ok
      connections(socket)
    end)
  end

  describe "while a call is under way" do
    setup %{gang: gang, ranks: ranks, view: view, socket: socket} do
      OsProcess.stop(Enum.at(ranks.pids, 1))
      {:ok, stream} = CallStream.open(gang)
      pushed = for _time <- 1..3, do: CallStream.push!(stream, :barrier, nil, timeout: 60_000)
      assert_soon(true, fn -> pending(view) > 0 end)
      assert connections(socket) == 1
      %{stream: stream, pushed: pushed}
    end

    @tag sampled: RankBridge.Test.Sampled.part(__ENV__)
    test "the loss of the rank that is asked is told at once, and leaves open what became of it",
         context do
      %{gang: gang, stream: stream, pushed: pushed, ranks: ranks} = context
      started = now()
      OsProcess.kill(hd(ranks.pids))

      for pushed <- pushed do
        result = CallStream.await(pushed)
        assert {:error, %Error{reason: :unavailable, indefinite: true} = error} = result
        assert [%{rank: 0, state: :lost}] = error.ranks
      end

      assert now() - started < 20_000
      after_it = stream |> CallStream.push!(:barrier) |> CallStream.await()
      assert {:error, %Error{reason: :unavailable, indefinite: false}} = after_it
      # That the connection for gRPC is lost, too, may be known a moment later.
      assert_soon(:unavailable, fn -> reason(CallStream.open(gang)) end)
    end

    @tag sampled: RankBridge.Test.Sampled.part(__ENV__)
    test "a rank that is told to stop answers, and has not begun what comes later", context do
      %{stream: stream, pushed: pushed, ranks: ranks} = context
      OsProcess.signal(hd(ranks.pids), "TERM")

      for pushed <- pushed do
        assert {:error, %Error{reason: reason}} = CallStream.await(pushed)
        assert reason not in [:unavailable, :deadline_exceeded]
      end

      for error <- errors(stream),
          do: assert(not error.indefinite and error.reason in [:stale_generation, :unavailable])
    end
  end

  @tag sampled: RankBridge.Test.Sampled.part(__ENV__)
  test "processes that push much at once get every answer", %{gang: gang, socket: socket} do
    text = String.duplicate("x", 15_000)

    working =
      for _process <- 1..4 do
        Task.async(fn ->
          {:ok, stream} = CallStream.open(gang)
          ids = for _time <- 1..100, do: Id.uuid()
          pushed = for id <- ids, do: CallStream.push!(stream, :broadcast_object, id <> text)
          results = for pushed <- pushed, do: CallStream.await(pushed)
          open = connections(socket)
          {open, results == for(id <- ids, do: {:ok, [id <> text, id <> text]})}
        end)
      end

    for {open, equal?} <- Task.await_many(working, 120_000) do
      assert open >= 1
      assert equal?
    end
  end

  # Of calls that are pushed, some at once, until the stream is over.
  defp errors(stream, before \\ []) do
    pushed = for _time <- 1..4, do: CallStream.push!(stream, :barrier)
    errors = for {:error, error} <- Enum.map(pushed, &CallStream.await/1), do: error

    if Enum.any?(errors, &(&1.reason == :unavailable)),
      do: before ++ errors,
      else: errors(stream, before ++ errors)
  end

  defp reason({:error, error}), do: error.reason
  defp reason(result), do: result

  # What the first rank has to do that goes on.
  defp pending(view) do
    {:ok, status} = Ranks.status_of(view, 0, [])
    status.pending_operations
  end

  defp now, do: System.monotonic_time(:millisecond)
end
