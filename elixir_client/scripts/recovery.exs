# How long a gang of 4 ranks on Gloo that this VM owns takes from the kill -9 of one rank to the next good all_reduce:
# `make recovery KILLS=30`.
#
#   mix run scripts/recovery.exs [KILLS]
kills = System.argv() |> List.first("30") |> String.to_integer()
gang = Recovery

children = [
  {RankBridge.Gang, name: gang, size: 4, backend: :gloo, max_restarts: kills, max_seconds: 3_600}
]

{:ok, supervisor} = Supervisor.start_link(children, strategy: :one_for_one)
:ok = RankBridge.await_ready(gang, 60_000)

sums = fn ->
  with {:ok, refs} <- RankBridge.put(gang, for(rank <- 0..3, do: [1.0 * rank])),
       {:ok, sums} <- RankBridge.all_reduce(gang, refs),
       {:ok, tensors} <- RankBridge.get(gang, sums),
       {:ok, _count} <- RankBridge.release(gang, refs ++ sums),
       do: Enum.map(tensors, &RankBridge.Tensor.to_list/1) == List.duplicate([6.0], 4)
end

again = fn again -> if sums.() == true, do: :ok, else: again.(again) end

times =
  for kill <- 1..kills do
    :ok = again.(again)
    statuses = RankBridge.status!(gang)
    generation = hd(statuses).generation
    pid = Enum.at(statuses, rem(kill, 4)).pid
    began = System.monotonic_time(:microsecond)
    {_output, 0} = System.cmd("kill", ["-9", "#{pid}"])

    # An answer of the generation before is none.
    good = fn good ->
      with true <- sums.(),
           {:ok, [%{generation: since} | _others]} when since > generation <-
             RankBridge.status(gang) do
        System.monotonic_time(:microsecond) - began
      else
        _not_yet -> good.(good)
      end
    end

    good.(good)
  end

Supervisor.stop(supervisor)
sorted = Enum.sort(times)
at = fn share -> Float.round(Enum.at(sorted, min(kills - 1, trunc(share * kills))) / 1_000, 1) end
IO.puts("kill -9 of one of 4 ranks to the next good all_reduce, #{kills} kills:")
IO.puts("p50 #{at.(0.5)} ms, p99 #{at.(0.99)} ms, longest #{at.(1.0)} ms")
