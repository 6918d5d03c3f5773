defmodule RankBridge.Entry do
  @moduledoc false
  # The one way into a gang: every public function on a gang passes here, once.

  alias RankBridge.{Error, Gang, Group, Telemetry}
  alias RankBridge.Gang.{Readiness, View}

  @type result :: :ok | {:ok, term()} | {:error, Error.t()}

  @doc """
  Calls `fun` with the view of a gang; returns its result, or why there is no view. `operation` is the name of the public
  function, and `opts` are the caller's options.
  """
  @spec call(Gang.gang(), atom(), term(), (View.t() -> result)) :: result | {:error, Error.t()}
        when result: result()
  def call(gang, operation, opts, fun) do
    if Telemetry.loaded?(),
      do: observed(gang, operation, opts, fun),
      else: enter(gang, operation, opts, nil, fun)
  end

  @doc "As `call/4`, of a function that gives `:ok`; `fun` returns `{:ok, nil}` instead."
  @spec call_without_value(Gang.gang(), atom(), term(), (View.t() -> {:ok, nil} | result)) ::
          :ok | {:error, Error.t()}
        when result: {:error, Error.t()}
  def call_without_value(gang, operation, opts, fun),
    do: with({:ok, nil} <- call(gang, operation, opts, fun), do: :ok)

  defp observed(gang, operation, opts, fun) do
    metadata = %{gang: gang, operation: operation, group: group(opts)}
    span = Telemetry.start([:rank_bridge, :call], metadata)

    Telemetry.run(span, fn ->
      result = enter(gang, operation, opts, Telemetry.context(span), fun)
      {result, Telemetry.outcome(result)}
    end)
  end

  defp enter(gang, operation, opts, context, fun) do
    with {:ok, view} <- Readiness.view(gang, opts, operation),
         do: fun.(%{view | call_span_context: context})
  end

  # Wrong options are refused later.
  defp group(opts) do
    if Keyword.keyword?(opts), do: Group.name(opts[:group])
  end
end
