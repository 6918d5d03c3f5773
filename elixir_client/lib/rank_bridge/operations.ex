defmodule RankBridge.Operations do
  @moduledoc """
  Operations by name and id: one rank's part of an operation, operations without waiting, and their outcomes.

  `operation` is a name, such as `:all_reduce`. `input` is the argument that the function of this name has after the gang;
  nil if it has none.

  A begun operation is a `%RankBridge.Operation{}`, plain data that can be kept and sent, and outlives the gang that it came from:

    * `id` - the same on every member
    * `name` - of the operation, as in `:all_reduce`; nil: it was asked for by its id
    * `group` - name of its group
    * `ranks` - the ranks on which it was begun: its members in group order, or one
    * `timeout` - the longest that it may wait for its members, in milliseconds
  """

  use RankBridge.Bangs

  alias RankBridge.{Calls, Entry, Error, Gang, Groups, Operation, Options, Value}
  alias RankBridge.Gang.View
  alias RankBridge.Operations.{Given, Plan}
  alias RankBridge.Proto.V1

  @type result(value) :: {:ok, value} | {:error, Error.t()}

  @states %{
    OPERATION_STATE_QUEUED: :queued,
    OPERATION_STATE_ADMISSION: :admission,
    OPERATION_STATE_DATA: :data,
    OPERATION_STATE_DONE: :done
  }

  # Milliseconds after an operation's own timeout within which the ranks report a member that did not come.
  @verdict 2_000
  @longest 0xFFFF_FFFF

  @doc """
  One rank's part of an operation, for programs in which several drive the gang. Someone must call the other
  members: with the same `:operation_id`, or all without one (an empty text). Within `RankBridge.run/3`, members that say
  nothing of it have the same.

  `operation` is its name, as in `:all_reduce`; `input` is the rank's own: a ref, a value, or nil for `:barrier`. Options:
  the operation's.
  """
  spec_with_bang call_rank(Gang.gang(), non_neg_integer(), atom(), term(), keyword()) :: Value.t()

  def call_rank(gang, rank, operation, input, opts \\ []) do
    Entry.call(gang, :call_rank, opts, fn view -> run_rank(view, rank, operation, input, opts) end)
  end

  @doc "On the view of a gang: `call_rank/5`."
  @spec run_rank(View.t(), non_neg_integer(), atom(), term(), keyword()) :: result(term())
  def run_rank(view, rank, operation, input, opts) do
    with {:ok, plan} <- Plan.of_rank(view, operation, rank, input, opts),
         do: Plan.perform(view, plan)
  end

  @doc """
  Begins a collective on every member of a group, and returns as soon as they all have it.

      {:ok, operation} = RankBridge.submit(gang, :all_reduce, refs, op: :max)
      {:ok, maxima} = RankBridge.await(gang, operation)

  `operation` is the collective's name; `input` is nil for `:barrier`. Options: the collective's. If a rank refuses it,
  it is withdrawn on the others.
  """
  spec_with_bang submit(Gang.gang(), atom(), term(), keyword()) :: Operation.t()

  def submit(gang, operation, input, opts \\ []) do
    Entry.call(gang, :submit, opts, fn view -> begin_gang(view, operation, input, opts) end)
  end

  @doc "On the view of a gang: `submit/4`."
  @spec begin_gang(View.t(), atom(), term(), keyword()) :: result(Operation.t())
  def begin_gang(view, operation, input, opts) do
    with :ok <- check_submitted(opts),
         {:ok, plan} <- Plan.of_gang(view, operation, input, opts),
         do: begin(view, plan)
  end

  # The gang's default is none of the caller's words.
  defp check_submitted(opts) do
    with {:gang, _others} <- Options.pop(opts, :calls) do
      message = "what is submitted goes to each rank"

      {:error,
       Error.refusal(:invalid_argument, message, operation: "submit", got: "calls: :gang")}
    else
      _other -> :ok
    end
  end

  @doc "Begins one rank's part of an operation: `submit/4` as `call_rank/5`."
  spec_with_bang submit_rank(Gang.gang(), non_neg_integer(), atom(), term(), keyword()) ::
                   Operation.t()

  def submit_rank(gang, rank, operation, input, opts \\ []) do
    Entry.call(gang, :submit_rank, opts, fn view ->
      begin_rank(view, rank, operation, input, opts)
    end)
  end

  @doc "On the view of a gang: `submit_rank/5`."
  @spec begin_rank(View.t(), non_neg_integer(), atom(), term(), keyword()) ::
          result(Operation.t())
  def begin_rank(view, rank, operation, input, opts) do
    with {:ok, plan} <- Plan.of_rank(view, operation, rank, input, opts), do: begin(view, plan)
  end

  @doc """
  How far an operation is on each of its members, in group order.

  `operation` is what `submit/4` gave, or the id of any operation: also of one whose call was lost, or that another
  program began. Options for an id: `:group` (default "world"), or `:rank`, to ask that one alone.
  The error `:unknown_operation` says that a rank has never had it, or has forgotten it after thousands of others.
  """
  spec_with_bang poll(Gang.gang(), Operation.t() | String.t(), keyword()) :: [Operation.status()]

  def poll(gang, operation, opts \\ []) do
    Entry.call(gang, :poll, opts, fn view -> statuses(view, operation, opts) end)
  end

  defp statuses(view, operation, opts) do
    with {:ok, operation, opts} <- find(view, operation, opts, "poll") do
      request = %V1.PollRequest{operation_id: operation.id}

      view
      |> ask(operation.ranks, V1.OperationService.poll(), request, opts.timeout)
      |> Enum.map(fn {rank, result} -> {rank, with({:ok, s} <- result, do: status(rank, s))} end)
      |> then(&Given.gathered(operation.gives, &1, false))
    end
  end

  @doc "Whether an operation is done on all its ranks. Arguments as of `poll/3`."
  spec_with_bang is_complete(Gang.gang(), Operation.t() | String.t(), keyword()) :: boolean()

  def is_complete(gang, operation, opts \\ []) do
    Entry.call(gang, :is_complete, opts, fn view ->
      with {:ok, statuses} <- statuses(view, operation, opts),
           do: {:ok, Enum.all?(statuses, &(&1.state == :done))}
    end)
  end

  @doc """
  Waits for an operation's outcome, and gives what the direct call gives. May be called again, also from another
  program, and gives the same.

  Of an id it is a list of what each member got, in group order; nil if no member got anything, as of a barrier. So it
  is of what `submit_rank/5` gave, where `wait/3` gives the one rank's.

  `operation` and options as of `poll/3`. `:timeout` is how long to wait (default: the operation's own, or for an id
  the gang's, and two seconds more); the error `:deadline_exceeded` says that it is not done yet, and goes on.
  """
  spec_with_bang await(Gang.gang(), Operation.t() | String.t(), keyword()) :: Value.t()

  def await(gang, operation, opts \\ []) do
    Entry.call(gang, :await, opts, fn view ->
      with {:ok, operation, opts} <- find(view, operation, opts, "await"),
           {:ok, values, call} <- outcomes(view, operation, opts),
           do: combined(operation.gives, values, call)
    end)
  end

  @doc """
  Waits for what `isend/5`, `irecv/3` and the like, or `submit_rank/5`, have begun, and gives what the direct call gives;
  for what `submit/4` gave as `await/3`, whose options it has. May be called again, and gives the same.
  """
  spec_with_bang wait(Gang.gang(), Operation.t(), keyword()) :: Value.t()

  def wait(gang, operation, opts \\ []) do
    Entry.call(gang, :wait, opts, fn view ->
      with {:ok, operation, opts} <- find(view, operation, opts, "wait"),
           {:ok, values, call} <- outcomes(view, operation, opts),
           do: Given.tell(operation.gives || :each, values, call)
    end)
  end

  @doc """
  Withdraws an operation where it was not admitted yet. Gives for each member, in group order, whether it was
  withdrawn there; false: it was admitted or done already. `operation` and options as of `poll/3`.
  """
  spec_with_bang cancel(Gang.gang(), Operation.t() | String.t(), keyword()) :: [boolean()]

  def cancel(gang, operation, opts \\ []) do
    Entry.call(gang, :cancel, opts, fn view ->
      with {:ok, operation, opts} <- find(view, operation, opts, "cancel") do
        request = %V1.CancelRequest{operation_id: operation.id}

        view
        |> ask(operation.ranks, V1.OperationService.cancel(), request, opts.timeout)
        |> then(&Given.gathered(operation.gives, &1, false))
      end
    end)
  end

  defp begin(view, plan) do
    direct = plan.call

    call = %Calls{
      direct
      | rpc: V1.OperationService.submit(),
        operation: "submit",
        deadline: view.timeout
    }

    requests =
      for {rank, request} <- plan.requests do
        operation = %V1.Operation{kind: {plan.name, request}}
        {rank, %V1.SubmitRequest{operation: operation}}
      end

    results = Calls.each(view, requests, call)

    case Given.gathered(plan.gives, results, true) do
      {:ok, _ids} ->
        {:ok,
         %Operation{
           id: direct.operation_id,
           name: plan.name,
           group: direct.group,
           ranks: for({rank, _request} <- requests, do: rank),
           timeout: plan.timeout,
           gives: plan.gives
         }}

      {:error, error} ->
        # Perhaps the group has other members by now.
        Groups.forget(view, direct.group)
        {:error, %{error | indefinite: not withdrawn?(view, direct.operation_id, results)}}
    end
  end

  # What one rank refuses no other shall wait for.
  defp withdrawn?(view, id, results) do
    begun =
      for {rank, result} <- results, not match?({:error, %Error{indefinite: false}}, result) do
        rank
      end

    view
    |> ask(begun, V1.OperationService.cancel(), %V1.CancelRequest{operation_id: id}, view.timeout)
    |> Enum.all?(fn
      {_rank, {:ok, withdrawn?}} -> withdrawn?
      {_rank, {:error, error}} -> error.reason == :unknown_operation
    end)
  end

  defp status(rank, status) do
    with {:ok, result} <- result(status.result, rank) do
      {:ok, %{rank: rank, state: Map.get(@states, status.state, :unspecified), result: result}}
    end
  end

  defp result(nil, _rank), do: {:ok, nil}

  defp result(%{outcome: {:error, error}}, _rank), do: {:ok, {:error, Error.from_proto(error)}}

  defp result(%{outcome: {:value, value}}, rank) do
    with {:ok, value} <- value(value, rank: rank, operation: "poll", changes?: false),
         do: {:ok, {:ok, value}}
  end

  defp result(%{outcome: nil}, rank),
    do: {:error, Error.protocol("a result with nothing set", rank: rank, operation: "poll")}

  defp outcomes(view, operation, opts) do
    timeout = opts.timeout || min(operation.timeout + @verdict, @longest)

    call = %Calls{
      rpc: V1.OperationService.await(),
      operation: "await",
      group: operation.group,
      operation_id: operation.id,
      deadline: Calls.deadline(timeout),
      begun?: true
    }

    request = %V1.AwaitRequest{operation_id: operation.id, timeout_ms: timeout}
    requests = for rank <- operation.ranks, do: {rank, request}

    results =
      for {rank, result} <- Calls.each(view, requests, call) do
        {rank, with({:ok, value} <- result, do: value(value, Calls.context(rank, call)))}
      end

    with {:ok, values} <- Given.gathered(operation.gives, results, true),
         do: {:ok, values, call}
  end

  # What is not known to be a list for each member is one only if there is something in it.
  defp combined(gives, values, _call) when gives in [nil, :one],
    do: {:ok, if(Enum.all?(values, &is_nil/1), do: nil, else: values)}

  defp combined(gives, values, call), do: Given.tell(gives, values, call)

  @doc "On the view of a gang: an operation, or one that its id and options name, and the options. `name` is for errors."
  @spec find(View.t(), Operation.t() | String.t(), keyword(), String.t()) ::
          {:ok, Operation.t(), map()} | {:error, Error.t()}
  def find(_view, %Operation{} = operation, opts, name) do
    with {:ok, opts} <- Options.read(opts, [], name), do: {:ok, operation, opts}
  end

  def find(view, id, opts, name) when is_binary(id) do
    with {:ok, opts} <- Options.read(opts, [group: view.group, rank: nil], name),
         {:ok, ranks} <- ranks(view, opts, name) do
      {:ok, %Operation{id: id, group: opts.group, ranks: ranks, timeout: view.timeout}, opts}
    end
  end

  def find(_view, other, _opts, name) do
    message = "neither an operation nor its id: #{inspect(other, limit: 3)}"
    {:error, Error.refusal(:invalid_argument, message, operation: name)}
  end

  defp ranks(view, %{rank: nil} = opts, name),
    do: Groups.members(view, opts.group, opts.timeout || view.timeout, name)

  defp ranks(view, %{rank: rank}, name) do
    with :ok <- View.check_rank(view, rank, name), do: {:ok, [rank]}
  end

  defp ask(view, ranks, rpc, request, timeout) do
    call = %Calls{
      rpc: rpc,
      operation: rpc.path |> Path.basename() |> String.downcase(),
      operation_id: request.operation_id,
      deadline: timeout || view.timeout,
      changes?: false
    }

    Calls.each(view, for(rank <- ranks, do: {rank, request}), call)
  end

  defp value(value, context) do
    with {:error, error} <- Value.from_proto(value),
         do: {:error, Error.protocol(error.message, context)}
  end
end
