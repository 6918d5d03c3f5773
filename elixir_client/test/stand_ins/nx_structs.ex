# Structs that an application would have beside Nx; compiled when the stand-in for it is there.
defmodule RankBridge.ContainersTest.Model do
  @derive {Nx.Container, containers: [:w, :inner], keep: [:name]}
  defstruct [:w, :inner, :name, steps: 0]
end

defmodule RankBridge.ContainersTest.Lazy do
  defstruct [:seed]
end

defimpl Nx.LazyContainer, for: RankBridge.ContainersTest.Lazy do
  def traverse(lazy, acc, fun) do
    build = fn ->
      send(self(), :built)
      Nx.from_binary(<<lazy.seed::little-64>>, {:s, 64})
    end

    {value, acc} = fun.(:template, build, acc)
    {%{value: value}, acc}
  end
end
