defmodule RankBridge.KinoTest do
  @moduledoc "The widget for notebooks, by a stand-in for Kino: test/stand_ins/kino.ex."

  use ExUnit.Case, async: false

  import RankBridge.Test.Soon

  alias RankBridge.Gang
  alias RankBridge.Proto.V1
  alias RankBridge.Test.{StandIns, WatchedRanks}

  @soon 60_000
  @name __MODULE__.Gang
  @widget for file <- ["kino/widget", "kino"],
              do: Path.expand("../../lib/rank_bridge/#{file}.ex", __DIR__)

  setup do
    StandIns.load(["kino"], @widget)
    %{ranks: start_supervised!({WatchedRanks, 2})}
  end

  # Not known when this is compiled.
  defp widget(opts), do: Module.concat(RankBridge, "Kino").gang(@name, opts)

  # What shows next that has this.
  defp shown(frame, pattern) do
    assert_receive {:shown, ^frame, %{text: text}}, @soon
    if text =~ pattern, do: text, else: shown(frame, pattern)
  end

  test "shows a gang that starts later, its ranks, and its events", %{ranks: ranks} do
    frame = widget(every: 10)
    shown(frame, "there is no gang")
    start_supervised!({Gang, [name: @name] ++ WatchedRanks.gang(ranks)})
    text = shown(frame, "| 0 |")
    assert text =~ "**Gang `#{inspect(@name)}`**, generation 1, 0 pending operations"
    assert text =~ ~r/\| 1 \|.* formed \| 0 \|/
    assert shown(frame, "is formed") =~ ~r/- \d\d:\d\d:\d\d generation 1 is formed, of 2 ranks/

    # The gang reports that it is formed before it watches the ranks.
    assert_soon(1, fn -> WatchedRanks.watchers(ranks, 0) end)
    missing = [%V1.MissingMember{rank: 1}]
    late = %V1.StragglerEvent{group: "world", operation: "barrier", missing: missing}
    WatchedRanks.report(ranks, 0, {:straggler, %{late | operation_id: "x", waited_us: 5_000}})
    text = shown(frame, "waits for")
    assert text =~ "- **barrier of group world waits for rank 1, since 5 ms**"
    assert text =~ "| others wait for it |"
  end

  test "between two questions, events show at once", %{ranks: ranks} do
    start_supervised!({Gang, [name: @name] ++ WatchedRanks.gang(ranks)})
    :ok = RankBridge.await_ready(@name, @soon)
    frame = widget(every: 600_000)
    shown(frame, "| 0 |")

    error = %V1.Error{
      code: :ERROR_CODE_MISMATCH,
      message: "a\nb",
      operation: "gather",
      group: "tp"
    }

    assert_soon(1, fn -> WatchedRanks.watchers(ranks, 0) end)
    WatchedRanks.report(ranks, 0, {:mismatch, error})
    assert shown(frame, "do not agree") =~ "about gather of group tp: a b\n"
  end
end
