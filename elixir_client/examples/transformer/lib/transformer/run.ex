defmodule Transformer.Run do
  @moduledoc """
  One training: its ranks, and who trains on them.

  `:rest_for_one`: a gang that is started again has ranks that know nothing, so the supervisor restarts the worker with it.
  """

  use Supervisor

  alias Transformer.Worker

  @app Path.expand("../../priv/app.py", __DIR__)

  @doc "The module that the ranks load."
  @spec app() :: Path.t()
  def app, do: @app

  @doc """
  Starts a training. Options:

    * `:steps` - how many
    * `:observer` - process that gets messages of what happens, see `Transformer.Worker`
    * `:gang` - options of `RankBridge.Gang` that replace those that are here; `:arguments` are added
  """
  @spec start_link(keyword()) :: Supervisor.on_start()
  def start_link(opts), do: Supervisor.start_link(__MODULE__, opts)

  @impl true
  def init(opts) do
    {arguments, replaced} = Keyword.pop(opts[:gang] || [], :arguments, [])

    gang = [
      name: Transformer.Gang,
      size: 4,
      backend: :gloo,
      load: @app,
      # What torch's optimizers import when the first is made: once, not in each rank.
      arguments: ["--preload", "torch._dynamo" | arguments],
      # As many as this example kills are no reason to give up.
      max_restarts: 20
    ]

    children = [
      {RankBridge.Gang, Keyword.merge(gang, replaced)},
      {Worker, opts}
    ]

    Supervisor.init(children, strategy: :rest_for_one)
  end
end
