defmodule RankBridge.AveragingNames do
  @moduledoc """
  Averages by the names of torchgfn, and OLMo-core's factor for averages of gradients.

  The sum is divided by the group's size, where torchgfn divides by that of the world.
  """

  use RankBridge.Bangs

  alias RankBridge.{Averaging, Entry, Error, Gang}

  @doc "`RankBridge.Averaging.average/3`, of gradients."
  spec_with_bang average_gradients(Gang.gang(), Averaging.tensors(), keyword()) ::
                   Averaging.tensors()

  def average_gradients(gang, gradients, opts \\ []) do
    Entry.call(gang, :average_gradients, opts, fn view -> Averaging.run(view, gradients, opts) end)
  end

  @doc "`RankBridge.Averaging.average/3`, of the parameters of models."
  spec_with_bang average_models(Gang.gang(), Averaging.tensors(), keyword()) ::
                   Averaging.tensors()

  def average_models(gang, parameters, opts \\ []) do
    Entry.call(gang, :average_models, opts, fn view -> Averaging.run(view, parameters, opts) end)
  end

  @doc """
  By how much gradients are divided before they are summed over so many members, so that neither they nor their sum
  overflow: OLMo-core's `get_reduce_divide_factor`. The sum is divided by the rest. Raises a `RankBridge.Error` if there can be
  no group of that size.

      iex> for size <- [1, 6, 8, 16], do: RankBridge.AveragingNames.get_reduce_divide_factor(size)
      [1.0, 4.0, 4.0, 4.0]
  """
  @spec get_reduce_divide_factor(pos_integer()) :: float()
  def get_reduce_divide_factor(world_size) when is_integer(world_size) and world_size > 0,
    do: divide_factor(world_size, 1)

  def get_reduce_divide_factor(world_size) do
    raise Error.refusal(:invalid_argument, "no group is of that size",
            operation: "get_reduce_divide_factor",
            expected: "1 or more",
            got: inspect(world_size, limit: 3)
          )
  end

  # The least power of two that does not divide the size, or is not below its quotient.
  defp divide_factor(size, factor) when rem(size, factor) == 0 and size > factor * factor,
    do: divide_factor(size, 2 * factor)

  defp divide_factor(_size, factor), do: factor * 1.0
end
