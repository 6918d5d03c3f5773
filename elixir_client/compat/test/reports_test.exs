defmodule RankBridge.ReportsTest do
  @moduledoc "Reports on timings, against what torchgfn was recorded to log, and where they do better."

  use ExUnit.Case, async: true

  alias RankBridge.{Error, Reports}
  alias RankBridge.Reports.Timings
  alias RankBridge.Test.Recorded

  doctest RankBridge.Reports

  # Maps of a recorded case have lost their order; its log tells it.
  defp timings(%{"inputs" => %{"all_timing_dict" => ranks}}, lines) do
    log = Enum.map_join(lines, "\n", &elem(&1, 1))

    for steps <- ranks do
      Enum.sort_by(steps, fn {step, _seconds} -> :binary.match(log, "#{step}") end)
    end
  end

  defp lines_of(%{"per_rank" => [%{"ok" => answer} | _others]}) do
    {for(
       [level, line] <- answer["log"],
       do: {level |> String.downcase() |> String.to_atom(), line}
     ), answer["error"]}
  end

  defp equally_long?(%{"inputs" => inputs}),
    do: length(inputs["all_timing_dict"]) == inputs["world_size"]

  test "torchgfn's reports, line by line" do
    reports = %{
      "report_time_info" => &Reports.report_time_info/1,
      "report_load_imbalance" => &Reports.report_load_imbalance/1
    }

    compared =
      for {name, report} <- reports,
          case <- Recorded.cases("gfn_ops", [name]),
          {lines, nil} <- [lines_of(case)] do
        assert {:ok, report} = report.(timings(case, lines))
        assert report.lines == lines
        assert Reports.text(report) == Enum.map_join(lines, "\n", &elem(&1, 1))
      end

    assert length(compared) >= 20
  end

  test "what torchgfn fails on is reported, or refused" do
    # A number instead of a list is of a step that was done once.
    assert {:ok, %{rows: [%{step: "a", useful: 2.0, waiting: 0.5}]}} =
             Reports.report_load_imbalance([%{"a" => 1.5}, %{"a" => 2.5}])

    # A step that was never done took no time, and no average of it can be told.
    assert {:ok, %{rows: [%{step: "a", useful: 0.0, waiting: 0.0}]}} =
             Reports.report_load_imbalance([%{"a" => []}])

    assert {:error, %Error{reason: :invalid_argument, got: "never"}} =
             Reports.report_time_info([%{"a" => [1.0]}, %{"b" => 1, "a" => []}])

    assert {:error, %Error{reason: :invalid_argument} = error} =
             Reports.report_load_imbalance([%{"a" => [1.0, 2.0]}, %{"a" => [1.0]}])

    assert {error.expected, error.got} == {"as many times on each rank", "2 or 1 times"}

    for wrong <- [[], nil, %{}, [1], [%{"a" => "1"}], [%{"a" => [nil]}], [[1]], [%{1 => 2.0}]],
        report <- [&Reports.report_time_info/1, &Reports.report_load_imbalance/1] do
      assert {:error, %Error{reason: :invalid_argument}} = report.(wrong)
    end
  end

  test "torchgfn refuses just those" do
    failing =
      for name <- ["report_time_info", "report_load_imbalance"],
          case <- Recorded.cases("gfn_ops", [name]),
          {_lines, [type, _message]} <- [lines_of(case)],
          equally_long?(case),
          uniq: true,
          do: {name, type, case["inputs"]["all_timing_dict"]}

    assert Enum.sort(failing) == [
             {"report_load_imbalance", "IndexError", [%{"a" => [1.0, 2.0]}, %{"a" => [1.0]}]},
             {"report_load_imbalance", "TypeError", [%{"a" => 1.5}]},
             {"report_load_imbalance", "TypeError", [%{"a" => 1.5}, %{"a" => 2.5}]},
             {"report_time_info", "ZeroDivisionError", [%{"a" => []}]}
           ]
  end

  test "steps are in the order of pairs, and named by texts or atoms" do
    assert {:ok, report} = Reports.report_time_info([[z: 1, a: [2, 4]], %{a: 1}])

    assert report.rows == [
             %{step: "z", maximum: 1, mean: 1.0},
             %{step: "a", maximum: 6, mean: 3.5}
           ]

    assert report.ranks == [
             [%{step: "z", mean: 1.0, total: 1}, %{step: "a", mean: 3.0, total: 6}],
             [%{step: "a", mean: 1.0, total: 1}]
           ]
  end

  test "seconds are written as C writes them" do
    for {seconds, text} <- [
          {0, "0.0000"},
          {1.5, "1.5000"},
          {0.00005, "0.0001"},
          {0.00004, "0.0000"},
          {0.03125, "0.0312"},
          {0.09375, "0.0938"},
          {9.99995, "10.0000"},
          {-0.5, "-0.5000"},
          {123_456.789, "123456.7890"},
          {1.0e20, "100000000000000000000.0000"}
        ] do
      assert {seconds, Timings.written(seconds)} == {seconds, text}
    end
  end
end
