defmodule RankBridge.Gang.Server do
  @moduledoc false
  # The server of a gang: owns its session, and sees to it that the gang is whole.
  #
  # It never waits: starting and recovering are the work of one task at a time beside it. Losses come as news, from the
  # launcher (a process has ended) and from the ranks (a generation is over); news of what is already known, or of what
  # was there before the generation that is running, is no news. What it knows is `RankBridge.Gang.State`.

  use GenServer, shutdown: 15_000

  alias RankBridge.{Error, Sessions, Telemetry, Transport}

  alias RankBridge.Gang.{
    Announcing,
    Channels,
    Children,
    Event,
    Joining,
    Launcher,
    Lost,
    News,
    Recovery
  }

  alias RankBridge.Gang.{Restarts, Settings, State, Subscribers, View, Watching}

  # Milliseconds for closing the session when the gang ends.
  @closing 5_000
  # And those that another controller has for forming the gang.
  @forming 15_000

  @doc "Starts the server of a gang."
  @spec start_link({pid(), Settings.t()}) :: GenServer.on_start()
  def start_link({gang, settings}),
    do: GenServer.start_link(__MODULE__, {gang, settings}, name: Children.name(gang, :server))

  @doc "Starts the watch of the ranks' events, if it does not run yet."
  @spec watch(pid()) :: :ok
  def watch(gang), do: GenServer.cast(Children.name(gang, :server), :watch)

  @impl true
  def init({gang, settings}) do
    # The session is closed before this process ends.
    Process.flag(:trap_exit, true)
    state = State.new(settings, Joining.nobody(gang, settings))
    Process.send_after(self(), :start_timeout, settings.start_timeout)
    state = State.unready(state, Error.refusal(:unavailable, "the gang is being started"), nil)

    if Settings.starts_ranks?(settings),
      do: {:ok, %{state | launcher: Launcher.follow(gang)}},
      else: {:ok, join(settings.endpoints, state)}
  end

  # --- starting ---

  defp join(endpoints, %{view: view, settings: settings} = state) do
    server = self()
    failed = &send(server, {:join_failed, &1})
    work(state, fn -> Joining.join(view, endpoints, settings, failed) end)
  end

  # --- reports and events ---

  @impl true
  def handle_cast(:watch, %{phase: :ready} = state), do: {:noreply, watched(state)}
  # It is seen to when the gang is ready.
  def handle_cast(:watch, state), do: {:noreply, state}

  @impl true
  # Its supervisor ends it.
  def handle_info(_message, %{phase: :ending} = state), do: {:noreply, state}

  def handle_info({launcher, report}, %{launcher: launcher} = state), do: reported(report, state)

  def handle_info({ref, result}, %{worker: %Task{ref: ref}} = state) do
    Process.demonitor(ref, [:flush])
    done(result, %{state | worker: nil})
  end

  def handle_info({:event, ref, event}, %{watching: %Watching{ref: ref}} = state),
    do: happened(event, state)

  # It is tried again.
  def handle_info({:join_failed, error}, %{phase: :starting} = state) do
    why = starting_error(:unavailable, "the gang is being started", error)
    {:noreply, State.unready(%{state | join_error: error}, why, nil)}
  end

  def handle_info(:start_timeout, %{phase: :starting} = state) do
    message = "the gang did not start within #{state.settings.start_timeout / 1_000} s"
    stop(starting_error(:deadline_exceeded, message, state.join_error), state)
  end

  def handle_info({:abandoned, event}, state), do: add_news(News.over(event), state)

  # The exit of a process that `handle_rank_lost` started can end the worker, too: that is a failure of the callback.
  def handle_info({:DOWN, ref, :process, _pid, reason}, %{worker: %Task{ref: ref}} = state) do
    %{view: view} = state = %{state | worker: nil}

    if state.phase == :reloading,
      do: {:noreply, work(state, fn -> Lost.failed(reason, view) end)},
      else: finish(reason, state)
  end

  # This process is linked to its supervisor and to the registry alone.
  def handle_info({:EXIT, _pid, reason}, state) when reason != :normal,
    do: {:stop, reason, state}

  # A rank that does not answer holds up neither this process nor the next renewing.
  def handle_info({:renew, period}, state) do
    renew_later(state.view)
    renew = [state.view, period]
    {:ok, _pid} = Task.Supervisor.start_child(tasks(state), Sessions, :renew, renew)
    {:noreply, state}
  end

  def handle_info(_other, state), do: {:noreply, state}

  defp starting_error(reason, message, nil), do: Error.refusal(reason, message)

  defp starting_error(reason, message, error) do
    fields =
      error |> Map.take([:rank, :operation, :expected, :got, :ranks, :outcomes]) |> Map.to_list()

    Error.refusal(reason, "#{message}: #{error.message}", fields)
  end

  defp reported({:ready, endpoints, token}, %{phase: :starting} = state) do
    settings = %{state.settings | token: state.settings.token || token}
    {:noreply, join(endpoints, %{state | settings: settings})}
  end

  defp reported({:ended, error}, state), do: stop(error, state)
  defp reported({:exited, _rank, _pid, _how} = news, state), do: add_news(news, state)
  defp reported(_report, state), do: {:noreply, state}

  # Another controller forms the next generation. If it does not succeed, the gang recovers by itself.
  defp happened(%Event{kind: :over, error: %Error{reason: :aborted}} = event, state) do
    Process.send_after(self(), {:abandoned, event}, @forming)
    {:noreply, state}
  end

  defp happened(%Event{kind: :over} = event, state), do: add_news(News.over(event), state)

  defp happened(%Event{kind: :formed} = event, state) do
    state = %{state | formed: max(state.formed, event.generation)}
    # By someone else, if the gang was ready.
    if state.phase == :ready and state.formed > state.generation do
      Announcing.tell(state.names, event)
      {:noreply, %{state | generation: state.formed, lost: %{}}}
    else
      {:noreply, state}
    end
  end

  defp happened(event, state) do
    Announcing.tell(state.names, event)
    {:noreply, state}
  end

  # --- losses ---

  # During a recovery, the generation that the news will concern is not known yet.
  defp add_news(news, %{phase: :ready} = state) do
    if concerns?(news, state), do: lose([news], state), else: {:noreply, state}
  end

  defp add_news(news, state), do: {:noreply, %{state | news: [news | state.news]}}

  defp concerns?(news, state), do: News.concerns?(news, state.generation, state.pids)

  defp lose(news, state) do
    lost = News.lost(news, state.pids)

    # All ranks report the same loss: the gang announces it once, also when it does nothing about it.
    fresh = if state.phase == :ready, do: State.unknown(state, lost), else: lost

    if fresh == %{} and state.phase == :ready and state.over == state.generation do
      {:noreply, state}
    else
      state = %{state | over: state.generation} |> State.lost(fresh) |> withhold()
      announce(news, fresh, state)
      act(fresh, state)
    end
  end

  # Before the loss is announced: whoever hears of it finds the gang as it is then.
  defp withhold(%{settings: %{on_rank_lost: policy}} = state) when policy in [:leave, :stop],
    do: state

  defp withhold(state) do
    loss = News.error(state.lost, state.generation).message
    why = Error.refusal(:unavailable, "the gang is being formed again: #{loss}")
    State.unready(state, why, nil)
  end

  defp announce(news, lost, state) do
    news
    |> News.events(lost, state.generation)
    |> Enum.each(&Announcing.tell(state.names, &1))
  end

  # Another controller replaces the ranks; calls return errors until then.
  defp act(_lost, %{settings: %{on_rank_lost: :leave}} = state), do: {:noreply, state}

  defp act(_lost, %{settings: %{on_rank_lost: :stop}} = state),
    do: stop(News.error(state.lost, state.generation), state)

  defp act(lost, state) do
    with {:ok, state} <- count(max(1, map_size(lost)), state),
         do: {:noreply, recover(Map.keys(lost), state)}
  end

  # Too many are the end.
  defp count(0, state), do: {:ok, state}

  defp count(count, state) do
    case Restarts.add(state.restarts, count, System.monotonic_time(:millisecond)) do
      {:ok, restarts} ->
        {:ok, %{state | restarts: restarts}}

      {:error, count} ->
        allowed = "max_restarts: #{state.restarts.max} in #{div(state.restarts.period, 1_000)} s"
        more = "; #{count} were lost, allowed are #{allowed}"
        stop(News.error(state.lost, state.generation, more), state)
    end
  end

  defp recover(lost, state) do
    %{view: view, settings: settings, generation: generation} = state
    policy = settings.on_rank_lost
    # One that is under way goes on when more ranks are lost.
    span = state.recovery || Telemetry.start_recovery(State.name(state), lost, policy)

    %{state | phase: :recovering, recovery: span}
    |> work(fn -> Recovery.recover(view, policy, generation, lost, settings.recovery_timeout) end)
  end

  # --- work ---

  # Runs beside this process, one at a time.
  defp work(%{worker: nil} = state, fun),
    do: %{state | worker: Task.Supervisor.async_nolink(tasks(state), fun)}

  defp tasks(state), do: Children.name(state.view.gang, :tasks)

  defp done({:ok, view, statuses}, %{phase: :starting} = state) do
    renew_later(view)
    state |> State.formed(view, statuses) |> settle()
  end

  defp done({:ok, whole}, %{phase: :recovering} = state) do
    part(state.view, whole.view)

    # Some may have been lost meanwhile, and replaced or left out with the others: no news of the new generation.
    also = State.unknown(state, News.gone(state.news, state.pids, whole))
    announce([], also, state)

    with {:ok, state} <- count(map_size(also), State.lost(state, also)) do
      state = state |> State.moved(whole.moved) |> State.formed(whole.view, whole.statuses)

      if Enum.any?(state.news, &concerns?(&1, state)),
        do: settle(state),
        else: {:noreply, reload(state)}
    end
  end

  defp done(:ok, %{phase: :reloading} = state), do: settle(state)

  # What failed may have failed because more ranks were lost.
  defp done({:failed, reason, statuses}, %{phase: :reloading} = state) do
    case News.look(statuses, state.generation, state.pids) do
      nil -> finish(reason, state)
      news -> settle(%{state | news: [news | state.news]})
    end
  end

  defp done({:error, error}, state), do: stop(error, state)

  defp reload(%{view: view, settings: settings} = state) do
    gang = State.name(state)

    lost = %Lost{
      ranks: state.lost |> Map.keys() |> Enum.sort(),
      how: state.lost,
      policy: settings.on_rank_lost,
      generation: state.generation,
      moved: Map.new(state.origin, fn {new, old} -> {old, new} end)
    }

    # It begins when everyone can see that it may call the gang.
    state =
      work(%{state | phase: :reloading}, fn ->
        receive do: (:begin -> Lost.tell(settings.handle_rank_lost, gang, lost, view))
      end)

    state = State.unready(state, view.unready, state.worker.pid)
    send(state.worker.pid, :begin)
    state
  end

  # --- readiness ---

  # Ready, unless there was news meanwhile of the generation that has just been formed.
  defp settle(state) do
    # In the order of their arrival.
    news = state.news |> Enum.filter(&concerns?(&1, state)) |> Enum.reverse()
    state = %{state | news: []}
    if news == [], do: {:noreply, ready(state)}, else: lose(news, state)
  end

  defp ready(state) do
    # Another controller may have formed a later generation of the same ranks meanwhile.
    state = %{state | generation: max(state.generation, state.formed)}
    formed = %{generation: state.generation, world_size: View.size(state.view)}
    Telemetry.stop_recovery(state.recovery, {:ok, formed})

    tell_replaced(state)
    state = State.ready(state)
    Announcing.tell(state.names, struct!(%Event{kind: :formed}, formed))

    if state.settings.on_rank_lost != :leave or Subscribers.any?(state.names),
      do: watched(state),
      else: state
  end

  defp tell_replaced(%{settings: %{on_rank_lost: :replace}} = state) do
    Enum.each(state.lost, fn {rank, _how} ->
      Telemetry.replaced(State.name(state), rank, state.generation)
    end)
  end

  defp tell_replaced(_state), do: :ok

  defp watched(state), do: %{state | watching: Watching.of(state.watching, state.view)}

  # The channels of ranks that are not in the gang any more.
  defp part(before, since) do
    kept = MapSet.new(Channels.rows(since.channels))

    for {channel, _target} = row <- Channels.rows(before.channels),
        row not in kept,
        do: Transport.close(channel)

    :ok
  end

  defp renew_later(view) do
    period = Sessions.renewal_period(view)
    _ = period && Process.send_after(self(), {:renew, period}, period)
    :ok
  end

  # --- the end ---

  defp stop(error, state) do
    Telemetry.stop_recovery(state.recovery, {:error, error})
    finish({:shutdown, error}, %{state | recovery: nil})
  end

  # The whole gang ends with this reason, which its supervisor sees: so a task ends the gang, which then ends this process.
  # A reason of this process alone would not be the gang's.
  defp finish(reason, state) do
    gang = state.view.gang
    end_gang = [gang, reason, :infinity]
    {:ok, _pid} = Task.Supervisor.start_child(tasks(state), Supervisor, :stop, end_gang)
    {:noreply, %{state | phase: :ending}}
  end

  @impl true
  def terminate(reason, state) do
    # Ending the ranks takes a while, in which nobody is to find channels that are closed.
    state = State.unready(state, Error.refusal(:unavailable, "the gang is ending"), nil)
    _ = state.worker && Process.exit(state.worker.pid, :shutdown)
    Telemetry.exception(state.recovery, :exit, reason, [])
    # Whatever comes of it: the sidecars free what a lost controller leaves.
    _ = Settings.starts_ranks?(state.settings) || Sessions.close(state.view, @closing)
    :ok
  end
end
