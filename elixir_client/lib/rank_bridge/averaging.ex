defmodule RankBridge.Averaging do
  @moduledoc """
  Averages over the members of a group, in place: torchgfn's `average_models` and `average_gradients`.

  The sum is divided by the group's size, where torchgfn divides by that of the world.
  """

  use RankBridge.Facade

  alias RankBridge.{Collectives, Error, Gang, Ref}

  @typedoc """
  Refs, one for each member in group order; a map from names to such lists; or a list with a map from names to refs for
  each member, which all have the same names.
  """
  @type tensors ::
          [Ref.t()] | %{optional(term()) => [Ref.t()]} | [%{optional(term()) => Ref.t()}]

  @doc """
  Averages tensors over the group's members in place, as one operation, and gives what was given. All results are there at
  once, or none.

      RankBridge.average(gang, %{"weight" => weights, "bias" => biases}, group: "trainers")

  Of floating-point and complex dtypes only: an average of integers is not exact. Options: those of collectives.
  """
  defcall average(
            gang :: Gang.gang(),
            tensors :: RankBridge.Averaging.tensors(),
            opts :: keyword() \\ []
          ) :: RankBridge.Averaging.tensors(),
          do: averaged(view, tensors, opts)

  defp averaged(view, tensors, opts) do
    with {:ok, named, back} <- named(tensors),
         {:ok, averages} <- averages(view, Enum.map(named, &elem(&1, 1)), opts),
         do: {:ok, back.(for({name, refs} <- named, do: {name, averages[refs]}))}
  end

  # Names that share tensors, as tied weights do, have them averaged once.
  defp averages(_view, [], _opts), do: {:ok, %{}}

  defp averages(view, lists, opts) do
    lists = Enum.uniq(lists)
    calls = for refs <- lists, do: {:all_reduce, refs, op: :avg, in_place: true}

    with {:ok, averages} <- Collectives.run(view, :coalesce, calls, opts),
         do: {:ok, lists |> Enum.zip(averages) |> Map.new()}
  end

  @doc "`average/3`, of gradients."
  defcall average_gradients(
            gang :: Gang.gang(),
            gradients :: RankBridge.Averaging.tensors(),
            opts :: keyword() \\ []
          ) :: RankBridge.Averaging.tensors(),
          do: averaged(view, gradients, opts)

  @doc "`average/3`, of the parameters of models."
  defcall average_models(
            gang :: Gang.gang(),
            parameters :: RankBridge.Averaging.tensors(),
            opts :: keyword() \\ []
          ) :: RankBridge.Averaging.tensors(),
          do: averaged(view, parameters, opts)

  @doc """
  By how much gradients are divided before they are summed over so many members, so that neither they nor their sum
  overflow: OLMo-core's `get_reduce_divide_factor`. The sum is divided by the rest. Raises a `RankBridge.Error` if there can be
  no group of that size.

      iex> for size <- [1, 6, 8, 16], do: RankBridge.Averaging.get_reduce_divide_factor(size)
      [1.0, 4.0, 4.0, 4.0]
  """
  @spec get_reduce_divide_factor(pos_integer()) :: float()
  def get_reduce_divide_factor(world_size) when is_integer(world_size) and world_size > 0,
    do: divide_factor(world_size, 1)

  def get_reduce_divide_factor(world_size) do
    raise Error.refusal(:invalid_argument, "no group is of that size",
            operation: "get_reduce_divide_factor",
            expected: "1 or more",
            got: inspect(world_size, limit: 3)
          )
  end

  # The least power of two that does not divide the size, or is not below its quotient.
  defp divide_factor(size, factor) when rem(size, factor) == 0 and size > factor * factor,
    do: divide_factor(size, 2 * factor)

  defp divide_factor(_size, factor), do: factor * 1.0

  # Refs by name, and how to give them back as they came.
  defp named(tensors) when is_map(tensors) and not is_struct(tensors),
    do: {:ok, Map.to_list(tensors), &Map.new/1}

  defp named([first | _others] = maps) when is_map(first) and not is_struct(first) do
    names = first |> Map.keys() |> MapSet.new()

    case Enum.find_index(
           maps,
           &(not is_map(&1) or is_struct(&1) or MapSet.new(Map.keys(&1)) != names)
         ) do
      nil ->
        named = for name <- names, do: {name, Enum.map(maps, &Map.fetch!(&1, name))}
        {:ok, named, &by_member(&1, length(maps))}

      place ->
        {:error,
         Error.refusal(:invalid_argument, "the tensors of member #{place} have other names",
           operation: "average",
           expected: inspect(Enum.to_list(names), limit: 8),
           got: inspect(names_of(Enum.at(maps, place)), limit: 8)
         )}
    end
  end

  defp named(refs), do: {:ok, [{nil, refs}], fn [{nil, averages}] -> averages end}

  defp names_of(map) when is_map(map) and not is_struct(map), do: Map.keys(map)
  defp names_of(other), do: other

  defp by_member([], members), do: List.duplicate(%{}, members)

  defp by_member(named, _members) do
    {names, refs} = Enum.unzip(named)
    for mine <- Enum.zip_with(refs, & &1), do: names |> Enum.zip(mine) |> Map.new()
  end
end
