defmodule RankBridge.Test.WatchedRanks do
  @moduledoc """
  Ranks within this VM that can be lost, replaced, formed and watched: a transport that answers by itself.

  What happens on them is what a test says, in that order: for what real ranks do only now and then. A rank is known
  by the place of its endpoint; its number is the one that it was formed with last. None runs an operation but a
  barrier, for which it is enough that the rank's generation is formed.
  """

  use Agent

  alias RankBridge.Proto.V1
  alias RankBridge.Transport.Status
  alias RankBridge.Value

  defstruct [:ranks, :place, :answer, transport: __MODULE__]

  @rpcs [V1.RankService.describe_rank(), V1.RefService.open_session()] ++
          [V1.RefService.close_session(), V1.RefService.renew_session()] ++
          [V1.GangService.form(), V1.GangService.call()]

  @first_pid 1_000

  @doc "Starts so many ranks, in generation 1."
  @spec start_link(pos_integer()) :: Agent.on_start()
  def start_link(size) do
    Agent.start_link(fn ->
      state = %{size: size, next: @first_pid, generation: 0, ranks: %{}, forming: [], asked: []}
      state = Enum.reduce(0..(size - 1), state, &born(&2, &1))
      formed(state, Enum.to_list(0..(size - 1)))
    end)
  end

  @doc "Options of a gang of these ranks."
  @spec gang(pid()) :: keyword()
  def gang(ranks) do
    key = ranks |> :erlang.pid_to_list() |> List.to_string()
    size = Agent.get(ranks, & &1.size)
    [endpoints: for(place <- 0..(size - 1), do: "#{key}/#{place}"), transport: __MODULE__]
  end

  @doc "Lets ranks end, which the others tell."
  @spec lose(pid(), [non_neg_integer()]) :: :ok
  def lose(ranks, places) do
    Agent.update(ranks, fn state ->
      numbers = for place <- places, do: state.ranks[place].rank
      state = Enum.reduce(places, state, &ended(&2, &1))
      details = for rank <- numbers, do: %V1.RankDetail{rank: rank, state: :RANK_STATE_LOST}
      message = "ranks #{inspect(numbers)} are gone"
      over(state, %V1.Error{code: :ERROR_CODE_PEER_LOST, message: message, ranks: details})
    end)
  end

  @doc "Lets another process take the place of a rank that has ended."
  @spec replace(pid(), non_neg_integer()) :: :ok
  def replace(ranks, place), do: Agent.update(ranks, &born(&1, place))

  @doc "Lets the generation be over on every rank, without a loss."
  @spec fail(pid(), atom(), String.t()) :: :ok
  def fail(ranks, code, message),
    do: Agent.update(ranks, &over(&1, %V1.Error{code: code, message: message}))

  @doc "Lets somebody else form the next generation of all ranks."
  @spec form(pid()) :: :ok
  def form(ranks),
    do: Agent.update(ranks, &(&1 |> aborted() |> formed(Enum.to_list(0..(&1.size - 1)))))

  @doc "Lets a rank report an event of this kind: `{:mismatch, %V1.Error{}}`."
  @spec report(pid(), non_neg_integer(), tuple()) :: :ok
  def report(ranks, place, kind), do: Agent.update(ranks, &add_event(&1, place, kind))

  @doc "Ends every watch, as where connections are lost."
  @spec hang_up(pid()) :: :ok
  def hang_up(ranks) do
    Agent.update(ranks, fn state ->
      for {_place, rank} <- state.ranks, pid <- rank.watchers, do: send(pid, {ranks, :over})
      update_in(state.ranks, &Map.new(&1, fn {at, event} -> {at, %{event | watchers: []}} end))
    end)
  end

  @doc "Lets this run when the ranks are asked to form the next time, before they do. Once."
  @spec before_forming(pid(), (() -> term())) :: :ok
  def before_forming(ranks, fun), do: Agent.update(ranks, &%{&1 | forming: &1.forming ++ [fun]})

  @doc "How often a method was asked for at a rank's endpoint."
  @spec asked(pid(), String.t(), non_neg_integer()) :: non_neg_integer()
  def asked(ranks, method, place),
    do: Agent.get(ranks, &Enum.count(&1.asked, fn event -> event == {method, place} end))

  @doc "How many watch a rank."
  @spec watchers(pid(), non_neg_integer()) :: non_neg_integer()
  def watchers(ranks, place),
    do:
      Agent.get(
        ranks,
        &Enum.count(&1.ranks[place].watchers, fn event -> Process.alive?(event) end)
      )

  # --- what the ranks do ---

  defp born(state, place) do
    rank = %{
      pid: state.next,
      rank: place,
      world_size: state.size,
      generation: 0,
      error: nil,
      log: state.next,
      events: [],
      state: nil,
      alive?: true,
      watchers: []
    }

    %{state | next: state.next + 1, ranks: Map.put(state.ranks, place, rank)}
  end

  defp ended(state, place) do
    for pid <- state.ranks[place].watchers, do: send(pid, {self(), :over})
    update_in(state.ranks[place], &%{&1 | alive?: false, watchers: []})
  end

  defp aborted(state), do: over(state, %V1.Error{code: :ERROR_CODE_ABORTED, message: "formed"})

  defp over(state, error) do
    running = for {at, %{alive?: true, error: nil, generation: n}} <- state.ranks, n > 0, do: at

    Enum.reduce(running, state, fn place, state ->
      state = put_in(state.ranks[place].error, error)
      add_event(state, place, {:over, error})
    end)
  end

  defp formed(state, places) do
    number = state.generation + 1

    places
    |> Enum.with_index()
    |> Enum.reduce(%{state | generation: number}, fn {place, rank}, state ->
      since = %{rank: rank, generation: number, world_size: length(places), error: nil}
      state = update_in(state.ranks[place], &Map.merge(&1, since))
      add_event(state, place, {:formed, %V1.FormedEvent{world_size: length(places)}})
    end)
  end

  defp add_event(state, place, {kind, _detail} = content) do
    rank = state.ranks[place]
    number = length(rank.events) + 1
    event = %V1.Event{number: number, rank: rank.rank, generation: rank.generation, kind: content}
    for pid <- rank.watchers, do: send(pid, {self(), {:event, event}})
    rank = %{rank | events: rank.events ++ [event]}
    rank = if kind in [:formed, :over], do: %{rank | state: event}, else: rank
    put_in(state.ranks[place], rank)
  end

  # --- the transport ---

  @doc false
  def connect(target, _opts) do
    [key, place] = String.split(target, "/")
    ranks = key |> String.to_charlist() |> :erlang.list_to_pid()
    {:ok, %__MODULE__{ranks: ranks, place: String.to_integer(place)}}
  end

  @doc false
  def close(_channel), do: :ok

  @doc false
  def start_unary(channel, path, request, _opts) do
    %{ranks: ranks, place: place} = channel
    rpc = Enum.find(@rpcs, &(&1.path == path))
    request = rpc.request.decode(IO.iodata_to_binary(request))

    if match?(%V1.FormRequest{}, request) do
      funs =
        Agent.get_and_update(
          ranks,
          &Map.get_and_update(&1, :forming, fn event -> {event, []} end)
        )

      for fun <- funs, do: fun.()
    end

    answer = Agent.get_and_update(ranks, &answer(&1, place, Path.basename(path), request))
    %{channel | answer: with(%module{} = event <- answer, do: {:ok, module.encode(event)})}
  end

  @doc false
  def await(%__MODULE__{answer: answer}), do: answer

  @doc false
  def server_stream(channel, _path, request, acc, fun, _opts) do
    rpc = V1.RankService.watch_events()
    request = rpc.request.decode(IO.iodata_to_binary(request))

    watcher = self()

    case Agent.get_and_update(channel.ranks, &watch(&1, channel.place, request, watcher)) do
      nil ->
        {:error, unavailable()}

      first ->
        acc = Enum.reduce(first, acc, &passed(&1, &2, fun))
        passed_on(channel.ranks, acc, fun)
    end
  end

  defp passed_on(ranks, acc, fun) do
    receive do
      {^ranks, :over} -> {:error, unavailable()}
      {^ranks, outcome} -> passed_on(ranks, passed(outcome, acc, fun), fun)
    end
  end

  defp passed(outcome, acc, fun) do
    {:cont, acc} =
      fun.(V1.WatchEventsResponse.encode(%V1.WatchEventsResponse{outcome: outcome}), acc)

    acc
  end

  defp watch(state, place, request, pid) do
    case state.ranks[place] do
      %{alive?: false} ->
        {nil, state}

      rank ->
        last = length(rank.events)
        after_number = if request.log in [0, rank.log], do: request.after || last, else: 0
        watching = %V1.Watching{rank: rank.rank, log: rank.log, last: last, state: rank.state}
        missed = for event <- rank.events, event.number > after_number, do: {:event, event}
        {[{:watching, watching} | missed], update_in(state.ranks[place].watchers, &[pid | &1])}
    end
  end

  defp answer(state, place, method, request) do
    rank = state.ranks[place]
    state = update_in(state.asked, &[{method, place} | &1])
    if rank.alive?, do: handle(request, rank, state), else: {{:error, unavailable()}, state}
  end

  defp handle(%V1.DescribeRankRequest{}, rank, state) do
    {%V1.DescribeRankResponse{
       rank: rank.rank,
       world_size: rank.world_size,
       pid: rank.pid,
       generation: rank.generation,
       generation_state: generation_state(rank),
       generation_error: rank.error
     }, state}
  end

  defp handle(%V1.OpenSessionRequest{session_id: id}, _rank, state),
    do: {%V1.OpenSessionResponse{outcome: {:session_id, id}}, state}

  defp handle(%V1.CloseSessionRequest{}, _rank, state),
    do: {%V1.CloseSessionResponse{outcome: {:released, 0}}, state}

  defp handle(%V1.RenewSessionRequest{}, _rank, state),
    do: {%V1.RenewSessionResponse{outcome: {:lease_ms, 1_000}}, state}

  defp handle(%V1.FormRequest{endpoints: endpoints}, rank, state) do
    places = for target <- endpoints, do: target |> Path.basename() |> String.to_integer()

    if Enum.all?(places, &state.ranks[&1].alive?) do
      state = state |> aborted() |> formed(places)
      formed = %V1.Formed{generation: state.generation, world_size: length(places)}
      {%V1.FormResponse{outcome: {:formed, formed}}, state}
    else
      error = %V1.Error{code: :ERROR_CODE_FORMING_FAILED, message: "some are gone"}
      {%V1.FormResponse{outcome: {:error, %{error | rank: rank.rank}}}, state}
    end
  end

  defp handle(%V1.CallRequest{operations: [%{kind: {:barrier, _barrier}}]}, rank, state) do
    {:ok, none} = Value.to_proto(nil)
    result = %V1.OperationResult{outcome: {:value, none}}

    members =
      for rank <- 0..(rank.world_size - 1), do: %V1.MemberOutcome{rank: rank, result: result}

    error = %V1.Error{code: :ERROR_CODE_STALE_GENERATION, message: "it is over"}

    if generation_state(rank) == :GENERATION_STATE_FORMED,
      do: {%V1.CallResponse{outcome: {:outcomes, %V1.MemberOutcomes{members: members}}}, state},
      else: {%V1.CallResponse{outcome: {:error, error}}, state}
  end

  defp generation_state(%{generation: 0}), do: :GENERATION_STATE_NONE
  defp generation_state(%{error: nil}), do: :GENERATION_STATE_FORMED
  defp generation_state(_rank), do: :GENERATION_STATE_OVER

  defp unavailable, do: %Status{code: :unavailable, message: "gone", sent?: false}
end
