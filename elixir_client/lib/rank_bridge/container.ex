defmodule RankBridge.Container do
  @moduledoc """
  Tensors in maps, lists, tuples and structs inside each other, as the parameters of a model. `RankBridge.put_container/3` and
  `RankBridge.get_container/3` bring all of them to the ranks, and back:

      params = %{"layer" => %{w: [[1.0, 2.0]], b: [0.0]}}
      {:ok, on_rank} = RankBridge.put_container(gang, params, rank: 1)
      on_rank["layer"].w
      #=> #RankBridge.Ref<... at rank 1, float32[1, 2]>
      {:ok, tensors} = RankBridge.get_container(gang, on_rank)

  Each tensor is a transfer of its own; those of all ranks are under way at once, and of each rank several.

  | what | is |
  | --- | --- |
  | `RankBridge.Tensor`, `RankBridge.Ref`, an Nx tensor, a number, a boolean | a leaf |
  | a list of numbers, or of such lists | a leaf: the tensor of these numbers |
  | a map with keys of any kind, a tuple, any other list | a container of its values |
  | a struct with an `Nx.LazyContainer` or `Nx.Container` of its own | a container of what that says, and comes back as that makes it |
  | any other struct | a container of all its fields |

  Whatever else there is, is a leaf that cannot be a tensor, and is refused by its path: `["layer"].w` is the value at
  `:w` of the map at `"layer"`. The third element of a list has the path `[2]`, that of a tuple `{2}`.
  """

  alias RankBridge.{Error, Ref, Tensor}

  @type t :: term()
  @type path :: String.t()

  @specials [:nan, :infinity, :negative_infinity]

  @doc "The leaves with their paths, in the order of `fill/2`."
  @spec leaves(t()) :: [{path(), term()}]
  def leaves(container) do
    {_same, reversed} =
      walk(container, "", [], fn leaf, path, acc -> {leaf, [{path, built(leaf)} | acc]} end)

    Enum.reverse(reversed)
  end

  @doc "The container with other leaves, of which there are as many."
  @spec fill(t(), [term()]) :: t()
  def fill(container, leaves) do
    {filled, []} =
      walk(container, "", leaves, fn _leaf, _path, [next | others] -> {next, others} end)

    filled
  end

  # Only where the leaf itself is wanted.
  defp built({__MODULE__, build}), do: build.()
  defp built(leaf), do: leaf

  @doc "An error that names the leaf which it is about."
  @spec at(Error.t(), path()) :: Error.t()
  def at(error, ""), do: error
  def at(error, path), do: %{error | message: "#{path}: #{error.message}"}

  defp walk(%Tensor{} = leaf, path, acc, fun), do: fun.(leaf, path, acc)
  defp walk(%Ref{} = leaf, path, acc, fun), do: fun.(leaf, path, acc)

  # As `RankBridge.Tensor.coerce/1` knows the tensors of other libraries.
  defp walk(%_module{type: _type, shape: shape} = leaf, path, acc, fun) when is_tuple(shape),
    do: fun.(leaf, path, acc)

  defp walk(%module{} = struct, path, acc, fun) do
    case protocol(struct) do
      Nx.LazyContainer = protocol ->
        lazily(protocol, struct, path, acc, fun)

      Nx.Container = protocol ->
        contained(protocol, struct, path, acc, fun)

      nil ->
        {fields, acc} = struct |> Map.from_struct() |> walk(path, acc, fun)
        {struct!(module, fields), acc}
    end
  end

  defp walk(map, path, acc, fun) when is_map(map) do
    {pairs, acc} =
      Enum.map_reduce(map, acc, fn {key, value}, acc ->
        {value, acc} = walk(value, path <> key(key), acc, fun)
        {{key, value}, acc}
      end)

    {Map.new(pairs), acc}
  end

  defp walk(tuple, path, acc, fun) when is_tuple(tuple) do
    {values, acc} = tuple |> Tuple.to_list() |> walk_each(acc, fun, &"#{path}{#{&1}}")

    {List.to_tuple(values), acc}
  end

  defp walk(list, path, acc, fun) when is_list(list) do
    if numbers?(list),
      do: fun.(list, path, acc),
      else: walk_each(list, acc, fun, &"#{path}[#{&1}]")
  end

  defp walk(leaf, path, acc, fun), do: fun.(leaf, path, acc)

  defp walk_each(values, acc, fun, path) do
    {values, {acc, _count}} =
      Enum.map_reduce(values, {acc, 0}, fn value, {acc, index} ->
        {value, acc} = walk(value, path.(index), acc, fun)
        {value, {acc, index + 1}}
      end)

    {values, acc}
  end

  # What its first number is among decides: whether all are there, `RankBridge.Tensor` finds out.
  defp numbers?([first | _others]) when is_list(first), do: numbers?(first)

  defp numbers?([first | _others]),
    do: is_number(first) or is_boolean(first) or first in @specials

  defp numbers?([]), do: false

  defp key(key) when is_atom(key) and key not in [nil, true, false], do: "." <> name(inspect(key))
  defp key(key), do: "[#{inspect(key, limit: 5, printable_limit: 40)}]"

  defp name(":" <> name), do: name
  # An alias.
  defp name(name), do: name

  # A protocol of Nx that is implemented for this struct itself.
  defp protocol(struct) do
    Enum.find([Nx.LazyContainer, Nx.Container], fn protocol ->
      Code.ensure_loaded?(protocol) and
        protocol.impl_for(struct) not in [nil, Module.concat(protocol, Any)]
    end)
  end

  # It recurses by itself, and names nothing: a leaf's path has its number.
  defp lazily(protocol, struct, path, acc, fun) do
    next = fn _template, build, {acc, index} ->
      {leaf, acc} = fun.({__MODULE__, build}, "#{path}<#{index}>", acc)
      {leaf, {acc, index + 1}}
    end

    {container, {acc, _count}} = protocol.traverse(struct, {acc, 0}, next)
    {container, acc}
  end

  # It gives values without their fields: the field is the one that has the value.
  defp contained(protocol, struct, path, acc, fun) do
    next = fn value, {acc, fields} ->
      {field, _value} = found = Enum.find(fields, {:"?", value}, &(elem(&1, 1) === value))
      {value, acc} = walk(value, path <> key(field), acc, fun)
      {value, {acc, List.delete(fields, found)}}
    end

    fields = struct |> Map.from_struct() |> Map.to_list()
    {container, {acc, _fields}} = protocol.traverse(struct, {acc, fields}, next)
    {container, acc}
  end
end
