defmodule Mix.Tasks.ForeignJob do
  @shortdoc "Looks into a training that torchrun has started, while it goes on"

  @moduledoc """
  Shows the groups and the tensors of a job, and the replica that differs.

      mix foreign_job endpoints.json

  The file is the one that rank 0 of the job writes (`--endpoints-file`); the task waits for it.
  """

  use Mix.Task

  @requirements ["app.start"]

  @impl true
  def run([file]) do
    {:ok, supervisor} = Supervisor.start_link([ForeignJob.gang(file)], strategy: :one_for_one)
    seen = ForeignJob.look(ForeignJob.Gang)
    Supervisor.stop(supervisor)
    Enum.each(lines(seen), &Mix.shell().info/1)
  end

  def run(_other), do: Mix.raise("which file? mix foreign_job endpoints.json")

  defp lines(seen) do
    groups = for it <- seen.groups, do: "#{it.name} (ranks #{Enum.join(it.ranks, ", ")})"

    ["processes: #{Enum.join(seen.pids, ", ")}", "groups: #{Enum.join(groups, ", ")}"] ++
      Enum.map(Enum.sort(seen.tensors), &tensor(&1, seen)) ++
      if(seen.differing == [], do: ["all replicas are alike"], else: []) ++
      for comparison <- seen.differing, line <- differences(comparison), do: line
  end

  defp tensor({name, [it | _others]}, seen) do
    norms = Enum.map_join(seen.norms[name], " ", &:erlang.float_to_binary(&1, decimals: 5))
    state = if name in seen.trained, do: "trained", else: "stands still"
    "#{name}: #{it.dtype}[#{Enum.join(it.shape, ", ")}], #{state}; norm on each rank: #{norms}"
  end

  defp differences(comparison) do
    for {rank, it} <- comparison.differing,
        do:
          "rank #{rank} differs from rank #{comparison.reference} in #{comparison.name}: " <>
            "#{it.elements} element, the one at #{it.first}, by #{it.most}"
  end
end
