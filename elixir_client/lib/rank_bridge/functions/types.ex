defmodule RankBridge.Functions.Types do
  @moduledoc false
  # Types as Python writes them, and as Elixir's typespecs do. What has no word there is any value.
  #
  # The specs use `each(value)` and `real()`, which the module that has them defines.

  @value "Value.t()"
  @plain %{
    "int" => "integer()",
    "float" => "real()",
    "bool" => "boolean()",
    "str" => "String.t()",
    "bytes" => "binary() | {:bytes, binary()}",
    "None" => "nil",
    "NoneType" => "nil",
    "list" => "[Value.t()]",
    "tuple" => "tuple()",
    "dict" => "map()"
  }
  @tensors ["torch.Tensor", "Tensor"]
  @lists ["list", "List", "Sequence", "Iterable", "Collection"]
  @maps ["dict", "Dict", "Mapping"]
  @packages ["typing.", "collections.abc.", "builtins."]

  @doc """
  The type of an argument: of one for all members, or of each one's own.

      iex> RankBridge.Functions.Types.of_argument("list[str] | None")
      "each([String.t()] | nil)"
      iex> RankBridge.Functions.Types.of_argument("torch.Tensor")
      "each(Ref.t() | [Ref.t()] | Tensor.t())"
  """
  @spec of_argument(String.t()) :: String.t()
  def of_argument(python), do: "each(#{type(python, "Ref.t() | [Ref.t()] | Tensor.t()")})"

  @doc """
  The type of what is returned on one rank.

      iex> RankBridge.Functions.Types.of_result("tuple[torch.Tensor, dict[str, float]]")
      "{Ref.t(), %{String.t() => real()}}"
      iex> RankBridge.Functions.Types.of_result("SomethingElse[int]")
      "Value.t()"
  """
  @spec of_result(String.t()) :: String.t()
  def of_result(python), do: type(python, "Ref.t()")

  @doc "The type of what a function returns in the end that is annotated as one that yields."
  @spec of_generator(String.t()) :: String.t()
  def of_generator(python) do
    with {"Generator", [_yields, _sends, returns]} <- parts(python),
         do: of_result(returns),
         else: (_other -> @value)
  end

  defp type(python, tensor) do
    case split(python, "|") do
      [one] -> single(String.trim(one), tensor)
      several -> union(several, tensor)
    end
  end

  defp single(python, tensor) do
    case parts(python) do
      {name, []} when name in @tensors -> tensor
      {name, []} -> Map.get(@plain, name, @value)
      {"Optional", [one]} -> union([one, "None"], tensor)
      {"Union", several} -> union(several, tensor)
      {"Annotated", [one | _notes]} -> type(one, tensor)
      {name, [item]} when name in @lists -> "[#{type(item, tensor)}]"
      {name, [key, item]} when name in @maps -> "%{#{type(key, tensor)} => #{type(item, tensor)}}"
      {name, items} when name in ["tuple", "Tuple"] -> tuple(items, tensor)
      _other -> @value
    end
  end

  defp tuple([_item, "..."], _tensor), do: "tuple()"
  defp tuple(items, tensor), do: "{#{Enum.map_join(items, ", ", &type(&1, tensor))}}"

  defp union(several, tensor) do
    types = several |> Enum.map(&type(&1, tensor)) |> Enum.uniq()
    if @value in types, do: @value, else: Enum.join(types, " | ")
  end

  # A name, and what is in its brackets.
  defp parts(python) do
    case Regex.run(~r/\A([\w.]+)(?:\[(.*)\])?\z/s, String.trim(python)) do
      [_all, name] -> {plain(name), []}
      [_all, name, inside] -> {plain(name), inside |> split(",") |> Enum.map(&String.trim/1)}
      nil -> {"", []}
    end
  end

  defp plain(name),
    do:
      Enum.reduce(@packages, name, fn package, name ->
        String.replace_prefix(name, package, "")
      end)

  # At a sign that is in no brackets.
  defp split(text, sign) do
    {parts, last, _depth} =
      for <<char::utf8 <- text>>, reduce: {[], "", 0} do
        {parts, part, 0} when <<char::utf8>> == sign -> {[part | parts], "", 0}
        {parts, part, depth} when char in [?[, ?(] -> {parts, part <> <<char::utf8>>, depth + 1}
        {parts, part, depth} when char in [?], ?)] -> {parts, part <> <<char::utf8>>, depth - 1}
        {parts, part, depth} -> {parts, part <> <<char::utf8>>, depth}
      end

    Enum.reverse([last | parts])
  end
end
