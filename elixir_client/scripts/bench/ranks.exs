# Calls of every rank, all at once. Empty is what describes a rank: it waits for nothing.
fn gang ->
  gang
  |> RankBridge.Bench.collectives(calls: :ranks)
  |> Map.put("empty_all", {fn -> RankBridge.status!(gang) end, &Function.identity/1})
end
