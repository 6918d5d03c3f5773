defmodule RankBridge.Tensor.Chunks do
  @moduledoc false
  # Cuts a tensor's data into pieces for a stream, without copying large binaries.

  @size 1_048_576

  @doc """
  Pieces of at most 1 MiB, in order; every one but the last has all of it.

      iex> RankBridge.Tensor.Chunks.split(["ab", ["c"]])
      [["ab", "c"]]
      iex> large = :binary.copy("x", 2_097_153)
      iex> large |> RankBridge.Tensor.Chunks.split() |> Enum.map(&IO.iodata_length/1)
      [1_048_576, 1_048_576, 1]
  """
  @spec split(iodata()) :: [iodata()]
  def split(data), do: data |> :erlang.iolist_to_iovec() |> split([], 0)

  defp split([], [], 0), do: []
  defp split([], held, _bytes), do: [Enum.reverse(held)]

  defp split([binary | rest], held, bytes) do
    free = @size - bytes

    case binary do
      <<head::binary-size(free), tail::binary>> ->
        next = if tail == "", do: rest, else: [tail | rest]
        [Enum.reverse([head | held]) | split(next, [], 0)]

      small ->
        split(rest, [small | held], bytes + byte_size(small))
    end
  end
end
