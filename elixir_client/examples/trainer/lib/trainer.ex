defmodule Trainer do
  @moduledoc """
  Trains on four ranks while they are killed: an example of `RankBridge.Gang` in a supervision tree.
  """

  alias RankBridge.Gang
  alias RankBridge.Gang.Event
  alias RankBridge.Tensor
  alias Trainer.{Killer, Run}

  @typedoc """
  What came of a training.

  * `weights` - the bytes of the weights, on each rank
  * `kills` - of each: the step, the rank, the process that was killed, when, and the milliseconds until the gang was seen
    whole again; nil: it was not before the end, or not for long enough
  * `repeated` - the steps that were cut off, with why
  * `resumed` - the steps at which the worker has begun, or begun again
  * `milliseconds` - from the first step to the last
  """
  @type report :: %{
          weights: [binary()],
          kills: [kill()],
          repeated: [{non_neg_integer(), RankBridge.Error.t()}],
          resumed: [non_neg_integer()],
          milliseconds: non_neg_integer()
        }

  @type kill :: %{
          step: non_neg_integer(),
          rank: non_neg_integer(),
          pid: pos_integer(),
          at: integer(),
          recovered_in: non_neg_integer() | nil
        }

  @doc """
  Runs a training to its end, under `Trainer.Runs`. Options:

    * `:steps` - how many
    * `:seed` - of the gradients
    * `:plan` - when which ranks are killed, see `Trainer.Killer.plan/3`; default: never
    * `:before_step` - function that is called with the number of a step before it begins, in the worker; default: none
    * `:log` - function that is given a line for people; default: nobody reads it
    * `:gang` - as of `Trainer.Run`

  The error is why the training has ended before.
  """
  @spec run(keyword()) :: {:ok, report()} | {:error, term()}
  def run(opts) do
    {:ok, killer} = Killer.start_link(opts[:plan] || [])
    :ok = Gang.subscribe(Trainer.Gang)

    {:ok, run} =
      DynamicSupervisor.start_child(
        Trainer.Runs,
        Supervisor.child_spec(
          {Run,
           steps: opts[:steps],
           seed: opts[:seed],
           gang: opts[:gang],
           observer: self(),
           before_step: fn step ->
             Killer.before_step(killer, step)
             opts[:before_step] && opts[:before_step].(step)
           end},
          restart: :temporary
        )
      )

    try do
      observe(%{
        monitor: Process.monitor(run),
        log: opts[:log] || fn _line -> :ok end,
        began: nil,
        kills: [],
        formed: [],
        repeated: [],
        resumed: []
      })
    after
      # It may have ended by itself.
      _ = DynamicSupervisor.terminate_child(Trainer.Runs, run)
      Gang.unsubscribe(Trainer.Gang)
      GenServer.stop(killer)
    end
  end

  defp observe(%{monitor: monitor} = seen) do
    receive do
      {:trainer, {:finished, tensors}} ->
        Process.demonitor(monitor, [:flush])
        {:ok, report(seen, tensors)}

      {:DOWN, ^monitor, :process, _pid, reason} ->
        {:error, reason}

      {:trainer, what} ->
        what |> trained(seen) |> observe()

      {:killed, kill} ->
        seen.log.("step #{kill.step}: rank #{kill.rank}, process #{kill.pid}, is killed")
        observe(%{seen | kills: [kill | seen.kills]})

      {:rank_bridge, Trainer.Gang, event} ->
        event |> happened(seen) |> observe()
    end
  end

  defp trained({:resumed, step}, seen) do
    if seen.began == nil,
      do: seen.log.("the gang is ready"),
      else: seen.log.("  the training goes on at step #{step}")

    %{seen | began: seen.began || now(), resumed: [step | seen.resumed]}
  end

  defp trained({:cut_off, step, error}, seen) do
    seen.log.("  step #{step} is cut off: #{error.reason} in #{error.operation}")
    %{seen | repeated: [{step, error} | seen.repeated]}
  end

  defp happened(%Event{kind: :rank_lost} = event, seen) do
    seen.log.("  the gang has lost rank #{event.rank}: #{event.reason}")
    seen
  end

  defp happened(%Event{kind: :formed} = event, seen) do
    now = now()
    seen.log.("  generation #{event.generation} is formed")
    statuses = RankBridge.status(Trainer.Gang, timeout: 10_000, unready: :fail)
    %{seen | formed: [{now, processes(statuses)} | seen.formed]}
  end

  defp happened(_event, seen), do: seen

  # None, if the gang is not whole any more.
  defp processes({:ok, statuses}),
    do: if(Enum.all?(statuses, &(&1.error == nil)), do: Enum.map(statuses, & &1.pid), else: nil)

  defp processes({:error, _not_ready}), do: nil

  # When it was first seen whole without the process that was killed.
  defp recovered(kill, seen) do
    whole =
      Enum.find(Enum.reverse(seen.formed), fn {at, pids} ->
        at >= kill.at and pids != nil and kill.pid not in pids
      end)

    Map.put(kill, :recovered_in, whole && elem(whole, 0) - kill.at)
  end

  defp report(seen, tensors) do
    %{
      weights: Enum.map(tensors, &Tensor.to_binary/1),
      kills: seen.kills |> Enum.reverse() |> Enum.map(&recovered(&1, seen)),
      repeated: Enum.reverse(seen.repeated),
      resumed: Enum.reverse(seen.resumed),
      milliseconds: now() - seen.began
    }
  end

  defp now, do: System.monotonic_time(:millisecond)
end
