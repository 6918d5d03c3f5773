defmodule Transformer.Application do
  @moduledoc "The application: a supervisor for trainings, of which one runs at a time."

  use Application

  @impl true
  def start(_type, _args),
    do: DynamicSupervisor.start_link(name: Transformer.Runs, strategy: :one_for_one)
end
