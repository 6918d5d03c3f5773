defmodule RankBridge.Operations.Inputs do
  @moduledoc false
  # What members bring to an operation, as their requests say it: refs, values, maps of tensors, a graph, arguments.

  alias RankBridge.{Calls, Dtype, Error, Graph, Group, Ref, Tensor, Value}
  alias RankBridge.Functions.Shares
  alias RankBridge.Operations.{Arguments, Declaration}
  alias RankBridge.Proto.V1

  @specials [:nan, :infinity, :negative_infinity]

  @typedoc "What each member's request says of what it brings, and the sessions of the refs that are used."
  @type t :: {[keyword()], [String.t()]}

  @doc """
  Reads what is brought: by all members of a gang's call, in group order, or by the one rank of another.

  `opts` are the operation's, with their defaults; `call` is for errors.
  """
  @spec read(Declaration.t(), term(), Arguments.caller(), [non_neg_integer()], map(), Calls.t()) ::
          {:ok, t()} | {:error, Error.t()}
  def read(declaration, input, caller, members, opts, call) do
    {:ok, take(declaration.takes, input, caller, members, opts)}
  catch
    {:refused, reason, message, expected, got} ->
      fields = [operation: call.operation, group: call.group, expected: expected, got: got]
      {:error, Error.refusal(reason, message, fields)}

    {:failed, %Error{} = error} ->
      {:error, %{error | operation: call.operation, group: call.group}}
  end

  defp take(:nothing, nil, _caller, members, _opts), do: {no_inputs(members), []}

  defp take(:nothing, input, _caller, _members, _opts),
    do: refuse("this operation takes nothing", "nil", shown(input))

  defp take(:refs, refs, caller, members, _opts) do
    refs = one_each(refs, caller, members, "ref")
    refs |> Enum.zip(members) |> Enum.with_index() |> Enum.each(&check_ref/1)
    {for(ref <- refs, do: [ref_id: ref.id]), sessions(refs)}
  end

  defp take(:values, values, caller, members, _opts),
    do:
      {for(number <- one_each(values, caller, members, "value"), do: [value: value(number)]), []}

  defp take(:numbers, numbers, caller, members, opts) do
    numbers |> one_each(caller, members, "number") |> Enum.each(&check_number/1)
    take(:values, numbers, caller, members, opts)
  end

  defp take(:source_value, value, caller, members, opts),
    do: {at_source([value: value(value)], caller, members, opts), []}

  # Only the source needs a value; a rank that is the source refuses a call without one.
  defp take(takes, nil, :of_rank, [_rank], _opts) when takes in [:source_values, :source_dict],
    do: {[[]], []}

  defp take(:source_values, values, caller, members, opts) do
    values = check_list(values, "value")
    _checked = if caller == :of_gang, do: check_count(values, members, "value")
    {at_source([values: value(values)], caller, members, opts), []}
  end

  defp take(:source_dict, dict, caller, members, opts) do
    [source | _others] = if caller == :of_rank, do: members, else: from_source(members, opts)
    refs = refs_in(dict, source)
    {at_source([dict: value(dict)], caller, members, opts), sessions(refs)}
  end

  defp take(:dict, dict, :of_rank, [rank], _opts) do
    refs = refs_in(dict, rank)
    {[[dict: value(dict)]], sessions(refs)}
  end

  defp take(:expected, nil, :of_rank, [_rank], _opts), do: {[[]], []}

  defp take(:expected, %Ref{} = ref, :of_rank, [rank], _opts) do
    check_ref({{ref, rank}, 0})
    {[[expected: {:ref_id, ref.id}]], sessions([ref])}
  end

  defp take(:expected, {dtype, shape}, :of_rank, [_rank], _opts) do
    case Tensor.check(dtype, shape) do
      :ok -> {[[expected: {:tensor, spec(dtype, shape)}]], []}
      {:error, error} -> throw({:failed, error})
    end
  end

  defp take(:expected, other, _caller, _members, _opts),
    do: refuse("this is nothing to expect", "a ref, a dtype and a shape, or nil", shown(other))

  defp take(:graph, %Graph{} = graph, _caller, members, _opts),
    do: {for(_rank <- members, do: [graph: graph.name]), [graph.session_id]}

  defp take(:graph, name, _caller, members, _opts) when is_binary(name),
    do: {for(_rank <- members, do: [graph: name]), []}

  defp take(:graph, other, _caller, _members, _opts),
    do: refuse("this is no graph", "a graph, or its name", shown(other))

  defp take(:arguments, input, caller, members, _opts) do
    case Shares.of(input, caller, members) do
      {:ok, {:alike, share}} ->
        arguments = arguments(share)
        refs = Enum.flat_map(members, &refs_of(share, &1))
        {for(_rank <- members, do: [arguments: arguments]), sessions(refs)}

      {:ok, {:each, shares}} ->
        refs =
          shares |> Enum.zip(members) |> Enum.flat_map(fn {it, rank} -> refs_of(it, rank) end)

        {for(share <- shares, do: [arguments: arguments(share)]), sessions(refs)}

      {:error, error} ->
        throw({:failed, error})
    end
  end

  defp no_inputs(members), do: Enum.map(members, fn _rank -> [] end)

  # --- one for each member ---

  defp one_each(input, :of_rank, [_rank], _what), do: [input]

  defp one_each(input, :of_gang, members, what),
    do: input |> check_list(what) |> check_count(members, what)

  defp check_list(input, what) do
    if is_list(input) and not List.improper?(input),
      do: input,
      else: refuse("a list of #{what}s is needed", "a list", shown(input))
  end

  defp check_count(inputs, members, what) do
    if length(inputs) == length(members),
      do: inputs,
      else:
        refuse(
          "one #{what} for each member of the group is needed",
          "#{length(members)}",
          "#{length(inputs)}"
        )
  end

  # --- the source's ---

  defp at_source(fields, :of_rank, [_rank], _opts), do: [fields]

  defp at_source(fields, :of_gang, members, opts) do
    _checked = from_source(members, opts)

    for {_rank, place} <- Enum.with_index(members),
        do: if(source?(place, opts), do: fields, else: [])
  end

  defp source?(place, opts), do: place == opts.src_rank_in_group

  # The source and the members after it.
  defp from_source(members, %{src_rank_in_group: source}) do
    with [] <- Enum.drop(members, source) do
      expected = "0 to #{length(members) - 1}"
      refuse(:rank_out_of_range, "the source is not in the group", expected, "#{source}")
    end
  end

  # --- refs ---

  defp check_ref({{%Ref{rank: rank}, rank}, _place}), do: :ok

  defp check_ref({{%Ref{rank: other}, rank}, place}),
    do: refuse("ref #{place} is of another rank", "of rank #{rank}", "of rank #{other}")

  defp check_ref({{other, rank}, place}),
    do: refuse("entry #{place} is no ref", "a ref of rank #{rank}", shown(other))

  defp sessions(refs), do: refs |> Enum.map(& &1.session_id) |> Enum.uniq()

  # Those in a map of tensors, which are all of one rank.
  defp refs_in(dict, rank) when is_map(dict) and not is_struct(dict) do
    refs = found(dict)

    case Enum.reject(refs, &(&1.rank == rank)) do
      [] ->
        refs

      others ->
        refuse(
          "#{length(others)} of #{length(refs)} refs are of other ranks",
          "of rank #{rank}",
          "of ranks #{others |> Enum.map(& &1.rank) |> Enum.uniq() |> Group.listed()}"
        )
    end
  end

  defp refs_in(other, _rank), do: refuse("this is no map of tensors", "a map", shown(other))

  defp found(%Ref{} = ref), do: [ref]
  defp found(map) when is_map(map) and not is_struct(map), do: Enum.flat_map(map, &found/1)
  defp found(tuple) when is_tuple(tuple), do: tuple |> Tuple.to_list() |> found()
  defp found([first | rest]), do: found(first) ++ found(rest)
  defp found(_other), do: []

  # Those in arguments, which are all of one rank.
  defp refs_of(share, rank) do
    for {argument, place} <- Enum.with_index(share), ref <- found(elem(argument, 1)) do
      if ref.rank != rank do
        message = "#{argument(argument, place)} has a ref of another rank"
        refuse(message, "of rank #{rank}", "of rank #{ref.rank}")
      end

      ref
    end
  end

  defp arguments(share) do
    for {{name, value} = argument, place} <- Enum.with_index(share) do
      %V1.Argument{name: name, value: value(value, argument(argument, place))}
    end
  end

  defp argument({"", _value}, place), do: "argument #{place}"
  defp argument({name, _value}, _place), do: "argument #{inspect(name)}"

  # --- values ---

  defp value(term) do
    case Value.to_proto(term) do
      {:ok, value} -> value
      {:error, error} -> throw({:failed, error})
    end
  end

  defp value(term, name) do
    value(term)
  catch
    {:failed, error} -> throw({:failed, %{error | message: "#{name}: #{error.message}"}})
  end

  # The members check that all are of one kind; their error names both sides.
  defp check_number(number) when is_boolean(number) or is_number(number) or number in @specials,
    do: :ok

  defp check_number(other),
    do: refuse("this is no number", "a boolean, an integer or a float", shown(other))

  defp spec(dtype, shape), do: %V1.TensorSpec{dtype: Dtype.to_proto(dtype), shape: shape}

  @spec refuse(String.t(), String.t(), String.t()) :: no_return()
  defp refuse(message, expected, got), do: refuse(:invalid_argument, message, expected, got)

  @spec refuse(Error.reason(), String.t(), String.t(), String.t()) :: no_return()
  defp refuse(reason, message, expected, got),
    do: throw({:refused, reason, message, expected, got})

  defp shown(term), do: inspect(term, limit: 3, printable_limit: 40)
end
