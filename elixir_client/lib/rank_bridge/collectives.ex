defmodule RankBridge.Collectives do
  @moduledoc """
  Calls of the collectives that `RankBridge.Collectives.Declaration` declares: behind the functions of `RankBridge`.
  """

  alias RankBridge.{Calls, Error, Groups, Id, Ref, Value}
  alias RankBridge.Collectives.{Arguments, Declaration}
  alias RankBridge.Gang.View
  alias RankBridge.Proto.V1

  @typedoc "One collective on some ranks, before it is sent: a request for each. `timeout` in milliseconds."
  @type plan :: %{
          name: atom(),
          gives: :refs | :nothing,
          timeout: pos_integer(),
          call: Calls.t(),
          requests: [{non_neg_integer(), struct()}]
        }

  @doc "Runs a collective on all members of a group at once. `refs` is nil for one that takes none."
  @spec run(View.t(), atom(), [Ref.t()] | nil, keyword()) ::
          {:ok, [Ref.t() | nil] | nil} | {:error, Error.t()}
  def run(view, name, refs, opts) do
    with {:ok, plan} <- plan(view, name, refs, opts), do: perform(view, plan)
  end

  @doc "What `run/4` sends."
  @spec plan(View.t(), atom(), [Ref.t()] | nil, keyword()) :: {:ok, plan()} | {:error, Error.t()}
  def plan(view, name, refs, opts) do
    with {:ok, opts, fields} <- Arguments.read(name, :of_gang, opts),
         {:ok, members} <-
           Groups.members(view, opts.group, opts.timeout || view.timeout, "#{name}") do
      plan_members(view, name, members, refs, opts, fields)
    end
  end

  @doc """
  One rank's part of a collective. Someone must call the other members with the same `:operation_id`, or none.
  `ref` is nil for a collective that takes none.
  """
  @spec run_on(View.t(), atom(), non_neg_integer(), Ref.t() | nil, keyword()) ::
          {:ok, Ref.t() | nil} | {:error, Error.t()}
  def run_on(view, name, rank, ref, opts) do
    with {:ok, plan} <- plan_on(view, name, rank, ref, opts),
         {:ok, given} <- perform(view, plan),
         do: {:ok, given && hd(given)}
  end

  @doc "What `run_on/5` sends."
  @spec plan_on(View.t(), atom(), non_neg_integer(), Ref.t() | nil, keyword()) ::
          {:ok, plan()} | {:error, Error.t()}
  def plan_on(view, name, rank, ref, opts) do
    with {:ok, opts, fields} <- Arguments.read(name, :of_rank, opts),
         :ok <- View.check_rank(view, rank, "#{name}"),
         do: plan_members(view, name, [rank], ref && [ref], opts, fields)
  end

  defp plan_members(view, name, members, refs, opts, fields) do
    declaration = Declaration.of(name)
    timeout = opts.timeout || view.timeout
    id = opts.operation_id || Id.uuid()

    call = %Calls{
      rpc: declaration.rpc,
      operation: "#{name}",
      group: opts.group,
      operation_id: id,
      deadline: Calls.deadline(timeout)
    }

    with {:ok, ref_ids, session_id} <- ref_ids(view, declaration, refs, members, call),
         {:ok, shares} <- Arguments.shares(fields, length(members), call) do
      header = %V1.Call{
        group: opts.group,
        operation_id: id,
        timeout_ms: timeout,
        session_id: session_id
      }

      requests =
        for {rank, ref_id, share} <- Enum.zip([members, ref_ids, shares]) do
          {rank, with_ref(struct!(declaration.rpc.request, [{:call, header} | share]), ref_id)}
        end

      {:ok,
       %{name: name, gives: declaration.gives, timeout: timeout, call: call, requests: requests}}
    end
  end

  defp perform(view, plan) do
    case Calls.each(view, plan.requests, plan.call)
         |> Enum.map(&value(&1, plan.call))
         |> Calls.gathered(true) do
      {:ok, values} ->
        {:ok, given(plan.gives, values)}

      {:error, error} ->
        # Perhaps the group has other members by now.
        Groups.forget(view, plan.call.group)
        {:error, error}
    end
  end

  defp with_ref(request, nil), do: request
  defp with_ref(request, ref_id), do: %{request | ref_id: ref_id}

  defp value({rank, {:ok, value}}, call) do
    case Value.from_proto(value) do
      {:ok, value} ->
        {rank, {:ok, value}}

      {:error, error} ->
        {rank, {:error, Error.protocol(error.message, Calls.context(rank, call))}}
    end
  end

  defp value(failed, _call), do: failed

  defp given(:nothing, _values), do: nil
  defp given(:refs, values), do: values

  defp ref_ids(view, %{takes: :nothing}, nil, members, _call),
    do: {:ok, Enum.map(members, fn _rank -> nil end), view.session_id}

  defp ref_ids(_view, %{takes: :nothing}, refs, _members, call) do
    {:error,
     Error.refusal(:invalid_argument, "this collective takes no refs",
       operation: call.operation,
       group: call.group,
       expected: "nil",
       got: inspect(refs, limit: 3)
     )}
  end

  defp ref_ids(_view, %{takes: :refs}, refs, members, call) do
    with :ok <- check_refs(refs, members),
         {:ok, session_id} <- common_session(refs) do
      {:ok, Enum.map(refs, & &1.id), session_id}
    else
      {:refused, message, expected, got} ->
        {:error,
         Error.refusal(:invalid_argument, message,
           operation: call.operation,
           group: call.group,
           expected: expected,
           got: got
         )}
    end
  end

  defp common_session(refs) do
    case Enum.uniq_by(refs, & &1.session_id) do
      [%Ref{session_id: session_id}] -> {:ok, session_id}
      several -> {:refused, "the refs are of several sessions", "one", "#{length(several)}"}
    end
  end

  defp check_refs(refs, members) when is_list(refs) and length(refs) == length(members) do
    refs
    |> Enum.zip(members)
    |> Enum.with_index()
    |> Enum.find_value(:ok, fn
      {{%Ref{rank: rank}, rank}, _place} ->
        nil

      {{%Ref{rank: other}, rank}, place} ->
        {:refused, "ref #{place} is of another rank", "of rank #{rank}", "of rank #{other}"}

      {{other, rank}, place} ->
        {:refused, "entry #{place} is no ref", "a ref of rank #{rank}", inspect(other, limit: 3)}
    end)
  end

  defp check_refs(refs, members) do
    got = if is_list(refs), do: "#{length(refs)}", else: inspect(refs, limit: 3)
    {:refused, "one ref for each member of the group is needed", "#{length(members)}", got}
  end
end
