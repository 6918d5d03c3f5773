# Tensors over gRPC alone: by a connection of its own, to the same ranks.
fn gang ->
  endpoints = for status <- RankBridge.status!(gang), do: status.endpoints

  {:ok, connected} =
    RankBridge.Gang.start_link(endpoints: endpoints, shared_memory: false, timeout: 120_000)

  RankBridge.Bench.transfers(connected, :streamed)
end
