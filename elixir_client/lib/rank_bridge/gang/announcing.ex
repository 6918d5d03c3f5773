defmodule RankBridge.Gang.Announcing do
  @moduledoc false
  # Announces a gang's events, to its subscribers and to `RankBridge.Telemetry`.

  alias RankBridge.{Gang, Telemetry}
  alias RankBridge.Gang.{Event, Subscribers}

  @doc "Announces an event of the gang of these names, the best last."
  @spec tell([Gang.gang()], Event.t()) :: :ok
  def tell(names, event) do
    measure(List.last(names), event)
    Subscribers.tell(names, event)
  end

  defp measure(gang, %Event{kind: :rank_lost} = event),
    do: Telemetry.lost(gang, event.rank, event.reason)

  defp measure(gang, %Event{kind: :mismatch} = event), do: Telemetry.mismatch(gang, event.error)
  defp measure(gang, %Event{kind: :straggler} = event), do: Telemetry.straggler(gang, event)
  # Telemetry has these as spans, or as an error of the call.
  defp measure(_gang, _event), do: :ok
end
