defmodule RankBridge.EntryTest do
  @moduledoc "Every function on a gang goes in by one way."

  use ExUnit.Case, async: true

  alias RankBridge.{Error, Gang}
  alias RankBridge.Test.{Functions, RecordingRanks, Telemetry}

  @library Path.expand("../lib", __DIR__)

  # A reference is an argument that no function takes: what is looked at here is whether it goes in at all.
  defp functions do
    named =
      for {name, arity} <- [put: 2, put: 3, put_rank: 3, put_rank: 4, get: 2, get: 3],
          do: {RankBridge, name, arity}

    declared =
      for module <- Functions.modules(),
          %{name: name} <- module.__with_bang__(),
          {^name, arity} <- module.__info__(:functions),
          do: {module, name, arity}

    named ++ declared
  end

  test "a gang that is not there is found missing by every function, within one span" do
    id = Telemetry.watch([[:rank_bridge, :call, :stop]], :no_such_gang)

    names =
      for {module, name, arity} <- functions() do
        arguments = [:no_such_gang | List.duplicate(make_ref(), arity - 1)]
        result = apply(module, name, arguments)
        assert {name, {:error, %Error{reason: :unavailable}}} = {name, result}
        name
      end

    operations =
      for {_event, _measurements, metadata} <- Telemetry.seen(id), do: metadata.operation

    assert operations == names
    assert length(Enum.uniq(names)) > 70
  end

  test "nothing else looks for a gang's view" do
    own = ["entry.ex", "gang.ex"]

    others =
      for path <- Path.wildcard(Path.join(@library, "**/*.ex")),
          Path.basename(path) not in own and not String.contains?(path, "/gang/"),
          File.read!(path) =~ ~r/View\.fetch|Readiness\.view/,
          do: path

    assert others == []
  end

  test "what a function is made of does not go in again" do
    ranks = start_supervised!(RecordingRanks)
    gang = start_supervised!({Gang, RecordingRanks.gang(ranks)})
    RecordingRanks.give(ranks, ["x", "x", "x"])
    id = Telemetry.watch([[:rank_bridge, :call, :start]], gang)

    assert {:ok, ["x", "x", "x"]} = RankBridge.broadcast_object(gang, "x")
    assert {:ok, %{}} = RankBridge.Averaging.average(gang, %{})
    assert {:ok, _operation} = RankBridge.PointToPoint.isend_object(gang, 0, "x", 1)

    operations =
      for {_event, _measurements, metadata} <- Telemetry.seen(id), do: metadata.operation

    assert operations == [:broadcast_object, :average, :isend_object]
  end
end
