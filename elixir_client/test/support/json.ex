defmodule RankBridge.Test.JSON do
  @moduledoc "JSON for the test files and processes that all languages share."

  @doc "Decodes a text. Raises for anything that is not JSON."
  @spec decode!(binary()) :: RankBridge.JSON.t()
  def decode!(text) do
    {:ok, term} = RankBridge.JSON.decode(text)
    term
  end

  @doc "Encodes nil, booleans, integers, UTF-8 binaries, lists and maps with text keys."
  @spec encode(term()) :: iodata()
  def encode(nil), do: "null"
  def encode(value) when is_boolean(value), do: Atom.to_string(value)
  def encode(value) when is_integer(value), do: Integer.to_string(value)
  def encode(list) when is_list(list), do: [?[, Enum.map_intersperse(list, ?,, &encode/1), ?]]

  def encode(map) when is_map(map) do
    entries = for {key, value} <- map, do: [encode(key), ?:, encode(value)]
    [?{, Enum.intersperse(entries, ?,), ?}]
  end

  def encode(text) when is_binary(text) do
    escaped = for <<char::utf8 <- text>>, do: escape(char)
    [?", escaped, ?"]
  end

  defp escape(char) when char in [?", ?\\], do: [?\\, char]
  defp escape(char) when char < 0x20, do: :io_lib.format("\\u~4.16.0b", [char])
  defp escape(char), do: <<char::utf8>>
end
