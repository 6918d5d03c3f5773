# One call to one rank, which passes it on. Empty is a ping: it is admitted, and enters no backend.
fn gang ->
  gang
  |> RankBridge.Bench.collectives(calls: :gang)
  |> Map.put("empty_all", {fn -> RankBridge.Generations.ping!(gang) end, &Function.identity/1})
end
