defmodule Trainer.Step do
  @moduledoc """
  One step of the training, as calls on the gang; no state, and no word about losses.

  The weights never leave the ranks. A step

    1. makes each rank's "gradient" there, already scaled by the learning rate: random numbers of a seed that is made of
       the training's, the step and the rank. They are equal on every machine, whichever process makes them
    2. averages them over the ranks, in place: they are this step's own, and whoever repeats it makes them anew
    3. adds the average to the weights. The ranks that `rankbridge up` starts compute nothing but collectives, so the sum
       of two tensors of one rank is a sum over ranks, too: rank 0 brings the weights, rank 1 the average, the others zeros.
       (In a training of your own, this line and the first are Python code on the ranks.)

  The sum is not in place: it gives new refs, and the old weights stay as they are. So a step that was cut off, of which
  nobody knows how far it came, is repeated from the same weights.
  """

  alias RankBridge.{Error, Gang, Ref, Tensor}

  @ranks 4
  @shape [64, 64]

  @type result(value) :: {:ok, value} | {:error, Error.t()}

  @doc "The number of ranks."
  @spec ranks() :: pos_integer()
  def ranks, do: @ranks

  @doc "The weights before the first step, by value."
  @spec initial_weights() :: Tensor.t()
  def initial_weights,
    do: Tensor.new!(:float32, @shape, :binary.copy(<<0>>, Tensor.byte_size(:float32, @shape)))

  @doc "Brings weights to every rank."
  @spec load(Gang.gang(), Tensor.t()) :: result([Ref.t()])
  def load(gang, weights), do: RankBridge.put(gang, List.duplicate(weights, @ranks))

  @doc "Does a step. Gives the new weights, and the refs that it needs no more."
  @spec run(Gang.gang(), [Ref.t()], non_neg_integer(), integer()) ::
          result({[Ref.t()], [Ref.t()]})
  def run(gang, weights, step, seed) do
    with {:ok, gradients} <- on_ranks(0..3, &gradient(gang, &1, step, seed)),
         {:ok, [_, average | _]} <- RankBridge.Averaging.average(gang, gradients),
         {:ok, zeros} <- on_ranks(2..3, &RankBridge.create(gang, :float32, @shape, rank: &1)),
         addends = [hd(weights), average | zeros],
         {:ok, updated} <- RankBridge.all_reduce(gang, addends, op: :sum),
         do: {:ok, {updated, weights ++ gradients ++ zeros}}
  end

  @doc "Frees every ref of the gang's session but the weights: what is left of a step that was cut off."
  @spec tidy(Gang.gang(), [Ref.t()]) :: result(non_neg_integer())
  def tidy(gang, weights) do
    kept = MapSet.new(weights, &{&1.rank, &1.id})

    with {:ok, refs} <- RankBridge.list(gang),
         do: RankBridge.release(gang, Enum.reject(refs, &({&1.rank, &1.id} in kept)))
  end

  defp gradient(gang, rank, step, seed) do
    init = {:normal, :erlang.phash2({seed, step, rank}), 0.0, 0.01}
    RankBridge.create(gang, :float32, @shape, rank: rank, init: init)
  end

  # Until one fails.
  defp on_ranks(ranks, fun) do
    Enum.reduce_while(ranks, {:ok, []}, fn rank, {:ok, refs} ->
      case fun.(rank) do
        {:ok, ref} -> {:cont, {:ok, refs ++ [ref]}}
        error -> {:halt, error}
      end
    end)
  end
end
