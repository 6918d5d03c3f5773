defmodule RankBridge.Application do
  @moduledoc false

  use Application

  @impl true
  def start(_type, _args) do
    # Callers find a gang's channels here, and call its ranks from their own process.
    children = [
      {Registry, keys: :unique, name: RankBridge.Registry},
      RankBridge.Turns,
      RankBridge.Gang.Subscribers,
      RankBridge.Gang.Readiness,
      {RankBridge.Transport.Supervisor, RankBridge.Transport.Supervisor}
    ]

    Supervisor.start_link(children, strategy: :one_for_one, name: RankBridge.Supervisor)
  end
end
