defmodule RankBridge.Gang.EventsTest do
  @moduledoc "What subscribers are told of operations that do not come about: a gang of real ranks on the fake."

  use ExUnit.Case, async: true

  alias RankBridge.{Error, Gang}
  alias RankBridge.Gang.Event
  alias RankBridge.Test.{Marks, OsProcess, Telemetry}

  @soon 60_000
  @name __MODULE__.Gang

  # On a loaded machine others may be late, too, and members that are not meant to be.
  defp next_event(name, kind, id \\ "") do
    assert_receive {:rank_bridge, ^name, %Event{kind: ^kind, operation_id: ^id} = event}, @soon
    event
  end

  # The other subscriber is told the same.
  defp passed_on(gang, event),
    do: assert_receive({:passed_on, {:rank_bridge, ^gang, ^event}}, @soon)

  # Drops the events about late members of an operation that has ended since.
  defp forget_late(id) do
    receive do
      {:rank_bridge, _gang, %Event{kind: :straggler, operation_id: ^id}} ->
        forget_late(id)

      {:passed_on, {:rank_bridge, _gang, %Event{kind: :straggler, operation_id: ^id}}} ->
        forget_late(id)
    after
      0 -> :ok
    end
  end

  defp nothing_more(ids) do
    assert RankBridge.barrier(@name) == :ok

    for id <- ids do
      refute_received {:rank_bridge, _gang, %Event{operation_id: ^id}}
      refute_received {:passed_on, {:rank_bridge, _gang, %Event{operation_id: ^id}}}
    end
  end

  @tag sampled: RankBridge.Test.Sampled.part(__ENV__)
  test "each event is told once to each subscriber, under the name that it used" do
    Gang.subscribe(@name)
    # Once more changes nothing.
    Gang.subscribe(@name)

    opts =
      [name: @name, size: 3, backend: :fake, command: OsProcess.rankbridge()] ++
        [arguments: ["--straggler-after", "0.5"]]

    gang = start_supervised!({Gang, opts})
    assert %Event{generation: 1, world_size: 3} = next_event(@name, :formed)
    test = self()

    by_pid =
      spawn_link(fn ->
        Gang.subscribe(gang)
        send(test, :subscribed)
        pass_on(test)
      end)

    assert_receive :subscribed, @soon
    # The ranks are watched in the background, and tell of no more than what happens then.
    @name |> Marks.await_heard() |> forget_marks()

    seen =
      Telemetry.watch(
        [[:rank_bridge, :gang, :mismatch], [:rank_bridge, :gang, :straggler]],
        @name
      )

    # Members that do not agree.
    refs = RankBridge.put!(@name, [[1.0], [2.0], [3.0]])
    wide = List.replace_at(refs, 2, RankBridge.put_rank!(@name, 2, [1.0, 2.0]))

    assert {:error, %Error{reason: :mismatch}} =
             RankBridge.all_reduce(@name, wide, operation_id: "mismatched")

    mismatch = next_event(@name, :mismatch, "mismatched")
    assert %Event{group: "world", operation: "all_reduce", generation: 1} = mismatch
    assert %Error{reason: :mismatch, ranks: [_one, _of, _each]} = mismatch.error
    passed_on(gang, mismatch)
    forget_late("mismatched")

    # Members that keep the others waiting, and come.
    call = fn rank, opts -> RankBridge.Operations.call_rank(@name, rank, :barrier, nil, opts) end
    early = Task.async(fn -> call.(0, operation_id: "late") end)
    late = next_event(@name, :straggler, "late")
    assert %Event{group: "world", operation: "barrier", ranks: [1, 2], arrived?: false} = late
    assert late.waited_us >= 500_000

    others = for rank <- [1, 2], do: Task.async(fn -> call.(rank, operation_id: "late") end)
    for task <- [early | others], do: assert({:ok, _value} = Task.await(task, @soon))
    came = next_event(@name, :straggler, "late")
    assert came.arrived? and came.waited_us >= late.waited_us
    assert came.ranks != [] and came.ranks -- [1, 2] == []
    for event <- [late, came], do: passed_on(gang, event)

    # Members that do not come.
    assert {:error, %Error{}} = call.(0, timeout: 4_000, operation_id: "alone")
    alone = next_event(@name, :straggler, "alone")
    assert %Event{ranks: [1, 2], arrived?: false} = alone
    missing = next_event(@name, :peer_missing, "alone")
    assert %Event{group: "world", operation: "barrier", ranks: [1, 2]} = missing
    assert %Error{reason: :peer_missing} = missing.error
    for event <- [alone, missing], do: passed_on(gang, event)
    nothing_more(["mismatched", "late", "alone"])

    measured =
      for {[_, _, kind], measurements, %{operation_id: id} = metadata} <- Telemetry.seen(seen),
          id in ["mismatched", "late", "alone"],
          {kind, id} != {:straggler, "mismatched"},
          do: {kind, id, metadata, measurements}

    assert [
             {:mismatch, "mismatched", %{group: "world", error: error}, _at},
             {:straggler, "late", %{ranks: [1, 2], arrived?: false}, %{waited: waited}},
             {:straggler, "late", %{arrived?: true}, _came},
             {:straggler, "alone", %{ranks: [1, 2], arrived?: false}, _waited}
           ] = measured

    assert error == mismatch.error
    assert System.convert_time_unit(waited, :native, :microsecond) == late.waited_us

    # Who has unsubscribed is told nothing more, and the other still is.
    Gang.unsubscribe(@name)
    assert {:error, %Error{}} = RankBridge.all_reduce(@name, wide, operation_id: "again")

    assert_receive {:passed_on, {:rank_bridge, ^gang, %Event{kind: :mismatch} = again}}, @soon
    assert again.operation_id == "again"
    refute_received {:rank_bridge, _gang, %Event{operation_id: "again"}}
    forget_late("again")
    nothing_more(["again"])
    Process.unlink(by_pid)
    Process.exit(by_pid, :kill)
  end

  defp pass_on(to) do
    receive do: (event -> send(to, {:passed_on, event}))
    pass_on(to)
  end

  # What the other subscriber was told of marks, up to the last.
  defp forget_marks(last) do
    receive do
      {:passed_on, {:rank_bridge, _gang, %Event{kind: :mismatch, operation_id: ^last}}} ->
        :ok

      {:passed_on, {:rank_bridge, _gang, %Event{operation_id: "mark " <> _id}}} ->
        forget_marks(last)
    after
      @soon -> flunk("the other subscriber was not told")
    end
  end
end
