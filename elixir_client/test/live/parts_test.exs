defmodule RankBridge.LivePartsTest do
  @moduledoc "Calls of all ranks by streams, on real ranks, on Gloo: by the socket beside a rank's own, and by gRPC."

  use ExUnit.Case, async: true

  import RankBridge.Test.Soon

  alias RankBridge.{Collectives, Error, Gang, Id, Ranks, Tensor, Transport}
  alias RankBridge.Gang.Channels
  alias RankBridge.Proto.V1
  alias RankBridge.Rank.Server
  alias RankBridge.Test.{LiveRanks, OsProcess, Telemetry}

  @members 0..2
  # That a rank takes.
  @streams 64

  setup_all do
    ranks = LiveRanks.start(3, "gloo")
    on_exit(fn -> LiveRanks.stop(ranks) end)
    %{ranks: ranks}
  end

  defp opts(:local, ranks), do: [endpoints_file: ranks.file]
  defp opts(:grpc, ranks), do: LiveRanks.by_tcp(ranks)

  defmodule Alone do
    @moduledoc "A rank's channel without streams."

    defstruct [:channel, transport: __MODULE__]

    def start_unary(%{channel: channel}, path, bytes, opts),
      do: RankBridge.Transport.start_unary(channel, path, bytes, opts)
  end

  # A gang that calls each rank; and a view of it whose ranks have no streams.
  defp gang(way, ranks, opts \\ []) do
    opts = opts(way, ranks) ++ [calls: :ranks] ++ opts
    gang = start_supervised!({Gang, opts}, id: {:gang, way, make_ref()})
    assert RankBridge.barrier!(gang) == :ok
    {:ok, view} = Gang.View.fetch(gang)

    rows =
      for {channel, target} <- Channels.rows(view.channels),
          do: {%Alone{channel: channel}, "alone " <> target}

    %{gang: gang, view: view, unary: %{view | channels: Channels.put(Channels.table(), rows)}}
  end

  defp channel(view) do
    {:ok, channel} = Gang.View.channel(view, 0)
    channel
  end

  defp servers(gang) do
    {:ok, view} = Gang.View.fetch(gang)
    for rank <- Gang.View.all_ranks(view), into: %{}, do: {rank, Server.of(view, rank)}
  end

  # Parts that the streams of ranks have.
  defp under_way(gang) do
    for {rank, it} <- servers(gang),
        into: %{},
        do: {rank, map_size(:sys.get_state(it).requests.under_way)}
  end

  defp values(gang, refs), do: gang |> RankBridge.get!(refs) |> Enum.map(&Tensor.to_list/1)
  defp numbered(gang), do: RankBridge.put!(gang, for(rank <- @members, do: [1.0 * rank]))
  defp on_each(value), do: List.duplicate(value, 3)

  # What is to be the same, whichever way a call goes.
  defp essence(%Error{} = error) do
    fields = [:reason, :indefinite, :phase, :rank, :group, :operation, :expected, :got, :message]

    outcomes =
      for {rank, it} <- error.outcomes, do: {rank, if(it == :ok, do: :ok, else: essence(it))}

    details = for it <- error.ranks, do: {it.rank, it.rank_in_group, it.state}
    {error |> Map.take(fields) |> Map.new(&without_ids/1), details, outcomes}
  end

  # Those of calls and of their operations, and how many there were before.
  defp without_ids({field, value}) do
    ids = ~r/(#\d+ )?id=[0-9a-f-]{36}|[0-9a-f]{8}-[0-9a-f-]{27}/
    {field, if(is_binary(value), do: String.replace(value, ids, "ID"), else: value)}
  end

  describe "ranks that go on," do
    for way <- [:local, :grpc] do
      @way way

      test "#{way}: results are those of unary calls", %{ranks: ranks} do
        %{gang: gang, view: view, unary: unary} = gang(@way, ranks)
        servers = servers(gang)

        for view <- [view, unary, view] do
          run = &Collectives.run(view, &1, &2, &3 ++ [timeout: 60_000])
          refs = numbered(gang)
          assert run.(:barrier, nil, []) == {:ok, nil}
          {:ok, sums} = run.(:all_reduce, refs, [])
          assert values(gang, sums) == on_each([3.0])
          assert {:ok, ^refs} = run.(:all_reduce, refs, in_place: true, op: :max)
          assert values(gang, refs) == on_each([2.0])
          assert {:ok, [nil, %{rank: 1}, nil]} = run.(:reduce, refs, dst_rank_in_group: 1)

          assert run.(:all_gather_object, [%{1 => nil}, "x", 3], []) ==
                   {:ok, on_each([%{1 => nil}, "x", 3])}

          # Larger than what a stream takes at once, and not.
          for bytes <- [20_000, 59_000, 70_000], text = String.duplicate("x", bytes) do
            assert run.(:broadcast_object, text, []) == {:ok, on_each(text)}
            assert run.(:all_gather_object, on_each(text), []) == {:ok, on_each(on_each(text))}
          end

          assert {:ok, [[_, _, _], nil]} =
                   run.(:coalesce, [{:all_reduce, refs}, {:barrier, nil}], [])

          id = Id.uuid()
          {:ok, first} = run.(:all_reduce, refs, operation_id: id)
          assert run.(:all_reduce, refs, operation_id: id) == {:ok, first}
          assert RankBridge.await!(gang, id) == first
        end

        assert servers(gang) == servers
      end

      test "#{way}: errors are those of unary calls", %{ranks: ranks} do
        %{gang: gang, view: view, unary: unary} = gang(@way, ranks)
        servers = servers(gang)
        wide = RankBridge.put!(gang, [[1.0], [2.0], [3.0, 4.0]])
        released = numbered(gang)
        RankBridge.release!(gang, Enum.at(released, 1))

        for {name, input, opts, reason} <- [
              {:all_reduce, wide, [], :mismatch},
              {:all_reduce, released, [], :released_ref},
              {:all_gather, numbered(gang), [dim: 5], :invalid_argument}
            ] do
          errors =
            for view <- [view, unary] do
              assert {:error, error} = Collectives.run(view, name, input, opts)
              assert error.reason == reason
              essence(error)
            end

          assert [error, error] = errors
        end

        assert servers(gang) == servers
        assert RankBridge.barrier!(gang) == :ok
      end

      test "#{way}: telemetry is that of unary calls", %{ranks: ranks} do
        %{gang: gang, view: view, unary: unary} = gang(@way, ranks)
        refs = numbered(gang)

        [parts, calls] =
          for view <- [view, unary] do
            seen =
              Telemetry.watch(
                for(last <- [:start, :stop], do: [:rank_bridge, :rank, :call, last]),
                gang
              )

            assert {:ok, _sums} =
                     Collectives.run(view, :all_reduce, refs, operation_id: Id.uuid())

            for {event, measurements, metadata} <- Telemetry.seen(seen) do
              metadata = Map.drop(metadata, [:operation_id, :telemetry_span_context])
              {List.last(event), Enum.sort(Map.keys(measurements)), metadata}
            end
          end

        assert parts == calls

        assert [:start, :start, :start, :stop, :stop, :stop] =
                 for({last, _, _} <- parts, do: last)

        for {_, _, it} <- parts,
            do: assert(it.rpc == "/rankbridge.v1.GangService/Execute")
      end

      test "#{way}: several processes at once, each with its own groups", %{ranks: ranks} do
        %{gang: gang} = gang(@way, ranks)

        groups =
          for members <- [[0, 1], [2, 1], [0, 2], [2, 1, 0]] do
            name = "some-" <> Id.uuid()
            RankBridge.new_group!(gang, name, members)
            {name, length(members)}
          end

        working =
          for {name, size} <- groups do
            Task.async(fn ->
              for number <- 1..50 do
                brought = for place <- 1..size, do: {name, number, place}

                assert RankBridge.all_gather_object!(gang, brought, group: name) ==
                         List.duplicate(brought, size)
              end
            end)
          end

        assert working |> Task.await_many(120_000) |> List.flatten() |> Enum.all?()
        for {name, _size} <- groups, do: RankBridge.destroy_group!(gang, name)
      end

      test "#{way}: the death of the caller withdraws its parts", %{ranks: ranks} do
        %{gang: gang, view: view} = gang(@way, ranks)
        servers = servers(gang)
        stopped = Enum.at(ranks.pids, 2)
        on_exit(fn -> OsProcess.signal(stopped, "CONT") end)
        OsProcess.stop(stopped)
        test = self()

        {:ok, calling} =
          Task.start(fn -> send(test, {:given, RankBridge.barrier(gang, timeout: 60_000)}) end)

        assert_soon([1, 1], fn -> pending(view, [0, 1]) end)
        # The caller sends to one after the other.
        assert_soon(%{0 => 1, 1 => 1, 2 => 1}, fn -> under_way(gang) end)
        refute_received {:given, _too_early}
        Process.exit(calling, :kill)
        assert_soon([0, 0], fn -> pending(view, [0, 1]) end)
        OsProcess.signal(stopped, "CONT")
        assert_soon(%{0 => 0, 1 => 0, 2 => 0}, fn -> under_way(gang) end)
        assert RankBridge.barrier!(gang) == :ok
        assert servers(gang) == servers
      end

      @tag sampled: RankBridge.Test.Sampled.part(__ENV__)
      test "#{way}: a rank that says nothing lets nobody wait for ever", %{ranks: ranks} do
        %{gang: gang, view: view, unary: unary} = gang(@way, ranks)
        stopped = Enum.at(ranks.pids, 2)
        on_exit(fn -> OsProcess.signal(stopped, "CONT") end)
        OsProcess.stop(stopped)

        errors =
          for view <- [view, unary] do
            started = now()
            # Long enough for both others to come.
            assert {:error, error} = Collectives.run(view, :barrier, nil, timeout: 2_000)
            assert (now() - started) in 4_000..20_000
            assert {:deadline_exceeded, true} = {List.last(reasons(error)), error.indefinite}
            essence(error)
          end

        assert [error, error] = errors
        OsProcess.signal(stopped, "CONT")
        # What is withdrawn there may not be over yet.
        assert_soon([0, 0, 0], fn -> pending(view, @members) end)
        assert RankBridge.barrier!(gang) == :ok
      end
    end

    test "where the socket goes away, streams go by gRPC from then on", %{ranks: ranks} do
      %{gang: gang, view: view} = gang(:local, ranks)

      sockets =
        for rank <- @members,
            "unix:" <> path = Gang.View.target(view, rank),
            do: path <> ".stream"

      on_exit(fn -> for it <- sockets, do: File.rename(it <> ".away", it) end)
      for it <- sockets, do: File.rename!(it, it <> ".away")
      # A connection outlives its name.
      assert RankBridge.barrier!(gang) == :ok
      other = start_supervised!({Gang, endpoints_file: ranks.file, calls: :ranks}, id: :other)
      assert RankBridge.barrier!(other) == :ok

      transports = fn gang ->
        for {_rank, server} <- servers(gang),
            uniq: true,
            do: :sys.get_state(server).stream.call.transport
      end

      assert transports.(gang) == [RankBridge.Transport.Local]
      assert transports.(other) == [RankBridge.Transport.HTTP2]
    end

    test "a rank that has too many streams is called without one", %{ranks: ranks} do
      %{gang: gang, view: view} = gang(:local, ranks)
      # Of other controllers.
      opened =
        for _time <- 1..@streams do
          {:ok, call} = Transport.Local.open(channel(view))
          {:ok, call} = Transport.send_message(call, "")
          call
        end

      %{gang: other} = gang(:local, ranks)
      refs = numbered(other)

      for _time <- 1..10 do
        assert RankBridge.barrier!(other) == :ok
        assert values(other, RankBridge.all_reduce!(other, refs)) == on_each([3.0])
      end

      assert_soon([false, true, true], fn -> for {_, it} <- servers(other), do: streams?(it) end)
      # Streams that are there go on.
      assert RankBridge.barrier!(gang) == :ok
      Enum.each(opened, &Transport.cancel/1)

      # The rank may see later that they have ended, and is asked for another a second later.
      assert_soon([true, true, true], fn ->
        assert RankBridge.barrier!(other) == :ok
        for {_, it} <- servers(other), do: streams?(it)
      end)
    end
  end

  describe "ranks that a test may kill," do
    setup do
      # A rank that was killed stays away, however long the test takes to look.
      ranks = LiveRanks.start(3, "gloo", ["--on-rank-exit", "leave"])
      on_exit(fn -> LiveRanks.stop(ranks) end)
      %{mortal: ranks}
    end

    for way <- [:local, :grpc] do
      @way way

      @tag sampled: RankBridge.Test.Sampled.part(__ENV__)
      test "#{way}: one that is killed during a call is told at once", %{mortal: ranks} do
        %{gang: gang, view: view, unary: unary} = gang(@way, ranks)
        [first | _others] = ranks.pids
        # Stopped first, so that its part is begun there and goes on.
        OsProcess.stop(first)
        # One of each, by streams and without, of groups that do not wait for each other.
        calling = Task.async(fn -> Collectives.run(view, :barrier, nil, timeout: 60_000) end)
        assert_soon(%{0 => 1, 1 => 1, 2 => 1}, fn -> under_way(gang) end)
        assert_soon([1, 1], fn -> pending(view, [1, 2]) end)
        described = V1.RankService.describe_rank().path
        describing = Transport.start_unary(channel(view), described, "", timeout: 60_000)
        OsProcess.signal(first, "KILL")
        started = now()

        assert {:error, %Error{reason: :peer_lost, rank: 0, indefinite: true} = error} =
                 Task.await(calling, 60_000)

        assert now() - started < 20_000
        assert [{0, lost}, {1, second}, {2, third}] = error.outcomes
        assert {lost.reason, lost.indefinite, lost.rank} == {:unavailable, true, 0}
        assert lost.message == "connection lost: the server closed the connection"
        for it <- [second, third], do: assert({it.reason, it.rank} == {:peer_lost, 0})

        # What is called before the connection is known to be lost is sent on it.
        assert {:error, %{code: :unavailable}} = Transport.await(describing)
        # Whoever connects before it has closed what it listens on is connected, and loses that.
        assert_soon(false, fn -> File.exists?("/proc/#{first}") end)

        errors =
          for view <- [view, unary, view] do
            assert {:error, after_it} = Collectives.run(view, :barrier, nil, timeout: 5_000)
            assert [{0, %{reason: :unavailable, indefinite: false}} | _others] = after_it.outcomes
            {after_it.reason, after_it.indefinite, reasons(after_it)}
          end

        assert [error, error, error] = errors
      end

      @tag sampled: RankBridge.Test.Sampled.part(__ENV__)
      test "#{way}: one that is told to stop answers what it has begun", %{mortal: ranks} do
        %{gang: gang, view: view} = gang(@way, ranks)
        [first, _second, last] = ranks.pids
        OsProcess.stop(last)
        calling = Task.async(fn -> RankBridge.barrier(gang, timeout: 60_000) end)
        assert_soon(%{0 => 1, 1 => 1, 2 => 1}, fn -> under_way(gang) end)
        assert_soon([1, 1], fn -> pending(view, [0, 1]) end)
        OsProcess.signal(first, "TERM")
        # Its stream has ended in order.
        assert_soon(false, fn -> streams?(servers(gang)[0]) end)
        OsProcess.signal(last, "KILL")
        assert {:error, error} = Task.await(calling, 60_000)
        assert [{0, first}, {1, second}, {2, third}] = error.outcomes

        for it <- [first, second],
            do: assert(it.reason in [:aborted, :peer_lost, :stale_generation])

        assert {third.reason, third.indefinite} == {:unavailable, true}
      end

      @tag sampled: RankBridge.Test.Sampled.part(__ENV__)
      test "#{way}: one that is told to stop has not begun what comes later", %{mortal: ranks} do
        %{gang: gang, view: view} = gang(@way, ranks)
        OsProcess.signal(hd(ranks.pids), "TERM")

        # By and by. Who is told so has lost nothing.
        errors =
          Stream.repeatedly(fn -> RankBridge.barrier(gang, timeout: 20_000) end)
          |> Stream.reject(&(&1 == :ok))
          |> Enum.take(1)

        assert [{:error, %Error{} = error}] = errors
        assert :deadline_exceeded not in reasons(error)
        assert_soon(:unavailable, fn -> reason(Ranks.status_of(view, 0, [])) end)
        assert {:error, %Error{} = later} = RankBridge.barrier(gang, timeout: 20_000)
        assert [{0, %{reason: :unavailable, indefinite: false}} | _others] = later.outcomes
      end
    end
  end

  @tag sampled: RankBridge.Test.Sampled.part(__ENV__)
  test "a gang that is whole again has streams to all ranks again", %{test: name} do
    command = OsProcess.rankbridge()
    start_supervised!({Gang, name: name, size: 2, command: command, calls: :ranks})
    assert RankBridge.await_ready(name, 60_000) == :ok
    assert RankBridge.barrier!(name) == :ok
    Gang.subscribe(name)
    name |> RankBridge.status!() |> Enum.at(1) |> Map.fetch!(:pid) |> OsProcess.kill()
    assert_receive {:rank_bridge, ^name, %Gang.Event{kind: :rank_lost, rank: 1}}, 60_000
    assert RankBridge.await_ready(name, 60_000) == :ok

    assert_soon([true, true], fn ->
      assert RankBridge.barrier!(name) == :ok
      for {_rank, it} <- servers(name), do: streams?(it)
    end)
  end

  @tag sampled: RankBridge.Test.Sampled.part(__ENV__)
  test "the end of the gang ends its streams" do
    ranks = LiveRanks.start(2, "fake")
    on_exit(fn -> LiveRanks.stop(ranks) end)
    gang = start_supervised!({Gang, endpoints_file: ranks.file})
    assert RankBridge.barrier!(gang) == :ok
    monitors = for {_rank, server} <- servers(gang), do: Process.monitor(server)
    stop_supervised!(Gang)
    for it <- monitors, do: assert_receive({:DOWN, ^it, :process, _pid, _why}, 10_000)
  end

  defp streams?(server), do: :sys.get_state(server).stream.call != nil
  defp reasons(error), do: for({_rank, %Error{reason: reason}} <- error.outcomes, do: reason)
  defp reason({:error, error}), do: error.reason
  defp reason(result), do: result

  # What these ranks have to do that goes on.
  defp pending(view, ranks) do
    for rank <- ranks do
      {:ok, status} = Ranks.status_of(view, rank, [])
      status.pending_operations
    end
  end

  defp now, do: System.monotonic_time(:millisecond)
end
