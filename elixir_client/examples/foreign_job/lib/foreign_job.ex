defmodule ForeignJob do
  @moduledoc """
  Looks into a training that something else has started, and that knows nothing of it: its groups, its tensors, and the replica
  that is not like the others. An example of `RankBridge.NamedTensors`.
  """

  alias RankBridge.{Gang, Group, Tensor}
  alias RankBridge.NamedTensors.{Comparison, NamedTensor, Summary}

  # A job may import for some time before its ranks have met.
  @patience 120_000
  @poll 20

  @typedoc """
  * `pids` - the process of each rank
  * `groups` - the job's groups
  * `tensors` - what each rank has, by name
  * `norms` - by name, the norm of each rank's tensor, by rank, as the last rank has gathered them
  * `trained` - the names of those that have changed while they were looked at
  * `differing` - the replicas that differ, of the tensors that have not changed
  """
  @type seen :: %{
          pids: [pos_integer()],
          groups: [Group.t()],
          tensors: %{String.t() => [NamedTensor.t() | nil]},
          norms: %{String.t() => [float()]},
          trained: [String.t()],
          differing: [Comparison.t()]
        }

  @doc """
  Waits for the file that rank 0 of the job writes when all ranks have attached, and connects: the child of a supervisor.
  """
  @spec gang(Path.t()) :: {module(), keyword()}
  def gang(endpoints_file) do
    await_file(endpoints_file, now() + @patience)
    {Gang, name: __MODULE__.Gang, endpoints_file: endpoints_file}
  end

  @doc "Looks into the job, which goes on meanwhile."
  @spec look(Gang.gang()) :: seen()
  def look(gang) do
    :ok = RankBridge.await_ready(gang, @patience)
    await_step(gang)
    before = RankBridge.summary!(gang, "*")
    :ok = RankBridge.barrier(gang)
    norms = gathered_norms(gang, before)
    differing = RankBridge.compare!(gang, "*")
    await_step(gang, before)
    trained = for {name, now} <- RankBridge.summary!(gang, "*"), now != before[name], do: name

    %{
      pids: for(it <- RankBridge.status!(gang), do: it.pid),
      groups: RankBridge.Grouping.groups!(gang),
      tensors: RankBridge.named!(gang, "*"),
      norms: norms,
      trained: Enum.sort(trained),
      # Of a weight that is trained, each rank was seen after another step.
      differing: for(it <- differing, it.name not in trained, do: it)
    }
  end

  # Each rank gets the norms of its own tensors, and an all_gather on connections beside the job's brings them together.
  defp gathered_norms(gang, summaries) do
    {names, of_names} = summaries |> Enum.sort() |> Enum.unzip()

    of_ranks =
      for each <- Enum.zip_with(of_names, & &1), do: for(%Summary{norm: norm} <- each, do: norm)

    refs = RankBridge.put!(gang, of_ranks)
    gathered = RankBridge.all_gather!(gang, refs, layout: :stacked)
    rows = gang |> RankBridge.get!(List.last(gathered)) |> Tensor.to_list()
    RankBridge.release!(gang, refs ++ gathered)
    names |> Enum.zip(Enum.zip_with(rows, & &1)) |> Map.new()
  end

  # A job that trains changes some of its tensors on every rank. Before its first step it may have none yet.
  defp await_step(gang, before \\ %{}, until \\ now() + @patience) do
    seen = RankBridge.summary!(gang, "*")

    cond do
      Enum.any?(seen, fn {name, each} -> all_changed?(each, before[name]) end) -> :ok
      now() > until -> raise "the job has made no step in #{div(@patience, 1_000)} seconds"
      true -> Process.sleep(@poll) && await_step(gang, Map.merge(seen, before), until)
    end
  end

  defp all_changed?(_now, nil), do: false

  defp all_changed?(now, before),
    do: now |> Enum.zip(before) |> Enum.all?(fn {a, b} -> a != b end)

  defp await_file(file, until) do
    cond do
      File.exists?(file) -> :ok
      now() > until -> raise "no job has written #{file}"
      true -> Process.sleep(@poll) && await_file(file, until)
    end
  end

  defp now, do: System.monotonic_time(:millisecond)
end
