defmodule RankBridge.Gang.Children do
  @moduledoc false
  # The names by which the processes of one gang find each other: by the gang's pid, and what they do.
  #
  # * `:tables` - `RankBridge.Gang.Tables`
  # * `:launcher` - `RankBridge.Gang.Launcher`
  # * `:tasks` - a `Task.Supervisor`: what the gang does beside its server, and requests that go without a stream
  # * `:watchers` - a `Task.Supervisor`: a watcher for each rank
  # * `:ranks` - a `DynamicSupervisor`: a `RankBridge.Rank.Server` for each rank that was called
  # * `:server` - `RankBridge.Gang.Server`

  @type role :: :tables | :launcher | :tasks | :watchers | :ranks | :server

  @doc "The name of a gang's process."
  @spec name(term(), role()) :: {:via, module(), term()}
  def name(gang, role), do: {:via, Registry, {RankBridge.Registry, {gang, role}}}
end
