defmodule RankBridge.Telemetry.LogTest do
  @moduledoc "What the default logger writes, the events under their old names, and the metrics."

  # Handlers, and what is loaded, are everybody's.
  use ExUnit.Case, async: false

  import ExUnit.CaptureLog

  alias RankBridge.{Error, HeldCall, JSON, Telemetry, Verdict}
  alias RankBridge.Proto.V1
  alias RankBridge.Test.Telemetry, as: Watch

  @metrics Path.expand("../stand_ins/telemetry_metrics.ex", __DIR__)
  @readme Path.expand("../../README.md", __DIR__)
  @fields [rank: 1, group: "tp", operation: "all_reduce", operation_id: "x1"]
  @error Error.refusal(
           :peer_missing,
           "PEER_MISSING in all_reduce\nranks 0-1: float32[3]",
           @fields
         )

  defp attached(opts) do
    :ok = Telemetry.attach_default_logger(opts)
    on_exit(&Telemetry.detach_default_logger/0)
  end

  # The lines that events make, without the times that they took.
  defp lines(events) do
    format = [level: :debug, format: "$level $message\n", colors: [enabled: false]]

    format
    |> capture_log(events)
    |> String.split("\n", trim: true)
    |> Enum.map(&String.replace(&1, ~r/\b\d+\.\d ms\b/, "n ms"))
  end

  defp call(result) do
    metadata = %{gang: MyGang, operation: :all_reduce, group: "tp"}
    Telemetry.span([:rank_bridge, :call], metadata, fn -> {result, Telemetry.outcome(result)} end)
  end

  defp raising do
    metadata = %{gang: MyGang, operation: :run, group: nil}

    assert_raise RuntimeError, fn ->
      Telemetry.span([:rank_bridge, :call], metadata, fn -> raise "no\nidea" end)
    end
  end

  defp recovery(result),
    do: MyGang |> Telemetry.start_recovery([1, 2], :replace) |> Telemetry.stop_recovery(result)

  defp straggler(arrived?) do
    straggling = %{ranks: [3], group: "tp", operation: "barrier", operation_id: "b"}
    Telemetry.straggler(MyGang, Map.merge(straggling, %{arrived?: arrived?, waited_us: 2_500}))
  end

  defp verdict(kind, culprits) do
    proto = %V1.Verdict{kind: kind, summary: "rank 3 is idle", culprits: culprits}
    Telemetry.verdict(MyGang, Verdict.from_proto(proto), 250)
  end

  defp held do
    call = %V1.HeldCall{rank: 3, operation: "all_reduce", group: "tp", number: 7, why: "step"}
    call = HeldCall.from_proto(call)
    Telemetry.held(MyGang, call)
    Telemetry.let_go(MyGang, call, :skip, 250)
  end

  defp everything do
    call({:ok, 1})
    call({:error, @error})
    call({:error, %{@error | indefinite: true}})
    raising()
    Telemetry.lost(MyGang, 1, "was killed by SIGKILL")
    recovery({:ok, %{generation: 2, world_size: 4}})
    recovery({:error, @error})
    straggler(false)
    straggler(true)
    verdict(:VERDICT_KIND_NEVER_CALLED, [%V1.Culprit{rank: 3}])
    verdict(:VERDICT_KIND_HEALTHY, [])
    held()
  end

  @failed "all_reduce on MyGang failed after n ms"
  @peer_missing "PEER_MISSING in all_reduce; ranks 0-1: float32[3]"
  @warnings [
    "warning #{@failed}: #{@peer_missing}",
    "warning #{@failed}: #{@peer_missing}; some ranks may have done it",
    "error run on MyGang raised after n ms: ** (RuntimeError) no; idea",
    "warning rank 1 of MyGang is lost: was killed by SIGKILL",
    "error MyGang did not recover from the loss of ranks 1, 2 in n ms: #{@peer_missing}",
    "warning barrier on tp of MyGang has waited n ms for rank 3",
    "warning verdict on MyGang: never_called: rank 3 is idle"
  ]
  @infos [
    "info MyGang recovered from the loss of ranks 1, 2 in n ms: generation 2, 4 ranks",
    "info rank 3 of MyGang came to barrier on tp, for which others have waited n ms",
    "info rank 3 of MyGang is held before all_reduce tp#7: step",
    "info rank 3 of MyGang was held at all_reduce on tp for n ms, and was let go: skip"
  ]

  test "a line for each failure, loss, recovery, straggler, verdict and breakpoint, none for a call that succeeds" do
    attached([])
    written = lines(&everything/0)
    assert Enum.sort(written) == Enum.sort(@warnings ++ @infos)
    # In the order of the events.
    assert List.first(written) == List.first(@warnings)
  end

  test "lines of lower levels than the one asked for are not written" do
    attached(:warning)
    assert lines(&everything/0) == @warnings
    :ok = Telemetry.detach_default_logger()
    attached(level: :debug)
    assert "debug all_reduce on MyGang took n ms" in lines(&everything/0)
    :ok = Telemetry.detach_default_logger()
    attached(:error)
    assert length(lines(&everything/0)) == 2
  end

  test "a line is a JSON object where that is asked for" do
    attached(encode: true)
    assert ["warning " <> text] = lines(fn -> call({:error, @error}) end)
    assert {:ok, %{"duration_ms" => duration} = fields} = JSON.decode(text)
    assert is_float(duration)

    assert Map.delete(fields, "duration_ms") == %{
             "event" => "call",
             "gang" => "MyGang",
             "operation" => "all_reduce",
             "operation_id" => "x1",
             "group" => "tp",
             "rank" => 1,
             "result" => "error",
             "reason" => "peer_missing",
             "indefinite" => false,
             "message" => "PEER_MISSING in all_reduce; ranks 0-1: float32[3]"
           }

    for line <- lines(&everything/0) do
      [_level, text] = String.split(line, " ", parts: 2)
      assert {:ok, %{"event" => _name}} = JSON.decode(text)
    end
  end

  test "it is attached once, and detached; wrong options are refused" do
    attached([])
    assert Telemetry.attach_default_logger() == {:error, :already_exists}
    assert Telemetry.detach_default_logger() == :ok
    assert Telemetry.detach_default_logger() == {:error, :not_found}
    assert lines(&everything/0) == []

    for wrong <- [[level: :loud], [encode: "json"], [colour: true], :loud],
        do: assert_raise(ArgumentError, fn -> Telemetry.attach_default_logger(wrong) end)
  end

  test "the client's first page attaches it" do
    marks = ~r/<!-- logger: begin -->\n```elixir\n(.*)```\n<!-- logger: end -->/s
    [_all, program] = Regex.run(marks, File.read!(@readme))
    on_exit(&Telemetry.detach_default_logger/0)
    assert {:ok, _variables} = Code.eval_string(program)
    assert Telemetry.attach_default_logger() == {:error, :already_exists}
  end

  test "without :telemetry, who asks for handlers is refused" do
    Watch.unload()
    on_exit(&Watch.load/0)

    for fun <- [:attach_default_logger, :detach_default_logger, :attach_old_names],
        do: assert_raise(ArgumentError, ~r/no :telemetry/, fn -> apply(Telemetry, fun, []) end)
  end

  test "old names of events are emitted where they are asked for, with the same contents" do
    # Deprecated, as its documentation says.
    assert {:docs_v1, _, _, _, _, _, docs} = Code.fetch_docs(Telemetry)

    assert [%{deprecated: _text}] =
             for({{_, :attach_old_names, 0}, _, _, _, meta} <- docs, do: meta)

    names = for event <- Telemetry.events(), do: event.name
    assert Enum.all?(names, &match?([:rank_bridge | _rest], &1))
    olds = for [:rank_bridge | rest] <- names, do: [:rankbridge | rest]
    id = Watch.watch(names ++ olds, MyGang)
    everything()
    assert Enum.all?(Watch.seen(id), &match?({[:rank_bridge | _rest], _, _}, &1))

    :ok = apply(Telemetry, :attach_old_names, [])
    id = Watch.watch(names ++ olds, MyGang)
    everything()
    :ok = apply(Telemetry, :detach_old_names, [])
    call({:ok, 1})
    {old, new} = Enum.split_with(Watch.seen(id), &match?({[:rankbridge | _rest], _, _}, &1))

    renamed =
      for {[_old | rest], measured, known} <- old, do: {[:rank_bridge | rest], measured, known}

    # The last call came when the old names were gone.
    assert renamed == Enum.drop(new, -2) and length(old) > 10
  end

  describe "metrics" do
    test "are those of events, by what the events have" do
      assert_raise ArgumentError, ~r/no Telemetry.Metrics/, &Telemetry.metrics/0
      loaded = for {module, _code} <- Code.compile_file(@metrics), do: module

      on_exit(fn ->
        for module <- loaded, do: :code.delete(module) and :code.purge(module)
      end)

      metrics = Telemetry.metrics()
      assert length(metrics) == length(Enum.uniq_by(metrics, & &1.name))
      id = Watch.watch(Enum.map(metrics, & &1.event_name) |> Enum.uniq(), MyGang)
      everything()
      Telemetry.form(MyGang, fn -> {:ok, %{generation: 1, world_size: 4}} end)
      Telemetry.replaced(MyGang, 1, 2)
      Telemetry.mismatch(MyGang, @error)
      per_rank = %{gang: MyGang, rank: 0, operation: "all_reduce", group: "tp"}

      Telemetry.span([:rank_bridge, :rank, :call], per_rank, fn -> {1, Telemetry.outcome(:ok)} end)

      seen = Watch.seen(id)

      for metric <- metrics do
        events =
          for {name, _, known} = event <- seen,
              name == metric.event_name,
              kept?(metric, known),
              do: event

        assert {metric.name, events} != {metric.name, []}

        for {_name, measurements, metadata} <- events do
          assert is_number(measured(metric, measurements))
          tags = Map.take(metric.tag_values.(metadata), metric.tags)
          assert {metric.name, Enum.sort(Map.keys(tags))} == {metric.name, Enum.sort(metric.tags)}
          for {_tag, value} <- tags, do: assert(is_binary(to_string(value)))
        end
      end

      [failed] = Enum.filter(metrics, &(&1.name == [:rank_bridge, :call, :failed, :count]))
      # Of two failures, a success and a raise.
      assert Enum.count(seen, fn {name, _, known} ->
               name == failed.event_name and failed.keep.(known)
             end) == 2

      [waited] = Enum.filter(metrics, &(List.last(&1.name) == :waited))
      assert {waited.unit, waited.tags} == {:millisecond, [:gang, :group, :operation]}
      [{_, measurements, _} | _] = Enum.filter(seen, &(elem(&1, 0) == waited.event_name))
      assert_in_delta measured(waited, measurements), 2.5, 0.001
    end

    defp kept?(%{keep: nil}, _metadata), do: true
    defp kept?(%{keep: keep}, metadata), do: keep.(metadata)

    defp measured(%{measurement: fun}, measurements) when is_function(fun, 1),
      do: fun.(measurements)

    defp measured(%{measurement: key}, measurements), do: measurements[key]
  end
end
