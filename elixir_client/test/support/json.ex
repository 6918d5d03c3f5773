defmodule RankBridge.Test.JSON do
  @moduledoc "Enough JSON for the shared test files: Elixir 1.14 has none."

  @doc "Decodes a text. Objects become maps with text keys. Raises for anything that is not JSON."
  @spec decode!(binary()) :: term()
  def decode!(text) do
    {value, rest} = value(skip(text))
    "" = skip(rest)
    value
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

  defp skip(<<char, rest::binary>>) when char in ' \t\r\n', do: skip(rest)
  defp skip(rest), do: rest

  defp value("null" <> rest), do: {nil, rest}
  defp value("true" <> rest), do: {true, rest}
  defp value("false" <> rest), do: {false, rest}
  defp value("\"" <> rest), do: string(rest, [])
  defp value("[" <> rest), do: list(skip(rest), [])
  defp value("{" <> rest), do: object(skip(rest), %{})
  defp value(rest), do: number(rest)

  defp list("]" <> rest, []), do: {[], rest}

  defp list(rest, gathered) do
    {value, rest} = value(rest)

    case skip(rest) do
      "," <> rest -> list(skip(rest), [value | gathered])
      "]" <> rest -> {Enum.reverse([value | gathered]), rest}
    end
  end

  defp object("}" <> rest, gathered) when gathered == %{}, do: {%{}, rest}

  defp object("\"" <> rest, gathered) do
    {key, rest} = string(rest, [])
    ":" <> rest = skip(rest)
    {value, rest} = value(skip(rest))
    gathered = Map.put(gathered, key, value)

    case skip(rest) do
      "," <> rest -> object(skip(rest), gathered)
      "}" <> rest -> {gathered, rest}
    end
  end

  defp number(text) do
    [digits] = Regex.run(~r/\A-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/, text)
    rest = binary_part(text, byte_size(digits), byte_size(text) - byte_size(digits))

    case Integer.parse(digits) do
      {integer, ""} -> {integer, rest}
      _fraction -> {float(digits), rest}
    end
  end

  defp float(digits) do
    {float, ""} = Float.parse(digits)
    float
  end

  defp string("\"" <> rest, gathered), do: {IO.iodata_to_binary(Enum.reverse(gathered)), rest}
  defp string("\\u" <> rest, gathered), do: unicode(rest, gathered)

  defp string(<<?\\, char, rest::binary>>, gathered) do
    plain = %{?n => "\n", ?t => "\t", ?r => "\r", ?b => "\b", ?f => "\f"}
    string(rest, [Map.get(plain, char, <<char>>) | gathered])
  end

  defp string(<<char::utf8, rest::binary>>, gathered),
    do: string(rest, [<<char::utf8>> | gathered])

  defp unicode(<<hex::binary-size(4), rest::binary>>, gathered) do
    case {String.to_integer(hex, 16), rest} do
      {high, <<"\\u", low::binary-size(4), rest::binary>>} when high in 0xD800..0xDBFF ->
        low = String.to_integer(low, 16)
        char = 0x10000 + (high - 0xD800) * 0x400 + (low - 0xDC00)
        string(rest, [<<char::utf8>> | gathered])

      {char, rest} ->
        string(rest, [<<char::utf8>> | gathered])
    end
  end
end
