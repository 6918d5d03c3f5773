defmodule RankBridge.Value do
  @moduledoc """
  Elixir terms, and the values of no particular language that travel for them. Nothing is lost either way:

  | Elixir | value |
  | --- | --- |
  | nil | none |
  | true, false | bool |
  | integers of any size | int, big_int |
  | floats, `:nan`, `:infinity`, `:negative_infinity` | float |
  | binaries that are UTF-8 | text |
  | other binaries, `{:bytes, binary}` | bytes |
  | lists, tuples, maps with keys of any kind | list, tuple, map |
  | `RankBridge.Tensor`, `RankBridge.Ref` | tensor, ref |

  Bytes that happen to be UTF-8 come back as `{:bytes, binary}`. Other atoms are refused: they would have to come
  back as atoms. A map with keys that are equal in Elixir is refused.

      iex> {:ok, value} = RankBridge.Value.to_proto({1, "two", [3.0, nil]})
      iex> RankBridge.Value.from_proto(value)
      {:ok, {1, "two", [3.0, nil]}}
  """

  import Bitwise

  alias RankBridge.{Dtype, Error, Ref, Tensor}
  alias RankBridge.Proto.V1

  @type t ::
          nil
          | boolean()
          | integer()
          | float()
          | :nan
          | :infinity
          | :negative_infinity
          | binary()
          | {:bytes, binary()}
          | [t()]
          | tuple()
          | %{t() => t()}
          | Tensor.t()
          | Ref.t()

  # Containers inside each other that the parsers of every language read, also in a list of them in what Poll answers.
  @deepest 30

  @specials [:nan, :infinity, :negative_infinity]

  @doc "The value of a term. The error says what cannot travel."
  @spec to_proto(t()) :: {:ok, V1.Value.t()} | {:error, Error.t()}
  def to_proto(term) do
    {:ok, write(term, 0)}
  catch
    {:refused, what} -> {:error, Error.refusal(:invalid_argument, what)}
  end

  @doc "The term of a value. The error says what the value lacks."
  @spec from_proto(V1.Value.t() | nil) :: {:ok, t()} | {:error, Error.t()}
  def from_proto(value) do
    {:ok, read(value)}
  catch
    {:refused, what} -> {:error, Error.refusal(:protocol, what)}
  end

  defp write(term, depth), do: %V1.Value{kind: kind(term, depth)}

  defp kind(nil, _depth), do: {:none, %V1.NoneValue{}}
  defp kind(term, _depth) when is_boolean(term), do: {:bool, term}
  defp kind(term, _depth) when is_float(term) or term in @specials, do: {:float, term}

  defp kind(term, _depth) when is_integer(term) do
    if term in -0x8000_0000_0000_0000..0x7FFF_FFFF_FFFF_FFFF,
      do: {:int, term},
      else: {:big_int, big_int(term)}
  end

  defp kind({:bytes, bytes}, _depth) when is_binary(bytes), do: {:bytes, bytes}

  defp kind(term, _depth) when is_binary(term),
    do: if(String.valid?(term), do: {:text, term}, else: {:bytes, term})

  defp kind(%Ref{} = ref, _depth), do: {:ref, Ref.to_proto(ref)}

  defp kind(%Tensor{} = tensor, _depth) do
    spec = %V1.TensorSpec{dtype: Dtype.to_proto(tensor.dtype), shape: tensor.shape}
    {:tensor, %V1.Tensor{spec: spec, data: tensor.data}}
  end

  defp kind(_container, @deepest),
    do: throw({:refused, "more than #{@deepest} containers inside each other"})

  defp kind(list, depth) when is_list(list),
    do: {:list, %V1.ListValue{items: Enum.map(proper(list), &write(&1, depth + 1))}}

  defp kind(tuple, depth) when is_tuple(tuple),
    do: {:tuple, %V1.TupleValue{items: Enum.map(Tuple.to_list(tuple), &write(&1, depth + 1))}}

  defp kind(map, depth) when is_map(map) and not is_struct(map) do
    entries =
      for {key, value} <- map,
          do: %V1.MapEntry{key: write(key, depth + 1), value: write(value, depth + 1)}

    {:map, %V1.MapValue{entries: entries}}
  end

  defp kind(other, _depth),
    do:
      throw(
        {:refused, "this cannot be a value: #{inspect(other, limit: 3, printable_limit: 40)}"}
      )

  defp proper(list),
    do: if(List.improper?(list), do: throw({:refused, "an improper list"}), else: list)

  # Two's complement, little-endian, as short as it goes.
  defp big_int(integer) do
    magnitude = if integer < 0, do: bnot(integer), else: integer
    size = byte_size(:binary.encode_unsigned(magnitude))
    <<top::1, _rest::bitstring>> = :binary.encode_unsigned(magnitude)
    bits = 8 * (size + top)
    <<integer::little-signed-size(bits)>>
  end

  defp read(%V1.Value{kind: kind}) when kind != nil, do: term(kind)
  defp read(_unset), do: throw({:refused, "a value with nothing set"})

  defp term({:none, _none}), do: nil
  defp term({:big_int, ""}), do: throw({:refused, "a big_int without bytes"})

  defp term({:big_int, bytes}) do
    bits = bit_size(bytes)
    <<integer::little-signed-size(bits)>> = bytes
    integer
  end

  defp term({:bytes, bytes}), do: if(String.valid?(bytes), do: {:bytes, bytes}, else: bytes)
  defp term({:list, list}), do: Enum.map(list.items, &read/1)
  defp term({:tuple, tuple}), do: tuple.items |> Enum.map(&read/1) |> List.to_tuple()

  defp term({:map, %{entries: entries}}) do
    map = Map.new(entries, &{read(&1.key), read(&1.value)})

    if map_size(map) == length(entries),
      do: map,
      else: throw({:refused, "a map with keys that are equal"})
  end

  defp term({:ref, ref}), do: Ref.from_proto(ref)

  defp term({:tensor, %V1.Tensor{spec: %V1.TensorSpec{} = spec, data: data}}) do
    case Dtype.from_proto(spec.dtype) do
      {:ok, dtype} -> tensor(dtype, spec.shape, data)
      :error -> throw({:refused, "a tensor of no known dtype: #{inspect(spec.dtype)}"})
    end
  end

  defp term({:tensor, _without_spec}), do: throw({:refused, "a tensor without its spec"})
  defp term({_scalar, value}), do: value

  defp tensor(dtype, shape, data) do
    case Tensor.new(dtype, shape, data) do
      {:ok, tensor} -> tensor
      {:error, error} -> throw({:refused, Exception.message(error)})
    end
  end
end
