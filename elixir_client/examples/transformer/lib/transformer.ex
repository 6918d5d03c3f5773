defmodule Transformer do
  @moduledoc """
  Trains a transformer in data parallel on four ranks, by functions that the ranks have loaded, while ranks are killed: an example of
  `RankBridge.Functions` under a supervisor.
  """

  alias RankBridge.Gang
  alias RankBridge.Gang.Event
  alias Transformer.{Killer, Run}

  @typedoc """
  What came of a training.

  * `digests` - a hash of the weights and of the optimizer's state, on each rank
  * `losses` - of the steps that were followed, in order; the last one of a call that was cut off may be missing
  * `kills` - of each: the rank and the process that was killed, when, the last step that was known to be done, and the
    milliseconds until another was done, by the process in its place; nil: none was
  * `cut_off` - why calls have ended before the training
  * `milliseconds` - from the first step to the last
  * `written` - how the model continues "Alice "
  """
  @type report :: %{
          digests: [String.t()],
          losses: [float()],
          kills: [map()],
          cut_off: [RankBridge.Error.t()],
          milliseconds: non_neg_integer(),
          written: String.t()
        }

  @doc """
  Runs a training to its end, under `Transformer.Runs`. Options:

    * `:steps` - how many
    * `:plan` - when which ranks are killed, see `Transformer.Killer.plan/3`; default: never
    * `:log` - function that is given a line for people; default: nobody reads it
    * `:gang` - as of `Transformer.Run`

  The error is why the training has ended before.
  """
  @spec run(keyword()) :: {:ok, report()} | {:error, term()}
  def run(opts) do
    {:ok, killer} = Killer.start_link(opts[:plan] || [])
    :ok = Gang.subscribe(Transformer.Gang)
    spec = {Run, steps: opts[:steps], gang: opts[:gang], observer: self()}
    spec = Supervisor.child_spec(spec, restart: :temporary)
    {:ok, run} = DynamicSupervisor.start_child(Transformer.Runs, spec)

    try do
      observe(%{
        monitor: Process.monitor(run),
        killer: killer,
        log: opts[:log] || fn _line -> :ok end,
        began: nil,
        losses: %{},
        kills: [],
        formed: [],
        cut_off: []
      })
    after
      # It may have ended by itself.
      _ = DynamicSupervisor.terminate_child(Transformer.Runs, run)
      Gang.unsubscribe(Transformer.Gang)
      GenServer.stop(killer)
    end
  end

  defp observe(%{monitor: monitor} = seen) do
    receive do
      {:transformer, {:finished, digests, written}} ->
        Process.demonitor(monitor, [:flush])
        {:ok, report(seen, digests, written)}

      {:DOWN, ^monitor, :process, _pid, reason} ->
        {:error, reason}

      {:transformer, what} ->
        what |> trained(seen) |> observe()

      {:killed, kill} ->
        seen.log.("rank #{kill.rank}, process #{kill.pid}, is killed after step #{kill.step}")
        observe(%{seen | kills: [Map.put(kill, :recovered_in, nil) | seen.kills]})

      {:rank_bridge, Transformer.Gang, event} ->
        event |> happened(seen) |> observe()
    end
  end

  defp trained({:step, step, loss}, seen) do
    Killer.step(seen.killer, step)
    now = now()
    if rem(step, 20) == 0, do: seen.log.("step #{step}: loss #{Float.round(loss, 3)}")
    kills = Enum.map(seen.kills, &recovered(&1, now, seen.formed))
    losses = Map.put(seen.losses, step, loss)
    %{seen | began: seen.began || now, losses: losses, kills: kills}
  end

  defp trained({:cut_off, error}, seen) do
    seen.log.("  the call is cut off: #{error.reason}")
    %{seen | cut_off: [error | seen.cut_off]}
  end

  defp happened(%Event{kind: :rank_lost} = event, seen) do
    seen.log.("  the gang has lost rank #{event.rank}: #{event.reason}")
    seen
  end

  defp happened(%Event{kind: :formed} = event, seen) do
    seen.log.("  generation #{event.generation} is formed")
    %{seen | formed: [now() | seen.formed]}
  end

  defp happened(_event, seen), do: seen

  defp recovered(%{recovered_in: nil} = kill, now, formed) do
    if Enum.any?(formed, &(&1 >= kill.at)), do: %{kill | recovered_in: now - kill.at}, else: kill
  end

  defp recovered(kill, _now, _formed), do: kill

  defp report(seen, digests, written) do
    %{
      digests: digests,
      losses: for({_step, loss} <- Enum.sort(seen.losses), do: loss),
      kills: Enum.reverse(seen.kills),
      cut_off: Enum.reverse(seen.cut_off),
      milliseconds: now() - seen.began,
      written: written
    }
  end

  defp now, do: System.monotonic_time(:millisecond)
end
