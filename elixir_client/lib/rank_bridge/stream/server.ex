defmodule RankBridge.Stream.Server do
  @moduledoc false
  # The process in charge of the stream to one rank. The stream carries all operations that a gang asks of this rank: gang calls
  # and the rank's own parts. Each request has a number, and so has its answer. Answers come in any order.
  #
  # The stream is a unix socket without gRPC (`RankBridge.Transport.Local`) where the rank has one and the channel leads to it,
  # else `GangService.Execute`. The first request opens the stream, and so does the first request after its end; if the stream
  # ended at once, because the rank has too many, a second later. The process ends with its gang, or after a minute without use.
  #
  # A request that the stream cannot take, or that was not begun on it, is sent alone (`RankBridge.Stream.Alone`). A push into a
  # `RankBridge.Stream`, which is a part of the rank's stream and ends with it, waits here instead while the limit of requests
  # is under way.
  #
  # Callers watch their deadlines themselves. The time of a push begins when it is sent, so this process watches it.

  use GenServer, restart: :temporary

  alias RankBridge.Gang.{Children, View}
  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.{DecodeError, Encode, Wire}
  alias RankBridge.Stream.Alone
  alias RankBridge.Transport
  alias RankBridge.Transport.{Local, Status}

  # Requests under way: of streams, and of all others. A rank reads as many as both.
  @share 128
  # Milliseconds without use until the end, and from a stream that was over at once to the next.
  @idle 60_000
  @pause 1_000
  # That `receive` can wait.
  @longest 0xFFFF_FFFF

  # Of these the wire types are 2, a length and so many bytes, and 0, a number.
  numbers =
    for {number, name, _, _} <- V1.ExecuteRequest.__fields__(), into: %{}, do: {name, number}

  @tags %{call: numbers.call * 8 + 2, part: numbers.part * 8 + 2}
  @number numbers.number
  @number_tag @number * 8
  @path V1.GangService.execute().path

  @enforce_keys [:channel, :gang]
  defstruct [
    :channel,
    :gang,
    :call,
    :refusal,
    not_before: nil,
    answered?: false,
    used?: true,
    latest: 0,
    under_way: %{},
    waiting: :queue.new(),
    asked: 0,
    behind: :queue.new(),
    pushed: 0,
    alone: %{},
    monitors: %{},
    streams: %{}
  ]

  @typedoc """
  A gang call (`CallRequest`) or a part (`Operation`): its bytes, and its operation id.

  * `until` - when it is of no use any more, in milliseconds of monotonic time
  * `stream` - the stream that it was pushed into, and then `deadline` instead: how long it may take from when it is sent
  """
  @type request :: %{
          required(:kind) => :call | :part,
          required(:bytes) => iodata(),
          required(:id) => String.t(),
          required(:stream) => reference() | nil,
          optional(:until) => integer(),
          optional(:deadline) => pos_integer()
        }

  @typedoc "The process, or `:gone`, which never answers."
  @type server :: pid() | :gone

  @typedoc "The bytes of an `ExecuteResponse`, or what happened otherwise."
  @type answer :: {:ok, binary()} | {:error, Status.t()}

  @doc "The process of a rank's stream; starts one if there is none. `:gone`: the gang has ended."
  @spec of(View.t(), non_neg_integer()) :: server()
  def of(view, rank) do
    name = {RankBridge.Registry, {__MODULE__, view.gang, View.target(view, rank)}}

    with :undefined <- Registry.whereis_name(name),
         {:ok, channel} <- View.channel(view, rank) do
      child = {__MODULE__, {channel, view.gang, {:via, Registry, name}}}

      case DynamicSupervisor.start_child(Children.name(view.gang, :streams), child) do
        {:ok, server} -> server
        {:error, {:already_started, server}} -> server
      end
    end
  catch
    :exit, _over -> :gone
  end

  @doc false
  @spec start_link({Transport.channel(), pid(), GenServer.name()}) :: GenServer.on_start()
  def start_link({channel, gang, name}),
    do: GenServer.start_link(__MODULE__, {channel, gang}, name: name)

  @doc "Opens a stream for a process. It ends with the process."
  @spec open(server(), pid(), timeout()) :: {:ok, reference()} | {:error, Status.t()}
  def open(:gone, _owner, _timeout), do: {:error, gone(:noproc)}

  def open(server, owner, timeout) do
    GenServer.call(server, {:open, owner}, timeout)
  catch
    :exit, {:timeout, _call} ->
      {:error,
       Status.new(:deadline_exceeded, "no stream could be opened in #{timeout} ms", false)}

    :exit, {why, _call} ->
      {:error, gone(why)}
  end

  @doc "Ends a stream once all its pushes are answered. Ending twice is no error."
  @spec close(pid(), reference()) :: :ok
  def close(server, stream) do
    GenServer.call(server, {:close, stream}, :infinity)
  catch
    :exit, _over -> :ok
  end

  @doc "Sends a request for the calling process, which awaits it."
  @spec push(server(), request()) :: reference()
  def push(:gone, _request), do: make_ref()

  def push(server, request) do
    ref = :erlang.monitor(:process, server, alias: :reply_demonitor)
    send(server, {:push, self(), Map.merge(request, %{ref: ref, number: nil, timer: nil})})
    ref
  end

  @doc """
  Waits for the answer, once; for so many milliseconds. `:late`: it did not come, and the request was withdrawn; `:never`: the
  process did not receive the request before its end.
  """
  @spec await(server(), reference(), timeout()) :: answer() | :late | :never
  def await(:gone, _ref, _timeout), do: :never

  def await(server, ref, timeout) do
    receive do
      {^ref, answer} -> answer
      {:DOWN, ^ref, :process, _pid, why} when why in [:noproc, :normal] -> :never
      {:DOWN, ^ref, :process, _pid, why} -> {:error, gone(why)}
    after
      min(timeout, @longest) ->
        Process.demonitor(ref, [:flush])
        withdraw(server, ref)
        last_word(ref)
    end
  end

  # Nothing comes after the monitor's end.
  defp last_word(ref) do
    receive do
      {^ref, answer} -> answer
    after
      0 -> :late
    end
  end

  # A process that ends in order has answered all that it has received. This one it did not receive.
  defp gone(why),
    do: Status.new(:unavailable, "the stream is over", why not in [:noproc, :normal])

  @doc "Withdraws a request. If a process waits for the answer, it gets one all the same."
  @spec withdraw(pid(), reference()) :: :ok
  def withdraw(server, ref) do
    send(server, {:withdraw, ref})
    :ok
  end

  @impl GenServer
  def init({channel, gang}) do
    # Answers that have come are passed on before the gang ends.
    Process.flag(:trap_exit, true)
    {:ok, look_later(%__MODULE__{channel: channel, gang: gang})}
  end

  # --- callers ---

  @impl GenServer
  def handle_call({:open, owner}, _from, state) do
    case opened(without_ended(%{state | used?: true})) do
      {:ok, state} ->
        stream = Process.monitor(owner)
        {:reply, {:ok, stream}, %{state | streams: Map.put(state.streams, stream, [])}}

      {status, state} ->
        {:reply, {:error, status}, state}
    end
  end

  def handle_call({:close, stream}, from, state) do
    case state.streams do
      %{^stream => closing} ->
        streams = %{state.streams | stream => [from | closing]}
        {:noreply, closed(%{state | streams: streams}, stream)}

      _ended ->
        {:reply, :ok, state}
    end
  end

  @impl GenServer
  def handle_info({:push, pid, %{stream: nil} = request}, state) do
    {_opened, state} = opened(%{state | used?: true})
    {request, state} = watched(request, pid, state)

    if state.call == nil or state.asked == @share do
      {:noreply, alone(state, request)}
    else
      waiting = :queue.in(request, state.waiting)
      proceed(%{state | waiting: waiting, asked: state.asked + 1})
    end
  end

  def handle_info({:push, pid, %{stream: stream, ref: ref} = request}, state) do
    if state.streams[stream] == [] do
      {request, state} = watched(request, pid, state)
      proceed(%{state | behind: :queue.in(request, state.behind)})
    else
      closed = {:error, Status.new(:cancelled, "the stream was closed", false)}
      send(ref, {ref, if(is_map_key(state.streams, stream), do: closed, else: :never)})
      {:noreply, state}
    end
  end

  def handle_info({:withdraw, ref}, state), do: state |> give_up(ref) |> proceed()

  def handle_info({:DOWN, monitor, :process, _pid, why}, state) do
    case state do
      %{monitors: %{^monitor => ref}} -> state |> give_up(ref) |> proceed()
      %{streams: %{^monitor => _closing}} -> state |> ownerless(monitor) |> proceed()
      %{alone: %{^monitor => request}} -> {:noreply, went(state, monitor, request, why)}
      _of_the_call -> handle_message(state, {:DOWN, monitor, :process, nil, why})
    end
  end

  def handle_info({:timeout, _timer, {:late, number}}, state) do
    case state.under_way do
      %{^number => request} ->
        late = Status.new(:deadline_exceeded, "the rank has not answered in time", true)
        send(request.ref, {request.ref, {:error, late}})
        state |> withdrawn(request) |> proceed()

      _answered ->
        {:noreply, state}
    end
  end

  def handle_info({:timeout, _timer, :idle}, state) do
    if state.used? or state.monitors != %{} or state.under_way != %{} or state.streams != %{} do
      {:noreply, look_later(%{state | used?: false})}
    else
      _ = state.call && Transport.cancel(state.call)
      {:stop, :normal, state}
    end
  end

  def handle_info(message, state), do: handle_message(state, message)

  defp handle_message(%{call: nil} = state, _message), do: {:noreply, state}

  defp handle_message(state, message) do
    case Transport.hear(state.call, message) do
      {:ok, call} -> arrived(%{state | call: call})
      :unknown -> {:noreply, state}
    end
  end

  defp watched(request, pid, state) do
    monitor = Process.monitor(pid)
    monitors = Map.put(state.monitors, monitor, request.ref)
    {Map.put(request, :monitor, monitor), %{state | monitors: monitors}}
  end

  # --- the stream ---

  defp opened(%{call: nil} = state) do
    case open(state) do
      {:ok, call} -> {:ok, %{state | call: call, answered?: false, refusal: nil}}
      {:error, status} -> {status, %{state | not_before: now() + @pause}}
      status -> {status, state}
    end
  end

  defp opened(state), do: {:ok, state}

  # No message will tell of its end.
  defp without_ended(%{call: %Local{} = call} = state) do
    if Local.ended_unused?(call) do
      Transport.cancel(call)
      over(state, Status.new(:unavailable, "the rank has ended the stream", false))
    else
      state
    end
  end

  defp without_ended(state), do: state

  defp open(%{channel: channel, not_before: at}) do
    cond do
      at != nil and at > now() ->
        Status.new(:unavailable, "the rank has no stream to give", false)

      not Transport.hears?(channel) ->
        Status.new(:unimplemented, "it has no streams", false)

      true ->
        with :none <- Local.open(channel), do: Transport.open_stream(channel, @path)
    end
  end

  # --- requests ---

  # Sends the requests that can be sent, and handles the messages that have arrived.
  defp proceed(%{call: nil} = state), do: {:noreply, state}

  defp proceed(state) do
    if Transport.room?(state.call),
      do: send_next(state, :queue.peek(state.waiting)),
      else: arrived(state)
  end

  defp send_next(state, {:value, request}) do
    with {:ok, state} <- sent(state, request),
         do: proceed(%{state | waiting: :queue.drop(state.waiting)})
  end

  defp send_next(%{pushed: pushed} = state, :empty) when pushed < @share do
    with {:value, request} <- :queue.peek(state.behind),
         {:ok, state} <- sent(state, request) do
      proceed(%{state | behind: :queue.drop(state.behind), pushed: pushed + 1})
    else
      :empty -> arrived(state)
      ended -> ended
    end
  end

  defp send_next(state, :empty), do: arrived(state)

  defp sent(state, request) do
    number = state.latest + 1

    case Transport.send_message(state.call, encoded(request, number)) do
      {:ok, call} -> {:ok, under_way(%{state | call: call}, request, number)}
      # The call has ended, or will; its messages say so. This request was not sent.
      {:closed, call} -> arrived(%{state | call: call}, :closed)
    end
  end

  defp encoded(%{kind: :withdraw, number: withdrawn}, _number) do
    request = %V1.ExecuteRequest{kind: {:withdraw, ""}, number: withdrawn}
    V1.ExecuteRequest.encode_to_iodata(request)
  end

  defp encoded(request, number) do
    tag = Map.fetch!(@tags, request.kind)
    [Encode.always(tag, :bytes, request.bytes), Encode.always(@number_tag, :uint64, number)]
  end

  defp under_way(state, %{kind: :withdraw}, _number), do: state

  defp under_way(state, request, number) do
    timer = if request.stream, do: :erlang.start_timer(request.deadline, self(), {:late, number})
    request = %{request | number: number, timer: timer}
    %{state | under_way: Map.put(state.under_way, number, request), latest: number}
  end

  # A withdrawal overtakes the waiting requests, and has no answer.
  defp withdrawn(state, %{number: number}),
    do: %{state | waiting: :queue.in_r(%{kind: :withdraw, number: number}, state.waiting)}

  defp give_up(state, ref) do
    with_ref? = &(Map.get(&1, :ref) == ref)

    cond do
      request = Enum.find(Map.values(state.under_way), with_ref?) -> withdrawn(state, request)
      request = Enum.find(:queue.to_list(state.waiting), with_ref?) -> unsent(state, request)
      request = Enum.find(:queue.to_list(state.behind), with_ref?) -> unsent(state, request)
      alone = Enum.find(state.alone, &with_ref?.(elem(&1, 1))) -> not_alone(state, alone)
      true -> state
    end
  end

  defp unsent(state, request) do
    others = &:queue.delete(request, &1)
    state = %{state | waiting: others.(state.waiting), behind: others.(state.behind)}
    finished(state, request, {:error, Status.new(:cancelled, "it was withdrawn", false)})
  end

  defp not_alone(state, {monitor, request}) do
    Process.demonitor(monitor, [:flush])
    :ok = Alone.withdraw(state.gang, state.channel, request)
    state = %{state | alone: Map.delete(state.alone, monitor)}
    finished(state, request, {:error, Status.new(:cancelled, "it was withdrawn", true)})
  end

  defp ownerless(state, stream) do
    status = Status.new(:cancelled, "the owner of the stream has ended", true)
    of_stream? = &(&1.stream == stream)
    {unsent, behind} = Enum.split_with(:queue.to_list(state.behind), of_stream?)

    state = %{
      state
      | behind: :queue.from_list(behind),
        streams: Map.delete(state.streams, stream)
    }

    state = Enum.reduce(unsent, state, &finished(&2, &1, {:error, %{status | sent?: false}}))

    for {_number, %{ref: ref} = request} <- state.under_way,
        of_stream?.(request),
        reduce: state do
      state ->
        send(ref, {ref, {:error, status}})
        withdrawn(state, request)
    end
  end

  # --- answers ---

  defp arrived(state, way \\ :open) do
    case Transport.arrived(state.call) do
      {:ok, [], call} ->
        state = %{state | call: call}
        # The call may take more by now.
        if way == :open and waits?(state) and Transport.room?(call),
          do: proceed(state),
          else: {:noreply, state}

      {:ok, messages, call} ->
        messages |> Enum.reduce(%{state | call: call}, &on_response/2) |> ended(nil)

      {:done, messages, _} ->
        status = Status.new(:unavailable, "the rank has ended the stream", false)
        messages |> Enum.reduce(state, &on_response/2) |> ended(status)

      {:error, messages, status} ->
        messages |> Enum.reduce(state, &on_response/2) |> ended(status)
    end
  end

  defp waits?(%{waiting: waiting, behind: behind, pushed: pushed}),
    do: not :queue.is_empty(waiting) or (pushed < @share and not :queue.is_empty(behind))

  defp ended(%{refusal: nil} = state, nil), do: proceed(state)
  defp ended(%{refusal: nil} = state, status), do: {:noreply, over(state, status)}

  defp ended(%{refusal: {number, _message}} = state, status) do
    _ = status || Transport.cancel(state.call)
    text = if number == 0, do: "the rank refuses the stream", else: "an answer that is none"
    {:noreply, over(state, Status.new(:internal, text, number != 0))}
  end

  defp on_response(message, state) do
    number = number(message)

    case state.under_way do
      %{^number => request} ->
        state = %{state | under_way: Map.delete(state.under_way, number), answered?: true}
        finished(state, request, {:ok, message})

      # An answer without a request is the rank's refusal of the stream.
      _other when number in [0, :unreadable] ->
        %{state | refusal: {number, message}}

      _no_request ->
        state
    end
  end

  defp number(message, found \\ 0)
  defp number("", found), do: found

  defp number(bytes, found) do
    case Wire.take_field(bytes, 0) do
      {@number, 0, number, rest} -> number(rest, number)
      {_number, _wire_type, _raw, rest} -> number(rest, found)
    end
  rescue
    DecodeError -> :unreadable
  end

  defp finished(state, %{ref: ref} = request, answer) do
    send(ref, {ref, answer})
    forgotten(state, request)
  end

  defp forgotten(state, %{monitor: monitor} = request) do
    Process.demonitor(monitor, [:flush])
    state = %{state | monitors: Map.delete(state.monitors, monitor)}

    case request do
      %{stream: nil, alone: _process} ->
        state

      %{stream: nil} ->
        %{state | asked: state.asked - 1}

      %{stream: stream, timer: nil} ->
        closed(state, stream)

      %{stream: stream, timer: timer} ->
        _milliseconds = :erlang.cancel_timer(timer)
        closed(%{state | pushed: state.pushed - 1}, stream)
    end
  end

  # Ends a stream into which nothing more may be pushed, when all is answered.
  defp closed(state, stream) do
    with %{^stream => [_ | _] = closing} <- state.streams,
         false <-
           Enum.any?(state.under_way, fn {_number, request} -> request.stream == stream end),
         false <- Enum.any?(:queue.to_list(state.behind), &(&1.stream == stream)) do
      let_go({stream, closing})
      %{state | streams: Map.delete(state.streams, stream)}
    else
      _not_yet -> state
    end
  end

  defp let_go({stream, closing}) do
    Process.demonitor(stream, [:flush])
    Enum.each(closing, &GenServer.reply(&1, :ok))
  end

  # --- the end of the stream ---

  defp over(state, status) do
    sent = Map.values(state.under_way)
    unsent = :queue.to_list(state.waiting) ++ :queue.to_list(state.behind)
    not_before = if state.answered?, do: nil, else: now() + @pause

    state = %{
      state
      | call: nil,
        not_before: not_before,
        under_way: %{},
        waiting: :queue.new(),
        behind: :queue.new()
    }

    state = Enum.reduce(sent, state, &failed(&2, &1, status))
    state = Enum.reduce(unsent, state, &failed(&2, &1, %{status | sent?: false}))

    Enum.each(state.streams, &let_go/1)
    %{state | streams: %{}}
  end

  defp failed(state, %{kind: :withdraw}, _status), do: state

  defp failed(state, %{stream: nil} = request, %{sent?: false}),
    do: alone(%{state | asked: state.asked - 1}, request)

  defp failed(%{refusal: {0, message}} = state, request, _status),
    do: finished(state, request, {:ok, message})

  defp failed(state, request, status), do: finished(state, request, {:error, status})

  # --- requests without a stream ---

  defp alone(state, request) do
    {process, monitor} = Alone.start(state.gang, state.channel, request)
    %{state | alone: Map.put(state.alone, monitor, Map.put(request, :alone, process))}
  end

  # It has answered itself.
  defp went(state, monitor, request, :normal),
    do: forgotten(%{state | alone: Map.delete(state.alone, monitor)}, request)

  defp went(state, monitor, %{ref: ref} = request, why) do
    send(ref, {ref, {:error, gone(why)}})
    went(state, monitor, request, :normal)
  end

  # --- time ---

  defp look_later(state) do
    _timer = :erlang.start_timer(@idle, self(), :idle)
    state
  end

  defp now, do: System.monotonic_time(:millisecond)
end
