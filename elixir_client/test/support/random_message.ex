defmodule RankBridge.Test.RandomMessage do
  @moduledoc "Random messages of any generated module. Seed with `:rand.seed/2`."

  @texts ["", "a", "world", "äöü", "世界", "😀", <<0>>, "q\"\\", String.duplicate("x", 200)]
  @floats [0.0, -0.0, 1.0, -1.5, 1.0e-320, 1.7e308, 0.1, :nan, :infinity, :negative_infinity]

  @doc "A message with some of its fields set, nested at most `depth` levels."
  @spec draw(module(), non_neg_integer()) :: struct()
  def draw(module, depth \\ 4) do
    Enum.reduce(module.__fields__(), struct!(module), fn {_number, name, type, presence},
                                                         message ->
      cond do
        :rand.uniform() < 0.4 -> message
        match?({:message, _module}, type) and depth == 0 -> message
        true -> put(message, name, presence, type, depth)
      end
    end)
  end

  defp put(message, name, :repeated, type, depth) do
    count = Enum.random([0, 1, 2, 5])
    Map.replace!(message, name, for(_ <- 1..count//1, do: value(type, depth)))
  end

  defp put(message, name, {:oneof, oneof}, type, depth),
    do: Map.replace!(message, oneof, {name, value(type, depth)})

  defp put(message, name, _presence, type, depth),
    do: Map.replace!(message, name, value(type, depth))

  defp value({:message, module}, depth), do: draw(module, depth - 1)
  defp value({:enum, module}, _depth), do: Enum.random([77, -1 | Map.keys(module.mapping())])
  defp value(:string, _depth), do: Enum.random(@texts)
  defp value(:bytes, _depth), do: :rand.bytes(Enum.random([0, 1, 7, 127, 128, 300]))
  defp value(:bool, _depth), do: Enum.random([true, false])
  defp value(:double, _depth), do: Enum.random([:rand.normal() | @floats])
  defp value(:uint32, _depth), do: integer(0, 32)
  defp value(:uint64, _depth), do: integer(0, 64)
  defp value(type, _depth) when type in [:int32, :sint32], do: integer(-1, 32)
  defp value(type, _depth) when type in [:int64, :sint64], do: integer(-1, 64)

  defp integer(sign, bits) do
    {low, high} =
      if sign < 0, do: {-2 ** (bits - 1), 2 ** (bits - 1) - 1}, else: {0, 2 ** bits - 1}

    drawn = rem(:binary.decode_unsigned(:rand.bytes(8)), 2 ** :rand.uniform(bits))
    Enum.random([low, high, 0, 1, 127, 128, 16_383, 16_384, min(drawn, high), max(low, -drawn)])
  end
end
