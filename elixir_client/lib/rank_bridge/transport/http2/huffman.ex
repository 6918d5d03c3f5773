defmodule RankBridge.Transport.HTTP2.Huffman do
  @moduledoc false
  # The Huffman code of HPACK (RFC 7541, section 5.2 and appendix B).
  #
  # The code is canonical: the lengths of its 257 codes (bytes 0 to 255, then EOS) determine it. From them a
  # state machine is built at compile time that eats 4 bits at a time; as no code is shorter than 5 bits,
  # one step yields at most one byte.

  import Bitwise

  eos = 256

  @lengths [
    [13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28],
    [28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 28],
    [6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6],
    [5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10],
    [13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7],
    [7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6],
    [15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5],
    [6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28],
    [20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23],
    [24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24],
    [22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23],
    [21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23],
    [26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25],
    [19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27],
    [20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23],
    [26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26],
    [30]
  ]

  by_length = @lengths |> List.flatten() |> Enum.with_index(&{&1, &2}) |> Enum.sort()

  # Canonical: codes of one length are consecutive, and a longer code starts after the shorter ones.
  {codes, _next} =
    Enum.map_reduce(by_length, {0, 0}, fn {length, symbol}, {code, last_length} ->
      code = code <<< (length - last_length)
      {{symbol, code, length}, {code + 1, length}}
    end)

  # Inner nodes of the tree are the proper prefixes {code, length}; each is a state of the machine.
  leaves = Map.new(codes, fn {symbol, code, length} -> {{code, length}, symbol} end)

  prefixes =
    for({_, code, length} <- codes, cut <- 1..length, do: {code >>> cut, length - cut})
    |> Enum.uniq()
    |> Enum.sort_by(fn {code, length} -> {length, code} end)

  states = prefixes |> Enum.with_index() |> Map.new()

  step = fn node, nibble ->
    Enum.reduce_while(3..0, {node, nil}, fn bit, {{code, length}, symbol} ->
      next = {code <<< 1 ||| (nibble >>> bit &&& 1), length + 1}

      case leaves do
        %{^next => ^eos} -> {:halt, :error}
        %{^next => found} -> {:cont, {{0, 0}, found}}
        _ -> {:cont, {next, symbol}}
      end
    end)
  end

  table =
    for node <- prefixes do
      for nibble <- 0..15 do
        case step.(node, nibble) do
          :error -> :error
          {next, symbol} -> {Map.fetch!(states, next), symbol}
        end
      end
      |> List.to_tuple()
    end

  # What may be left at the end: fewer than 8 bits, all ones (the beginning of EOS).
  final =
    for {code, length} = node <- prefixes,
        length < 8,
        code == (1 <<< length) - 1,
        do: states[node]

  @table List.to_tuple(table)
  @final final
  @codes codes
         |> Enum.sort()
         |> Enum.map(fn {_, code, length} -> {code, length} end)
         |> List.to_tuple()

  @doc "The bytes that `encoded` stands for. `:error` on EOS within, or padding that is not EOS's beginning."
  @spec decode(binary()) :: {:ok, binary()} | :error
  def decode(encoded), do: decode(encoded, 0, <<>>)

  defp decode(<<high::4, low::4, rest::binary>>, state, done) do
    with {state, first} <- @table |> elem(state) |> elem(high),
         {state, second} <- @table |> elem(state) |> elem(low) do
      case {first, second} do
        {nil, nil} -> decode(rest, state, done)
        {byte, nil} -> decode(rest, state, <<done::binary, byte>>)
        {nil, byte} -> decode(rest, state, <<done::binary, byte>>)
        {one, two} -> decode(rest, state, <<done::binary, one, two>>)
      end
    end
  end

  defp decode("", state, done) when state in @final, do: {:ok, done}
  defp decode("", _state, _done), do: :error

  @doc "The Huffman code of `bytes`, padded with ones to whole bytes."
  @spec encode(binary()) :: binary()
  def encode(bytes) do
    bits =
      for <<byte <- bytes>>, into: <<>> do
        {code, length} = elem(@codes, byte)
        <<code::size(length)>>
      end

    padding = rem(8 - rem(bit_size(bits), 8), 8)
    <<bits::bitstring, (1 <<< padding) - 1::size(padding)>>
  end
end
