defmodule RankBridge.LeasesTest do
  @moduledoc "Sessions that end by themselves when nobody renews them, against real sidecars on the fake backend."

  use ExUnit.Case, async: true

  alias RankBridge.{Error, Gang, Sessions, Tensor}
  alias RankBridge.Gang.View
  alias RankBridge.Test.{GangChildren, LiveRanks}

  # Long enough for renewals to come in time on a machine that is busy, in milliseconds.
  @lease 5_000

  setup_all do
    ranks = LiveRanks.start(2, "fake")
    on_exit(fn -> LiveRanks.stop(ranks) end)
    %{ranks: ranks}
  end

  defp gang(ranks, opts) do
    spec =
      Supervisor.child_spec({Gang, [endpoints_file: ranks.file] ++ opts}, restart: :temporary)

    gang = start_supervised!(spec, id: make_ref())
    :ok = RankBridge.await_ready(gang, 60_000)
    gang
  end

  defp session(gang) do
    {:ok, id} = Gang.session_id(gang)
    id
  end

  defp sessions(gang),
    do: for(status <- RankBridge.status!(gang), do: Enum.map(status.sessions, &elem(&1, 0)))

  # Asks again until it is so. Asking for the status renews no session.
  defp until(question) do
    if question.() do
      :ok
    else
      receive do
      after
        20 -> until(question)
      end
    end
  end

  @tag sampled: RankBridge.Test.Sampled.part(__ENV__)
  test "ranks keep what is renewed, and free what a lost gang leaves", %{ranks: ranks} do
    gang = gang(ranks, lease: @lease)
    ref = RankBridge.put_rank!(gang, 1, [1, 2])
    Process.flag(:trap_exit, true)
    {:ok, lost} = Gang.start_link(endpoints_file: ranks.file, lease: @lease)
    left = session(lost)
    [_ | _] = RankBridge.put!(lost, [[1], [2]])
    assert Enum.all?(sessions(gang), &(left in &1))

    # It has no chance to close its session.
    true = Process.exit(lost, :kill)
    # The other lease began earlier and is as long: it would be over by now, were it not renewed.
    until(fn -> Enum.all?(sessions(gang), &(left not in &1)) end)
    assert Enum.all?(sessions(gang), &(session(gang) in &1))
    assert gang |> RankBridge.get!(ref) |> Tensor.to_list() == [1, 2]
  end

  test "without a lease a session outlives its gang's process", %{ranks: ranks} do
    for lease <- [nil, 0] do
      gang = gang(ranks, lease: lease)
      {:ok, view} = View.fetch(gang)
      assert {view.lease, Sessions.renewal_period(view)} == {0, nil}
    end
  end

  test "a gang without a session renews nothing", %{ranks: ranks} do
    gang = gang(ranks, session: false)
    {:ok, view} = View.fetch(gang)
    assert Sessions.renewal_period(view) == nil
  end

  test "the lease is 30 seconds, renewed at a third, unless told otherwise", %{ranks: ranks} do
    gang = gang(ranks, [])
    {:ok, view} = View.fetch(gang)
    assert {view.lease, Sessions.renewal_period(view)} == {30_000, 10_000}
  end

  test "a renewing that fails is nobody's error, and the next one comes", %{ranks: ranks} do
    gang = gang(ranks, lease: 60)
    {:ok, view} = View.fetch(gang)
    # So short a lease may have ended before that.
    _closed_or_unknown = Sessions.close(view, 5_000)
    server = GangChildren.pid(gang, :server)
    tasks = GangChildren.pid(gang, :tasks)
    :erlang.trace(server, true, [:receive])
    :erlang.trace(tasks, true, [:receive])

    for _round <- 1..3 do
      assert_receive {:trace, ^server, :receive, {:renew, 20}}, 5_000
      assert_receive {:trace, ^tasks, :receive, {:EXIT, _task, :normal}}, 5_000
    end

    for pid <- [server, tasks], do: :erlang.trace(pid, false, [:receive])

    assert {:error, %Error{reason: :unknown_session}} = RankBridge.put_rank(gang, 0, [1])
    assert Process.alive?(gang)
  end

  test "a lease that is none is refused", %{ranks: ranks} do
    Process.flag(:trap_exit, true)

    for lease <- [-1, 1.5, 0x1_0000_0000, :infinity] do
      assert {:error, %Error{reason: :invalid_argument}} =
               Gang.start_link(endpoints_file: ranks.file, lease: lease)
    end
  end
end
