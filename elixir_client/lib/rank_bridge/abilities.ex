defmodule RankBridge.Abilities do
  @moduledoc false
  # What a rank's backend can do: see `RankBridge.RankStatus`.

  alias RankBridge.Operations.{Declaration, ReduceOp}
  alias RankBridge.Dtype
  alias RankBridge.Proto.V1

  @type t :: %__MODULE__{
          collectives: [atom()],
          dtypes: [Dtype.t()],
          reductions: %{ReduceOp.t() => [Dtype.t()]}
        }

  @enforce_keys [:collectives, :dtypes, :reductions]
  defstruct [:collectives, :dtypes, :reductions]

  @doc "The abilities that a rank sent."
  @spec from_proto(V1.Abilities.t()) :: t()
  def from_proto(%V1.Abilities{} = abilities) do
    %__MODULE__{
      collectives: Enum.filter(Declaration.names(), &("#{&1}" in abilities.collectives)),
      dtypes: dtypes(abilities.dtypes),
      reductions:
        for(
          %V1.Reduction{op: op, dtypes: dtypes} <- abilities.reductions,
          {:ok, op} <- [ReduceOp.from_proto(op)],
          into: %{},
          do: {op, dtypes(dtypes)}
        )
    }
  end

  defp dtypes(dtypes),
    do: for(proto <- dtypes, {:ok, dtype} <- [Dtype.from_proto(proto)], do: dtype)

  defimpl Inspect do
    def inspect(abilities, _options) do
      counts = for {what, all} <- Map.from_struct(abilities), do: "#{Enum.count(all)} #{what}"
      "#RankBridge.Abilities<#{Enum.join(counts, ", ")}>"
    end
  end
end
