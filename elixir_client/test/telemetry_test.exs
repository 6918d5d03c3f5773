defmodule RankBridge.TelemetryTest do
  @moduledoc "Every event that is documented is emitted, with all that is documented of it."

  use ExUnit.Case, async: true

  alias RankBridge.Gang.{Channels, Event, View}
  alias RankBridge.Proto.V1
  alias RankBridge.Test.RecordingRanks
  alias RankBridge.Test.Telemetry, as: Watch
  alias RankBridge.{Calls, Entry, Error, Gang, HeldCall, Telemetry, Verdict}

  # What other tests' gangs emit meanwhile does not count.
  @gang __MODULE__

  defmodule Raising do
    @moduledoc "A transport whose calls raise when they are waited for."
    defstruct transport: __MODULE__
    def start_unary(channel, _path, _request, _opts), do: channel
    def await(_call), do: raise("told to raise")
  end

  @error Error.refusal(:mismatch, "told to fail", group: "g", operation: "all_reduce")

  defp names, do: for(event <- Telemetry.events(), do: event.name)

  defp provoke(:calls) do
    ranks = start_supervised!(RecordingRanks)
    start_supervised!({Gang, [name: @gang] ++ RecordingRanks.gang(ranks)})
    assert RankBridge.barrier(@gang) == :ok

    assert_raise RuntimeError, "in its body", fn ->
      Entry.call(@gang, :average, [], fn _view -> raise "in its body" end)
    end

    channels = Channels.put(Channels.table(), [{%Raising{}, "0"}, {%Raising{}, "1"}])
    view = Map.merge(View.__struct__(), %{channels: channels, known_as: @gang})
    call = %Calls{rpc: V1.RankService.describe_rank(), operation: "status", deadline: 1}
    requests = for rank <- 0..1, do: {rank, %V1.DescribeRankRequest{}}
    assert_raise RuntimeError, "told to raise", fn -> Calls.each(view, requests, call) end
  end

  defp provoke(:gang) do
    formed = {:ok, %{generation: 3, world_size: 2, took_us: 5}}
    assert Telemetry.form(@gang, fn -> formed end) == formed
    assert Telemetry.form(@gang, fn -> {:error, @error} end) == {:error, @error}
    assert catch_throw(Telemetry.form(@gang, fn -> throw(:away) end)) == :away
    recovery = Telemetry.start_recovery(@gang, [1], :replace)
    # Some time later, in another process.
    fn -> Telemetry.stop_recovery(recovery, formed) end |> Task.async() |> Task.await()
    failing = Telemetry.start_recovery(@gang, [1], :shrink)
    Telemetry.exception(failing, :exit, :killed, [])
    Telemetry.lost(@gang, 1, "was killed by SIGKILL")
    Telemetry.replaced(@gang, 1, 3)
    Telemetry.mismatch(@gang, @error)
    Telemetry.straggler(@gang, %Event{kind: :straggler, ranks: [1], waited_us: 1_500})
    Telemetry.verdict(@gang, Verdict.from_proto(%V1.Verdict{}), 250)
    call = HeldCall.from_proto(%V1.HeldCall{rank: 1})
    Telemetry.held(@gang, call)
    Telemetry.let_go(@gang, call, :step, 250)
  end

  test "every one has exactly its measurements and its metadata" do
    id = Watch.watch(names(), @gang)
    provoke(:calls)
    provoke(:gang)
    seen = Watch.seen(id)
    by_name = Map.new(Telemetry.events(), &{&1.name, &1})

    for {name, measurements, metadata} <- seen do
      assert {name, Enum.sort(Map.keys(measurements))} == {name, by_name[name].measurements}
      assert {name, Enum.sort(Map.keys(metadata))} == {name, by_name[name].metadata}
      for {_what, time} <- measurements, do: assert(is_integer(time))
    end

    assert names() -- Enum.map(seen, &elem(&1, 0)) == []
    assert names() == Enum.uniq(names())
  end

  test "the table in the documentation has every one" do
    {:docs_v1, _, _, _, %{"en" => text}, _, _} = Code.fetch_docs(Telemetry)

    for event <- Telemetry.events() do
      [row] = Regex.run(~r/^\| `#{Regex.escape(inspect(event.name))}` \|.*$/m, text)
      for name <- event.measurements ++ event.metadata, do: assert(row =~ "`#{name}`")
      # What a word means is told below the table.
      for name <- event.metadata, do: assert(length(String.split(text, "`#{name}`")) > 2)
    end
  end

  test "a span is what that of the library is" do
    [ours, theirs] =
      for span <- [&Telemetry.span/3, fn a, b, c -> apply(:telemetry, :span, [a, b, c]) end] do
        id =
          Watch.watch(
            for(last <- [:start, :stop, :exception], do: [:rank_bridge, :call, last]),
            :me
          )

        metadata = %{gang: :me}
        assert span.([:rank_bridge, :call], metadata, fn -> {:given, metadata} end) == :given
        assert catch_exit(span.([:rank_bridge, :call], metadata, fn -> exit(:over) end)) == :over

        for {name, measurements, metadata} <- Watch.seen(id) do
          assert is_reference(metadata.telemetry_span_context)
          {name, Enum.sort(Map.keys(measurements)), Enum.sort(Map.keys(metadata))}
        end
      end

    assert ours == theirs and length(ours) == 4
  end

  test "a handler that fails changes nothing of what is given" do
    handler = fn _event, _measurements, _metadata, _config -> raise "told to raise" end
    prefix = [:rank_bridge, :gang, :form]
    id = make_ref()
    :ok = apply(:telemetry, :attach, [id, prefix ++ [:start], handler, nil])
    watch = Watch.watch([prefix ++ [:stop]], :patient)
    assert {:error, @error} = Telemetry.form(:patient, fn -> {:error, @error} end)
    assert [{_name, _measurements, %{result: :error, error: @error}}] = Watch.seen(watch)
    _gone_already = apply(:telemetry, :detach, [id])
  end
