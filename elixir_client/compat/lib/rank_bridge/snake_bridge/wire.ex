defmodule RankBridge.SnakeBridge.Wire do
  @moduledoc """
  The maps that SnakeBridge sends for what JSON has no words for, and terms for them.

  | wire, each with `"__schema__" => 1` | term |
  | --- | --- |
  | `atom{value}` | an atom of the allowlist, else its text |
  | `tuple{elements}` | a tuple |
  | `set{elements}`, `frozenset{elements}` | a `MapSet`, `{:frozenset, mapset}` |
  | `bytes{data}` | a binary; `{:bytes, binary}` if it is UTF-8 |
  | `special_float{value}` | `:infinity`, `:negative_infinity`, `:nan` |
  | `complex{real, imag}` | `{:complex, real, imag}` |
  | `datetime`, `date`, `time{value}` | a `DateTime`, `Date`, `Time` |
  | `dict{pairs}` | a map with keys that are no texts |
  | `ref{id, session_id, python_module, library, type_name}` | what it stands for |

  nil, booleans, integers of any size, floats, texts, lists, and maps with texts as keys are themselves.

  What ranks have no value for - atoms, sets, dates, complex numbers - can stay as its map, `keep: true`, so that it reaches
  other ranks and comes back as it was.
  """

  @schema 1
  @kept ["atom", "set", "frozenset", "complex", "datetime", "date", "time"]
  @known @kept ++ ["tuple", "bytes", "special_float", "dict", "ref"]
  @floats %{"infinity" => :infinity, "neg_infinity" => :negative_infinity, "nan" => :nan}

  @typedoc "What SnakeBridge sends and takes."
  @type wire :: nil | boolean() | number() | String.t() | [wire()] | %{String.t() => wire()}

  @doc """
  The term of a wire value, or why there is none.

  Options: `:keep`, see the module; `:atoms` - the allowlist, texts or `:all` (default "ok" and "error"); `:ref` - what gives
  `{:ok, term}` or `{:error, reason}` for the map of a ref (default: the map itself).

      iex> RankBridge.SnakeBridge.Wire.decode(%{"__type__" => "tuple", "__schema__" => 1, "elements" => [1, nil]})
      {:ok, {1, nil}}
      iex> RankBridge.SnakeBridge.Wire.decode(%{"__type__" => "callback", "__schema__" => 1, "ref_id" => "f"})
      {:error, "what the tag \\"callback\\" stands for cannot go to a rank"}
  """
  @spec decode(wire(), keyword()) :: {:ok, term()} | {:error, term()}
  def decode(wire, opts \\ []) do
    opts = Keyword.validate!(opts, keep: false, atoms: ["ok", "error"], ref: &{:ok, &1})
    {:ok, term(wire, Map.new(opts))}
  catch
    {:no_term, reason} -> {:error, reason}
  end

  defp term(list, opts) when is_list(list), do: Enum.map(list, &term(&1, opts))

  defp term(%{"__type__" => tag, "__schema__" => schema}, _opts) when schema != @schema,
    do:
      throw({:no_term, "schema #{inspect(schema)} of the tag #{inspect(tag)} is not #{@schema}"})

  defp term(%{"__type__" => "ref"} = ref, opts) do
    case opts.ref.(ref) do
      {:ok, term} -> term
      {:error, reason} -> throw({:no_term, reason})
    end
  end

  defp term(%{"__type__" => tag} = map, %{keep: true}) when tag in @kept, do: map

  defp term(%{"__type__" => "atom", "value" => text}, opts) when is_binary(text),
    do: if(opts.atoms == :all or text in opts.atoms, do: String.to_atom(text), else: text)

  defp term(%{"__type__" => "tuple", "elements" => items}, opts) when is_list(items),
    do: items |> term(opts) |> List.to_tuple()

  defp term(%{"__type__" => "set", "elements" => items}, opts) when is_list(items),
    do: items |> term(opts) |> MapSet.new()

  defp term(%{"__type__" => "frozenset", "elements" => items}, opts) when is_list(items),
    do: {:frozenset, items |> term(opts) |> MapSet.new()}

  defp term(%{"__type__" => "bytes", "data" => data} = map, _opts) when is_binary(data) do
    case Base.decode64(data) do
      {:ok, bytes} -> if String.valid?(bytes), do: {:bytes, bytes}, else: bytes
      :error -> malformed(map)
    end
  end

  defp term(%{"__type__" => "special_float", "value" => value}, _opts)
       when is_map_key(@floats, value),
       do: @floats[value]

  defp term(%{"__type__" => "complex", "real" => real, "imag" => imag}, opts),
    do: {:complex, term(real, opts), term(imag, opts)}

  defp term(%{"__type__" => "datetime", "value" => text} = map, _opts) when is_binary(text) do
    case DateTime.from_iso8601(text) do
      {:ok, time, _offset} -> time
      {:error, _reason} -> malformed(map)
    end
  end

  defp term(%{"__type__" => "date", "value" => text} = map, _opts) when is_binary(text),
    do: iso(Date.from_iso8601(text), map)

  defp term(%{"__type__" => "time", "value" => text} = map, _opts) when is_binary(text),
    do: iso(Time.from_iso8601(text), map)

  defp term(%{"__type__" => "dict", "pairs" => pairs} = map, opts) when is_list(pairs) do
    if Enum.all?(pairs, &match?([_key, _value], &1)),
      do: Map.new(pairs, fn [key, value] -> {term(key, opts), term(value, opts)} end),
      else: malformed(map)
  end

  defp term(%{"__type__" => tag} = map, _opts) when tag in @known, do: malformed(map)

  defp term(%{"__type__" => tag}, _opts),
    do: throw({:no_term, "what the tag #{inspect(tag)} stands for cannot go to a rank"})

  defp term(map, opts) when is_map(map) and not is_struct(map),
    do: Map.new(map, fn {key, value} -> {key, term(value, opts)} end)

  defp term(scalar, _opts)
       when is_nil(scalar) or is_boolean(scalar) or is_number(scalar) or is_binary(scalar),
       do: scalar

  defp term(other, _opts), do: throw({:no_term, "no wire value: #{inspect(other, limit: 3)}"})

  defp iso({:ok, value}, _map), do: value
  defp iso({:error, _reason}, map), do: malformed(map)

  @spec malformed(map()) :: no_return()
  defp malformed(map), do: throw({:no_term, "malformed: #{inspect(map, limit: 5)}"})

  @doc """
  The wire value of a term. `ref` gives the wire map of what can only be referred to.

      iex> RankBridge.SnakeBridge.Wire.encode({:ok, 2, nil})
      %{
        "__type__" => "tuple",
        "__schema__" => 1,
        "elements" => [%{"__type__" => "atom", "__schema__" => 1, "value" => "ok"}, 2, nil]
      }
      iex> RankBridge.SnakeBridge.Wire.encode(%{1 => "one"})
      %{"__type__" => "dict", "__schema__" => 1, "pairs" => [[1, "one"]]}
  """
  @spec encode(term(), (term() -> wire())) :: wire()
  def encode(term, ref \\ &no_ref/1)

  def encode(scalar, _ref) when is_nil(scalar) or is_boolean(scalar) or is_number(scalar),
    do: scalar

  def encode(special, _ref) when special in [:neg_infinity, :negative_infinity],
    do: tagged("special_float", %{"value" => "neg_infinity"})

  def encode(special, _ref) when special in [:infinity, :nan],
    do: tagged("special_float", %{"value" => "#{special}"})

  def encode(atom, _ref) when is_atom(atom), do: tagged("atom", %{"value" => "#{atom}"})

  def encode(text, _ref) when is_binary(text),
    do: if(String.valid?(text), do: text, else: encode({:bytes, text}))

  def encode({:bytes, bytes}, _ref) when is_binary(bytes),
    do: tagged("bytes", %{"data" => Base.encode64(bytes)})

  def encode({:complex, real, imag}, ref),
    do: tagged("complex", %{"real" => encode(real, ref), "imag" => encode(imag, ref)})

  def encode({:frozenset, %MapSet{} = set}, ref),
    do: tagged("frozenset", %{"elements" => Enum.map(set, &encode(&1, ref))})

  def encode(list, ref) when is_list(list), do: Enum.map(list, &encode(&1, ref))

  def encode(%MapSet{} = set, ref),
    do: tagged("set", %{"elements" => Enum.map(set, &encode(&1, ref))})

  def encode(%DateTime{} = time, _ref),
    do: tagged("datetime", %{"value" => DateTime.to_iso8601(time)})

  def encode(%Date{} = date, _ref), do: tagged("date", %{"value" => Date.to_iso8601(date)})
  def encode(%Time{} = time, _ref), do: tagged("time", %{"value" => Time.to_iso8601(time)})

  # What was kept.
  def encode(%{"__type__" => tag, "__schema__" => @schema} = map, _ref) when tag in @known,
    do: map

  def encode(map, ref) when is_map(map) and not is_struct(map) do
    if Enum.all?(Map.keys(map), &key?/1) do
      Map.new(map, fn {key, value} -> {"#{key}", encode(value, ref)} end)
    else
      pairs = for {key, value} <- map, do: [encode(key, ref), encode(value, ref)]
      tagged("dict", %{"pairs" => pairs})
    end
  end

  # What has no struct of its own.
  def encode({:object, _object} = object, ref), do: ref.(object)

  def encode(tuple, ref) when is_tuple(tuple),
    do: tagged("tuple", %{"elements" => tuple |> Tuple.to_list() |> Enum.map(&encode(&1, ref))})

  def encode(other, ref), do: ref.(other)

  # As SnakeBridge, names are texts; but not nil, true, false.
  defp key?(key) when is_atom(key), do: key not in [nil, true, false]
  defp key?(key), do: is_binary(key) and String.valid?(key)

  defp no_ref(other), do: raise(ArgumentError, "no wire value for #{inspect(other, limit: 3)}")

  @doc "Whether a term is a ref of SnakeBridge: the struct, or its wire map."
  @spec ref?(term()) :: boolean()
  def ref?(%{__struct__: SnakeBridge.Ref}), do: true
  def ref?(%{"__type__" => "ref"}), do: true
  def ref?(_other), do: false

  @doc "The id of a ref, also of a stream, or nil."
  @spec id(term()) :: String.t() | nil
  def id(%{__struct__: _module, id: id}) when is_binary(id), do: id
  def id(%{"id" => id}) when is_binary(id), do: id
  def id(_other), do: nil

  @doc "The map of a ref, or with the tag `stream_ref` of a stream."
  @spec ref(String.t(), String.t(), String.t(), {String.t(), String.t(), String.t()}) :: wire()
  def ref(tag \\ "ref", id, session_id, {library, python_module, type_name}) do
    tagged(tag, %{
      "id" => id,
      "session_id" => session_id,
      "python_module" => python_module,
      "library" => library,
      "type_name" => type_name,
      "__type_name__" => type_name
    })
  end

  @doc "What an iterator gives that is at its end."
  @spec stop_iteration() :: wire()
  def stop_iteration, do: tagged("stop_iteration", %{})

  @doc "An atom that was kept as its map, as text; anything else as it is."
  @spec plain(term()) :: term()
  def plain(%{"__type__" => "atom", "value" => text}), do: text
  def plain(other), do: other

  @doc "Numbers in lists as `RankBridge.Tensor` has them: complex ones that were kept are pairs."
  @spec numbers(term()) :: term()
  def numbers(list) when is_list(list), do: Enum.map(list, &numbers/1)
  def numbers(%{"__type__" => "complex", "real" => real, "imag" => imag}), do: {real, imag}
  def numbers(other), do: other

  defp tagged(tag, fields), do: Map.merge(fields, %{"__type__" => tag, "__schema__" => @schema})
end
