defmodule SnakeBridge.Types do
  @moduledoc "Stands in for how SnakeBridge writes terms for Python, and reads what comes back."

  @allowed ["ok", "error"]

  @doc "A term for Python."
  @spec encode(term()) :: term()
  def encode(it) when is_nil(it) or is_boolean(it) or is_number(it), do: it

  def encode(it) when it in [:infinity, :neg_infinity, :nan],
    do: tag("special_float", value: "#{it}")

  def encode(it) when is_atom(it), do: tag("atom", value: "#{it}")

  def encode(it) when is_binary(it),
    do: if(String.valid?(it), do: it, else: tag("bytes", data: Base.encode64(it)))

  def encode(it) when is_list(it), do: Enum.map(it, &encode/1)
  def encode(it) when is_tuple(it), do: tag("tuple", elements: encode(Tuple.to_list(it)))
  def encode(%MapSet{} = it), do: tag("set", elements: it |> MapSet.to_list() |> encode())
  def encode(%DateTime{} = it), do: tag("datetime", value: DateTime.to_iso8601(it))
  def encode(%Date{} = it), do: tag("date", value: Date.to_iso8601(it))
  def encode(%Time{} = it), do: tag("time", value: Time.to_iso8601(it))
  def encode(%SnakeBridge.Ref{} = it), do: SnakeBridge.Ref.wire(it)
  def encode(%{"__type__" => _tag} = it), do: it

  def encode(it) when is_map(it) do
    if it |> Map.keys() |> Enum.all?(&(is_binary(&1) or is_atom(&1))),
      do: Map.new(it, fn {key, value} -> {"#{key}", encode(value)} end),
      else: tag("dict", pairs: for({key, value} <- it, do: [encode(key), encode(value)]))
  end

  defp tag(type, [{name, value}]),
    do: %{"__type__" => type, "__schema__" => 1, "#{name}" => value}

  @doc "What Python sent."
  @spec decode(term()) :: term()
  def decode(it) when is_list(it), do: Enum.map(it, &decode/1)

  def decode(%{"__type__" => "ref"} = it) do
    %SnakeBridge.Ref{
      id: it["id"],
      session_id: it["session_id"],
      python_module: it["python_module"],
      library: it["library"],
      type_name: it["type_name"]
    }
  end

  def decode(%{"__type__" => "stream_ref"} = it) do
    %SnakeBridge.StreamRef{
      id: it["id"],
      session_id: it["session_id"],
      python_module: it["python_module"],
      library: it["library"]
    }
  end

  def decode(%{"__type__" => "atom", "value" => it}),
    do: if(it in @allowed, do: String.to_atom(it), else: it)

  def decode(%{"__type__" => "tuple", "elements" => it}), do: it |> decode() |> List.to_tuple()

  def decode(%{"__type__" => set, "elements" => it}) when set in ["set", "frozenset"],
    do: it |> decode() |> MapSet.new()

  def decode(%{"__type__" => "bytes", "data" => it}), do: Base.decode64!(it)
  def decode(%{"__type__" => "complex", "real" => re, "imag" => im}), do: %{real: re, imag: im}

  def decode(%{"__type__" => "special_float", "value" => it}),
    do: %{"infinity" => :infinity, "neg_infinity" => :neg_infinity, "nan" => :nan}[it]

  def decode(%{"__type__" => "dict", "pairs" => it}),
    do: Map.new(it, fn [key, value] -> {decode(key), decode(value)} end)

  def decode(%{"__type__" => "date", "value" => it}), do: Date.from_iso8601!(it)
  def decode(%{"__type__" => "time", "value" => it}), do: Time.from_iso8601!(it)

  def decode(%{"__type__" => "datetime", "value" => it}) do
    {:ok, time, _offset} = DateTime.from_iso8601(it)
    time
  end

  def decode(it) when is_map(it) and not is_struct(it),
    do: Map.new(it, fn {key, value} -> {key, decode(value)} end)

  def decode(it), do: it
end
