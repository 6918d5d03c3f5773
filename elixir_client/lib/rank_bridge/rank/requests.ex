defmodule RankBridge.Rank.Requests do
  @moduledoc false
  # The requests of `RankBridge.Rank.Server`: which of them wait, which are under way on the rank's stream, and who gets the
  # answers. All functions run in that process.
  #
  # A request waits in `waiting`; one that was pushed into a `RankBridge.CallStream` waits `behind` those, while the limit of
  # pushes is under way. Callers watch their deadlines themselves. The time of a push begins when it is sent, so a timer of
  # this process watches it.

  alias RankBridge.Transport.Status

  # Requests on the stream that are not answered: pushes, and all others. A rank reads as many as both.
  @share 128

  defstruct latest: 0,
            under_way: %{},
            waiting: :queue.new(),
            asked: 0,
            behind: :queue.new(),
            pushed: 0,
            callers: %{},
            streams: %{}

  @typedoc """
  A gang call (`CallRequest`) or a part (`Operation`): its bytes, and its operation id.

  * `until` - when it is of no use any more, in milliseconds of monotonic time
  * `stream` - the call stream that it was pushed into, and then `deadline` instead: how long it may take from when it is sent
  * `ref` - what its answer is sent to, and sent with
  * `monitor` - of its caller
  * `number`, `timer` - of a request that was sent on the stream
  * `unary` - the process that asks instead of the stream
  """
  @type request :: %{
          required(:kind) => :call | :part,
          required(:bytes) => iodata(),
          required(:id) => String.t(),
          required(:stream) => reference() | nil,
          required(:ref) => reference(),
          required(:monitor) => reference() | nil,
          required(:number) => pos_integer() | nil,
          required(:timer) => reference() | nil,
          optional(:until) => integer(),
          optional(:deadline) => pos_integer(),
          optional(:unary) => pid()
        }

  @typedoc "A request on the stream that says that the one of a number is withdrawn. It has no answer."
  @type withdrawal :: %{kind: :withdraw, number: pos_integer()}

  @typedoc """
  * `latest` - number of the request that was sent last
  * `under_way` - by number
  * `asked`, `pushed` - how many count towards the limits
  * `callers` - the monitors of callers that get an answer, with the request's `ref`
  * `streams` - call streams by the monitor of their owner, each with the callers that wait for its end
  """
  @type t :: %__MODULE__{
          latest: non_neg_integer(),
          under_way: %{pos_integer() => request()},
          waiting: :queue.queue(request() | withdrawal()),
          asked: non_neg_integer(),
          behind: :queue.queue(request()),
          pushed: non_neg_integer(),
          callers: %{reference() => reference()},
          streams: %{reference() => [GenServer.from()]}
        }

  @type answer :: {:ok, binary()} | {:error, Status.t()}

  @doc "Whether there is anything to do, or may be."
  @spec any?(t()) :: boolean()
  def any?(requests),
    do: requests.callers != %{} or requests.under_way != %{} or requests.streams != %{}

  @doc "Whether no more requests may wait for the stream, but pushes."
  @spec full?(t()) :: boolean()
  def full?(requests), do: requests.asked == @share

  # --- call streams ---

  @doc "Opens a call stream, which ends with its owner."
  @spec open(t(), pid()) :: {reference(), t()}
  def open(requests, owner) do
    stream = Process.monitor(owner)
    {stream, %{requests | streams: Map.put(requests.streams, stream, [])}}
  end

  @doc "Whether a call stream takes pushes: `:closed`: its end is awaited; `:ended`: it has ended."
  @spec stream(t(), reference()) :: :open | :closed | :ended
  def stream(%{streams: streams}, stream) do
    case streams do
      %{^stream => []} -> :open
      %{^stream => _closing} -> :closed
      _ended -> :ended
    end
  end

  @doc "Ends a call stream when all its pushes are answered, and replies to `from` then."
  @spec close(t(), reference(), GenServer.from()) :: t()
  def close(requests, stream, from) do
    case requests.streams do
      %{^stream => closing} ->
        closed(%{requests | streams: %{requests.streams | stream => [from | closing]}}, stream)

      _ended ->
        GenServer.reply(from, :ok)
        requests
    end
  end

  # Ends a stream into which nothing more may be pushed, when all is answered.
  defp closed(requests, stream) do
    with %{^stream => [_ | _] = closing} <- requests.streams,
         of_stream? = &(&1.stream == stream),
         false <- Enum.any?(Map.values(requests.under_way), of_stream?),
         false <- :queue.any(of_stream?, requests.behind) do
      let_go({stream, closing})
      %{requests | streams: Map.delete(requests.streams, stream)}
    else
      _not_yet -> requests
    end
  end

  defp let_go({stream, closing}) do
    Process.demonitor(stream, [:flush])
    Enum.each(closing, &GenServer.reply(&1, :ok))
  end

  @doc "The owner of a call stream has ended: its pushes are answered, and withdrawn."
  @spec ownerless(t(), reference()) :: t()
  def ownerless(requests, stream) do
    status = Status.new(:cancelled, "the owner of the stream has ended", true)
    of_stream? = &(&1.stream == stream)
    {unsent, behind} = Enum.split_with(:queue.to_list(requests.behind), of_stream?)

    requests = %{
      requests
      | behind: :queue.from_list(behind),
        streams: Map.delete(requests.streams, stream)
    }

    requests = Enum.reduce(unsent, requests, &finish(&2, &1, {:error, %{status | sent?: false}}))

    for {_number, request} <- requests.under_way, of_stream?.(request), reduce: requests do
      requests ->
        reply(request, {:error, status})
        withdraw(requests, request)
    end
  end

  # --- from the callers ---

  @doc "The request of a caller, who is monitored until `finish/3`."
  @spec of_caller(t(), request(), pid()) :: {request(), t()}
  def of_caller(requests, request, caller) do
    monitor = Process.monitor(caller)
    callers = Map.put(requests.callers, monitor, request.ref)
    {%{request | monitor: monitor}, %{requests | callers: callers}}
  end

  @doc "A request waits for its turn."
  @spec add(t(), request()) :: t()
  def add(requests, %{stream: nil} = request) do
    waiting = :queue.in(request, requests.waiting)
    %{requests | waiting: waiting, asked: requests.asked + 1}
  end

  def add(requests, request), do: %{requests | behind: :queue.in(request, requests.behind)}

  @doc "Gives up a request that waits, or withdraws it where it is under way. `:unknown`: it is neither."
  @spec give_up(t(), reference()) :: t() | :unknown
  def give_up(requests, ref) do
    with_ref? = &(Map.get(&1, :ref) == ref)

    cond do
      request = Enum.find(Map.values(requests.under_way), with_ref?) ->
        withdraw(requests, request)

      request = Enum.find(:queue.to_list(requests.waiting), with_ref?) ->
        unsent(requests, request)

      request = Enum.find(:queue.to_list(requests.behind), with_ref?) ->
        unsent(requests, request)

      true ->
        :unknown
    end
  end

  defp unsent(requests, request) do
    without = &:queue.delete(request, &1)

    requests = %{
      requests
      | waiting: without.(requests.waiting),
        behind: without.(requests.behind)
    }

    finish(requests, request, {:error, Status.new(:cancelled, "it was withdrawn", false)})
  end

  # It overtakes the waiting requests.
  defp withdraw(requests, %{number: number}) do
    withdrawal = %{kind: :withdraw, number: number}
    %{requests | waiting: :queue.in_r(withdrawal, requests.waiting)}
  end

  @doc "The time of a push is over."
  @spec late(t(), pos_integer()) :: t()
  def late(requests, number) do
    case requests.under_way do
      %{^number => request} ->
        status = Status.new(:deadline_exceeded, "the rank has not answered in time", true)
        reply(request, {:error, status})
        withdraw(requests, request)

      _answered ->
        requests
    end
  end

  # --- to the rank and back ---

  @doc "What is to be sent next; nil: nothing."
  @spec next(t()) :: request() | withdrawal() | nil
  def next(requests) do
    with :empty <- :queue.peek(requests.waiting),
         true <- requests.pushed < @share,
         {:value, request} <- :queue.peek(requests.behind) do
      request
    else
      {:value, request} -> request
      _none -> nil
    end
  end

  @doc "The number that the next request is sent with."
  @spec number(t()) :: pos_integer()
  def number(requests), do: requests.latest + 1

  @doc "`next/1` was sent, with `number/1`."
  @spec sent(t(), request() | withdrawal()) :: t()
  def sent(requests, %{kind: :withdraw}),
    do: %{requests | waiting: :queue.drop(requests.waiting)}

  def sent(requests, %{stream: nil} = request),
    do: under_way(%{requests | waiting: :queue.drop(requests.waiting)}, request)

  def sent(requests, %{deadline: deadline} = request) do
    timer = :erlang.start_timer(deadline, self(), {:late, number(requests)})

    %{requests | behind: :queue.drop(requests.behind), pushed: requests.pushed + 1}
    |> under_way(%{request | timer: timer})
  end

  defp under_way(requests, request) do
    number = number(requests)
    request = %{request | number: number}
    %{requests | under_way: Map.put(requests.under_way, number, request), latest: number}
  end

  @doc "Answers the request of a number, if it is under way."
  @spec answered(t(), non_neg_integer(), binary()) :: t()
  def answered(requests, number, bytes) do
    case requests.under_way do
      %{^number => request} ->
        finish(
          %{requests | under_way: Map.delete(requests.under_way, number)},
          request,
          {:ok, bytes}
        )

      _nobodys ->
        requests
    end
  end

  @doc "Answers a request, and forgets it."
  @spec finish(t(), request(), answer()) :: t()
  def finish(requests, request, answer) do
    reply(request, answer)
    forget(requests, request)
  end

  @doc "Forgets a request that was answered otherwise."
  @spec forget(t(), request()) :: t()
  def forget(requests, %{monitor: monitor} = request) do
    Process.demonitor(monitor, [:flush])
    requests = %{requests | callers: Map.delete(requests.callers, monitor)}

    case request do
      %{unary: _process} ->
        requests

      %{stream: nil} ->
        %{requests | asked: requests.asked - 1}

      %{stream: stream, timer: nil} ->
        closed(requests, stream)

      %{stream: stream, timer: timer} ->
        _milliseconds = :erlang.cancel_timer(timer)
        closed(%{requests | pushed: requests.pushed - 1}, stream)
    end
  end

  defp reply(%{ref: ref}, answer), do: send(ref, {ref, answer})

  @doc """
  The stream has ended, and all call streams with it. Returns the requests that the rank has not begun, which may go another
  way; all others are answered: with `status`, or with what the rank has `said` to all at once.
  """
  @spec over(t(), Status.t(), binary() | nil) :: {[request()], t()}
  def over(requests, status, said) do
    sent = for {_number, request} <- requests.under_way, do: {request, status}
    waiting = :queue.to_list(requests.waiting) ++ :queue.to_list(requests.behind)
    unsent = for %{ref: _ref} = request <- waiting, do: {request, %{status | sent?: false}}
    emptied = %__MODULE__{requests | under_way: %{}, waiting: :queue.new(), behind: :queue.new()}

    {not_begun, ended} =
      Enum.split_with(sent ++ unsent, fn {request, status} ->
        request.stream == nil and not status.sent?
      end)

    requests =
      Enum.reduce(ended, emptied, fn {request, status}, requests ->
        finish(requests, request, if(said, do: {:ok, said}, else: {:error, status}))
      end)

    Enum.each(requests.streams, &let_go/1)
    requests = %{requests | streams: %{}, asked: requests.asked - length(not_begun)}
    {Enum.map(not_begun, &elem(&1, 0)), requests}
  end
end