end

defmodule RankBridge.TelemetryNotLoadedTest do
  @moduledoc "Without `:telemetry`, everything is as with it, but for the events."

  # What is loaded is loaded for everybody.
  use ExUnit.Case, async: false

  alias RankBridge.{Entry, Error, Gang, Telemetry}
  alias RankBridge.Test.RecordingRanks
  alias RankBridge.Test.Telemetry, as: Watch

  test "nothing is emitted, and nothing is missing" do
    ranks = start_supervised!(RecordingRanks)
    gang = start_supervised!({Gang, RecordingRanks.gang(ranks)})
    :ok = RankBridge.await_ready(gang, 60_000)
    id = Watch.watch(for(event <- Telemetry.events(), do: event.name), gang)
    Watch.unload()
    on_exit(&Watch.load/0)
    refute Telemetry.loaded?()

    assert RankBridge.barrier(gang) == :ok
    assert {:error, %Error{reason: :unavailable}} = RankBridge.barrier(:no_such_gang)

    assert_raise RuntimeError, "in its body", fn ->
      Entry.call(gang, :average, [], fn _view -> raise "in its body" end)
    end

    assert Telemetry.start([:rank_bridge, :gang, :recover], %{}) == nil
    assert Telemetry.stop(nil) == :ok
    assert Telemetry.exception(nil, :error, :gone, []) == :ok
    assert Telemetry.span([:rank_bridge, :call], %{}, fn -> {:given, %{}} end) == :given
    assert Telemetry.lost(gang, 0, "gone") == :ok

    Watch.load()
    assert Telemetry.loaded?()
    assert Watch.seen(id) == []
    again = Watch.watch([[:rank_bridge, :call, :stop]], gang)
    assert RankBridge.barrier(gang) == :ok
    assert [{_name, _measurements, %{operation: :barrier, result: :ok}}] = Watch.seen(again)
  end
end
