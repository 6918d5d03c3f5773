defmodule RankBridge.CompatTest do
  @moduledoc "Functions by the names of other systems: what they ask of ranks, and what they refuse before."

  use ExUnit.Case, async: true

  alias RankBridge.{Compat, Error, Gang}
  alias RankBridge.Reports.{LoadImbalance, TimeInfo}
  alias RankBridge.Test.{RecordingRanks, ScriptedRanks, Telemetry}

  @nouns for(
           name <- [
             CoordinatorNames,
             MeshCollectiveNames,
             AveragingNames,
             Synchronized,
             Experts,
             Buffers,
             Devices,
             Rounds
           ],
           do: Module.concat(RankBridge, name)
         )
  # Functions that need no gang.
  @others [:plan, :by_host, :get_reduce_divide_factor]

  defp functions(module) do
    for {name, arity} <- module.__info__(:functions), name != :__with_bang__, do: {name, arity}
  end

  test "Compat has every function on a gang, as its own module has it" do
    own = functions(Compat)

    for noun <- @nouns, {name, arity} <- functions(noun), name not in @others do
      assert {name, arity} in own
    end
  end

  defp ours?(name),
    do: String.starts_with?(name, "RankBridge") and not String.contains?(name, "Test")

  test "every public function is documented and has a type, in all of the package's modules" do
    {:ok, modules} = :application.get_key(:rank_bridge_compat, :modules)
    ours = for module <- modules, ours?(inspect(module)), do: module
    assert length(ours) > 20

    for module <- ours,
        {{:function, name, arity}, _line, _signature, doc, _meta} <- docs(module) do
      assert {module, name, arity, doc} != {module, name, arity, :none}
    end

    for module <- [Compat | @nouns] do
      {:ok, specs} = Code.Typespec.fetch_specs(module)
      typed = for {function, _types} <- specs, do: function
      documented = for {{:function, n, a}, _, _, %{}, _} <- docs(module), do: {n, a}
      assert {module, documented -- typed} == {module, []}
    end
  end

  defp docs(module) do
    {:docs_v1, _line, :elixir, _format, _about, _meta, docs} = Code.fetch_docs(module)
    docs
  end

  test "a gang that is not there is found missing by every function, within one span" do
    id = Telemetry.watch([[:rank_bridge, :call, :stop]], :no_such_gang)

    names =
      for {name, arity} <- functions(Compat),
          not String.ends_with?("#{name}", "!"),
          name not in [:get_reduce_divide_factor, :report_time_info, :report_load_imbalance] do
        arguments = [:no_such_gang | List.duplicate(0, arity - 1)]

        assert {^name, {:error, %Error{reason: :unavailable}}} =
                 {name, apply(Compat, name, arguments)}

        name
      end

    assert for({_event, _measurements, seen} <- Telemetry.seen(id), do: seen.operation) == names
    assert length(Enum.uniq(names)) == 22
  end

  test "a function that is made of others has one span" do
    ranks = start_supervised!(RecordingRanks)
    gang = start_supervised!({Gang, RecordingRanks.gang(ranks)})
    RecordingRanks.give(ranks, ["x", "x", "x"])
    id = Telemetry.watch([[:rank_bridge, :call, :start]], gang)

    assert {:ok, ["x", "x", "x"]} = Compat.synchronize_value(gang, "x")
    assert {:ok, _lists} = Compat.broadcast_objects(gang, ["x"], 0)
    assert {:ok, %{}} = Compat.average_models(gang, %{})
    assert {:ok, _results} = Compat.do_n_at_a_time(gang, 3, &{:ok, &1})

    assert for({_event, _measurements, seen} <- Telemetry.seen(id), do: seen.operation) ==
             [:synchronize_value, :broadcast_objects, :average_models, :do_n_at_a_time]
  end

  test "RankBridge has the functions for a release more, deprecated" do
    ranks = start_supervised!(RecordingRanks)
    gang = start_supervised!({Gang, RecordingRanks.gang(ranks)})
    RecordingRanks.give(ranks, ["x", "x", "x"])
    assert {:ok, ["x", "x", "x"]} = apply(RankBridge, :synchronize_value, [gang, "x"])
    assert apply(RankBridge, :get_reduce_divide_factor, [6]) == 4.0

    assert Enum.sort(functions(Compat) -- functions(RankBridge)) == []
    moved = for {{name, arity}, _why} <- RankBridge.__info__(:deprecated), do: {name, arity}
    assert functions(Compat) -- moved == []
  end

  test "wrong arguments are refused before a rank is asked" do
    ranks = start_supervised!(RecordingRanks)
    gang = start_supervised!({Gang, [calls: :ranks] ++ RecordingRanks.gang(ranks)})

    for {reason, call} <- [
          invalid_argument: fn -> RankBridge.Compat.create_mq_broadcaster(gang, [:name]) end,
          rank_out_of_range: fn ->
            RankBridge.Compat.create_mq_broadcaster(gang, writer_rank: nil)
          end,
          rank_out_of_range: fn ->
            RankBridge.Compat.create_single_reader_mq_broadcasters(gang, reader_rank_in_group: 3)
          end,
          invalid_argument: fn ->
            RankBridge.Compat.create_single_reader_mq_broadcasters(gang,
              operation_id: "one for all"
            )
          end,
          invalid_argument: fn ->
            RankBridge.Compat.create_single_reader_mq_broadcasters(gang, name: 1)
          end
        ] do
      assert {:error, %Error{reason: ^reason, indefinite: false} = error} = call.()
      assert error.operation != ""
      assert RecordingRanks.asked(ranks) == %{}
    end
  end

  test "of a report little is shown, however long it is" do
    for %module{} = report <- [
          %LoadImbalance{
            rows: List.duplicate(%{step: "load", useful: 1.0, waiting: 1.0}, 1_000),
            skipped: [],
            lines: List.duplicate({:info, "a line"}, 1_000)
          },
          %TimeInfo{
            ranks: for(_rank <- 0..4_095, do: [%{step: "load", mean: 1.0, total: 1.0}]),
            rows: List.duplicate(%{step: "load", maximum: 1.0, mean: 1.0}, 1_000),
            lines: List.duplicate({:info, "a line"}, 1_000)
          }
        ] do
      text = inspect(report, limit: :infinity, printable_limit: :infinity)
      assert String.starts_with?(text, "#" <> inspect(module) <> "<")
      assert String.length(text) < 420
    end
  end

  describe "queues that are half made" do
    setup do
      ranks = start_supervised!(ScriptedRanks)
      %{ranks: ranks, gang: start_supervised!({Gang, ScriptedRanks.gang(ranks)})}
    end

    defp has(ranks), do: for(rank <- 0..3, do: ScriptedRanks.has(ranks, rank))
    defp asked(ranks, method), do: for(rank <- 0..3, do: ScriptedRanks.asked(ranks, method, rank))

    test "of queues for one reader all are made, or none is left", %{ranks: ranks, gang: gang} do
      ScriptedRanks.fail(ranks, :new_queue, "q/2", :ERROR_CODE_RESOURCE_EXHAUSTED)

      assert {:error, %Error{reason: :resource_exhausted}} =
               RankBridge.Compat.create_single_reader_mq_broadcasters(gang, name: "q")

      assert has(ranks) == [[], [], [], []]
      assert asked(ranks, :new_queue) == List.duplicate(["q/1", "q/2"], 4)
      assert asked(ranks, :shut_down_queue) == List.duplicate(["q/1"], 4)
    end
  end
end
