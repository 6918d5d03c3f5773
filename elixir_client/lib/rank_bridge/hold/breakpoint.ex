defmodule RankBridge.Hold.Breakpoint do
  @moduledoc false
  # Reads the words of a breakpoint, so that a wrong one is an error before anything is sent.

  alias RankBridge.Error
  alias RankBridge.Proto.V1

  @callers %{controller: :CALLER_CONTROLLER, script: :CALLER_SCRIPT}
  @largest_float 1.797_693_134_862_315_7e308
  # Microseconds are a signed number of 64 bits.
  @longest 9.2e12

  @words [
    :group,
    :operation,
    :number,
    :at,
    :function,
    :caller,
    :has,
    :above,
    :mismatch,
    :slower
  ]

  @doc "The words, as options that are not given."
  @spec words() :: keyword()
  def words, do: for(word <- @words, do: {word, nil})

  @doc "The breakpoint of options; nil: the word is not said."
  @spec new(map()) :: {:ok, V1.Breakpoint.t()} | {:error, Error.t()}
  def new(opts) do
    said = opts |> Map.take(@words) |> Enum.reject(&match?({_word, nil}, &1))

    Enum.reduce_while(said, {:ok, %V1.Breakpoint{}}, fn {word, value}, {:ok, breakpoint} ->
      case field(word, value) do
        {:expected, expected} -> {:halt, refuse(word, value, expected)}
        fields -> {:cont, {:ok, struct!(breakpoint, fields)}}
      end
    end)
  end

  defp field(:group, name), do: text(:group, name)
  defp field(:at, site), do: text(:site, site)
  defp field(:operation, name), do: text(:operation, name(name))
  defp field(:function, name), do: text(:function, name(name))

  defp field(:number, number) when is_integer(number) and number in 1..0xFFFF_FFFF_FFFF_FFFF,
    do: [number: number]

  defp field(:number, _other), do: {:expected, "1 or more"}
  defp field(:caller, caller) when is_map_key(@callers, caller), do: [caller: @callers[caller]]
  defp field(:caller, _other), do: {:expected, ":controller or :script"}

  defp field(:has, has) do
    kinds = List.wrap(has)

    if kinds != [] and Enum.all?(kinds, &(&1 in [:nan, :inf])),
      do: [nan: :nan in kinds, inf: :inf in kinds],
      else: {:expected, ":nan, :inf, or both in a list"}
  end

  defp field(:above, bound) when is_number(bound) and bound >= 0 and bound <= @largest_float,
    do: [above: bound * 1.0]

  defp field(:above, _other), do: {:expected, "a number, 0 or more"}
  defp field(:mismatch, mismatch) when is_boolean(mismatch), do: [mismatch: mismatch]
  defp field(:mismatch, _other), do: {:expected, "true or false"}

  defp field(:slower, seconds) when is_number(seconds) and seconds > 0 and seconds < @longest,
    do: [slower_us: max(1, round(seconds * 1_000_000))]

  defp field(:slower, _other), do: {:expected, "seconds, more than 0"}

  defp name(name) when is_atom(name) and not is_boolean(name), do: Atom.to_string(name)
  defp name(name), do: name

  defp text(field, name) when is_binary(name) and name != "", do: [{field, name}]
  defp text(_field, _other), do: {:expected, "a name"}

  defp refuse(word, value, expected) do
    {:error,
     Error.refusal(:invalid_argument, "#{inspect(word)} of a breakpoint is wrong",
       operation: "hold",
       expected: expected,
       got: inspect(value, limit: 3, printable_limit: 40)
     )}
  end
end
