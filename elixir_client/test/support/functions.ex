defmodule RankBridge.Test.Functions do
  @moduledoc "The functions on a gang, whichever module has them."

  alias RankBridge.{Averaging, Coalesced, Collectives, Containers, Generations, Graphs}
  alias RankBridge.{Functions, Grouping, Meshes, NamedTensors}
  alias RankBridge.{Objects, Operations, PointToPoint, Programs, Queues, Run, Tensors}

  @modules [Averaging, Coalesced, Collectives, Containers, Functions, Generations, Graphs] ++
             [Grouping, Meshes, NamedTensors, Objects, Operations, PointToPoint, Programs, Queues] ++
             [Run, Tensors]

  @doc "The modules that declare them."
  @spec modules() :: [module()]
  def modules, do: @modules

  @doc "Calls the function of a name, which may end in !."
  @spec call(atom(), [term()]) :: term()
  def call(name, arguments) do
    arity = length(arguments)
    [module] = Enum.filter(@modules, &function_exported?(Code.ensure_loaded!(&1), name, arity))
    apply(module, name, arguments)
  end
end
