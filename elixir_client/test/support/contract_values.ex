defmodule RankBridge.Test.ContractValues do
  @moduledoc "The values of shared cases, as Elixir has them: see `tests/contract/families/objects.py`."

  import ExUnit.Assertions

  alias RankBridge.{Ref, Value}
  alias RankBridge.Test.ContractCases

  @type json :: %{String.t() => term()}

  @doc "What a caller brings; the tensors of refs are put on `rank`."
  @spec given(json(), RankBridge.Gang.gang() | nil, non_neg_integer() | nil) :: Value.t()
  def given(value, gang \\ nil, rank \\ nil) do
    case Enum.to_list(value) do
      [{"none", _}] -> nil
      [{"int", text}] -> String.to_integer(text)
      [{"float", hex}] -> float(Base.decode16!(hex, case: :lower))
      [{"bytes", encoded}] -> encoded |> Base.decode64!() |> bytes()
      [{"list", items}] -> Enum.map(items, &given(&1, gang, rank))
      [{"tuple", items}] -> items |> Enum.map(&given(&1, gang, rank)) |> List.to_tuple()
      [{"map", entries}] -> entries(entries, gang, rank)
      [{"tensor", tensor}] -> ContractCases.tensor(tensor)
      [{"ref", tensor}] -> RankBridge.put_rank!(gang, rank, ContractCases.tensor(tensor))
      [{_bool_or_text, it}] -> it
    end
  end

  @doc "Asserts that what `rank` in the gang gave is the value, and that its refs are on tensors that are equal."
  @spec assert_is(RankBridge.Gang.gang(), Value.t(), json(), non_neg_integer()) :: true
  def assert_is(gang, value, expected, rank) do
    case Enum.to_list(expected) do
      [{"list", items}] ->
        assert is_list(value)
        each(gang, value, items, rank)

      [{"tuple", items}] ->
        assert is_tuple(value)
        each(gang, Tuple.to_list(value), items, rank)

      [{"map", entries}] ->
        assert map_size(value) == length(entries)
        for [key, item] <- entries, do: assert_is(gang, Map.fetch!(value, given(key)), item, rank)

      [{"tensor", tensor}] ->
        assert ContractCases.tensor_form(value) == tensor

      [{"ref", tensor}] ->
        assert %Ref{rank: ^rank} = value
        assert gang |> RankBridge.get!(value) |> ContractCases.tensor_form() == tensor

      _scalar ->
        # Of floats, minus zero is not zero.
        assert :erlang.term_to_binary(value) == :erlang.term_to_binary(given(expected))
    end

    true
  end

  defp each(gang, values, items, rank) do
    assert length(values) == length(items)
    for {value, item} <- Enum.zip(values, items), do: assert_is(gang, value, item, rank)
  end

  defp entries(entries, gang, rank) do
    Map.new(entries, fn [key, value] -> {given(key), given(value, gang, rank)} end)
  end

  defp bytes(bytes), do: if(String.valid?(bytes), do: {:bytes, bytes}, else: bytes)

  defp float(<<_sign::1, 0x7FF::11, mantissa::52>>) when mantissa != 0, do: :nan
  defp float(<<0::1, 0x7FF::11, 0::52>>), do: :infinity
  defp float(<<1::1, 0x7FF::11, 0::52>>), do: :negative_infinity
  defp float(<<float::float-64>>), do: float

  @doc "A tensor's dtype and shape as `RankBridge.recv/3` expects them."
  @spec expected([term()]) :: {RankBridge.Dtype.t(), [non_neg_integer()]}
  def expected([dtype, shape]), do: {String.to_atom(dtype), shape}
end
