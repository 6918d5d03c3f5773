defmodule Trainer.Run do
  @moduledoc """
  One training: its progress, its ranks, and who trains.

  `:rest_for_one`: each needs those before it. The progress outlives a gang that has ended, and so do its checkpoints.
  """

  use Supervisor

  alias Trainer.{Progress, Reload, Step, Worker}

  @doc """
  Starts a training. Options:

    * `:steps` - how many
    * `:seed` - of the gradients
    * `:observer` - process that is told what happens, see `Trainer.Worker`
    * `:before_step` - function that is called with the number of a step before it begins
    * `:gang` - options of `RankBridge.Gang` that replace those that are here
  """
  @spec start_link(keyword()) :: Supervisor.on_start()
  def start_link(opts), do: Supervisor.start_link(__MODULE__, opts)

  @impl true
  def init(opts) do
    gang = [
      name: Trainer.Gang,
      size: Step.ranks(),
      backend: :gloo,
      # What waits for the gang would go on with refs of ranks that are not there any more.
      unready: :fail,
      timeout: 10_000,
      # As many as this example kills are no reason to give up.
      max_restarts: 20,
      handle_rank_lost: &Reload.handle_rank_lost/2
    ]

    children = [
      {Progress, Step.initial_weights()},
      {RankBridge.Gang, Keyword.merge(gang, opts[:gang] || [])},
      {Worker, opts}
    ]

    Supervisor.init(children, strategy: :rest_for_one)
  end
end
