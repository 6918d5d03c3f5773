defmodule RankBridge.ShortNames do
  @moduledoc false
  # The atoms that users see for the values of an enum on the wire.

  @doc "The short name of each value by its long one: `:lost` of `:MEMBER_STATE_LOST`, if the prefix is `\"MEMBER_STATE_\"`."
  @spec of(module(), String.t()) :: %{atom() => atom()}
  def of(enum, prefix) do
    Map.new(enum.mapping(), fn {name, _number} ->
      short = name |> Atom.to_string() |> String.replace_prefix(prefix, "")
      {name, short |> String.downcase() |> String.to_atom()}
    end)
  end
end
