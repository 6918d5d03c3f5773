defmodule RankBridge.LiveFunctionsTest do
  @moduledoc "Functions of the user's own, in Python, that real ranks have loaded: test/support/functions/app.py."

  use ExUnit.Case, async: true

  alias RankBridge.{Error, Function, Functions, Gang, Report, Tensor}
  alias RankBridge.Error.Raised
  alias RankBridge.Function.Parameter
  alias RankBridge.Test.{LiveRanks, OsProcess}

  @modules Path.expand("../support/functions", __DIR__)
  @app Path.join(@modules, "app.py")

  setup_all do
    ranks = LiveRanks.start(3, "fake", ["--load", @app])
    on_exit(fn -> LiveRanks.stop(ranks) end)
    %{ranks: ranks}
  end

  setup %{ranks: ranks} do
    gang = start_supervised!({Gang, endpoints_file: ranks.file})
    # These ranks share a process.
    RankBridge.call_alone!(gang, 0, :open_gate, [false])
    %{gang: gang, refs: RankBridge.put!(gang, for(rank <- 0..2, do: [1.0 * rank]))}
  end

  defp lists(gang, refs), do: gang |> RankBridge.get!(refs) |> Enum.map(&Tensor.to_list/1)
  defp uuid, do: RankBridge.Id.uuid()

  describe "a call" do
    test "takes and gives values of all kinds", %{gang: gang} do
      tensor = Tensor.new!(:int16, [2], <<1, 0, 2, 0>>)
      text = String.duplicate("é", 100_000)

      values =
        [nil, true, 2, 2 ** 70, -0.5, :infinity, "é", <<255>>, {:bytes, "abc"}] ++
          [[], {}, [1, {2, [nil]}], %{1 => %{"a" => []}}, text]

      for value <- values, calls <- [:gang, :ranks] do
        assert RankBridge.call(gang, :echo, [value], calls: calls) == {:ok, [value, value, value]}
      end

      assert RankBridge.call!(gang, :echo, value: values) == [values, values, values]
      assert [[:nan], [:nan], [:nan]] = RankBridge.call!(gang, "echo", [[:nan]])
      # What it returns are refs.
      refs = RankBridge.call!(gang, :echo, [tensor])
      assert Enum.map(refs, &{&1.rank, &1.dtype}) == [{0, :int16}, {1, :int16}, {2, :int16}]
      assert lists(gang, refs) == [[1, 2], [1, 2], [1, 2]]
    end

    test "gives each rank its own ref, as the tensor itself, and each what is its own", context do
      %{gang: gang, refs: refs} = context
      tripled = RankBridge.call!(gang, :scaled, [refs, 3, shift: 1])
      assert lists(gang, tripled) == [[1.0], [4.0], [7.0]]

      shifted = RankBridge.call!(gang, :scaled, [refs, shift: RankBridge.each([1, 2, 3])])
      assert lists(gang, shifted) == [[1.0], [4.0], [7.0]]

      assert RankBridge.call!(gang, :add_, [refs, 0.5]) == [nil, nil, nil]
      assert lists(gang, refs) == [[0.5], [1.5], [2.5]]

      # Also deep in a value.
      each = RankBridge.each(for ref <- refs, do: %{"w" => [ref, ref]})
      echoed = RankBridge.call!(gang, :echo, [each])
      assert [[0.5], [1.5], [2.5]] = lists(gang, for(%{"w" => [_first, it]} <- echoed, do: it))
    end

    test "takes arguments by name, and any number of them", %{gang: gang} do
      given = {[1, 2], %{"a b" => "x"}}
      all = %{"numbers" => [1, 2], "named" => %{"a b" => "x"}}
      assert RankBridge.call!(gang, :collected, given) == [all, all, all]
    end

    test "is made on the members of a group, in its order", %{gang: gang, refs: [r0, _r1, r2]} do
      group = RankBridge.new_group!(gang, "functions #{uuid()}", [2, 0])
      assert RankBridge.call!(gang, :place, [], group: group) == [{2, 3}, {0, 3}]
      scaled = RankBridge.call!(gang, :scaled, [[r2, r0]], group: group)
      assert lists(gang, scaled) == [[4.0], [0.0]]
    end

    test "is made on one rank alone", %{gang: gang, refs: [_r0, _r1, r2]} do
      assert RankBridge.call_alone!(gang, 2, :place, []) == {2, 3}
      scaled = RankBridge.call_alone!(gang, 2, :scaled, [r2])
      assert lists(gang, [scaled]) == [[4.0]]

      # In a run, too, where the others do not.
      assert {:ok, [{0, 3}, nil, nil]} =
               RankBridge.run(gang, fn rank ->
                 alone = if rank == 0, do: RankBridge.call_alone!(gang, 0, :place, [])
                 RankBridge.Operations.call_rank!(gang, rank, :barrier, nil)
                 alone
               end)
    end

    test "with an id that has run gives the first outcome, and runs nothing", context do
      %{gang: gang, refs: refs} = context
      id = uuid()
      for _time <- 1..2, do: RankBridge.call!(gang, :add_, [refs, 1], operation_id: id)
      assert lists(gang, refs) == [[1.0], [2.0], [3.0]]
      assert RankBridge.await!(gang, id) == nil
    end

    test "is asked to end when its caller does", %{gang: gang} do
      id = uuid()
      opts = [operation_id: id, timeout: 60_000]

      {caller, monitor} =
        spawn_monitor(fn -> RankBridge.call(gang, :until_cancelled, [], opts) end)

      reports = Functions.reports(gang, id)
      assert [_first, _second, _third] = Enum.take(reports, 3)
      Process.exit(caller, :kill)
      assert_receive {:DOWN, ^monitor, :process, ^caller, :killed}
      # They end when the call has.
      assert length(Enum.to_list(reports)) == 3
    end
  end

  describe "a failed call" do
    test "has the exception, its traceback, and where it was raised", %{gang: gang} do
      for calls <- [:gang, :ranks] do
        assert {:error, %Error{reason: :function_failed, rank: 1, indefinite: true} = error} =
                 RankBridge.call(gang, :fail, ["no batch", 1], calls: calls)

        assert %Raised{rank: 1, type: "LookupError", text: "no batch"} = error.raised
        assert [innermost, next | _others] = String.split(error.raised.traceback, "\n")
        assert innermost =~ ~r/^app.py:\d+ in raise_it: raise LookupError\(text\)$/
        assert next =~ ~r/^app.py:\d+ in fail: raise_it\(text\)$/
        message = Exception.message(error)
        assert innermost =~ error.raised.where
        assert message =~ "function 'fail' raised LookupError: no batch (app.py:"
        assert message =~ " in raise_it)"
      end

      assert_raise Error, ~r/LookupError: alone/, fn ->
        RankBridge.call_alone!(gang, 2, :fail, text: "alone", rank: 2)
      end

      # Others are unharmed.
      assert RankBridge.call!(gang, :place, []) == [{0, 3}, {1, 3}, {2, 3}]
    end

    test "says what returned something without a value", %{gang: gang} do
      assert {:error, %Error{reason: :function_failed, raised: %Raised{type: "TypeError"}}} =
               RankBridge.call(gang, :no_value, [])
    end

    test "of a function that is not there says which are", %{gang: gang} do
      assert {:error, %Error{reason: :unknown_function, indefinite: false} = error} =
               RankBridge.call(gang, :scale, [])

      assert error.expected =~ "place, scaled, steps"
    end

    test "of arguments that do not fit says what fits, and nothing has run", context do
      %{gang: gang, refs: refs} = context

      for args <- [[], ["x"], [refs, 1, 2], [refs, fctor: 1.0], %{batch: 1}, [refs, factor: "x"]] do
        assert {:error, %Error{reason: :invalid_argument, indefinite: false} = error} =
                 RankBridge.call(gang, :scaled, args)

        assert error.message =~ "scaled: "
        assert error.expected != ""
      end

      [r0 | _others] = refs
      RankBridge.release(gang, r0)

      assert {:error, %Error{reason: :released_ref, rank: 0}} =
               RankBridge.call(gang, :add_, [refs, 1])

      assert lists(gang, tl(refs)) == [[1.0], [2.0]]
    end

    @tag sampled: RankBridge.Test.Sampled.part(__ENV__)
    test "in a function that does not end in time says that it goes on", %{gang: gang} do
      # Long enough for it to begin on a machine that is busy.
      assert {:error, %Error{reason: :deadline_exceeded, indefinite: true}} =
               RankBridge.call(gang, :gated, [], timeout: 2_000)

      # One that heeds it is answered.
      RankBridge.call_alone!(gang, 0, :open_gate, [true])
      id = uuid()
      asked = List.duplicate("asked to end", 3)

      assert {:ok, ^asked} =
               RankBridge.call(gang, :until_cancelled, [], timeout: 2_000, operation_id: id)
    end
  end

  test "the functions are described as Python has them", %{gang: gang} do
    assert {:ok, functions} = RankBridge.functions(gang)
    names = for function <- functions, do: function.name
    assert names == Enum.sort(names)
    assert "place" in names and "where" not in names and "raise_it" not in names
    assert RankBridge.functions(gang, rank: 2) == {:ok, functions}
    by_name = Map.new(functions, &{&1.name, &1})

    assert %Function{returns: "torch.Tensor", yields?: false} = by_name["scaled"]

    assert by_name["scaled"].doc ==
             "Scales a batch.\n\nReturns a new tensor: `batch * factor + shift`."

    assert by_name["scaled"].parameters == [
             %Parameter{name: "batch", kind: :positional, type: "torch.Tensor"},
             %Parameter{name: "factor", type: "float", optional?: true, default: "2.0"},
             %Parameter{
               name: "shift",
               kind: :named,
               type: "float",
               optional?: true,
               default: "0.0"
             }
           ]

    assert [%{kind: :rest, name: "numbers"}, %{kind: :named_rest, name: "named", optional?: true}] =
             by_name["collected"].parameters

    assert by_name["halves"].yields?
    # The context is no caller's.
    assert %Function{doc: "Rank and size.", parameters: []} = by_name["place"]
    assert inspect(by_name["steps"]) =~ "#RankBridge.Function<steps(count: "
  end

  describe "reports" do
    test "come in order from each rank, and end with the call", %{gang: gang} do
      {:ok, call} = RankBridge.start_call(gang, :steps, [50])
      reports = gang |> Functions.reports(call) |> Enum.to_list()
      assert RankBridge.await(gang, call) == {:ok, [50, 50, 50]}

      for rank <- 0..2 do
        ours = Enum.filter(reports, &(&1.rank == rank))
        assert Enum.map(ours, & &1.number) == Enum.to_list(1..50)
        assert Enum.map(ours, & &1.value["step"]) == Enum.to_list(1..50)
        assert Enum.all?(ours, &(&1.value["rank"] == rank and &1.missed == 0))
        assert abs(DateTime.diff(hd(ours).time, DateTime.utc_now())) < 3600
      end

      # Whoever comes later gets them, too, by the id as well.
      later = gang |> Functions.reports(call.id, rank: 1) |> Enum.to_list()
      assert later == Enum.filter(reports, &(&1.rank == 1))
      assert Process.info(self(), :messages) == {:messages, []}
    end

    test "are what a generator yields", %{gang: gang} do
      {:ok, call} = RankBridge.start_call_alone(gang, 1, :halves, [3])
      assert [1.5, 0.75] == for(report <- Functions.reports(gang, call), do: report.value)
      assert RankBridge.Operations.wait(gang, call) == {:ok, 2}
    end

    test "come while the function runs, and tensors by value", %{gang: gang} do
      {:ok, call} = RankBridge.start_call(gang, :gated, [])
      parent = self()

      reader =
        Task.async(fn ->
          for report <- Functions.reports(gang, call), do: send(parent, report)
          :ended
        end)

      for rank <- 0..2 do
        assert_receive %Report{rank: ^rank, number: 1, value: %Tensor{} = tensor}, 10_000
        assert Tensor.to_list(tensor) == [1.5]
      end

      refute_received %Report{}
      RankBridge.call_alone!(gang, 0, :open_gate, [true])
      assert Task.await(reader, 60_000) == :ended
      for rank <- 0..2, do: assert_received(%Report{rank: ^rank, number: 2, value: "opened"})
      assert RankBridge.await!(gang, call) == [0, 1, 2]
    end

    test "of a call that is still to come are waited for", %{gang: gang} do
      id = uuid()
      reader = Task.async(fn -> gang |> Functions.reports(id) |> Enum.count() end)
      assert RankBridge.call!(gang, :steps, [4], operation_id: id) == [4, 4, 4]
      assert Task.await(reader, 60_000) == 12
    end

    test "hold up nobody: who is slow misses some, and knows how many", %{gang: gang} do
      count = 2_000
      {:ok, call} = RankBridge.start_call_alone(gang, 2, :steps, [count, size: 20_000])

      {kept, missed, numbers} =
        gang
        |> Functions.reports(call)
        |> Enum.reduce({0, 0, []}, fn report, {kept, missed, numbers} ->
          # The first is held until the function has ended.
          if kept == 0, do: assert(RankBridge.Operations.wait!(gang, call) == count)
          assert report.number == kept + missed + report.missed + 1
          {kept + 1, missed + report.missed, [report.number | numbers]}
        end)

      assert missed > 0 and kept + missed == count and hd(numbers) == count
    end

    test "end when nobody takes more, or none comes in time", %{gang: gang} do
      {:ok, call} = RankBridge.start_call(gang, :until_cancelled, [], timeout: 60_000)
      # Each rank has its first report by then.
      assert [_first, _second, _third] = gang |> Functions.reports(call) |> Enum.take(3)
      reports = Functions.reports(gang, call, timeout: 2_000)
      assert [%Report{value: %{"running" => true}}] = Enum.take(reports, 1)
      assert Enum.count(reports) == 3
      assert {:ok, statuses} = RankBridge.Operations.poll(gang, call)
      assert [:data, :data, :data] == for(status <- statuses, do: status.state)
      assert {:ok, _withdrawn} = RankBridge.cancel(gang, call)
      assert RankBridge.await!(gang, call) == List.duplicate("asked to end", 3)
      assert Process.info(self(), :messages) == {:messages, []}
    end

    test "of a gang or a rank that is not there are an error", %{gang: gang} do
      for reports <- [
            Functions.reports(:no_gang, "id"),
            Functions.reports(gang, "id", rank: 3),
            Functions.reports(gang, "id", group: "none"),
            Functions.reports(gang, :id),
            Functions.reports(gang, "", timeout: 5_000),
            Functions.reports(gang, "id", ranks: [1])
          ],
          do: assert_raise(Error, fn -> Enum.to_list(reports) end)
    end
  end

  test "a function that waits in the queue of its group can be withdrawn", %{gang: gang} do
    {:ok, first} = RankBridge.start_call(gang, :gated, [])
    _running = gang |> Functions.reports(first) |> Enum.take(3)
    {:ok, second} = RankBridge.start_call(gang, :steps, [1])
    assert {:ok, _withdrawn} = RankBridge.cancel(gang, second)
    assert {:error, %Error{reason: :cancelled}} = RankBridge.await(gang, second)
    RankBridge.call_alone!(gang, 0, :open_gate, [true])
    assert RankBridge.await!(gang, first) == [0, 1, 2]
  end

  describe "a gang that loads a module" do
    defp options(opts), do: [command: OsProcess.rankbridge()] ++ opts

    test "does not start if that cannot be imported, and says where" do
      Process.flag(:trap_exit, true)
      broken = Path.join(@modules, "broken.py")
      {:ok, gang} = Gang.start_link(options(size: 2, backend: :fake, load: [broken]))
      assert_receive {:EXIT, ^gang, {:shutdown, %Error{} = error}}, 60_000
      assert error.reason == :unavailable
      assert error.message =~ "broken.py cannot be loaded:\nTraceback"
      assert error.message =~ ~r/broken\.py", line \d+, in prepare\n/
      assert error.message =~ "RuntimeError: no weights at /nowhere"
    end

    test "is refused without ranks of its own" do
      assert {:error, %Error{reason: :invalid_argument, got: "[:load]"}} =
               Gang.start_link(endpoints: ["127.0.0.1:1"], load: @app)
    end

    @tag timeout: 180_000
    @tag sampled: RankBridge.Test.Sampled.part(__ENV__)
    test "loads it into the rank, too, that replaces one that was killed" do
      patient = ["--heartbeat-misses", "100"]
      opts = [size: 2, backend: :gloo, load: @app, arguments: patient, timeout: 60_000]
      gang = start_supervised!({Gang, options(opts)}, id: :replacing)
      Gang.subscribe(gang)
      assert RankBridge.call!(gang, :place, []) == [{0, 2}, {1, 2}]
      {:ok, [_first, %{pid: pid}]} = RankBridge.status(gang)

      assert {:error, %Error{reason: :invalid_argument, indefinite: false}} =
               RankBridge.kill_rank(gang, 1, pid: pid + 1)

      {:ok, call} = RankBridge.start_call(gang, :gated, [])

      error =
        assert_raise Error, fn ->
          for %Report{rank: 1} <- Functions.reports(gang, call, unready: :fail) do
            # Rank 0 is a process of its own: rank 1 stays where it is.
            RankBridge.call_alone!(gang, 0, :open_gate, [true])
            assert RankBridge.kill_rank(gang, 1, pid: pid) == {:ok, pid}
          end
        end

      assert error.reason == :unavailable
      assert error.rank == 1
      assert_receive {:rank_bridge, ^gang, %Gang.Event{kind: :rank_lost, rank: 1}}, 60_000
      OsProcess.await_gone([pid])
      assert RankBridge.call!(gang, :place, []) == [{0, 2}, {1, 2}]
      assert {:ok, [_other, %{pid: new}]} = RankBridge.status(gang)
      assert new != pid
    end
  end
end
