defmodule RankBridge.Test.Marks do
  @moduledoc """
  Finds out that a gang hears of its ranks' events: it watches them in the background, and may be ready before it does.

  A mark is an operation whose members disagree: the first rank tells of it.
  """

  alias RankBridge.{Error, Gang}
  alias RankBridge.Gang.Event

  # Milliseconds after which one more is made. The first may have come too early.
  @patience 500

  @doc """
  Makes marks until the calling process, which has subscribed to the gang by this name, has heard the last of them: what
  it had been told of the others is taken out of its mailbox. Gives the last one's operation id.
  """
  @spec await_heard(Gang.gang()) :: String.t()
  def await_heard(gang) do
    id = "mark #{RankBridge.Id.uuid()}"
    {:ok, size} = Gang.size(gang)
    refs = RankBridge.put!(gang, [[1.0, 2.0] | List.duplicate([1.0], size - 1)])
    {:error, %Error{reason: :mismatch}} = RankBridge.all_reduce(gang, refs, operation_id: id)
    _released = RankBridge.release!(gang, refs)

    receive do
      # On a loaded machine its members may be late: the gang reports that before.
      {:rank_bridge, ^gang, %Event{kind: :mismatch, operation_id: ^id}} ->
        forget(gang)
        id
    after
      @patience -> await_heard(gang)
    end
  end

  defp forget(gang) do
    receive do
      {:rank_bridge, ^gang, %Event{operation_id: "mark " <> _id}} -> forget(gang)
    after
      0 -> :ok
    end
  end
end
