defmodule RankBridge.JSON do
  @moduledoc false
  # Reads and writes JSON: Elixir gained its own only later. Objects become maps with text keys, null becomes nil.

  @type t :: nil | boolean() | number() | String.t() | [t()] | %{String.t() => t()}

  @doc """
  The term of a text, or `:error`.

      iex> RankBridge.JSON.decode(~S({"ranks": [{"rank": 0}, null, -1.5e3, "\\u00e4"]}))
      {:ok, %{"ranks" => [%{"rank" => 0}, nil, -1500.0, "ä"]}}
      iex> RankBridge.JSON.decode("[1,]")
      :error
  """
  @spec decode(binary()) :: {:ok, t()} | :error
  def decode(text) do
    {value, rest} = value(skip(text))
    if skip(rest) == "", do: {:ok, value}, else: :error
  catch
    :not_json -> :error
  end

  @doc """
  The text of a term, in one line. Atoms become strings, but nil, true and false; keys are sorted.

      iex> RankBridge.JSON.encode(%{rank: 0, how: "killed\\n", ranks: [1, nil], after_ms: 1.5})
      ~S({"after_ms":1.5,"how":"killed\\u000A","rank":0,"ranks":[1,null]})
  """
  @spec encode(nil | boolean() | number() | String.t() | atom() | list() | map()) :: String.t()
  def encode(term), do: term |> text() |> IO.iodata_to_binary()

  defp text(nil), do: "null"
  defp text(boolean) when is_boolean(boolean), do: Atom.to_string(boolean)
  defp text(atom) when is_atom(atom), do: atom |> Atom.to_string() |> text()
  defp text(number) when is_number(number), do: to_string(number)

  defp text(list) when is_list(list),
    do: [?[, list |> Enum.map(&text/1) |> Enum.intersperse(?,), ?]]

  defp text(map) when is_map(map) do
    members =
      for {key, value} <- Enum.sort_by(map, &to_string(elem(&1, 0))), do: member(key, value)

    [?{, Enum.intersperse(members, ?,), ?}]
  end

  defp text(string) when is_binary(string),
    do: [?", for(<<char::utf8 <- string>>, do: escape(char)), ?"]

  defp member(key, value), do: [key |> to_string() |> text(), ?:, text(value)]

  defp escape(char) when char in [?", ?\\], do: [?\\, char]

  defp escape(char) when char < 0x20,
    do: ["\\u", char |> Integer.to_string(16) |> String.pad_leading(4, "0")]

  defp escape(char), do: <<char::utf8>>

  defp skip(<<char, rest::binary>>) when char in ~c" \t\r\n", do: skip(rest)
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
      _other -> throw(:not_json)
    end
  end

  defp object("}" <> rest, gathered) when gathered == %{}, do: {%{}, rest}

  defp object("\"" <> rest, gathered) do
    {key, rest} = string(rest, [])
    {value, rest} = rest |> skip() |> after_colon() |> value()
    gathered = Map.put(gathered, key, value)

    case skip(rest) do
      "," <> rest -> object(skip(rest), gathered)
      "}" <> rest -> {gathered, rest}
      _other -> throw(:not_json)
    end
  end

  defp object(_other, _gathered), do: throw(:not_json)

  defp after_colon(":" <> rest), do: skip(rest)
  defp after_colon(_other), do: throw(:not_json)

  defp number(text) do
    case Regex.run(~r/\A-?(?:0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?/, text) do
      [digits] -> {String.to_integer(digits), after_number(text, digits)}
      [digits | _fraction] -> {float(digits), after_number(text, digits)}
      nil -> throw(:not_json)
    end
  end

  defp after_number(text, digits),
    do: binary_part(text, byte_size(digits), byte_size(text) - byte_size(digits))

  defp float(digits) do
    case Float.parse(digits) do
      {float, ""} -> float
      _other -> throw(:not_json)
    end
  rescue
    _too_large in ArgumentError -> throw(:not_json)
  end

  defp string("\"" <> rest, gathered), do: {IO.iodata_to_binary(Enum.reverse(gathered)), rest}
  defp string("\\u" <> rest, gathered), do: unicode(rest, gathered)

  for {escape, plain} <-
        [?", ?\\, ?/]
        |> Enum.map(&{&1, <<&1>>})
        |> Enum.concat([{?n, "\n"}, {?t, "\t"}, {?r, "\r"}, {?b, "\b"}, {?f, "\f"}]) do
    defp string(<<?\\, unquote(escape), rest::binary>>, gathered),
      do: string(rest, [unquote(plain) | gathered])
  end

  defp string(<<char::utf8, rest::binary>>, gathered) when char >= 0x20 and char != ?\\,
    do: string(rest, [<<char::utf8>> | gathered])

  defp string(_other, _gathered), do: throw(:not_json)

  defp unicode(text, gathered) do
    case take_unit(text) do
      {high, "\\u" <> rest} when high in 0xD800..0xDBFF ->
        {low, rest} = take_unit(rest)
        unless low in 0xDC00..0xDFFF, do: throw(:not_json)
        char = 0x10000 + (high - 0xD800) * 0x400 + (low - 0xDC00)
        string(rest, [<<char::utf8>> | gathered])

      {lone, _rest} when lone in 0xD800..0xDFFF ->
        throw(:not_json)

      {char, rest} ->
        string(rest, [<<char::utf8>> | gathered])
    end
  end

  defp take_unit(<<hex::binary-size(4), rest::binary>>) do
    case Base.decode16(hex, case: :mixed) do
      {:ok, <<unit::16>>} -> {unit, rest}
      :error -> throw(:not_json)
    end
  end

  defp take_unit(_short), do: throw(:not_json)
end
