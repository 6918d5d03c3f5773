defmodule RankBridge.Transport.Supervisor do
  @moduledoc false
  # Supervises channels, and their connections and writers. A gang has one; channels of `RankBridge.Transport.connect/2` that no
  # gang owns are under that of the application.
  #
  # Connections and writers are never restarted: their channel starts others. A channel that crashes has lost what it knew of its
  # calls, and its users hold its pid. In a gang that is the end of the gang, whose supervisor starts another; elsewhere, calls on
  # that channel fail.
  #
  # Connections are started before channels, and so end after them: a channel that its supervisor ends still gets an answer from
  # here.

  use Supervisor

  @typedoc "The pid of a gang, or this module: the application's."
  @type owner :: pid() | module()

  @doc "Starts the supervisor of an owner's channels."
  @spec start_link(owner()) :: Supervisor.on_start()
  def start_link(owner), do: Supervisor.start_link(__MODULE__, owner)

  @doc "Starts a channel. Returns its pid, and what it adds."
  @spec start_channel(owner(), Supervisor.child_spec()) :: DynamicSupervisor.on_start_child()
  def start_channel(owner, child) do
    restart = if owner == __MODULE__, do: :temporary, else: :transient

    DynamicSupervisor.start_child(
      name(owner, :channels),
      Map.put(child, :restart, restart)
    )
  end

  @doc "Starts a connection, or what belongs to one."
  @spec start_connection(owner(), Supervisor.child_spec()) :: DynamicSupervisor.on_start_child()
  def start_connection(owner, child),
    do: DynamicSupervisor.start_child(name(owner, :connections), child)

  defp name(owner, role), do: {:via, Registry, {RankBridge.Registry, {__MODULE__, owner, role}}}

  @impl true
  def init(owner) do
    children =
      for role <- [:connections, :channels] do
        opts = [name: name(owner, role), strategy: :one_for_one, max_restarts: 0]
        Supervisor.child_spec({DynamicSupervisor, opts}, id: role)
      end

    Supervisor.init(children, strategy: :rest_for_one, max_restarts: 0)
  end
end
