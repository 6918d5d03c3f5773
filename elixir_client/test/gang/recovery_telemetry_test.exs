defmodule RankBridge.Gang.RecoveryTelemetryTest do
  @moduledoc "What one sees by `:telemetry` of a gang that loses ranks: on ranks that a test directs."

  use ExUnit.Case, async: true

  alias RankBridge.{Error, Gang}
  alias RankBridge.Test.{GangChildren, Telemetry, WatchedRanks}

  @soon 30_000
  @recover [:rank_bridge, :gang, :recover]
  @form [:rank_bridge, :gang, :form]
  @ends [:start, :stop, :exception]
  @watched for(last <- @ends, prefix <- [@recover, @form], do: prefix ++ [last]) ++
             [[:rank_bridge, :rank, :lost], [:rank_bridge, :rank, :replaced]]

  setup %{test: test} do
    %{ranks: start_supervised!({WatchedRanks, 2}), name: test}
  end

  defp start(context, opts) do
    Telemetry.watch(@watched, context.name)
    opts = WatchedRanks.gang(context.ranks) ++ [name: context.name, lease: nil] ++ opts
    gang = start_supervised!({Gang, opts}, restart: :temporary)
    :ok = RankBridge.await_ready(gang, @soon)
    gang
  end

  defp seen(event) do
    assert_receive {:seen, ^event, _measurements, metadata, _pid}, @soon
    metadata
  end

  # In the order in which they came; what is lost is told before the recovery begins.
  defp replaced_while(context, fun) do
    WatchedRanks.before_forming(context.ranks, fun)
    WatchedRanks.lose(context.ranks, [1])
    WatchedRanks.replace(context.ranks, 1)
  end

  test "a rank that is replaced: the loss, the recovery with what it forms, and the new rank",
       context do
    %{name: name} = context
    gang = start(context, on_rank_lost: :replace)
    replaced_while(context, fn -> :ok end)

    assert %{gang: ^name, rank: 1, how: "ranks [1] are gone"} = seen([:rank_bridge, :rank, :lost])
    began = seen(@recover ++ [:start])
    assert %{gang: ^name, ranks: [1], policy: :replace} = began
    assert %{gang: ^name} = seen(@form ++ [:start])
    ended = seen(@recover ++ [:stop])
    assert ended == Map.merge(began, %{result: :ok, error: nil, generation: 2, world_size: 2})
    assert %{gang: ^name, rank: 1, generation: 2} = seen([:rank_bridge, :rank, :replaced])
    assert RankBridge.await_ready(gang, @soon) == :ok
    refute_received {:seen, [:rank_bridge, :gang, :recover, _last], _, _, _}
    refute_received {:seen, [:rank_bridge, :rank, _what], _, _, _}

    # By hand.
    flush()
    assert {:ok, %{generation: 3}} = RankBridge.form(gang)
    assert %{gang: ^name} = began = seen(@form ++ [:start])

    assert seen(@form ++ [:stop]) ==
             Map.merge(began, %{result: :ok, error: nil, generation: 3, world_size: 2})
  end

  test "who hears of a loss finds the gang not ready", context do
    %{name: name} = context
    test = self()

    # Runs in the gang's own process, while that announces the loss.
    look = fn _event, _measurements, %{gang: gang}, _config ->
      gang == name && send(test, {:looked, RankBridge.Gang.View.fetch(name)})
    end

    :telemetry.attach("#{name} looks", [:rank_bridge, :rank, :lost], look, nil)
    on_exit(fn -> :telemetry.detach("#{name} looks") end)
    gang = start(context, on_rank_lost: :replace)
    replaced_while(context, fn -> :ok end)

    assert_receive {:looked, {:ok, %{unready: %Error{reason: :unavailable} = why}}}, @soon
    assert why.message =~ "rank 1"
    assert RankBridge.await_ready(gang, @soon) == :ok
  end

  test "a recovery that more ranks are lost in is one", context do
    %{ranks: ranks} = context
    test = self()

    callback = fn _gang, _lost ->
      send(test, {:called, self()})
      receive do: (:go_on -> :ok)
    end

    start(context, on_rank_lost: :shrink, handle_rank_lost: callback)
    WatchedRanks.lose(ranks, [1])
    assert_receive {:called, first}, @soon
    WatchedRanks.fail(ranks, :ERROR_CODE_BACKEND_FAILED, "no way through")
    await_news(context.name)
    send(first, :go_on)
    assert_receive {:called, second}, @soon
    send(second, :go_on)
    assert %{ranks: [1], policy: :shrink} = began = seen(@recover ++ [:start])

    assert seen(@recover ++ [:stop]) ==
             Map.merge(began, %{result: :ok, error: nil, generation: 3, world_size: 1})

    refute_received {:seen, [:rank_bridge, :gang, :recover, _last], _, _, _}
    # Nobody has come back.
    refute_received {:seen, [:rank_bridge, :rank, :replaced], _, _, _}
  end

  test "a recovery that is given up has the error, and one that the gang does not live to see the end of says so",
       context do
    %{ranks: ranks} = context
    gang = start(context, on_rank_lost: :replace, max_restarts: 1)
    monitor = Process.monitor(gang)

    replaced_while(context, fn ->
      WatchedRanks.lose(ranks, [0])
      WatchedRanks.replace(ranks, 0)
    end)

    assert_receive {:DOWN, ^monitor, :process, ^gang, {:shutdown, %Error{} = error}}, @soon
    assert %{result: :error, error: ^error, generation: nil} = seen(@recover ++ [:stop])
    refute_received {:seen, [:rank_bridge, :gang, :recover, :exception], _, _, _}

    flush()
    WatchedRanks.form(ranks)
    test = self()
    callback = fn _gang, _lost -> send(test, :called) && Process.sleep(:infinity) end

    gang =
      start_supervised!(
        {Gang,
         WatchedRanks.gang(ranks) ++
           [name: context.name, on_rank_lost: :replace, handle_rank_lost: callback]},
        restart: :temporary,
        id: :second
      )

    :ok = RankBridge.await_ready(gang, @soon)
    replaced_while(context, fn -> :ok end)
    assert_receive :called, @soon
    :ok = Gang.stop(gang)
    began = seen(@recover ++ [:start])

    assert seen(@recover ++ [:exception]) ==
             Map.merge(began, %{kind: :exit, reason: :shutdown, stacktrace: []})
  end

  # The gang has heard it, and lets the callback go on.
  defp await_news(name),
    do: if(GangChildren.state(name).news == [], do: await_news(name), else: :ok)

  defp flush do
    receive do
      {:seen, _event, _measurements, _metadata, _pid} -> flush()
    after
      0 -> :ok
    end
  end
end
