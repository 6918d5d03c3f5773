defmodule RankBridge.Operations.Plan do
  @moduledoc false
  # One operation before it is sent: a request for each rank that is called. Every way to call an operation begins with a plan.
  #
  # `timeout` is the operation's, in milliseconds. `gives` says how the result is made of the ranks' results, and `calls` how the
  # requests go: one to each rank, or all of them as one gang call.

  alias RankBridge.{Calls, CallSite, Error, Groups, Id, Traces, Value}
  alias RankBridge.Gang.View
  alias RankBridge.Operations.{Arguments, Composed, Declaration, Execution, GangCall, Given}
  alias RankBridge.Proto.V1
  alias RankBridge.Run.Ids

  # The requests have what is to be sent.
  @derive {Inspect, only: [:name, :timeout]}
  @enforce_keys [:name, :gives, :timeout, :call, :requests]
  defstruct [:name, :gives, :timeout, :call, :requests, calls: :ranks]

  @type t :: %__MODULE__{
          name: atom(),
          gives: Given.t(),
          timeout: pos_integer(),
          call: Calls.t(),
          requests: [{non_neg_integer(), struct()}],
          calls: :gang | :ranks
        }

  @type result(value) :: {:ok, value} | {:error, Error.t()}

  @doc "An operation of all members of a group. `input` is what they bring, nil: nothing."
  @spec of_gang(View.t(), atom(), term(), keyword()) :: result(t())
  def of_gang(view, name, input, opts) do
    opts = Arguments.in_its_group(view, opts, input)

    with {:ok, opts, fields} <- Arguments.read(name, :of_gang, opts),
         {:ok, members} <-
           Groups.members(view, opts.group, opts.timeout || view.timeout, "#{name}"),
         do: make(view, name, :of_gang, members, input, opts, fields)
  end

  @doc "One rank's part of an operation."
  @spec of_rank(View.t(), atom(), non_neg_integer(), term(), keyword()) :: result(t())
  def of_rank(view, name, rank, input, opts) do
    opts = view |> Arguments.in_its_group(opts, input) |> Ids.shared(view, rank, name)

    with {:ok, opts, fields} <- Arguments.read(name, :of_rank, opts),
         :ok <- View.check_rank(view, rank, "#{name}"),
         do: make(view, name, :of_rank, [rank], input, opts, fields)
  end

  @doc "The same operation of several ranks, each by itself. `inputs` is what each brings, in the order of the results."
  @spec of_each(View.t(), atom(), [{non_neg_integer(), term()}, ...], keyword()) :: result(t())
  def of_each(view, name, inputs, opts) do
    opts = Keyword.put(opts, :operation_id, Id.uuid())
    plans = for {rank, input} <- inputs, do: of_rank(view, name, rank, input, opts)

    with nil <- Enum.find(plans, &match?({:error, _error}, &1)) do
      requests = for {:ok, plan} <- plans, request <- plan.requests, do: request
      {:ok, first} = hd(plans)
      {:ok, %{first | requests: requests, gives: :each}}
    end
  end

  defp make(view, name, caller, members, input, opts, fields) do
    declaration = Declaration.of(name)
    timeout = opts.timeout || view.timeout
    id = opts.operation_id || Id.uuid()

    call = %Calls{
      rpc: V1.GangService.execute(),
      operation: "#{name}",
      group: opts.group,
      operation_id: id,
      deadline: Calls.deadline(timeout)
    }

    with {:ok, {brought, sessions}} <-
           Composed.read(declaration, input, caller, members, opts, call),
         {:ok, session_id} <- common_session(view, sessions, call),
         {:ok, shares} <- Arguments.shares(fields, length(members), call) do
      header = %V1.Call{
        group: opts.group,
        operation_id: id,
        timeout_ms: timeout,
        session_id: session_id,
        traceparent: Traces.traceparent(),
        site: CallSite.current()
      }

      requests =
        for {rank, mine, share} <- Enum.zip([members, brought, shares]) do
          {rank, struct!(declaration.rpc.request, [{:call, header} | mine ++ share])}
        end

      {:ok,
       %__MODULE__{
         name: name,
         gives: Given.by(declaration, caller, input, opts),
         timeout: timeout,
         call: call,
         requests: requests,
         calls: calls(declaration, caller, opts, view)
       }}
    end
  end

  defp calls(%{called_on: :gang}, _caller, _opts, _view), do: :gang
  defp calls(_declaration, :of_gang, opts, view), do: opts.calls || view.calls
  defp calls(_declaration, :of_rank, _opts, _view), do: :ranks

  defp common_session(view, [], _call), do: {:ok, view.session_id}
  defp common_session(_view, [session_id], _call), do: {:ok, session_id}

  defp common_session(_view, several, call) do
    {:error,
     Error.refusal(:invalid_argument, "the refs are of several sessions",
       operation: call.operation,
       group: call.group,
       expected: "one",
       got: "#{length(several)}"
     )}
  end

  @doc "Sends the requests, and waits for the result."
  @spec perform(View.t(), t()) :: result(term())
  def perform(view, plan) do
    result(view, plan, each(view, plan))
  end

  @doc "What it gives, of the results of its ranks."
  @spec result(View.t(), t(), [{non_neg_integer(), Calls.result()}]) :: result(term())
  def result(view, plan, results) do
    results
    |> Enum.map(&value(&1, plan.call))
    |> then(&Given.gathered(plan.gives, &1, true))
    |> case do
      {:ok, values} ->
        Given.tell(plan.gives, values, plan.call)

      {:error, error} ->
        # Perhaps the group has other members by now.
        Groups.forget(view, plan.call.group)
        {:error, error}
    end
  end

  defp each(view, %{calls: :ranks} = plan),
    do: Execution.parts(view, plan.name, plan.requests, plan.call)

  defp each(view, %{calls: :gang} = plan),
    do: GangCall.each(view, plan.name, plan.requests, plan.call)

  defp value({rank, {:ok, value}}, call) do
    with {:error, error} <- Value.from_proto(value) do
      {rank, {:error, Error.protocol(error.message, Calls.context(rank, call))}}
    else
      {:ok, value} -> {rank, {:ok, value}}
    end
  end

  defp value(failed, _call), do: failed
end
