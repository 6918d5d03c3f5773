defmodule RankBridge.Telemetry.Metrics do
  @moduledoc false
  # The metrics of `RankBridge.Telemetry.metrics/0`: a kind, a name and options of each.

  @type metric :: {:counter | :summary, String.t(), keyword()}

  @doc "Every metric, by the function of the library that makes it."
  @spec all() :: [metric()]
  def all do
    [
      time("rank_bridge.call.stop.duration", [:gang, :operation, :result],
        description: "Functions on a gang: how long they take"
      ),
      count("rank_bridge.call.failed.count", [:gang, :operation, :reason],
        event_name: [:rank_bridge, :call, :stop],
        keep: &(&1.result == :error),
        description: "Functions on a gang that gave an error"
      ),
      count("rank_bridge.call.exception.count", [:gang, :operation],
        description: "Functions on a gang that raised"
      ),
      time("rank_bridge.rank.call.stop.duration", [:gang, :rank, :operation, :result],
        description: "Calls to one rank: how long they take"
      ),
      count("rank_bridge.rank.lost.count", [:gang, :rank], description: "Ranks that were lost"),
      count("rank_bridge.rank.replaced.count", [:gang, :rank],
        description: "Lost ranks that are back"
      ),
      time("rank_bridge.gang.form.stop.duration", [:gang, :result],
        description: "Forming a generation: how long it takes"
      ),
      time("rank_bridge.gang.recover.stop.duration", [:gang, :policy, :result],
        description: "From a loss until the gang can be called again"
      ),
      count("rank_bridge.gang.mismatch.count", [:gang, :group, :operation],
        description: "Operations on which members disagreed"
      ),
      time("rank_bridge.gang.straggler.waited", [:gang, :group, :operation],
        description: "How long members waited for late ones"
      ),
      count("rank_bridge.gang.verdict.count", [:gang, :kind],
        description: "Verdicts on what is wrong with a gang"
      )
    ]
  end

  defp time(name, tags, opts),
    do: {:summary, name, [unit: {:native, :millisecond}] ++ tagged(tags) ++ opts}

  # A counter counts events, whatever they measure.
  defp count(name, tags, opts),
    do: {:counter, name, [measurement: :monotonic_time] ++ tagged(tags) ++ opts}

  defp tagged(tags), do: [tags: tags, tag_values: &tag_values/1]

  # Reporters write tags as text: a gang may be a pid, a group nil, and a policy may change.
  defp tag_values(metadata) do
    metadata
    |> Map.put(:gang, inspect(metadata.gang))
    |> Map.put(:group, metadata[:group] || "")
    |> Map.put(:reason, reason(metadata[:error]))
    |> Map.put(:policy, inspect(metadata[:policy]))
  end

  defp reason(nil), do: nil
  defp reason(error), do: error.reason
end
