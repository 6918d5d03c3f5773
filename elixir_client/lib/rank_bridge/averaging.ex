defmodule RankBridge.Averaging do
  @moduledoc """
  Averages over the members of a group, in place.
  """

  use RankBridge.Bangs

  alias RankBridge.{Collectives, Entry, Error, Gang, Ref}
  alias RankBridge.Gang.View

  @typedoc """
  Refs, one for each member in group order; a map from names to such lists; or a list with a map from names to refs for
  each member, which all have the same names.
  """
  @type tensors ::
          [Ref.t()] | %{optional(term()) => [Ref.t()]} | [%{optional(term()) => Ref.t()}]

  @doc """
  Replaces tensors by their average over the group's members, as one operation, and gives the same refs. Either all tensors
  are averaged, or none.

      RankBridge.Averaging.average(gang, %{"weight" => weights, "bias" => biases}, group: "trainers")

  The tensors have floating-point or complex dtypes: an average of integers is not exact. Options: those of collectives.
  """
  spec_with_bang average(Gang.gang(), RankBridge.Averaging.tensors(), keyword()) ::
                   RankBridge.Averaging.tensors()

  def average(gang, tensors, opts \\ []) do
    Entry.call(gang, :average, opts, fn view -> run(view, tensors, opts) end)
  end

  @doc "As `average/3`, on the view of a gang."
  @spec run(View.t(), tensors(), keyword()) :: {:ok, tensors()} | {:error, Error.t()}
  def run(view, tensors, opts) do
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
