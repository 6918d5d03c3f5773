defmodule RankBridge.SnakeBridge.Loaded do
  @moduledoc """
  Functions of the modules that the ranks have loaded (`load:` of `RankBridge.Gang`), called as SnakeBridge calls Python.

  `config :rank_bridge, snakebridge_functions: ["app", "pkg.train"]` names the modules. With a pool that stands for a rank, a
  function is called on that rank alone, and gives what it returns there; without one, on all ranks, and gives a list.
  """

  alias RankBridge.{Error, Functions, Gang, Operations}
  alias RankBridge.GroupCoordinator.Conventions
  alias RankBridge.SnakeBridge.Wire

  @type result :: {:ok, term()} | {:error, Error.t()}
  @type arguments :: {[term()], %{String.t() => term()}}

  @doc "Whether a module is one of those that the ranks have loaded."
  @spec module?(term()) :: boolean()
  def module?(python_module),
    do: python_module in Application.get_env(:rank_bridge, :snakebridge_functions, [])

  @doc "The arguments in a payload. `ref` gives what a ref stands for."
  @spec arguments(map(), (term() -> {:ok, term()} | {:error, term()})) ::
          {:ok, arguments()} | {:error, term()}
  def arguments(payload, ref) do
    # Texts instead of atoms: ranks have no value for these.
    opts = [atoms: [], ref: ref]

    with {:ok, by_place} <- Wire.decode(payload["args"] || [], opts),
         {:ok, by_name} <- Wire.decode(payload["kwargs"] || %{}, opts),
         do: {:ok, {by_place, by_name}}
  end

  @doc "Calls a function."
  @spec call(Gang.gang(), String.t(), arguments(), Conventions.runtime()) :: result()
  def call(gang, name, arguments, %{rank: nil} = run),
    do: Functions.call(gang, name, arguments, timeout: run.timeout)

  def call(gang, name, arguments, run),
    do: Functions.call_alone(gang, run.rank, name, arguments, timeout: run.timeout)

  @doc "Calls a function that yields, and gives `emit` each value; `:plain`, and calls nothing, of any other."
  @spec stream(Gang.gang(), String.t(), arguments(), Conventions.runtime(), (term() -> term())) ::
          :ok | :plain | {:error, Error.t()}
  def stream(gang, name, arguments, run, emit) do
    with {:ok, functions} <- Functions.functions(gang, rank: run.rank || 0) do
      if Enum.any?(functions, &(&1.name == name and &1.yields?)),
        do: yielded(gang, name, arguments, run, emit),
        else: :plain
    end
  end

  defp yielded(gang, name, arguments, run, emit) do
    with {:ok, call} <- start(gang, name, arguments, run) do
      try do
        for report <- Functions.reports(gang, call), do: emit.(report.value)
        with {:ok, _returned} <- Operations.wait(gang, call), do: :ok
      rescue
        error in Error -> {:error, error}
      after
        # Nothing is left of it if nobody takes its values any more.
        _withdrawn = Operations.cancel(gang, call)
      end
    end
  end

  defp start(gang, name, arguments, %{rank: nil} = run),
    do: Functions.start_call(gang, name, arguments, timeout: run.timeout)

  defp start(gang, name, arguments, run),
    do: Functions.start_call_alone(gang, run.rank, name, arguments, timeout: run.timeout)
end
