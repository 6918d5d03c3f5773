defmodule RankBridge.Gang.News do
  @moduledoc false
  # Reports of losses to a gang: its agent reports that a process has ended, its ranks that a generation is over.
  #
  # The same loss is reported several times, sometimes late: `concerns?/3` separates new losses from known ones.

  alias RankBridge.{Error, RankStatus}
  alias RankBridge.Gang.{Event, Recovery}

  @typedoc "What is known of the loss of each rank, by rank: \"killed by SIGKILL\", \"its link was closed\"."
  @type hows :: %{non_neg_integer() => String.t()}

  @typedoc "`reason` is common to all ranks; without ranks, the backend has failed."
  @type t ::
          {:exited, rank :: non_neg_integer(), pid :: pos_integer(), how :: String.t()}
          | {:over, generation :: non_neg_integer(), hows(), reason :: String.t()}

  @doc "The news in an event of the kind `:over`."
  @spec over(Event.t()) :: t()
  def over(%Event{kind: :over} = event),
    do: {:over, event.generation, hows(event), event.reason}

  # The detail of each rank, where there is one; else the common reason.
  defp hows(%Event{error: nil} = event), do: Map.new(event.ranks, &{&1, event.reason})

  defp hows(%Event{error: error} = event) do
    for %{rank: rank, detail: detail} <- error.ranks, rank in event.ranks, into: %{} do
      {rank, if(detail == "", do: event.reason, else: detail)}
    end
  end

  @doc "Whether the news is about this generation, or a later one, of ranks with these process ids, by rank."
  @spec concerns?(t(), non_neg_integer(), %{non_neg_integer() => pos_integer()}) :: boolean()
  def concerns?({:exited, _rank, pid, _how}, _generation, pids), do: pid in Map.values(pids)
  # If a later generation is over already, at least the gang is not whole.
  def concerns?({:over, over, _hows, _reason}, generation, _pids), do: over >= generation

  @doc "What is known of each lost rank, among the ranks with these process ids. The first report of each is kept."
  @spec lost([t()], %{non_neg_integer() => pos_integer()}) :: hows()
  def lost(news, pids), do: Enum.reduce(news, %{}, &Map.merge(lost_by(&1, pids), &2))

  # The agent uses the ranks' first numbers.
  defp lost_by({:exited, _rank, pid, how}, pids),
    do: for({rank, ^pid} <- pids, into: %{}, do: {rank, how})

  defp lost_by({:over, _generation, hows, _reason}, _pids), do: hows

  @doc """
  The news in the ranks' statuses about a generation that may be over, of processes with these ids; nil: it is not over.

  Ranks in a later generation are not lost.
  """
  @spec look([RankStatus.t()], non_neg_integer(), %{non_neg_integer() => pos_integer()}) ::
          t() | nil
  def look(statuses, generation, pids) do
    others =
      for {status, rank} <- Enum.with_index(statuses),
          status.generation != generation or status.generation_state != :formed,
          do: {rank, status}

    gone =
      for {rank, status} <- others,
          status.pid != pids[rank] or status.generation < generation,
          do: {rank, how(status)}

    if others != [], do: {:over, generation, Map.new(gone), "it is over on some ranks"}
  end

  @doc """
  The ranks with these process ids that are not in the recovered gang: another process has taken the place, or the place is
  gone.
  """
  @spec gone([t()], %{non_neg_integer() => pos_integer()}, Recovery.whole()) :: hows()
  def gone(news, pids, %{statuses: statuses, moved: moved}) do
    now = for {status, rank} <- Enum.with_index(statuses), into: %{}, do: {rank, status.pid}
    since = fn rank -> if moved == %{}, do: now[rank], else: now[moved[rank]] end
    losses = news |> Enum.reverse() |> lost(pids)

    for {rank, pid} <- pids, since.(rank) != pid, into: %{} do
      {rank, losses[rank] || if(since.(rank), do: "was started again", else: "did not answer")}
    end
  end

  defp how(%{error: nil}), do: "was started again"
  defp how(%{error: error}), do: error.message

  @doc "The events of a loss: one for each rank, or, if none was lost, one for the generation's end."
  @spec events([t()], hows(), non_neg_integer()) :: [Event.t()]
  def events([{:over, _over, _losses, reason} | _others], lost, generation) when lost == %{},
    do: [%Event{kind: :over, generation: generation, reason: reason}]

  def events(_news, lost, generation) do
    for {rank, how} <- lost,
        do: %Event{kind: :rank_lost, generation: generation, rank: rank, reason: how}
  end

  @doc "The error for lost ranks; `more` ends its message."
  @spec error(hows(), non_neg_integer(), String.t()) :: Error.t()
  def error(lost, generation, more \\ "")

  def error(lost, generation, more) when lost == %{} do
    Error.refusal(:backend_failed, "generation #{generation} is over" <> more,
      generation: generation,
      phase: :unspecified
    )
  end

  def error(lost, generation, more) do
    causes = Enum.map_join(lost, ", ", fn {rank, how} -> "rank #{rank}: #{how}" end)

    Error.refusal(:peer_lost, "lost was #{causes}" <> more,
      rank: lost |> Map.keys() |> Enum.min(),
      generation: generation,
      phase: :unspecified
    )
  end
end
