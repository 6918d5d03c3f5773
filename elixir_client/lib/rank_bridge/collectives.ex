defmodule RankBridge.Collectives do
  @moduledoc """
  The collectives, each declared once: what is called, which options it has, what it takes and gives.

  One operation more is one entry of `declaration/1` and one function in `RankBridge`.
  """

  alias RankBridge.{Calls, Error, Groups, Id, Options, Ref, Value}
  alias RankBridge.Gang.View
  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.Rpc

  @enforce_keys [:rpc, :takes, :gives]
  defstruct [:rpc, :takes, :gives, options: []]

  @typedoc """
  * `takes` - whether each member's request names a ref
  * `options` - name, kind and default of what the request says beside `call` and `ref_id`
  * `gives` - `:refs`: a list with a ref or nil for each member; `:nothing`: nil
  """
  @type t :: %__MODULE__{
          rpc: Rpc.t(),
          takes: :refs | :nothing,
          options: [{atom(), {kind(), term()}}],
          gives: :refs | :nothing
        }

  @type kind :: :rank_in_group | :dim | :reduce_op | :boolean

  @reduce_ops %{
    sum: :REDUCE_OP_SUM,
    product: :REDUCE_OP_PRODUCT,
    min: :REDUCE_OP_MIN,
    max: :REDUCE_OP_MAX,
    avg: :REDUCE_OP_AVG
  }

  @typedoc "One collective on some ranks, before it is sent: a request for each. `timeout` in milliseconds."
  @type plan :: %{
          name: atom(),
          gives: :refs | :nothing,
          timeout: pos_integer(),
          call: Calls.t(),
          requests: [{non_neg_integer(), struct()}]
        }

  # Its name is that of its field in the message `Operation`.
  @names for {_number, name, _type, _presence} <- V1.Operation.__fields__(), do: name

  @doc "Everything about one collective."
  @spec declaration(atom()) :: t()
  def declaration(:barrier),
    do: %__MODULE__{rpc: V1.CollectiveService.barrier(), takes: :nothing, gives: :nothing}

  def declaration(:broadcast) do
    %__MODULE__{
      rpc: V1.CollectiveService.broadcast(),
      takes: :refs,
      options: [src_rank_in_group: {:rank_in_group, 0}, in_place: {:boolean, false}],
      gives: :refs
    }
  end

  def declaration(:gather) do
    %__MODULE__{
      rpc: V1.CollectiveService.gather(),
      takes: :refs,
      options: [dst_rank_in_group: {:rank_in_group, 0}, dim: {:dim, -1}],
      gives: :refs
    }
  end

  def declaration(:all_reduce) do
    %__MODULE__{
      rpc: V1.CollectiveService.all_reduce(),
      takes: :refs,
      options: [op: {:reduce_op, :sum}, in_place: {:boolean, false}],
      gives: :refs
    }
  end

  def declaration(:all_gather) do
    %__MODULE__{
      rpc: V1.CollectiveService.all_gather(),
      takes: :refs,
      options: [dim: {:dim, -1}],
      gives: :refs
    }
  end

  @doc "Runs a collective on all members of a group at once. `refs` is nil for one that takes none."
  @spec run(View.t(), atom(), [Ref.t()] | nil, keyword()) ::
          {:ok, [Ref.t() | nil] | nil} | {:error, Error.t()}
  def run(view, name, refs, opts) do
    with {:ok, plan} <- plan(view, name, refs, opts), do: perform(view, plan)
  end

  @doc "What `run/4` sends."
  @spec plan(View.t(), atom(), [Ref.t()] | nil, keyword()) :: {:ok, plan()} | {:error, Error.t()}
  def plan(view, name, refs, opts) do
    with {:ok, opts, fields} <- options(name, opts),
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
    with {:ok, opts, fields} <- options(name, opts),
         :ok <- View.check_rank(view, rank, "#{name}"),
         do: plan_members(view, name, [rank], ref && [ref], opts, fields)
  end

  defp options(name, _opts) when name not in @names do
    {:error,
     Error.refusal(:invalid_argument, "there is no such collective",
       expected: "one of #{Enum.map_join(@names, ", ", &inspect/1)}",
       got: inspect(name, limit: 3)
     )}
  end

  defp options(name, opts) do
    declaration = declaration(name)
    defaults = for {option, {_kind, default}} <- declaration.options, do: {option, default}

    with {:ok, opts} <-
           Options.read(opts, [group: "world", operation_id: nil] ++ defaults, "#{name}"),
         {:ok, fields} <- fields(declaration, opts, "#{name}"),
         do: {:ok, opts, fields}
  end

  defp plan_members(view, name, members, refs, opts, fields) do
    declaration = declaration(name)
    timeout = opts.timeout || view.timeout
    id = opts.operation_id || Id.uuid()

    call = %Calls{
      rpc: declaration.rpc,
      operation: "#{name}",
      group: opts.group,
      operation_id: id,
      deadline: Calls.deadline(timeout)
    }

    with {:ok, ref_ids, session_id} <- ref_ids(view, declaration, refs, members, call) do
      header = %V1.Call{
        group: opts.group,
        operation_id: id,
        timeout_ms: timeout,
        session_id: session_id
      }

      request = struct!(declaration.rpc.request, [{:call, header} | fields])

      requests =
        for {rank, ref_id} <- Enum.zip(members, ref_ids), do: {rank, with_ref(request, ref_id)}

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

  defp fields(declaration, opts, operation) do
    Enum.reduce_while(declaration.options, {:ok, []}, fn {name, {kind, _default}},
                                                         {:ok, fields} ->
      case field(kind, Map.fetch!(opts, name)) do
        {:ok, value} -> {:cont, {:ok, [{name, value} | fields]}}
        {reason, expected} -> {:halt, wrong(reason, name, expected, opts, operation)}
      end
    end)
  end

  defp field(:rank_in_group, rank) when is_integer(rank) and rank in 0..0xFFFF_FFFF,
    do: {:ok, rank}

  defp field(:rank_in_group, _other), do: {:rank_out_of_range, "a rank in the group"}
  defp field(:dim, dim) when is_integer(dim) and dim in -0x8000_0000..0x7FFF_FFFF, do: {:ok, dim}
  defp field(:dim, _other), do: {:invalid_argument, "a dimension"}
  defp field(:boolean, value) when is_boolean(value), do: {:ok, value}
  defp field(:boolean, _other), do: {:invalid_argument, "true or false"}

  defp field(:reduce_op, op) when is_map_key(@reduce_ops, op),
    do: {:ok, Map.fetch!(@reduce_ops, op)}

  defp field(:reduce_op, _other),
    do: {:invalid_argument, "one of :sum, :product, :min, :max, :avg"}

  defp wrong(reason, name, expected, opts, operation) do
    {:error,
     Error.refusal(reason, "#{name} is wrong",
       operation: operation,
       group: opts.group,
       expected: expected,
       got: inspect(Map.fetch!(opts, name), limit: 5)
     )}
  end

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
