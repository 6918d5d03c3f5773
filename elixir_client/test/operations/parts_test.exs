defmodule RankBridge.Operations.PartsTest do
  @moduledoc "Which calls of ranks go by streams, what is sent, and how answers are read: to ranks that answer as the test says."

  use ExUnit.Case, async: true

  import RankBridge.Test.Soon

  alias RankBridge.{Calls, Error}
  alias RankBridge.Operations.{Declaration, GangCall, Parts}
  alias RankBridge.Proto.V1
  alias RankBridge.Test.ToldRanks
  alias RankBridge.Transport.Status

  @soon 10_000

  defp call(fields \\ []) do
    fields = [rpc: Declaration.of(:barrier).rpc, operation: "barrier", group: "world"] ++ fields
    struct!(%Calls{rpc: nil, operation: "", deadline: 60_000, operation_id: "it"}, fields)
  end

  defp request(rank),
    do: %V1.BarrierRequest{call: %V1.Call{group: "g#{rank}", operation_id: "it"}}

  defp requests, do: for(rank <- 0..2, do: {rank, request(rank)})

  # In a process of its own, as the test plays the ranks.
  defp begin(view, call \\ call(), requests \\ requests()),
    do: Task.async(fn -> Parts.each(view, :barrier, requests, call) end)

  # With a stream to each of some ranks.
  defp streams(view, ranks \\ 0..2) do
    # Who opens them is another process than who begins with them.
    assert [{0, _}, {1, _}, {2, _}] = view |> begin() |> Task.await()
    for rank <- 0..2, do: assert_receive({:unary, ^rank, _, _, _}, @soon)

    for rank <- 0..2 do
      assert_receive {:opening, ^rank, opener}, @soon
      if rank in ranks, do: send(opener, :open)
    end

    known = fn ->
      for {{"rank " <> rank, :parts}, pid, _} when is_pid(pid) <- :ets.tab2list(view.streams),
          do: String.to_integer(rank)
    end

    assert_soon(Enum.to_list(ranks), fn -> Enum.sort(known.()) end)
    view
  end

  # Lets the streams have been opened so many milliseconds from now.
  defp opened(view, milliseconds) do
    since = System.monotonic_time(:millisecond) + milliseconds

    for {key, server, _} <- :ets.tab2list(view.streams),
        do: :ets.insert(view.streams, {key, server, since})
  end

  defp result(outcome), do: {:result, %V1.OperationResult{outcome: outcome}}

  defp say(rank, what) do
    assert_receive {:sent, ^rank, server, _bytes}, @soon
    send(server, {:say, encoded(what)})
  end

  defp encoded({_kind, _what} = outcome),
    do: V1.ExecuteResponse.encode(%V1.ExecuteResponse{outcome: outcome})

  defp encoded(other), do: other

  defp integer(number), do: {:value, %V1.Value{kind: {:int, number}}}

  defp integers(results),
    do: for({rank, {:ok, %{kind: {:int, it}}}} <- results, do: {rank, it})

  test "each rank is sent its part, and what it answers is its result, in whichever order" do
    calling = begin(streams(ToldRanks.view()))

    for rank <- 0..2 do
      assert_receive {:sent, ^rank, server, bytes}, @soon
      part = %V1.Operation{kind: {:barrier, request(rank)}}
      assert V1.ExecuteRequest.decode(bytes) == %V1.ExecuteRequest{kind: {:part, part}}
      send(self(), {:sent, rank, server, bytes})
    end

    for rank <- [2, 0, 1], do: say(rank, result(integer(rank)))
    assert calling |> Task.await() |> integers() == [{0, 0}, {1, 1}, {2, 2}]
    refute_received {:unary, _, _, _, _}
  end

  test "every operation's part is written as its own message" do
    view = streams(ToldRanks.view())

    for name <- Declaration.names() do
      rpc = Declaration.of(name).rpc
      request = struct!(rpc.request, call: %V1.Call{operation_id: "it"})
      call = call(rpc: rpc)
      calling = Task.async(fn -> Parts.each(view, name, [{0, request}, {1, request}], call) end)

      for rank <- 0..1 do
        assert_receive {:sent, ^rank, server, bytes}, @soon
        assert %{kind: {:part, %{kind: {^name, ^request}}}} = V1.ExecuteRequest.decode(bytes)
        send(server, {:say, encoded(result(integer(rank)))})
      end

      assert calling |> Task.await() |> integers() == [{0, 0}, {1, 1}]
    end
  end

  test "a rank's error is its own" do
    calling = begin(streams(ToldRanks.view()))
    told = %V1.Error{code: :ERROR_CODE_RELEASED_REF, message: "told", rank: 1, indefinite: true}
    say(0, result(integer(0)))
    say(1, result({:error, told}))
    say(2, result(nil))
    assert [{0, {:ok, _}}, {1, {:error, error}}, {2, {:error, silent}}] = Task.await(calling)
    assert error == Error.from_proto(told)
    assert {silent.reason, silent.indefinite, silent.rank} == {:protocol, true, 2}
  end

  test "an answer that cannot be read is an error of that rank" do
    calling = begin(streams(ToldRanks.view()))
    say(0, {:outcomes, %V1.MemberOutcomes{}})
    say(1, <<0xFF>>)
    say(2, result(integer(2)))
    assert [{0, {:error, first}}, {1, {:error, second}}, {2, {:ok, _}}] = Task.await(calling)

    for error <- [first, second],
        do: assert({error.reason, error.indefinite} == {:protocol, true})
  end

  describe "what a stream did not begin goes by itself at once, while others wait:" do
    setup do
      %{calling: begin(streams(ToldRanks.view()), call(deadline: 50_000))}
    end

    for {why, what} <- [
          {"the rank refuses it", {:error, %V1.Error{code: :ERROR_CODE_RESOURCE_EXHAUSTED}}},
          {"the rank has ended it", :over},
          {"it could not be sent", Status.new(:unavailable, "nowhere", false)},
          {"the rank has no streams", %Status{code: :unimplemented}}
        ] do
      @what Macro.escape(what)
      test why, %{calling: calling} do
        say(1, unquote(@what))
        assert_receive {:unary, 1, path, bytes, opts}, @soon
        assert path == "/rankbridge.v1.CollectiveService/Barrier"
        assert V1.BarrierRequest.decode(bytes) == request(1)
        assert opts[:timeout] in 1..50_000
        say(0, result(integer(0)))
        say(2, result(integer(2)))
        assert calling |> Task.await() |> integers() == [{0, 0}, {1, 101}, {2, 2}]
        refute_received {:unary, _, _, _, _}
      end
    end
  end

  test "what a stream may have begun is left open, and not sent again" do
    view = streams(ToldRanks.view())
    calling = begin(view)
    say(0, result(integer(0)))
    say(1, Status.new(:unavailable, "lost", true))
    say(2, result(integer(2)))
    assert [{0, {:ok, _}}, {1, {:error, error}}, {2, {:ok, _}}] = Task.await(calling)
    assert %{reason: :unavailable, indefinite: true, rank: 1, message: "lost"} = error
    assert %{operation: "barrier", operation_id: "it", group: "world"} = error
    refute_received {:unary, _, _, _, _}

    # The next is not kept waiting until there is another stream.
    opened(view, -2_000)
    calling = begin(view)
    assert_receive {:unary, 1, _, _, _}, @soon
    assert_receive {:opening, 1, _opener}, @soon
    for rank <- [0, 2], do: say(rank, result(integer(rank)))
    assert calling |> Task.await() |> integers() == [{0, 0}, {1, 101}, {2, 2}]
  end

  test "a rank that does not answer in time is told as by a call of its own" do
    results = ToldRanks.view() |> streams() |> begin(call(deadline: 30)) |> Task.await()

    for {{rank, {:error, error}}, place} <- assert(Enum.with_index(results)) do
      assert {rank, error.rank} == {place, place}
      assert {error.reason, error.indefinite} == {:deadline_exceeded, true}
      assert error.message == "the deadline passed"
      assert_receive {:hung_up, ^rank}, @soon
    end

    assert length(results) == 3
  end

  test "a stream has one part at a time; what comes meanwhile goes by itself" do
    view = streams(ToldRanks.view())
    first = begin(view)
    for rank <- 0..2, do: assert_receive({:sent, ^rank, _, _}, @soon)
    assert view |> begin() |> Task.await() |> integers() == [{0, 100}, {1, 101}, {2, 102}]

    for rank <- 0..2 do
      [{_key, server, _since}] = :ets.lookup(view.streams, {"rank #{rank}", :parts})
      send(server, {:say, encoded(result(integer(rank)))})
    end

    assert first |> Task.await() |> integers() == [{0, 0}, {1, 1}, {2, 2}]
  end

  test "the end of the caller withdraws the parts" do
    view = streams(ToldRanks.view())
    requests = requests()
    {:ok, caller} = Task.start(fn -> Parts.each(view, :barrier, requests, call()) end)
    for rank <- 0..2, do: assert_receive({:sent, ^rank, _, _}, @soon)
    Process.exit(caller, :kill)

    for rank <- 0..2 do
      assert_receive {:sent, ^rank, _server, bytes}, @soon
      assert V1.ExecuteRequest.decode(bytes) == %V1.ExecuteRequest{kind: {:withdraw, "it"}}
    end
  end

  test "a stream that is long in coming keeps nobody waiting" do
    view = streams(ToldRanks.view(), 0..1)

    for _time <- 1..3 do
      calling = begin(view)
      assert_receive {:unary, 2, _, _, _}, @soon
      for rank <- 0..1, do: say(rank, result(integer(rank)))
      assert calling |> Task.await() |> integers() == [{0, 0}, {1, 1}, {2, 102}]
    end

    # It was asked for once.
    refute_received {:opening, 2, _opener}
  end

  test "a stream that cannot be had is tried again a while later" do
    view = ToldRanks.view(%{open: Status.new(:unavailable, "nobody there", false)})

    for _time <- 1..3 do
      assert view |> begin() |> Task.await() |> integers() == [{0, 100}, {1, 101}, {2, 102}]

      for rank <- 0..2 do
        assert_receive {:opening, ^rank, opener}, @soon
        send(opener, :open)
      end

      assert_soon([nil], fn ->
        for {_key, server, _since} <- :ets.tab2list(view.streams), uniq: true, do: server
      end)

      opened(view, 60_000)
      assert view |> begin() |> Task.await() |> integers() == [{0, 100}, {1, 101}, {2, 102}]
      refute_received {:opening, _, _}
      opened(view, -2_000)
    end
  end

  test "a gang that has ended has no streams" do
    view = streams(ToldRanks.view())
    :ets.delete(view.streams)
    assert view |> begin() |> Task.await() |> integers() == [{0, 100}, {1, 101}, {2, 102}]
  end

  test "what is too large, has no id, or is of one rank goes by itself" do
    view = streams(ToldRanks.view())
    large = %V1.BarrierRequest{call: %V1.Call{group: String.duplicate("x", GangCall.max_part())}}
    calling = begin(view, call(), [{0, request(0)}, {1, large}, {2, request(2)}])
    assert_receive {:unary, 1, _, _, _}, @soon
    for rank <- [0, 2], do: say(rank, result(integer(rank)))
    assert calling |> Task.await() |> integers() == [{0, 0}, {1, 101}, {2, 2}]

    assert view |> begin(call(operation_id: "")) |> Task.await() |> length() == 3
    for rank <- 0..2, do: assert_receive({:unary, ^rank, _, _, _}, @soon)
    assert view |> begin(call(), [{1, request(1)}]) |> Task.await() |> integers() == [{1, 101}]
    assert_received {:unary, 1, _, _, _}
    refute_received {:sent, _, _, _}
  end

  test "nothing is sent if one request cannot be" do
    view = streams(ToldRanks.view())
    wrong = %V1.BarrierRequest{call: %V1.Call{timeout_ms: -1}}
    results = Parts.each(view, :barrier, [{0, request(0)}, {1, wrong}], call())
    assert [{0, {:error, error}}, {1, {:error, error}}] = results
    assert {error.reason, error.indefinite} == {:invalid_argument, false}
    refute_received {:sent, _, _, _}
  end
end
