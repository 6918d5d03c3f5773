defmodule RankBridge.Transport.HTTP2.HPACK do
  @moduledoc false
  # Header compression of HTTP/2 (RFC 7541).
  #
  # The encoder has no state: it uses the static table and literals, so that callers encode in their own
  # process. The decoder is complete, and must see every header block of a connection in order.

  alias RankBridge.Transport.HTTP2.{Huffman, HPACKTable}

  # Never indexed, by this hop or a later one (RFC 7541, section 7.1.3).
  @secret ["authorization", "proxy-authorization", "cookie"]

  @type header :: {name :: String.t(), value :: binary()}

  @doc """
  What a connection's first header block starts with: it announces that this encoder keeps no
  dynamic table, so that no later change of the peer's HEADER_TABLE_SIZE asks for an answer.
  """
  @spec no_dynamic_table() :: binary()
  def no_dynamic_table, do: <<0b001::3, 0::5>>

  @doc "Encodes headers, whose names are lower case. With `huffman: true` where that is shorter."
  @spec encode([header()], huffman: boolean()) :: binary()
  def encode(headers, opts \\ []) do
    huffman? = Keyword.get(opts, :huffman, false)

    for {name, value} <- headers, into: <<>> do
      encode_field(name, value, huffman?)
    end
  end

  defp encode_field(name, value, huffman?) do
    {pattern, bits} = if name in @secret, do: {0b0001, 4}, else: {0b0000, 4}

    case HPACKTable.static_index(name, value) do
      {:field, index} -> integer(1, 1, index)
      {:name, index} -> integer(pattern, bits, index) <> string(value, huffman?)
      nil -> <<pattern::size(bits), 0::4>> <> string(name, huffman?) <> string(value, huffman?)
    end
  end

  # An integer in what `pattern_bits` leave of a byte, and in further bytes of 7 bits.
  defp integer(pattern, pattern_bits, value) do
    bits = 8 - pattern_bits
    max = Bitwise.bsl(1, bits) - 1

    if value < max,
      do: <<pattern::size(pattern_bits), value::size(bits)>>,
      else: <<pattern::size(pattern_bits), max::size(bits), continued(value - max)::binary>>
  end

  defp continued(value) when value < 128, do: <<value>>
  defp continued(value), do: <<1::1, value::7, continued(Bitwise.bsr(value, 7))::binary>>

  defp string(value, false), do: integer(0, 1, byte_size(value)) <> value

  defp string(value, true) do
    encoded = Huffman.encode(value)

    if byte_size(encoded) < byte_size(value),
      do: integer(1, 1, byte_size(encoded)) <> encoded,
      else: string(value, false)
  end

  @doc """
  Decodes a whole header block, of at most `max_size` bytes as RFC 9113 counts a header list. `:too_large`: it is longer, and
  is dropped; the table is as after reading it. `{:error, :compression}` ends a connection, as the tables no longer agree.
  """
  @spec decode(binary(), HPACKTable.t(), pos_integer()) ::
          {:ok, [header()], HPACKTable.t()}
          | {:too_large, HPACKTable.t()}
          | {:error, :compression}
  def decode(block, table, max_size), do: size_update(block, table, max_size)

  # Size updates are allowed at the beginning of a block only.
  defp size_update(<<0b001::3, _::5, _::binary>> = block, table, budget) do
    with {:ok, size, rest} <- read_integer(block, 5),
         {:ok, table} <- HPACKTable.resize(table, size) do
      size_update(rest, table, budget)
    else
      :error -> {:error, :compression}
    end
  end

  defp size_update(block, table, budget), do: fields(block, table, budget, [])

  defp fields("", table, budget, _done) when budget < 0, do: {:too_large, table}
  defp fields("", table, _budget, done), do: {:ok, Enum.reverse(done), table}

  defp fields(block, table, budget, done) do
    with {:ok, {name, value} = field, index?, rest} <- field(block, table) do
      budget = budget - byte_size(name) - byte_size(value) - 32
      table = if index?, do: HPACKTable.add(table, field), else: table
      fields(rest, table, budget, if(budget < 0, do: [], else: [field | done]))
    else
      :error -> {:error, :compression}
    end
  end

  defp field(<<1::1, _::7, _::binary>> = block, table) do
    with {:ok, index, rest} <- read_integer(block, 7),
         {:ok, field} <- HPACKTable.fetch(table, index) do
      {:ok, field, false, rest}
    end
  end

  defp field(<<0b01::2, _::6, _::binary>> = block, table), do: literal(block, 6, true, table)
  defp field(<<0b000::3, _::5, _::binary>> = block, table), do: literal(block, 4, false, table)
  defp field(_block, _table), do: :error

  defp literal(block, bits, index?, table) do
    with {:ok, index, rest} <- read_integer(block, bits),
         {:ok, name, rest} <- name(index, rest, table),
         {:ok, value, rest} <- read_string(rest) do
      {:ok, {name, value}, index?, rest}
    end
  end

  defp name(0, rest, _table), do: read_string(rest)

  defp name(index, rest, table) do
    with {:ok, {name, _value}} <- HPACKTable.fetch(table, index), do: {:ok, name, rest}
  end

  defp read_string(<<huffman::1, _::7, _::binary>> = block) do
    with {:ok, length, rest} <- read_integer(block, 7),
         <<bytes::binary-size(length), rest::binary>> <- rest,
         {:ok, string} <-
           if(huffman == 1, do: Huffman.decode(bytes), else: {:ok, :binary.copy(bytes)}) do
      {:ok, string, rest}
    else
      _ -> :error
    end
  end

  defp read_string(""), do: :error

  defp read_integer(<<byte, rest::binary>>, bits) do
    max = Bitwise.bsl(1, bits) - 1

    case Bitwise.band(byte, max) do
      ^max -> read_continued(rest, max, 0)
      value -> {:ok, value, rest}
    end
  end

  # Four further bytes hold more than any length or index that could be meant.
  defp read_continued(<<more::1, bits::7, rest::binary>>, value, shift) when shift <= 21 do
    value = value + Bitwise.bsl(bits, shift)
    if more == 1, do: read_continued(rest, value, shift + 7), else: {:ok, value, rest}
  end

  defp read_continued(_rest, _value, _shift), do: :error
end
