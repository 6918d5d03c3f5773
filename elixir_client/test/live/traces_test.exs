defmodule RankBridge.LiveTracesTest do
  @moduledoc "The caller's trace goes on through every rank, and comes to a collector of OpenTelemetry."

  # The application's setting is every test's.
  use ExUnit.Case, async: false

  alias RankBridge.{Gang, JSON}
  alias RankBridge.Test.LiveRanks

  @trace "0af7651916cd43dd8448eb211c80319c"
  @span "b7ad6b7169203331"

  @doc false
  def traceparent, do: Process.get(:traceparent)

  # A process that prints each span that it is sent.
  defp collector do
    python = :filename.join(Path.dirname(RankBridge.Test.OsProcess.rankbridge()), ~c"python")

    port =
      Port.open({:spawn_executable, python}, [
        :binary,
        line: 10_000,
        cd: Path.expand("../../..", __DIR__),
        args: ["-m", "tests.support.collector"]
      ])

    assert_receive {^port, {:data, {:eol, "ready " <> number}}}, 60_000
    {port, number}
  end

  test "each rank has a span below the caller's" do
    {collector, number} = collector()

    environment = [
      {"OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:#{number}"},
      {"OTEL_BSP_SCHEDULE_DELAY", "50"}
    ]

    ranks = LiveRanks.start(3, "gloo", [], environment)
    on_exit(fn -> LiveRanks.stop(ranks) end)
    Application.put_env(:rank_bridge, :traceparent, {__MODULE__, :traceparent})
    on_exit(fn -> Application.delete_env(:rank_bridge, :traceparent) end)
    gang = start_supervised!({Gang, endpoints_file: ranks.file, timeout: 20_000})
    assert RankBridge.barrier!(gang) == :ok
    refs = RankBridge.put!(gang, for(rank <- 0..2, do: [1.0 * rank]))

    for calls <- [:gang, :ranks] do
      Process.put(:traceparent, "00-#{@trace}-#{@span}-01")
      assert {:ok, _sums} = RankBridge.all_reduce(gang, refs, calls: calls)
      Process.delete(:traceparent)

      spans =
        for _rank <- 0..2 do
          assert_receive {^collector, {:data, {:eol, line}}}, 60_000
          {:ok, span} = JSON.decode(line)
          span
        end

      assert for(it <- spans, do: {it["name"], it["trace"], it["parent"]}) ==
               List.duplicate({"all_reduce world", @trace, @span}, 3)

      assert Enum.sort(for it <- spans, do: it["rankbridge.rank"]) == [0, 1, 2]
      assert RankBridge.barrier!(gang) == :ok
    end

    Port.close(collector)
  end
end
