defmodule RankBridge.Functions.Shares do
  @moduledoc false
  # The arguments of a function, as its caller gives them, and what of them each member of a group gets.

  alias RankBridge.{Each, Error, Ref}
  alias RankBridge.Operations.Arguments

  @typedoc "Arguments of one member: their names, empty where they are given by their place, and their values."
  @type share :: [{String.t(), term()}]

  # Pairs that are values of their own: see `RankBridge.Value`.
  @no_names [:bytes, :nan, :infinity, :negative_infinity, true, false, nil]

  @doc "The share that all members get alike, or one for each. `input` as of `RankBridge.Functions.call/4`."
  @spec of(term(), Arguments.caller(), [non_neg_integer()]) ::
          {:ok, {:alike, share()} | {:each, [share()]}} | {:error, Error.t()}
  def of(input, caller, members) do
    given = given(input)

    cond do
      not Enum.any?(given, fn {_name, value} -> own?(value, caller, members) end) ->
        {:ok, {:alike, given}}

      caller == :of_rank ->
        refuse("an argument is for all members, and one is called", "a value", "RankBridge.each")

      true ->
        {:ok, {:each, Enum.zip_with(Enum.map(given, &split(&1, members)), & &1)}}
    end
  catch
    {:refused, message, expected, got} -> refuse(message, expected, got)
  end

  defp given({by_place, by_name}) when is_list(by_place) and is_map(by_name),
    do: by_place(proper(by_place)) ++ by_name(by_name)

  defp given(map) when is_map(map) and not is_struct(map), do: by_name(map)

  # As in a call of Elixir: those with names come last.
  defp given(list) when is_list(list) do
    {named, by_place} = list |> proper() |> Enum.reverse() |> Enum.split_while(&named?/1)
    by_place(Enum.reverse(by_place)) ++ by_name(Enum.reverse(named))
  end

  defp given(other),
    do: throw({:refused, "these are no arguments", "a list or a map", shown(other)})

  defp proper(list) do
    if List.improper?(list),
      do: throw({:refused, "these are no arguments", "a list or a map", shown(list)}),
      else: list
  end

  defp named?({name, _value}), do: is_atom(name) and name not in @no_names
  defp named?(_value), do: false

  defp by_place(values), do: for(value <- values, do: {"", value})
  defp by_name(pairs), do: for({name, value} <- pairs, do: {name(name), value})

  defp name(name) when is_atom(name) and name not in [nil, true, false], do: Atom.to_string(name)
  defp name(name) when is_binary(name) and name != "", do: name

  defp name(other),
    do: throw({:refused, "this names no parameter", "an atom or a text", shown(other)})

  # Whether each member gets its own of it. One rank's refs are its own already.
  defp own?(%Each{}, _caller, _members), do: true
  defp own?(value, :of_gang, members), do: refs_of?(value, members)
  defp own?(_value, :of_rank, _members), do: false

  defp refs_of?([%Ref{} | _others] = refs, members), do: ranks(refs) == members
  defp refs_of?(_value, _members), do: false

  # A list may end in anything.
  defp ranks([%Ref{rank: rank} | rest]), do: [rank | ranks(rest)]
  defp ranks(rest), do: rest

  defp split({name, %Each{values: values}}, members) when is_list(values) do
    if length(values) == length(members) do
      for value <- values, do: {name, value}
    else
      message = "RankBridge.each has not one value for each member of the group"
      throw({:refused, message, "#{length(members)}", "#{length(values)}"})
    end
  end

  defp split({name, value}, members) do
    if refs_of?(value, members),
      do: for(ref <- value, do: {name, ref}),
      else: for(_rank <- members, do: {name, value})
  end

  defp refuse(message, expected, got),
    do: {:error, Error.refusal(:invalid_argument, message, expected: expected, got: got)}

  defp shown(term), do: inspect(term, limit: 3, printable_limit: 40)
end
