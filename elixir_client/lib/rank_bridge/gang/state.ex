defmodule RankBridge.Gang.State do
  @moduledoc false
  # What the server of a gang knows.
  #
  # * `phase` - `:starting`; `:ready`; `:ending`; `:recovering`: a generation is being formed; `:reloading`: it is formed, and
  #   `handle_rank_lost` runs
  # * `view` - what callers have of it, published under `names`
  # * `generation` - the gang's; `formed`: the highest that a rank has reported
  # * `pids` - process ids in that generation, by rank
  # * `lost` - ranks that were lost since the gang was last ready, by the numbers that they had then
  # * `over` - the last generation that was announced as over; nil: none
  # * `origin` - the number that a rank had then, by the one that it has
  # * `news` - reports of losses while their generation was not known
  # * `launcher`, `worker`, `watching` - what works for the server; nil: there is none
  # * `join_error` - of the last attempt to join, if it failed
  # * `recovery` - span of the recovery that is under way

  alias RankBridge.{Error, Gang, RankStatus, Telemetry}
  alias RankBridge.Gang.{News, Readiness, Restarts, Settings, View, Watching}

  @type t :: %__MODULE__{
          settings: Settings.t(),
          names: [Gang.gang()],
          view: View.t(),
          restarts: Restarts.t(),
          phase: :starting | :ready | :recovering | :reloading | :ending,
          generation: non_neg_integer(),
          formed: non_neg_integer(),
          pids: %{non_neg_integer() => pos_integer()},
          lost: News.hows(),
          over: non_neg_integer() | nil,
          origin: %{non_neg_integer() => non_neg_integer()},
          news: [News.t()],
          launcher: pid() | nil,
          worker: Task.t() | nil,
          watching: Watching.t() | nil,
          join_error: Error.t() | nil,
          recovery: Telemetry.span()
        }

  @enforce_keys [:settings, :names, :view, :restarts]
  defstruct @enforce_keys ++
              [
                :launcher,
                :worker,
                :watching,
                :join_error,
                :recovery,
                :over,
                phase: :starting,
                generation: 0,
                formed: 0
              ] ++
              [pids: %{}, lost: %{}, origin: %{}, news: []]

  @doc "Of a gang that has no rank yet, with the view of it."
  @spec new(Settings.t(), View.t()) :: t()
  def new(settings, view) do
    %__MODULE__{
      settings: settings,
      names: [view.gang | List.wrap(settings.name)],
      view: view,
      restarts: settings.restarts
    }
  end

  @doc "What the gang is called: its name, or its pid."
  @spec name(t()) :: Gang.gang()
  def name(state), do: List.last(state.names)

  @doc "With the generation in which the ranks are, as they say themselves."
  @spec formed(t(), View.t(), [RankStatus.t()]) :: t()
  def formed(state, view, statuses) do
    generation = statuses |> Enum.map(& &1.generation) |> Enum.max()
    pids = for {status, rank} <- Enum.with_index(statuses), into: %{}, do: {rank, status.pid}
    # Whether it can be called is another matter.
    view = %{view | unready: state.view.unready, but_for: state.view.but_for}
    %{state | view: view, generation: generation, pids: pids}
  end

  @doc "With ranks that have new numbers, by their old ones."
  @spec moved(t(), %{non_neg_integer() => non_neg_integer()}) :: t()
  def moved(state, moved) do
    origin = for {old, new} <- moved, into: %{}, do: {new, Map.get(state.origin, old, old)}
    %{state | origin: origin}
  end

  @doc "Those of some lost ranks that are not known to be lost, by the numbers that they have now."
  @spec unknown(t(), News.hows()) :: News.hows()
  def unknown(state, lost) do
    for {rank, how} <- lost,
        not is_map_key(state.lost, Map.get(state.origin, rank, rank)),
        into: %{},
        do: {rank, how}
  end

  @doc "With ranks that were lost, by the numbers that they have now."
  @spec lost(t(), News.hows()) :: t()
  def lost(state, lost) do
    lost = for {rank, how} <- lost, into: %{}, do: {Map.get(state.origin, rank, rank), how}
    %{state | lost: Map.merge(lost, state.lost)}
  end

  @doc "Makes the gang ready for calls, and wakes the waiting callers."
  @spec ready(t()) :: t()
  def ready(state) do
    state = %{state | phase: :ready, lost: %{}, origin: %{}, recovery: nil}
    publish(state, %{state.view | unready: nil, but_for: nil})
  end

  @doc "Not to be called now, but by one process, if any."
  @spec unready(t(), Error.t(), pid() | nil) :: t()
  def unready(state, why, but_for),
    do: publish(state, %{state.view | unready: why, but_for: but_for})

  defp publish(state, view) do
    view = %{view | known_as: name(state)}
    View.publish(view, state.names)
    Readiness.changed(state.names)
    %{state | view: view}
  end
end
