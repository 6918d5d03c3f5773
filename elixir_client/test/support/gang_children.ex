defmodule RankBridge.Test.GangChildren do
  @moduledoc "The processes of a gang, by what they do; and those that calls need of a gang that a test plays itself."

  alias RankBridge.{Gang, Transport}
  alias RankBridge.Gang.Children

  @doc "What the server of a gang knows."
  @spec state(Gang.gang()) :: Gang.State.t()
  def state(gang), do: gang |> pid(:server) |> :sys.get_state()

  @doc "A process of a gang."
  @spec pid(Gang.gang(), Children.role() | :channels | :connections) :: pid() | nil
  def pid(gang, role) when role in [:channels, :connections] do
    [transport] =
      for {Transport.Supervisor, pid, _, _} <- Supervisor.which_children(gang), do: pid

    [pid] = for {^role, pid, _, _} <- Supervisor.which_children(transport), do: pid
    pid
  end

  def pid(gang, role),
    do: gang |> GenServer.whereis() |> Children.name(role) |> GenServer.whereis()

  @doc "Starts those that calls need, for a gang of this pid; they end with the test."
  @spec start(pid()) :: :ok
  def start(gang) do
    for {role, module} <- [tasks: Task.Supervisor, ranks: DynamicSupervisor] do
      spec = Supervisor.child_spec({module, name: Children.name(gang, role)}, id: {gang, role})

      case ExUnit.Callbacks.start_supervised(spec) do
        {:ok, _pid} -> :ok
        {:error, {:duplicate_child_name, _id}} -> :ok
      end
    end

    :ok
  end
end
