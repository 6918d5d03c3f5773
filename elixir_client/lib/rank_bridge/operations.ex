defmodule RankBridge.Operations do
  @moduledoc "Operations that are not waited for, and outcomes by id: behind the functions of `RankBridge`."

  alias RankBridge.{Calls, Collectives, Error, Groups, Operation, Options, Ref, Value}
  alias RankBridge.Gang.View
  alias RankBridge.Proto.V1

  @type result(value) :: {:ok, value} | {:error, Error.t()}

  @states %{
    OPERATION_STATE_QUEUED: :queued,
    OPERATION_STATE_ADMISSION: :admission,
    OPERATION_STATE_DATA: :data,
    OPERATION_STATE_DONE: :done
  }

  # Milliseconds after an operation's own timeout by which the ranks have told of a member that did not come.
  @verdict 2_000
  @longest 0xFFFF_FFFF

  @doc "Begins a collective on all members of a group at once. `refs` is nil for one that takes none."
  @spec submit(View.t(), atom(), [Ref.t()] | nil, keyword()) :: result(Operation.t())
  def submit(view, name, refs, opts) do
    with {:ok, plan} <- Collectives.plan(view, name, refs, opts), do: begin(view, plan)
  end

  @doc "Begins one rank's part of a collective."
  @spec submit_on(View.t(), atom(), non_neg_integer(), Ref.t() | nil, keyword()) ::
          result(Operation.t())
  def submit_on(view, name, rank, ref, opts) do
    with {:ok, plan} <- Collectives.plan_on(view, name, rank, ref, opts), do: begin(view, plan)
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

    case Calls.gathered(results, true) do
      {:ok, _ids} ->
        {:ok,
         %Operation{
           id: direct.operation_id,
           name: plan.name,
           group: direct.group,
           ranks: for({rank, _request} <- requests, do: rank),
           timeout: plan.timeout
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

  @doc "How far an operation is on each member."
  @spec poll(View.t(), Operation.t() | String.t(), keyword()) :: result([Operation.status()])
  def poll(view, operation, opts) do
    with {:ok, operation, opts} <- find(view, operation, opts, "poll") do
      request = %V1.PollRequest{operation_id: operation.id}

      view
      |> ask(operation.ranks, V1.OperationService.poll(), request, opts.timeout)
      |> Enum.map(fn {rank, result} -> {rank, with({:ok, s} <- result, do: status(rank, s))} end)
      |> Calls.gathered(false)
    end
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

  @doc "Waits for the outcome on each member."
  @spec await(View.t(), Operation.t() | String.t(), keyword()) :: result([Ref.t() | nil] | nil)
  def await(view, operation, opts) do
    with {:ok, operation, opts} <- find(view, operation, opts, "await") do
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

      view
      |> Calls.each(requests, call)
      |> Enum.map(fn {rank, result} ->
        {rank, with({:ok, value} <- result, do: value(value, Calls.context(rank, call)))}
      end)
      |> Calls.gathered(true)
      |> case do
        {:ok, values} -> {:ok, if(Enum.all?(values, &is_nil/1), do: nil, else: values)}
        error -> error
      end
    end
  end

  @doc "Withdraws an operation from each member that has not admitted it."
  @spec cancel(View.t(), Operation.t() | String.t(), keyword()) :: result([boolean()])
  def cancel(view, operation, opts) do
    with {:ok, operation, opts} <- find(view, operation, opts, "cancel") do
      request = %V1.CancelRequest{operation_id: operation.id}

      view
      |> ask(operation.ranks, V1.OperationService.cancel(), request, opts.timeout)
      |> Calls.gathered(false)
    end
  end

  defp find(_view, %Operation{} = operation, opts, name) do
    with {:ok, opts} <- Options.read(opts, [], name), do: {:ok, operation, opts}
  end

  defp find(view, id, opts, name) when is_binary(id) do
    with {:ok, opts} <- Options.read(opts, [group: "world", rank: nil], name),
         {:ok, ranks} <- ranks(view, opts, name) do
      {:ok, %Operation{id: id, group: opts.group, ranks: ranks, timeout: view.timeout}, opts}
    end
  end

  defp find(_view, other, _opts, name) do
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
