defmodule RankBridge.LiveHoldTest do
  @moduledoc "Breakpoints on ranks that run: they hold, show what is there, and let go."

  use ExUnit.Case, async: true

  import ExUnit.CaptureIO
  import RankBridge.Test.Soon

  alias RankBridge.{Doctor, Error, Gang, HeldCall, Hold, Inspection, Tensor}
  alias RankBridge.Test.{LiveRanks, OsProcess}
  alias RankBridge.Test.Telemetry, as: Watch

  @app Path.expand("../../../tests/support/apps/held.py", __DIR__)
  @size 3
  @wait 30_000

  setup_all do
    ranks = LiveRanks.start(@size, "gloo", ["--load", @app])
    on_exit(fn -> LiveRanks.stop(ranks) end)
    %{ranks: ranks}
  end

  setup %{ranks: ranks} do
    %{gang: start_supervised!({Gang, endpoints_file: ranks.file, timeout: 60_000})}
  end

  defp opened(gang, words) do
    {:ok, hold} = Hold.open(gang, words)
    on_exit(fn -> Hold.close(hold) end)
    hold
  end

  defp numbers(gang),
    do: RankBridge.put!(gang, for(rank <- 0..2, do: [1.0 * rank, 1.0 * rank, 1.0 * rank]))

  defp adding(gang, refs), do: Task.async(fn -> RankBridge.all_reduce(gang, refs, op: :sum) end)

  defp sums(gang, adding) do
    {:ok, refs} = Task.await(adding, @wait)
    gang |> RankBridge.get!(refs) |> Enum.map(&Tensor.to_list/1)
  end

  test "an operation is held, looked at, and goes on", %{gang: gang} do
    hold = opened(gang, operation: :all_reduce, group: "world")
    adding = adding(gang, numbers(gang))
    assert {:ok, [first | _others] = held} = Hold.wait(hold, timeout: @wait)
    assert for(call <- held, do: call.rank) == [0, 1, 2]

    for %HeldCall{} = call <- held do
      assert {call.caller, call.operation, call.group, call.after?} ==
               {:controller, "all_reduce", "world", false}

      assert call.contract == "all_reduce dtype=float32 shape=[3] op=sum"
      assert abs(System.system_time(:microsecond) - call.since_us) < 3_600_000_000
    end

    assert "#{first}" =~ ~r/^rank 0 is held before all_reduce world#\d+.*: breakpoint$/
    assert Hold.held!(hold) == held

    assert {:ok, looks} = Hold.inspect_held(hold, start: 1, count: 5)

    for {%Inspection{call: call, inputs: [input], frames: []}, rank} <- Enum.with_index(looks) do
      number = 1.0 * rank
      assert {call.rank, input.spec, input.elements} == {rank, "float32[3]", 3}
      assert {input.min, input.max, input.mean} == {number, number, number}
      assert {input.nans, input.infs} == {0, 0}
      assert Tensor.to_list(input.slice) == [number, number]
    end

    assert looks |> Enum.uniq_by(&hd(&1.inputs).hash) |> length() == @size
    assert Hold.inspect_held!(hold) |> Enum.all?(&(hd(&1.inputs).slice == nil))
    assert Hold.differs_at(hold, 0, 1) == {:ok, 0}
    assert Hold.differs_at(hold, 1, 1) == {:ok, nil}

    assert {:error,
            %Error{reason: :invalid_argument, operation: "differs_at", expected: "0 to 0"}} =
             Hold.differs_at(hold, 0, 1, input: 1)

    assert Hold.resume(hold) == {:ok, @size}
    assert Hold.close(hold) == :ok
    assert sums(gang, adding) == List.duplicate([3.0, 3.0, 3.0], @size)
  end

  test "where tensors differ is found beyond what a rank gives at once", %{gang: gang} do
    place = 70_000
    same = :binary.copy(<<7>>, 80_000)
    other = binary_part(same, 0, place) <> <<8>> <> binary_part(same, 0, 80_000 - place - 1)
    tensors = for data <- [same, other, same], do: Tensor.new!(:uint8, [80_000], data)
    hold = opened(gang, operation: "all_reduce")
    adding = adding(gang, RankBridge.put!(gang, tensors))
    Hold.wait!(hold, timeout: @wait)
    assert Hold.differs_at!(hold, 0, 1) == place
    assert Hold.differs_at!(hold, 0, 2) == nil
    Hold.resume!(hold)
    assert {:ok, _sums} = Task.await(adding, @wait)
  end

  test "a call of the user's code is held where NaN is in it, and its variables show", context do
    %{gang: gang} = context
    hold = opened(gang, caller: :script, has: :nan)
    {:ok, stepping} = RankBridge.start_call(gang, :step, [3, spoiled: 1])
    assert {:ok, [held]} = Hold.wait(hold, ranks: 1, timeout: @wait)
    assert {held.rank, held.caller, held.why} == {1, :script, "NaN in input 0"}
    assert held.site =~ ~r"/held\.py:\d+$"
    assert {:ok, [%Inspection{} = look]} = Hold.inspect_held(hold, count: 2)
    assert look.call == held
    assert [%{nans: 1, slice: slice}] = look.inputs
    assert Tensor.to_list(slice) == [2.0, :nan]
    assert [%{function: "step", line: line, variables: variables} | _callers] = look.frames
    assert String.ends_with?(held.site, ":#{line}")
    assert {variables["number"], variables["sums"]} == {"2", "[3.0]"}
    assert variables["gradient"] == "float32[4]"
    assert Hold.resume!(hold) == 1
    assert [[_, _, 9.0], [_, _, 9.0], [_, _, 9.0]] = RankBridge.await!(gang, stepping)
  end

  test "a step holds the next call of each rank, and all come together", %{gang: gang} do
    hold = opened(gang, caller: :script, operation: :all_reduce)
    {:ok, stepping} = RankBridge.start_call(gang, :step, [3])
    first = Hold.wait!(hold, timeout: @wait)
    assert Hold.step!(hold) == @size
    second = Hold.wait!(hold, timeout: @wait)
    assert for({is, was} <- Enum.zip(second, first), do: is.number - was.number) == [1, 1, 1]
    assert for(call <- second, do: call.why) == ["step", "step", "step"]
    assert Hold.together!(hold, timeout: @wait) == second
    Hold.close(hold)
    assert RankBridge.await!(gang, stepping) == List.duplicate([3.0, 6.0, 9.0], @size)
  end

  test "ranks that are behind are stepped to the others", %{gang: gang} do
    first = opened(gang, caller: :script, ranks: [0])
    {:ok, leading} = RankBridge.start_call_alone(gang, 0, :step, [2])
    [%HeldCall{number: number}] = Hold.wait!(first, timeout: @wait)
    hold = opened(gang, caller: :script)
    # From here on, rank 0 waits in the call before which the others are held.
    Hold.close(first)

    others =
      for rank <- [1, 2] do
        {:ok, call} = RankBridge.start_call_alone(gang, rank, :step, [2])
        call
      end

    behind = Hold.wait!(hold, ranks: [1, 2], timeout: @wait)
    assert for(call <- behind, do: {call.rank, call.number}) == [{1, number}, {2, number}]
    together = Hold.together!(hold, timeout: @wait)

    assert for(call <- together, do: {call.rank, call.number - number}) == [
             {0, 1},
             {1, 1},
             {2, 1}
           ]

    Hold.close(hold)
    for call <- [leading | others], do: assert(RankBridge.await!(gang, call) == [[3.0, 6.0]])
  end

  test "words mean the calls that they say", %{gang: gang} do
    began = opened(gang, function: :step)
    {:ok, stepping} = RankBridge.start_call(gang, :step, [3])
    held = Hold.wait!(began, timeout: @wait)
    assert ["call_function"] == Enum.uniq(for call <- held, do: call.operation)

    assert "#{hd(held)}" =~
             ~r/^rank 0 is held before call_function step world#\d+ at .*: breakpoint$/

    large = opened(gang, above: 1.5, ranks: [0])
    Hold.close(began)
    [call] = Hold.wait!(large, timeout: @wait)
    assert call.why =~ "in input 0" and call.operation == "all_reduce"
    here = opened(gang, at: Path.basename(call.site), number: call.number + 1, ranks: [1])
    Hold.close(large)
    assert [%HeldCall{rank: 1} = next] = Hold.wait!(here, timeout: @wait)
    assert {next.site, next.number} == {call.site, call.number + 1}
    Hold.close(here)
    assert RankBridge.await!(gang, stepping) == List.duplicate([3.0, 6.0, 9.0], @size)
    slow = opened(gang, slower: 1.0e-6)
    assert RankBridge.barrier(gang) == :ok

    assert [%HeldCall{after?: true, why: "it took " <> _time} | _] =
             Hold.wait!(slow, timeout: @wait)
  end

  test "a call that all skip leaves the tensors as they are; one that fails raises", context do
    %{gang: gang} = context
    hold = opened(gang, caller: :script)
    {:ok, stepping} = RankBridge.start_call(gang, :step, [2])
    Hold.wait!(hold, timeout: @wait)
    assert Hold.skip(hold) == {:ok, @size}
    Hold.wait!(hold, timeout: @wait)
    Hold.resume!(hold)
    assert RankBridge.await!(gang, stepping) == List.duplicate([1.0, 6.0], @size)

    {:ok, catching} = RankBridge.start_call(gang, :caught, [])
    Hold.wait!(hold, timeout: @wait)
    assert Hold.fail(hold, message: "the weights are wrong") == {:ok, @size}

    assert RankBridge.await!(gang, catching) ==
             List.duplicate(
               "broadcast on world was held at a breakpoint, and failed there: the weights are wrong",
               @size
             )
  end

  test "an operation that is skipped or fails has definitely done nothing", %{gang: gang} do
    refs = numbers(gang)
    hold = opened(gang, operation: :all_reduce)

    for {let_go, reason} <- [{&Hold.skip/2, :cancelled}, {&Hold.fail/2, :aborted}] do
      adding = adding(gang, refs)
      Hold.wait!(hold, timeout: @wait)
      assert let_go.(hold, message: "because I say so") == {:ok, @size}

      assert {:error, %Error{reason: ^reason, indefinite: false} = error} =
               Task.await(adding, @wait)

      assert error.message =~ "because I say so"
      assert Hold.held(hold) == {:ok, []}
    end

    assert RankBridge.barrier(gang) == :ok
  end

  test "a rank is held after an operation on which members disagree", %{gang: gang} do
    hold = opened(gang, mismatch: true)
    refs = RankBridge.put!(gang, [[1.0], [1.0, 2.0], [1.0]])
    assert {:error, %Error{reason: :mismatch}} = RankBridge.all_reduce(gang, refs)
    held = Hold.wait!(hold, timeout: @wait)
    assert Enum.all?(held, & &1.after?)
    assert HeldCall.what(hd(held)) =~ "held after all_reduce world"
    assert {:error, %Error{reason: :invalid_argument}} = Hold.skip(hold)
    assert Hold.resume!(hold) == @size
  end

  @tag sampled: RankBridge.Test.Sampled.part(__ENV__)
  test "ranks are held after a call of a function that took long", %{gang: gang} do
    hold = opened(gang, caller: :script, slower: 0.1)
    # Longer than two ranks may begin after the third one.
    {:ok, waiting} = RankBridge.start_call(gang, :late, [3.0, "async"])
    held = Hold.wait!(hold, ranks: [0, 2], timeout: @wait)
    assert Enum.all?(held, &(&1.after? and &1.caller == :script and &1.why =~ ~r/^it took /))
    Hold.close(hold)
    assert RankBridge.await!(gang, waiting) == List.duplicate(3.0, @size)
  end

  test "of a held rank the doctor says so", %{gang: gang} do
    refs = numbers(gang)
    hold = opened(gang, operation: :all_reduce, ranks: [2])
    adding = adding(gang, refs)
    assert [%HeldCall{rank: 2}] = Hold.wait!(hold, ranks: [2], timeout: @wait)
    # The others may come later than the one that is held.
    assert_soon({:never_called, [{2, :held}]}, fn ->
      verdict = Doctor.diagnose!(gang, patience: 0.1)
      {verdict.kind, for(it <- verdict.culprits, do: {it.rank, it.condition})}
    end)

    Hold.resume!(hold)
    assert sums(gang, adding) == List.duplicate([3.0, 3.0, 3.0], @size)
  end

  test "the end of the process that has set it lets go", %{gang: gang} do
    refs = numbers(gang)
    test = self()

    {holder, monitor} =
      spawn_monitor(fn ->
        hold = Hold.open!(gang, operation: :all_reduce)
        send(test, {:set, hold})
        send(test, {:held, Hold.wait!(hold, timeout: @wait)})

        receive do
          :end -> :ok
        end
      end)

    assert_receive {:set, hold}, @wait
    adding = adding(gang, refs)
    assert_receive {:held, [_, _, _]}, @wait
    assert Task.yield(adding, 0) == nil
    Process.exit(holder, :kill)
    assert_receive {:DOWN, ^monitor, :process, ^holder, :killed}, @wait
    assert sums(gang, adding) == List.duplicate([3.0, 3.0, 3.0], @size)
    assert_soon(false, fn -> Process.alive?(hold.keeper) end)
    assert Hold.close(hold) == :ok

    for closed <- [Hold.wait(hold), Hold.held(hold), Hold.resume(hold), Hold.ended(hold)] do
      assert {:error, %Error{reason: :unavailable, operation: operation} = error} = closed
      assert error.message == "the breakpoint is closed" and operation != ""
    end
  end

  # Another VM, with the code of this one, which holds ranks.
  @program """
  {:ok, _apps} = Application.ensure_all_started(:rank_bridge)
  {:ok, gang} = RankBridge.Gang.start_link(endpoints_file: hd(System.argv()))
  hold = RankBridge.Hold.open!(gang, operation: :all_reduce, timeout: 60_000)
  IO.puts("set")
  RankBridge.Hold.wait!(hold, timeout: 60_000)
  IO.puts("held")
  receive do
    :end -> :ok
  end
  """

  @tag timeout: 180_000
  test "so does the end of its VM, by kill -9", %{gang: gang, ranks: ranks} do
    refs = numbers(gang)

    port =
      Port.open({:spawn_executable, System.find_executable("elixir")}, [
        :binary,
        line: 10_000,
        args:
          ["-pa", Path.join(Mix.Project.build_path(), "lib/*/ebin"), "-e", @program] ++
            [ranks.file]
      ])

    assert_receive {^port, {:data, {:eol, "set"}}}, 60_000
    adding = adding(gang, refs)
    assert_receive {^port, {:data, {:eol, "held"}}}, 60_000
    {:os_pid, vm} = Port.info(port, :os_pid)
    assert Task.yield(adding, 0) == nil
    OsProcess.kill(vm)
    assert sums(gang, adding) == List.duplicate([3.0, 3.0, 3.0], @size)
  end

  test "the documentation's example does what it says", %{gang: gang} do
    {:docs_v1, _, _, _, %{"en" => text}, _, _} = Code.fetch_docs(Hold)
    lines = for "    " <> line <- String.split(text, "\n"), do: line
    refs = RankBridge.put!(gang, [[1.0], [2.0], [:nan]])
    given = [gang: gang, refs: refs]

    {{:ok, binding}, printed} =
      with_io(fn -> {:ok, lines |> Enum.join("\n") |> Code.eval_string(given) |> elem(1)} end)

    assert printed =~ ~r/^rank 2 is held before all_reduce world#\d+.*: NaN in input 0\n$/
    assert {binding[:input].nans, binding[:input].elements} == {1, 1}

    assert [[:nan], [:nan], [:nan]] ==
             gang |> RankBridge.get!(binding[:sums]) |> Enum.map(&Tensor.to_list/1)
  end

  test "its events say what is held, and how it was let go", %{gang: gang} do
    events = for last <- [:held, :let_go], do: [:rank_bridge, :rank, last]
    id = Watch.watch(events, gang)
    hold = opened(gang, operation: :barrier, ranks: [1])
    waiting = Task.async(fn -> RankBridge.barrier(gang) end)
    [call] = Hold.wait!(hold, timeout: @wait)
    Hold.resume!(hold)
    assert Task.await(waiting, @wait) == :ok
    # Its end is the keeper's: everything is said then.
    Hold.close(hold)

    assert [
             {[_, _, :held], _times, %{rank: 1, operation: "barrier", held_call: ^call}},
             {[_, _, :let_go], %{duration: duration}, %{action: :continue, held_call: ^call}}
           ] = Watch.seen(id)

    assert duration > 0
  end

  test "what cannot be is refused, and nothing is asked", %{gang: gang} do
    for {words, says} <- [
          {[operatoin: :all_reduce], "did you mean :operation"},
          {[group: :world], "a name"},
          {[group: ""], "a name"},
          {[operation: 1], "a name"},
          {[at: :here], "a name"},
          {[function: true], "a name"},
          {[number: 0], "1 or more"},
          {[number: 2 ** 64], "1 or more"},
          {[caller: :me], ":controller or :script"},
          {[caller: false], ":controller or :script"},
          {[has: :zero], ":nan, :inf, or both"},
          {[has: []], ":nan, :inf, or both"},
          {[above: -1], "0 or more"},
          {[above: 10 ** 400], "0 or more"},
          {[mismatch: 1], "true or false"},
          {[slower: 0], "more than 0"},
          {[slower: "1"], "more than 0"},
          {[ranks: 1], "a list of ranks"},
          {[ranks: []], "a list of ranks"},
          {[ranks: [3]], "0 to 2"},
          {[timeout: 0], "not options"}
        ] do
      assert {^words, {:error, %Error{operation: "hold", indefinite: false} = error}} =
               {words, Hold.open(gang, words)}

      assert error.reason in [:invalid_argument, :rank_out_of_range]
      # No rank was asked.
      assert error.outcomes == []
      assert error.message <> error.expected =~ says
    end

    # The ranks themselves refuse this.
    assert {:error, %Error{reason: :invalid_argument, indefinite: false} = error} =
             Hold.open(gang, mismatch: true, has: :nan)

    assert [{0, %Error{}}, {1, %Error{}}, {2, %Error{}}] = error.outcomes

    assert_raise Error, ~r/no rank 7/, fn -> Hold.open!(gang, ranks: [0, 7]) end
    assert RankBridge.barrier(gang) == :ok
  end

  test "what is asked of no call is nothing, or an error", %{gang: gang} do
    hold = opened(gang, operation: :scan)
    assert inspect(hold) =~ "#RankBridge.Hold<gang: "
    assert Hold.held(hold) == {:ok, []}
    assert Hold.inspect_held(hold) == {:ok, []}
    assert Hold.resume(hold) == {:ok, 0}
    assert Hold.wait(hold, ranks: 0) == {:ok, []}
    assert Hold.ended(hold) == {:ok, %{}}

    assert {:error, %Error{reason: :deadline_exceeded, operation: "wait"} = error} =
             Hold.wait(hold, ranks: 2, timeout: 50)

    assert {error.expected, error.got} == {"2 ranks", "none"}

    assert {:error, %Error{reason: :deadline_exceeded, operation: "together"} = error} =
             Hold.together(hold, timeout: 50)

    assert error.expected == "ranks [0, 1, 2]"

    assert {:error, %Error{reason: :unknown_operation, rank: 0, operation: "differs_at"}} =
             Hold.differs_at(hold, 0, 1)

    for wrong <- [
          Hold.wait(hold, ranks: 4),
          Hold.wait(hold, ranks: [3]),
          Hold.wait(hold, ranks: nil),
          Hold.inspect_held(hold, count: 70_000),
          Hold.inspect_held(hold, start: -1),
          Hold.skip(hold, message: :no),
          Hold.resume(hold, message: "no")
        ],
        do: assert({:error, %Error{reason: :invalid_argument}} = wrong)
  end

  test "who may only drive may not hold", %{ranks: ranks} do
    [endpoints: targets, token: _owner] = LiveRanks.by_tcp(ranks)
    {:ok, description} = ranks.file |> File.read!() |> RankBridge.JSON.decode()
    drive = description["tokens"]["drive"]

    guest =
      start_supervised!({Gang, endpoints: targets, token: drive, timeout: 60_000}, id: :guest)

    assert {:error, %Error{reason: :not_allowed, indefinite: false} = error} =
             Hold.open(guest, operation: :all_reduce)

    assert [_, _, _] = for({_rank, %Error{reason: :not_allowed}} <- error.outcomes, do: 1)
    # It is set nowhere.
    assert RankBridge.barrier(guest) == :ok
  end

  @tag timeout: 180_000
  @tag sampled: RankBridge.Test.Sampled.part(__ENV__)
  test "of a rank that is lost the breakpoint is gone, and a wait for it ends" do
    opts = [size: 2, backend: :gloo, command: OsProcess.rankbridge(), timeout: 60_000]
    gang = start_supervised!({Gang, opts}, id: :losing)
    assert RankBridge.await_ready(gang, 60_000) == :ok
    Gang.subscribe(gang)
    hold = opened(gang, operation: :all_reduce)
    waiting = Task.async(fn -> Hold.wait(hold, timeout: 120_000) end)
    {:ok, pid} = RankBridge.kill_rank(gang, 1)
    assert {:error, %Error{reason: :unavailable, rank: 1}} = Task.await(waiting, 60_000)
    OsProcess.await_gone([pid])
    assert {:ok, %{1 => %Error{}} = ended} = Hold.ended(hold)
    assert Map.keys(ended) == [1]

    # Where it is still set, it holds in the next generation, too. The gang may report the first after it is ready.
    assert_receive {:rank_bridge, ^gang, %Gang.Event{kind: :formed, generation: generation}}
                   when generation > 1,
                   60_000

    refs = RankBridge.put!(gang, [[1.0], [2.0]])
    adding = adding(gang, refs)
    assert [%HeldCall{rank: 0}] = Hold.wait!(hold, ranks: [0], timeout: @wait)
    Hold.close(hold)
    assert sums(gang, adding) == [[3.0], [3.0]]
  end
end
