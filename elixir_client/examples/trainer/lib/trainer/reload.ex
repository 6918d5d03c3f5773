defmodule Trainer.Reload do
  @moduledoc """
  Brings the weights back to ranks that were lost: the gang's `handle_rank_lost`.

  Every rank has the same weights, so they come from one that is left, and no step is lost but the one that was cut off.
  If none is left, all of them get the last checkpoint, and the training goes back to it.
  """

  alias RankBridge.{Error, Gang, Ref}
  alias RankBridge.Gang.Lost
  alias Trainer.{Progress, Step}

  @doc "Called when the next generation is formed, before anybody else's calls go on."
  @spec handle_rank_lost(Gang.gang(), Lost.t()) :: :ok | {:error, Error.t()}
  def handle_rank_lost(gang, lost) do
    progress = Progress.reload()

    with {:ok, kept} <- here(gang, Lost.kept(lost, progress.weights)),
         {:ok, {step, weights}} <- weights(gang, kept, progress),
         do: Progress.reloaded(step, weights)
  end

  @doc "Those of these refs that are the gang's; those of one that has ended are not."
  @spec here(Gang.gang(), [Ref.t()]) :: {:ok, [Ref.t()]} | {:error, Error.t()}
  def here(gang, refs) do
    with {:ok, session_id} <- Gang.session_id(gang),
         do: {:ok, Enum.filter(refs, &(&1.session_id == session_id))}
  end

  defp weights(gang, [], %{checkpoint: {step, weights}}) do
    with {:ok, refs} <- Step.load(gang, weights), do: {:ok, {step, refs}}
  end

  defp weights(gang, [survivor | _] = kept, %{step: step}) do
    there = Enum.map(kept, & &1.rank)
    missing = Enum.reject(0..(Step.ranks() - 1), &(&1 in there))

    with {:ok, weights} <- RankBridge.get(gang, survivor),
         {:ok, new} <- put_each(gang, missing, weights),
         do: {:ok, {step, Enum.sort_by(kept ++ new, & &1.rank)}}
  end

  defp put_each(_gang, [], _weights), do: {:ok, []}

  defp put_each(gang, [rank | others], weights) do
    with {:ok, ref} <- RankBridge.put_rank(gang, rank, weights),
         {:ok, refs} <- put_each(gang, others, weights),
         do: {:ok, [ref | refs]}
  end
end
