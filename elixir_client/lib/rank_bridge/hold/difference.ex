defmodule RankBridge.Hold.Difference do
  @moduledoc false
  # Where an input of two ranks' held calls differs first, bit for bit.

  alias RankBridge.{Dtype, Error, HeldCall, Inspection, Tensor}
  alias RankBridge.Hold.Asking
  alias RankBridge.Proto.V1

  # Elements of an input that a rank gives at once.
  @most 65_536

  @doc "The element, in row-major order; nil: they do not differ, as far as both go."
  @spec find(Asking.t(), [HeldCall.t()], non_neg_integer(), non_neg_integer()) ::
          Asking.result(non_neg_integer() | nil)
  def find(asking, calls, one, other) do
    with {:ok, mine} <- held_by(one, calls),
         {:ok, theirs} <- held_by(other, calls),
         do: compare(asking, mine, theirs, 0)
  end

  defp held_by(rank, calls) do
    if call = Enum.find(calls, &(&1.rank == rank)), do: {:ok, call}, else: {:error, none(rank)}
  end

  defp none(rank), do: Error.refusal(:unknown_operation, "the rank holds no call", rank: rank)

  defp compare(asking, mine, theirs, start) do
    with {:ok, one} <- input(asking, mine, start), {:ok, other} <- input(asking, theirs, start) do
      place = first_difference(one.slice, other.slice)
      reached = start + @most

      cond do
        place != nil -> {:ok, start + place}
        reached >= min(one.elements, other.elements) -> {:ok, nil}
        true -> compare(asking, mine, theirs, reached)
      end
    end
  end

  defp input(asking, call, start) do
    request = %V1.InspectRequest{start: start, count: @most, brief: true}

    with {:ok, looks} <- Asking.inspect_held(asking, [call], request) do
      case looks do
        [look] -> input_at(look, asking.opts.input)
        [] -> {:error, none(call.rank)}
      end
    end
  end

  defp input_at(%Inspection{inputs: inputs, call: call}, place) do
    case is_integer(place) and place >= 0 and Enum.at(inputs, place) do
      %{slice: %Tensor{}} = input -> {:ok, input}
      _none -> {:error, no_such_input(call, place, length(inputs))}
    end
  end

  defp no_such_input(call, place, count) do
    Error.refusal(
      :invalid_argument,
      "the call has no such input whose elements can be compared",
      rank: call.rank,
      group: call.group,
      expected: if(count == 0, do: "a call with inputs", else: "0 to #{count - 1}"),
      got: inspect(place, limit: 3, printable_limit: 40)
    )
  end

  defp first_difference(one, other) do
    [mine, theirs] = pair = [Tensor.to_binary(one), Tensor.to_binary(other)]
    same = :binary.longest_common_prefix(pair)
    if same < min(byte_size(mine), byte_size(theirs)), do: div(same, Dtype.size(one.dtype))
  end
end
