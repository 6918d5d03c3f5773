defmodule RankBridge.Reports.Timings do
  @moduledoc "How long the steps of a program took on each rank."

  alias RankBridge.Error

  @typedoc "Steps with their seconds, for each rank."
  @type like :: [%{step() => seconds()} | [{step(), seconds()}]]
  @type step :: String.t() | atom()
  @type seconds :: number() | [number()]

  @typedoc "For each rank its steps, in order, with the seconds of each time that it was done."
  @type t :: [[{String.t(), [number()]}]]

  @doc "Reads timings. `operation` is for the error."
  @spec read(like(), String.t()) :: {:ok, t()} | {:error, Error.t()}
  def read([_ | _] = timings, operation) do
    ranks = Enum.map(timings, &steps/1)

    case Enum.find_index(ranks, &(&1 == :error)) do
      nil -> {:ok, ranks}
      rank -> refuse(operation, "those of rank #{rank}: #{shown(Enum.at(timings, rank))}")
    end
  end

  def read(other, operation), do: refuse(operation, shown(other))

  defp steps(timings) when is_list(timings) or (is_map(timings) and not is_struct(timings)) do
    steps = Enum.map(timings, &step/1)
    if Enum.all?(steps, &is_tuple/1), do: steps, else: :error
  end

  defp steps(_other), do: :error

  defp step({name, seconds}) when is_binary(name) or is_atom(name) do
    seconds = List.wrap(seconds)
    if Enum.all?(seconds, &is_number/1), do: {to_string(name), seconds}, else: :error
  end

  defp step(_other), do: :error

  @doc "Seconds with four digits, as C writes them: of two that are equally near, the even one."
  @spec written(number()) :: String.t()
  def written(seconds) do
    {numerator, denominator} = Float.ratio(seconds * 1.0)
    scaled = abs(numerator) * 10_000
    quotient = div(scaled, denominator)

    rounded =
      case 2 * rem(scaled, denominator) do
        twice when twice > denominator -> quotient + 1
        ^denominator -> quotient + rem(quotient, 2)
        _less -> quotient
      end

    digits = rounded |> rem(10_000) |> Integer.to_string() |> String.pad_leading(4, "0")
    "#{if numerator < 0, do: "-"}#{div(rounded, 10_000)}.#{digits}"
  end

  defp refuse(operation, got) do
    {:error,
     Error.refusal(:invalid_argument, "not the timings of ranks",
       operation: operation,
       expected: "for one rank or more, steps with their seconds",
       got: got
     )}
  end

  defp shown(term), do: inspect(term, limit: 5, printable_limit: 40)
end
