# Gang calls on one stream, so many under way that the next is always on its way. In place, as the native calls are.
alias RankBridge.CallStream

fn gang ->
  {:ok, stream} = CallStream.open(gang)
  mib = 1_048_576

  [small, reduced, sent] =
    for count <- [1, mib, mib], do: RankBridge.create!(gang, :float32, [count])

  flow = fn operation, input, opts ->
    begin = fn ->
      {:ok, pushed} = CallStream.push(stream, operation, input, opts)
      pushed
    end

    {:flow, begin, fn pushed -> {:ok, _value} = CallStream.await(pushed) end}
  end

  %{
    "empty_all" => flow.(:ping, nil, []),
    "barrier" => flow.(:barrier, nil, []),
    "all_reduce_4B" => flow.(:all_reduce, small, in_place: true),
    "all_reduce_4MB" => flow.(:all_reduce, reduced, in_place: true),
    "broadcast_4MB" => flow.(:broadcast, sent, in_place: true)
  }
end
