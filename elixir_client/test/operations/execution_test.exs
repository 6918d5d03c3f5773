defmodule RankBridge.Operations.ExecutionTest do
  @moduledoc "What goes on a rank's stream and what without, and how answers are read: to ranks that answer as the test says."

  use ExUnit.Case, async: true

  import RankBridge.Test.Soon

  alias RankBridge.{Calls, Error}
  alias RankBridge.Operations.{Declaration, Execution}
  alias RankBridge.Proto.V1
  alias RankBridge.Rank.Server
  alias RankBridge.Test.PuppetRanks
  alias RankBridge.Transport.Status

  @soon 10_000
  # Requests that a stream has under way, but for those of a `RankBridge.CallStream`.
  @share 128

  defp call(fields \\ []) do
    fields = [operation: "barrier", group: "world"] ++ fields
    rpc = V1.GangService.execute()
    struct!(%Calls{rpc: rpc, operation: "", deadline: 60_000, operation_id: "it"}, fields)
  end

  defp request(rank, id \\ "it"),
    do: %V1.BarrierRequest{call: %V1.Call{group: "g#{rank}", operation_id: id}}

  defp requests, do: for(rank <- 0..2, do: {rank, request(rank)})

  # In a process of its own, as the test plays the ranks.
  defp begin(view, call \\ call(), requests \\ requests()),
    do: Task.async(fn -> Execution.parts(view, :barrier, requests, call) end)

  defp result(outcome), do: {:result, %V1.OperationResult{outcome: outcome}}
  defp integer(number), do: {:value, %V1.Value{kind: {:int, number}}}

  # What the rank is sent next, and the process that has sent it.
  defp sent(rank) do
    assert_receive {:sent, ^rank, server, bytes}, @soon
    {server, V1.ExecuteRequest.decode(bytes)}
  end

  defp say(rank, what) do
    {server, %{number: number}} = sent(rank)
    send(server, {:say, encoded(what, number)})
  end

  defp encoded({_kind, _what} = outcome, number),
    do: V1.ExecuteResponse.encode(%V1.ExecuteResponse{outcome: outcome, number: number})

  defp encoded(other, _number), do: other

  defp integers(results),
    do: for({rank, {:ok, %{kind: {:int, it}}}} <- results, do: {rank, it})

  defp refute_alone, do: refute_received({:unary, _, _, _, _})

  test "each rank is sent its part, and what it answers is its result, in whichever order" do
    calling = begin(PuppetRanks.view())

    asking =
      for rank <- 0..2 do
        {server, request} = sent(rank)
        part = %V1.Operation{kind: {:barrier, request(rank)}}
        assert request == %V1.ExecuteRequest{kind: {:part, part}, number: 1}
        {rank, server}
      end

    for {rank, server} <- Enum.reverse(asking),
        do: send(server, {:say, encoded(result(integer(rank)), 1)})

    assert calling |> Task.await() |> integers() == [{0, 0}, {1, 1}, {2, 2}]
    refute_alone()
  end

  test "several requests to a rank share its stream, and each has its own answer" do
    view = PuppetRanks.view()
    callings = for number <- 1..3, do: begin(view, call(), [{1, request(1, "#{number}")}])

    asked =
      for _calling <- callings do
        {server, %{kind: {:part, %{kind: {:barrier, %{call: %{operation_id: id}}}}}} = it} =
          sent(1)

        {server, it.number, String.to_integer(id)}
      end

    assert [server] = Enum.uniq(for {server, _, _} <- asked, do: server)
    assert [1, 2, 3] = for({_, number, _} <- asked, do: number)

    for {_, number, id} <- Enum.reverse(asked),
        do: send(server, {:say, encoded(result(integer(id)), number)})

    assert for(it <- callings, do: it |> Task.await() |> integers()) ==
             [[{1, 1}], [{1, 2}], [{1, 3}]]

    assert_received {:opening, 1, ^server}
    refute_received {:opening, _, _}
    refute_alone()
  end

  test "every operation's part is written as its own message" do
    view = PuppetRanks.view()

    for name <- Declaration.names() do
      request = struct!(Declaration.of(name).rpc.request, call: %V1.Call{operation_id: "it"})
      calling = Task.async(fn -> Execution.parts(view, name, [{0, request}], call()) end)
      {server, %{kind: {:part, %{kind: {^name, ^request}}}, number: number}} = sent(0)
      send(server, {:say, encoded(result(integer(7)), number)})
      assert calling |> Task.await() |> integers() == [{0, 7}]
    end
  end

  test "a rank's error is its own" do
    calling = begin(PuppetRanks.view())

    refusal = %V1.Error{
      code: :ERROR_CODE_RELEASED_REF,
      message: "told",
      rank: 1,
      indefinite: true
    }

    say(0, result(integer(0)))
    say(1, result({:error, refusal}))
    say(2, result(nil))
    assert [{0, {:ok, _}}, {1, {:error, error}}, {2, {:error, silent}}] = Task.await(calling)
    assert error == Error.from_proto(refusal)
    assert {silent.reason, silent.indefinite, silent.rank} == {:protocol, true, 2}
  end

  test "an answer that cannot be read is an error of that rank" do
    calling = begin(PuppetRanks.view())
    say(0, {:outcomes, %V1.MemberOutcomes{}})
    say(1, <<0xFF>>)
    say(2, result(integer(2)))
    assert [{0, {:error, first}}, {1, {:error, second}}, {2, {:ok, _}}] = Task.await(calling)
    assert {first.reason, first.indefinite} == {:protocol, true}
    assert {second.rank, second.indefinite} == {1, true}
    # Which request it was for nobody knows.
    assert_receive {:hung_up, 1}, @soon
  end

  test "an answer of no request under way is for nobody" do
    calling = begin(PuppetRanks.view(), call(), [{0, request(0)}])
    {server, %{number: number}} = sent(0)

    for number <- [number + 1, number],
        do: send(server, {:say, encoded(result(integer(number)), number)})

    assert calling |> Task.await() |> integers() == [{0, number}]
  end

  describe "what a stream did not begin goes by itself at once, while others wait:" do
    setup do
      %{calling: begin(PuppetRanks.view(), call(deadline: 50_000))}
    end

    for {why, what} <- [
          {"the rank has ended it", :over},
          {"it could not be sent", Status.new(:unavailable, "nowhere", false)}
        ] do
      @what Macro.escape(what)
      test why, %{calling: calling} do
        say(1, unquote(@what))
        assert_alone(calling)
      end
    end

    test "the rank refuses it", %{calling: calling} do
      {server, _request} = sent(1)
      refusal = {:error, %V1.Error{code: :ERROR_CODE_RESOURCE_EXHAUSTED}}
      send(server, {:say, encoded(refusal, 0)})
      assert_alone(calling)
      # A stream that was over at once is not opened again at once.
      view = PuppetRanks.view()
      assert view |> begin(call(), [{1, request(1)}]) |> Task.await() |> integers() == [{1, 101}]
      assert_received {:opening, 1, ^server}
      refute_received {:opening, 1, _}
    end

    defp assert_alone(calling) do
      assert_receive {:unary, 1, "Submit", bytes, opts}, @soon

      assert V1.SubmitRequest.decode(bytes).operation == %V1.Operation{
               kind: {:barrier, request(1)}
             }

      assert opts[:timeout] in 1..50_000
      assert_receive {:unary, 1, "Await", bytes, _opts}, @soon
      assert %{operation_id: "it", timeout_ms: timeout} = V1.AwaitRequest.decode(bytes)
      assert timeout in 1..50_000
      say(0, result(integer(0)))
      say(2, result(integer(2)))
      assert calling |> Task.await() |> integers() == [{0, 0}, {1, 101}, {2, 2}]
      refute_alone()
    end
  end

  test "what a stream may have begun is left open, and not sent again" do
    view = PuppetRanks.view()
    calling = begin(view)
    say(0, result(integer(0)))
    say(1, Status.new(:unavailable, "lost", true))
    say(2, result(integer(2)))
    assert [{0, {:ok, _}}, {1, {:error, error}}, {2, {:ok, _}}] = Task.await(calling)
    assert %{reason: :unavailable, indefinite: true, rank: 1, message: "lost"} = error
    assert %{operation: "barrier", operation_id: "it", group: "world"} = error
    refute_alone()
  end

  test "a stream that has answered, and ends, is opened again with the next request" do
    view = PuppetRanks.view()

    for number <- 1..2 do
      calling = begin(view, call(), [{0, request(0)}])
      assert_receive {:opening, 0, _server}, @soon
      {server, it} = sent(0)
      send(server, {:say, encoded(result(integer(number)), it.number)})
      assert calling |> Task.await() |> integers() == [{0, number}]
      send(server, {:say, :over})
    end

    refute_alone()
  end

  test "a rank that does not answer in time fails as a call of its own does, and its part is withdrawn" do
    results = PuppetRanks.view() |> begin(call(deadline: 30)) |> Task.await()

    for {{rank, {:error, error}}, place} <- assert(Enum.with_index(results)) do
      assert {rank, error.rank} == {place, place}
      assert {error.reason, error.indefinite} == {:deadline_exceeded, true}
      assert error.message == "the deadline passed"
      {_server, %{kind: {:part, _part}, number: number}} = sent(rank)
      assert {_server, %{kind: {:withdraw, ""}, number: ^number}} = sent(rank)
    end

    assert length(results) == 3
  end

  @tag sampled: RankBridge.Test.Sampled.part(__ENV__)
  test "a stream that is long in coming keeps nobody beyond the deadline, nor other ranks" do
    view = PuppetRanks.view(%{}, %{2 => %{open: :ask}})
    calling = begin(view, call(deadline: 3_000))
    for rank <- 0..1, do: say(rank, result(integer(rank)))
    assert [{0, {:ok, _}}, {1, {:ok, _}}, {2, {:error, error}}] = Task.await(calling, @soon)
    assert error.reason == :deadline_exceeded
    refute_received {:sent, 2, _, _}
    assert_received {:opening, 2, opener}
    send(opener, :open)
  end

  test "what waits for room is sent when there is some, and not only when something is answered" do
    view = PuppetRanks.view()
    large = %V1.BarrierRequest{call: %V1.Call{group: String.duplicate("x", 20_000)}}
    first = begin(view, call(), [{0, large}])
    {server, %{number: 1}} = sent(0)
    second = begin(view, call(), [{0, request(0)}])
    # It has come there, and waits.
    assert_soon(1, fn -> :queue.len(:sys.get_state(server).requests.waiting) end)
    refute_received {:sent, _, _, _}
    send(server, {:say, :room})
    {^server, %{number: 2}} = sent(0)
    for number <- [2, 1], do: send(server, {:say, encoded(result(integer(number)), number)})
    assert [[{0, 1}], [{0, 2}]] = for(it <- [first, second], do: it |> Task.await() |> integers())
  end

  test "what finds as much under way as a rank takes goes by itself" do
    view = PuppetRanks.view()

    waiting = for number <- 1..@share, do: begin(view, call(), [{0, request(0, "#{number}")}])

    asked = for _one <- waiting, do: sent(0)
    assert view |> begin(call(), [{0, request(0)}]) |> Task.await() |> integers() == [{0, 100}]
    for {server, it} <- asked, do: send(server, {:say, encoded(result(integer(1)), it.number)})
    assert waiting |> Task.await_many() |> Enum.map(&integers/1) |> Enum.uniq() == [[{0, 1}]]
    assert_received {:unary, 0, "Submit", _, _}
  end

  test "the end of the caller withdraws the parts" do
    view = PuppetRanks.view()
    requests = requests()
    {:ok, caller} = Task.start(fn -> Execution.parts(view, :barrier, requests, call()) end)
    numbers = for rank <- 0..2, {_server, %{number: number}} = sent(rank), do: number
    Process.exit(caller, :kill)

    for {number, rank} <- Enum.with_index(numbers) do
      {_server, request} = sent(rank)
      assert request == %V1.ExecuteRequest{kind: {:withdraw, ""}, number: number}
    end
  end

  describe "without streams" do
    setup do
      %{view: PuppetRanks.view(%{open: %Status{code: :unimplemented}})}
    end

    test "parts are submitted and awaited", %{view: view} do
      for _time <- 1..2,
          do:
            assert(
              view |> begin() |> Task.await() |> integers() == [{0, 100}, {1, 101}, {2, 102}]
            )

      # It was tried once, for a while.
      for rank <- 0..2, do: assert_received({:opening, ^rank, _})
      refute_received {:opening, _, _}
    end

    test "a gang call is a call of its own", %{view: view} do
      bytes = V1.CallRequest.encode(%V1.CallRequest{call: %V1.Call{operation_id: "it"}})
      assert {:ok, %{members: [%{rank: 0}]}} = Execution.call(view, 0, bytes, call())
      assert_received {:unary, 0, "Call", ^bytes, _opts}
    end

    test "a part without an operation id is refused", %{view: view} do
      call = call(operation_id: "")
      assert [{0, {:error, error}}] = Execution.parts(view, :barrier, [{0, request(0, "")}], call)
      assert {error.reason, error.indefinite} == {:resource_exhausted, false}
      refute_alone()
    end
  end

  test "a gang that has ended asks for nothing" do
    {:ok, gang} = Task.start(fn -> :ok end)
    view = %{PuppetRanks.view() | gang: gang}
    Process.monitor(gang)
    assert_receive {:DOWN, _, :process, ^gang, _}, @soon
    assert [{0, {:error, error}}] = Execution.parts(view, :barrier, [{0, request(0)}], call())
    assert error.reason == :unavailable
  end

  test "what a process that ends in order did not receive goes to the next" do
    view = PuppetRanks.view()
    ended = Server.of(view, 0)
    calling = begin(view, call(), [{0, request(0)}])
    say(0, result(integer(1)))
    assert calling |> Task.await() |> integers() == [{0, 1}]
    :sys.suspend(ended)
    calling = begin(view, call(), [{0, request(0)}])
    # Before that, it ends as it does when it was not used for long.
    :sys.replace_state(ended, fn state -> state end)
    GenServer.stop(ended)
    say(0, result(integer(2)))
    assert calling |> Task.await() |> integers() == [{0, 2}]
    assert Server.of(view, 0) != ended
  end

  test "nothing is sent if one request cannot be" do
    view = PuppetRanks.view()
    wrong = %V1.BarrierRequest{call: %V1.Call{timeout_ms: -1}}
    results = Execution.parts(view, :barrier, [{0, request(0)}, {1, wrong}], call())
    assert [{0, {:error, error}}, {1, {:error, error}}] = results
    assert {error.reason, error.indefinite} == {:invalid_argument, false}
    refute_received {:sent, _, _, _}
  end
end
