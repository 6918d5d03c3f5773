defmodule RankBridge.Gang.Overview do
  @moduledoc """
  A gang for people: its ranks, whom others wait for, and its last events. Pages and widgets show it:
  `RankBridge.LiveDashboard`, `RankBridge.Kino`, and those of applications.

      overview = MyGang |> RankBridge.Gang.Overview.new() |> RankBridge.Gang.Overview.refresh()

  It is plain data. Its owner subscribes to the gang (`RankBridge.Gang.subscribe/1`), adds each event that comes, and
  refreshes it when it likes: only that asks the ranks.

  * `gang` - the name or pid that it was made with
  * `generation` - the highest that a rank or an event has named
  * `ranks` - each rank's `RankBridge.RankStatus`, as of the last refresh
  * `error` - why the ranks could not be asked then; nil: they could
  * `stragglers` - the event of each operation that ranks are late for
  * `events` - the last events, `{time, event}`, the newest first
  """

  alias RankBridge.{Error, Gang, RankStatus}
  alias RankBridge.Gang.Event

  # Events that it keeps.
  @last 20

  @enforce_keys [:gang]
  defstruct [:gang, :error, generation: 0, ranks: [], stragglers: [], events: []]

  @type t :: %__MODULE__{
          gang: Gang.gang(),
          generation: non_neg_integer(),
          ranks: [RankStatus.t()],
          error: Error.t() | nil,
          stragglers: [Event.t()],
          events: [{DateTime.t(), Event.t()}]
        }

  @typedoc "A rank as a row of a table."
  @type row :: %{
          rank: non_neg_integer(),
          host: String.t(),
          pid: non_neg_integer(),
          backend: String.t(),
          generation: non_neg_integer(),
          state: atom(),
          pending: non_neg_integer(),
          note: String.t()
        }

  @doc "Of a gang, before anything is known of it."
  @spec new(Gang.gang()) :: t()
  def new(gang), do: %__MODULE__{gang: gang}

  @doc "Asks every rank for its status, for at most `timeout` milliseconds. A gang that cannot be asked is an `error`."
  @spec refresh(t(), pos_integer()) :: t()
  def refresh(overview, timeout \\ 1_000) do
    case RankBridge.Generations.status(overview.gang, timeout: timeout, unready: :fail) do
      {:ok, ranks} ->
        generation = ranks |> Enum.map(& &1.generation) |> Enum.max(fn -> 0 end)
        %{overview | ranks: ranks, error: nil, generation: max(generation, overview.generation)}

      {:error, error} ->
        %{overview | error: error}
    end
  end

  @doc "With an event that has come now."
  @spec add(t(), Event.t()) :: t()
  def add(overview, event) do
    events = Enum.take([{DateTime.utc_now(), event} | overview.events], @last)

    %{
      overview
      | events: events,
        generation: max(overview.generation, event.generation),
        stragglers: stragglers(overview.stragglers, event)
    }
  end

  # A generation takes its operations with it.
  defp stragglers(_late, %Event{kind: kind}) when kind in [:formed, :rank_lost, :over], do: []

  defp stragglers(late, %Event{} = event) do
    others = Enum.reject(late, &(&1.operation_id == event.operation_id))
    if event.kind == :straggler and not event.arrived?, do: [event | others], else: others
  end

  @doc "The ranks as rows."
  @spec rows(t()) :: [row()]
  def rows(overview) do
    late =
      for straggler <- overview.stragglers, rank <- straggler.ranks, into: MapSet.new(), do: rank

    for status <- overview.ranks do
      %{
        rank: status.rank,
        host: status.host,
        pid: status.pid,
        backend: status.backend,
        generation: status.generation,
        state: status.generation_state,
        pending: status.pending_operations,
        note: note(status, status.rank in late)
      }
    end
  end

  defp note(%RankStatus{error: %Error{message: message}}, _late?), do: message
  defp note(%RankStatus{generation_error: %Error{message: message}}, _late?), do: message
  defp note(_status, true), do: "others wait for it"
  defp note(_status, false), do: ""

  @doc "Operations that wait on all ranks."
  @spec pending(t()) :: non_neg_integer()
  def pending(overview), do: overview.ranks |> Enum.map(& &1.pending_operations) |> Enum.sum()

  @doc "An event as one line."
  @spec describe(Event.t()) :: String.t()
  def describe(%Event{kind: :formed} = event),
    do: "generation #{event.generation} is formed, of #{event.world_size} ranks"

  def describe(%Event{kind: :rank_lost} = event),
    do: "rank #{event.rank} is lost in generation #{event.generation}: #{event.reason}"

  def describe(%Event{kind: :over} = event),
    do: "generation #{event.generation} is over: #{event.reason}"

  def describe(%Event{kind: :straggler, arrived?: true} = event),
    do: "#{ranks(event)} came to #{operation(event)} after #{milliseconds(event)}"

  def describe(%Event{kind: :straggler} = event),
    do: "#{operation(event)} waits for #{ranks(event)}, since #{milliseconds(event)}"

  def describe(%Event{kind: :peer_missing} = event),
    do: "#{ranks(event)} did not come to #{operation(event)}"

  def describe(%Event{kind: :mismatch} = event),
    do: "the members do not agree about #{operation(event)}: #{event.reason}"

  def describe(%Event{kind: :missed, missed: missed}), do: "#{missed} events were missed"

  defp ranks(%Event{ranks: [rank]}), do: "rank #{rank}"
  defp ranks(%Event{ranks: ranks}), do: "ranks #{Enum.join(ranks, ", ")}"
  defp operation(event), do: "#{event.operation} of group #{event.group}"
  defp milliseconds(event), do: "#{div(event.waited_us, 1_000)} ms"
end
