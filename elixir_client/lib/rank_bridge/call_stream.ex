defmodule RankBridge.CallStream do
  @moduledoc """
  Gang calls of one group on one stream: the next call is sent before the last one has ended.

      alias RankBridge.CallStream

      {:ok, stream} = CallStream.open(gang)
      pushed = for refs <- batches, do: CallStream.push!(stream, :all_reduce, refs, in_place: true)
      results = Enum.map(pushed, &CallStream.await/1)
      :ok = CallStream.close(stream)

  A push returns as soon as the call is on its way; its `await/1` returns the result of the gang call
  (`RankBridge.Collectives`). The ranks do the calls in the order in which one process has pushed them. A call that
  fails does not stop the calls after it.

  All streams to a rank, and this gang's other operations on it, share one connection. Any process may push. A stream ends with
  the process that has opened it; its calls that were not admitted are withdrawn then, as are the calls of a pushing process
  that ends. A stream ends also with the connection to its rank, the group's first, as when that rank is lost: calls under way
  then get their outcome or `:unavailable`, and later pushes `:unavailable`; open another stream. Where calls wait for a gang
  that is recovering, `push/4` waits, too.
  """

  alias RankBridge.{Calls, Entry, Error, Gang, Groups, Options, Telemetry}
  alias RankBridge.Operations.{Execution, GangCall, Plan}
  alias RankBridge.CallStream.Pushed
  alias RankBridge.Rank.Server

  @derive {Inspect, only: [:gang, :group, :rank]}
  @enforce_keys [:gang, :group, :rank, :server, :stream]
  defstruct @enforce_keys

  @typedoc "`rank` - the one that gets the calls; `server` - the process of its streams; `stream` - this stream's reference."
  @type t :: %__MODULE__{
          gang: Gang.gang(),
          group: String.t(),
          rank: non_neg_integer(),
          server: Server.server(),
          stream: reference()
        }

  @doc """
  Opens a stream, which ends with the calling process. Options: `:group` (default "world"), `:timeout` of the
  lookup of its members and of opening the stream, and `:unready`.
  """
  @spec open(Gang.gang(), keyword()) :: {:ok, t()} | {:error, Error.t()}
  def open(gang, opts \\ []) do
    Entry.call(gang, :open_stream, opts, fn view ->
      with {:ok, opts} <- Options.read(opts, [group: view.group], "open_stream"),
           timeout = opts.timeout || view.timeout,
           {:ok, [rank | _others]} <- Groups.members(view, opts.group, timeout, "open_stream"),
           server = Server.of(view, rank),
           {:ok, stream} <- begin(server, rank, opts.group, timeout) do
        {:ok,
         %__MODULE__{gang: gang, group: opts.group, rank: rank, server: server, stream: stream}}
      end
    end)
  end

  @doc "As `open/2`; raises the error."
  @spec open!(Gang.gang(), keyword()) :: t()
  def open!(gang, opts \\ []), do: bang(open(gang, opts))

  defp begin(server, rank, group, timeout) do
    with {:error, status} <- Server.open(server, self(), timeout) do
      context = [rank: rank, group: group, operation: "open_stream", changes?: false]
      {:error, Error.from_status(status, context)}
    end
  end

  @doc """
  Sends a collective, and returns at once. `operation` is its name, as in `:all_reduce`, and `input` its function's argument
  after the gang; nil, if there is none. Options: its own, except `:group` and `:calls`.

  `:invalid_argument`: it is no collective, or a member's part is too large for a gang call. If the stream has ended, `await/1`
  returns the error.
  """
  @spec push(t(), atom(), term(), keyword()) :: {:ok, Pushed.t()} | {:error, Error.t()}
  def push(%__MODULE__{} = stream, operation, input \\ nil, opts \\ []) do
    Entry.call(stream.gang, :push, opts, fn view ->
      with :ok <- check(opts),
           opts = Options.put(opts, :group, stream.group),
           {:ok, plan} <- Plan.of_gang(view, operation, input, opts),
           {:ok, bytes} <- encode(plan),
           do: {:ok, pushed(stream, view, plan, bytes)}
    end)
  end

  @doc "As `push/4`; raises the error."
  @spec push!(t(), atom(), term(), keyword()) :: Pushed.t()
  def push!(stream, operation, input \\ nil, opts \\ []),
    do: bang(push(stream, operation, input, opts))

  defp check(opts) do
    with {[_ | _] = said, _others} <- Options.split(opts, [:group, :calls]) do
      message = "a stream is of one group, and of gang calls"

      {:error,
       Error.refusal(:invalid_argument, message, operation: "push", got: inspect(said, limit: 3))}
    else
      {[], _all} -> :ok
    end
  end

  defp encode(%{name: name, requests: requests, call: call}) do
    case GangCall.encode(name, requests, call) do
      {:ok, bytes} ->
        {:ok, bytes}

      {:refused, error} ->
        {:error, error}

      :large ->
        message = "a part is too large for a gang call"
        fields = [operation: call.operation, group: call.group]
        {:error, Error.refusal(:invalid_argument, message, fields)}
    end
  end

  defp pushed(stream, view, plan, bytes) do
    span = Calls.begin(view, stream.rank, plan.call)
    %{operation_id: id, deadline: deadline} = plan.call
    request = %{kind: :call, bytes: bytes, id: id, deadline: deadline, stream: stream.stream}
    ref = Server.push(stream.server, request)

    %Pushed{
      ref: ref,
      server: stream.server,
      pusher: self(),
      operation: plan.name,
      operation_id: id,
      ranks: GangCall.ranks(plan.requests),
      rank: stream.rank,
      plan: %{plan | requests: []},
      view: view,
      span: span
    }
  end

  @doc """
  Waits for the answer to what this process has pushed, once, and gives what the direct call gives: within its timeout and two
  seconds from when it was sent, which may be after others were answered.

  Errors: those of a gang call; `:cancelled`: it was withdrawn, or the stream was closed before. `:unavailable` and
  `:deadline_exceeded` that are `indefinite` leave open what became of it; `RankBridge.await(gang, operation_id)` asks the
  ranks.
  """
  @spec await(Pushed.t()) :: {:ok, term()} | {:error, Error.t()}
  def await(%Pushed{pusher: pusher} = pushed) when pusher == self() do
    Telemetry.run(pushed.span, fn ->
      result = read(pushed, Server.await(pushed.server, pushed.ref, :infinity))
      {result, Telemetry.outcome(result)}
    end)
  end

  def await(%Pushed{}),
    do: raise(ArgumentError, "what was pushed belongs to the process that has pushed it")

  @doc "As `await/1`; raises the error. Other pushes are not affected."
  @spec await!(Pushed.t()) :: term()
  def await!(pushed), do: bang(await(pushed))

  defp read(pushed, answer) do
    %{plan: plan, rank: rank, view: view} = pushed
    outcomes = Execution.understand(answer, :call, rank, plan.call)
    Plan.result(view, plan, GangCall.results(view, outcomes, pushed.ranks, plan.call))
  end

  @doc """
  Withdraws a push from every member that has not admitted it. Await it all the same: that returns its outcome.
  """
  @spec withdraw(Pushed.t()) :: :ok
  def withdraw(%Pushed{} = pushed), do: Server.withdraw(pushed.server, pushed.ref)

  @doc "Waits until all pushes are answered, and ends the stream. Closing twice is no error."
  @spec close(t()) :: :ok
  def close(%__MODULE__{} = stream), do: Server.close(stream.server, stream.stream)

  defp bang({:ok, value}), do: value
  defp bang({:error, error}), do: raise(error)
end
