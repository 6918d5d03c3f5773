defmodule RankBridge.Pipeline.Running do
  @moduledoc false
  # Runs a pipeline's steps, keeps in mind what they make, and releases it.

  alias RankBridge.{Error, Options, Pipeline, Ref}
  alias RankBridge.Operations.{Arguments, Declaration}
  alias RankBridge.Run.Outcome

  # Of the refs: those that are the pipeline's, and those that are not.
  defstruct value: nil, made: [], others: []

  @type ending :: :get | :refs | :run
  @type result :: {:ok, term()} | {:error, Error.t()}

  @collectives Declaration.names()

  @doc "Runs it to its end. Raises what a function in it has raised."
  @spec run(Pipeline.t(), ending()) :: result()
  def run(pipeline, ending) do
    steps = Enum.reverse(pipeline.steps)

    with :ok <- check(pipeline, steps) do
      {outcome, to_release} = walk(pipeline, steps, ending, %__MODULE__{})
      :ok = release(pipeline, to_release)
      Outcome.tell(outcome)
    end
  end

  defp check(%Pipeline{refused: %Error{} = error}, _steps), do: {:error, error}

  defp check(pipeline, steps) do
    caller = if pipeline.rank, do: :of_rank, else: :of_gang

    Enum.find_value(steps, :ok, fn
      {name, opts} when name in @collectives ->
        with {:ok, _opts, _fields} <- Arguments.read(name, caller, opts(pipeline, opts)), do: nil

      _other ->
        nil
    end)
  end

  defp walk(pipeline, [], ending, state) do
    outcome = Outcome.of(fn -> last(pipeline, ending, state.value) end)
    kept = if ending == :refs, do: refs_in(state.value), else: []
    {outcome, without(state.made, kept)}
  end

  defp walk(pipeline, [step | steps], ending, state) do
    case Outcome.of(fn -> take(pipeline, step, state.value) end) do
      {:ok, value} -> walk(pipeline, steps, ending, next(state, value, own?(step)))
      failed -> {failed, state.made}
    end
  end

  # Refs that are there again, as those of what is done in place, stay whose they are.
  defp next(state, value, own?) do
    new = value |> refs_in() |> without(state.made ++ state.others)

    if own?,
      do: %{state | value: value, made: new ++ state.made},
      else: %{state | value: value, others: new ++ state.others}
  end

  defp own?({:of, _refs}), do: false
  defp own?({:then, _fun, opts}), do: opts[:release]
  defp own?(_step), do: true

  # --- steps ---

  defp take(_pipeline, {:of, refs}, _value), do: {:ok, refs}

  defp take(%{rank: nil} = pipeline, {:put, tensors, opts}, _value),
    do: RankBridge.put(pipeline.gang, tensors, opts(pipeline, opts))

  defp take(pipeline, {:put, tensor, opts}, _value),
    do: RankBridge.put_rank(pipeline.gang, pipeline.rank, tensor, opts(pipeline, opts, [:group]))

  defp take(pipeline, {:create, dtype, shape, opts}, _value) do
    opts = opts(pipeline, opts)
    opts = if pipeline.rank, do: Options.put(opts, :rank, pipeline.rank), else: opts
    RankBridge.create(pipeline.gang, dtype, shape, opts)
  end

  defp take(_pipeline, {:then, fun, _opts}, value), do: fun.(value)

  defp take(_pipeline, {:tap, fun}, value) do
    _ignored = fun.(value)
    {:ok, value}
  end

  defp take(pipeline, {name, opts}, value) do
    opts = opts(pipeline, opts)

    case Declaration.of(name).takes do
      :refs ->
        call(pipeline, name, [value], opts)

      :nothing ->
        # On one rank it is `{:ok, nil}`.
        case call(pipeline, name, [], opts) do
          {:error, error} -> {:error, error}
          _no_value -> {:ok, value}
        end
    end
  end

  defp call(%{rank: nil} = pipeline, name, input, opts),
    do: apply(RankBridge, name, [pipeline.gang | input] ++ [opts])

  defp call(pipeline, name, input, opts),
    do:
      RankBridge.Operations.call_rank(pipeline.gang, pipeline.rank, name, List.first(input), opts)

  defp opts(pipeline, opts, but \\ []) do
    if Keyword.keyword?(opts),
      do: pipeline.common |> Keyword.drop(but) |> Keyword.merge(opts),
      else: opts
  end

  # --- endings ---

  defp last(pipeline, :get, value), do: fetch(pipeline, refs_in(value), value)
  defp last(_pipeline, _ending, value), do: {:ok, value}

  defp fetch(_pipeline, [], value), do: {:ok, value}

  defp fetch(pipeline, [ref], ref),
    do: RankBridge.get(pipeline.gang, ref, opts(pipeline, [], [:group]))

  defp fetch(pipeline, refs, value) do
    with {:ok, tensors} <- RankBridge.get(pipeline.gang, refs, opts(pipeline, [], [:group])) do
      tensors = refs |> Enum.map(&key/1) |> Enum.zip(tensors) |> Map.new()
      {:ok, fetched(value, tensors)}
    end
  end

  defp fetched(%Ref{} = ref, tensors), do: Map.fetch!(tensors, key(ref))
  defp fetched([first | rest], tensors), do: [fetched(first, tensors) | fetched(rest, tensors)]

  defp fetched(tuple, tensors) when is_tuple(tuple),
    do: tuple |> Tuple.to_list() |> fetched(tensors) |> List.to_tuple()

  defp fetched(map, tensors) when is_map(map) and not is_struct(map),
    do: Map.new(map, &fetched(&1, tensors))

  defp fetched(other, _tensors), do: other

  # As far as that is possible. All or none are freed on a rank: what a function has released must not keep the others.
  defp release(_pipeline, []), do: :ok

  defp release(pipeline, refs) do
    opts = opts(pipeline, [], [:group])

    _ =
      with {:error, %Error{reason: reason}} when reason in [:unknown_ref, :released_ref] <-
             RankBridge.release(pipeline.gang, refs, opts),
           do: Enum.each(refs, &RankBridge.release(pipeline.gang, &1, opts))

    :ok
  end

  # --- refs ---

  defp refs_in(value), do: value |> found() |> Enum.uniq_by(&key/1)

  defp found(%Ref{} = ref), do: [ref]
  defp found([first | rest]), do: found(first) ++ found(rest)
  defp found(tuple) when is_tuple(tuple), do: tuple |> Tuple.to_list() |> found()

  defp found(map) when is_map(map) and not is_struct(map),
    do: map |> Map.to_list() |> found()

  defp found(_other), do: []

  defp without(refs, others) do
    keys = MapSet.new(others, &key/1)
    Enum.reject(refs, &(key(&1) in keys))
  end

  # What else it says may change in place.
  defp key(ref), do: {ref.rank, ref.id}
end
