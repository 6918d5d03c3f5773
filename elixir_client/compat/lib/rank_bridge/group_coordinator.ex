defmodule RankBridge.GroupCoordinator do
  @moduledoc """
  vLLM's `GroupCoordinator` on a gang, with the functions, arities and conventions of the module that SnakeBridge
  generates for it, `Vllm.Distributed.GroupCoordinator`.

      {:ok, tp} = GroupCoordinator.new([[0, 1], [2, 3]], 2, "gloo", false, group_name: "tp")
      {:ok, sums} = GroupCoordinator.all_reduce(tp, [1.0, 2.0])
      {:ok, rows} = GroupCoordinator.all_gather(tp, sums, [0])      # or dim: 0
      {:ok, 3} = GroupCoordinator.next_rank(tp)

  Each function gives `{:ok, _}` or `{:error, %RankBridge.Error{}}`. Integers are integers, nil is nil. A method's
  optional arguments are in `args`, which is required: by position, as `[0]`, or by name, as `[dim: 0]`; `[]` for none. See
  `RankBridge.GroupCoordinator.Conventions`.

  ## The rank of a coordinator

  As in vLLM, a coordinator belongs to one rank, and a call is that rank's part of the operation: the other members have to
  call too, each from a process of its own, for a call waits for the others. Properties call no rank.

  The gang is `__runtime__: [gang: MyGang]`, else that of the pool `__runtime__: [pool_name: :rank_2]` (a pool stands for a
  rank: `config :rank_bridge, pools: [rank_2: {MyGang, 2}]`), else `config :rank_bridge, gang: MyGang`. The rank is
  `__runtime__: [rank: 2]`, else the pool's, else `local_rank`, if all ranks are on one host.

  A coordinator for no rank (`local_rank` nil, and neither a rank nor a pool given) stands for all ranks at once: a call is
  made on all of them, and whatever differs from rank to rank - tensors, values, sizes, results, properties - is a list by rank
  of the gang, nil for ranks in no group.

  ## Arguments

  A tensor is a `RankBridge.Ref`, a `SnakeBridge.Ref` of one or its wire map, or an argument of
  `RankBridge.Tensor.coerce/1`: that is sent to the rank first, and freed there after the call unless it is the result. `__runtime__: [timeout:
  milliseconds]` is how long the rank waits for the others; then the call is withdrawn, and never meets a later one.

  A rank alone in its group gets its own argument back. `src` and `dst` are ranks in the group. Refs are never freed because a
  process ends: they belong to the gang's session.
  """

  alias RankBridge.{Error, Gang, Group}
  alias RankBridge.GroupCoordinator.{AllRanks, Conventions, Making, Part, Signatures}
  alias RankBridge.SnakeBridge.Objects

  @typedoc "`rank` nil: it stands for all `size` ranks. `groups` are the groups at the time it was made."
  @type t :: %__MODULE__{
          gang: Gang.gang(),
          size: pos_integer(),
          rank: non_neg_integer() | nil,
          groups: [Group.t(), ...]
        }

  @typedoc "A coordinator, or SnakeBridge's ref of one: the struct, or its wire map."
  @type ref :: t() | map()

  @type result :: {:ok, term()} | {:error, Error.t()}

  @enforce_keys [:gang, :size, :rank, :groups]
  defstruct [:gang, :size, :rank, :groups]

  @doc """
  A rank's coordinator of its group. The groups are made if they do not exist.

  `group_ranks` are the ranks of each group, in group order. `backend` is the gang's own, or nil. `local_rank`: see the
  module; `use_device_communicator` changes nothing. In `args`, or by name:

    * `use_message_queue_broadcaster` - changes nothing: objects are broadcast by the backend
    * `group_name` - what the groups are named after: "tp/0", "tp/1". nil: a name made of `group_ranks`

  Any rank may call this alone: the first call makes the groups on all members. Coordinators of one name, or of none
  and the same `group_ranks`, share their groups. `:group_exists`: there are others of the name.
  """
  @spec new([[non_neg_integer()]], term(), term(), term(), term(), keyword()) ::
          {:ok, t()} | {:error, Error.t()}
  def new(group_ranks, local_rank, backend, use_device_communicator, args, opts \\ []) do
    {positional, named, runtime} = Conventions.split(args, opts)
    needed = [group_ranks, local_rank, backend, use_device_communicator]
    construct(needed ++ positional, named, runtime)
  end

  @doc "As `new/6`, of arguments by position and by name, and the runtime's options."
  @spec construct([term()], [{atom() | String.t(), term()}], term()) ::
          {:ok, t()} | {:error, Error.t()}
  def construct(positional, named, runtime) do
    with {:ok, run} <- Conventions.runtime(runtime, "new"),
         {:ok, given} <- Conventions.bind(Signatures.constructor(), positional, named),
         do: Making.new(given, run)
  end

  for signature <- Signatures.methods() do
    needed = Enum.map(signature.needed, &Macro.var(&1, nil))
    terms = Enum.map(needed, fn _variable -> quote(do: term()) end)

    parameters =
      signature.optional
      |> Keyword.merge(signature.named)
      |> Enum.map_join(", ", fn {name, default} -> "`#{name}` (#{inspect(default)})" end)

    text = if parameters == "", do: "", else: " In `args`, or by name: #{parameters}."

    @doc "Gives #{signature.gives}.#{text}"
    if signature.optional == [] do
      @spec unquote(signature.name)(ref(), unquote_splicing(terms), keyword()) :: result()
      def unquote(signature.name)(ref, unquote_splicing(needed), opts \\ []),
        do: called(ref, unquote(signature.name), unquote(needed), [], opts)
    else
      @spec unquote(signature.name)(ref(), unquote_splicing(terms), term(), keyword()) :: result()
      def unquote(signature.name)(ref, unquote_splicing(needed), args, opts \\ []),
        do: called(ref, unquote(signature.name), unquote(needed), args, opts)
    end
  end

  for {name, text} <- Signatures.properties() do
    @doc "#{text} Asks nobody."
    @spec unquote(name)(ref()) :: result()
    def unquote(name)(ref), do: property(ref, unquote(name))
  end

  defp called(ref, name, needed, args, opts) do
    {positional, named, runtime} = Conventions.split(args, opts)
    call(ref, name, needed ++ positional, named, runtime)
  end

  @doc "Calls the method of a name, also as text, with arguments by position and by name, and the runtime's options."
  @spec call(ref(), atom() | String.t(), [term()], [{atom() | String.t(), term()}], term()) ::
          result()
  def call(ref, name, positional, named, runtime) do
    with {:ok, coordinator} <- find(ref, "#{name}"),
         {:ok, signature} <- method(name),
         {:ok, run} <- Conventions.runtime(runtime, "#{name}"),
         :ok <- check_place(coordinator, run, "#{name}"),
         {:ok, given} <- Conventions.bind(signature, positional, named) do
      if coordinator.rank,
        do: Part.call(coordinator, signature.name, given, run),
        else: AllRanks.call(coordinator, signature.name, given, run)
    end
  end

  @doc "The property of a name, also as text."
  @spec property(ref(), atom() | String.t()) :: result()
  def property(ref, name) do
    with {:ok, coordinator} <- find(ref, "#{name}"),
         {:ok, name} <- property_name(name),
         do:
           {:ok,
            if(coordinator.rank,
              do: Part.property(coordinator, name),
              else: AllRanks.property(coordinator, name)
            )}
  end

  @doc "The group of the coordinator's rank."
  @spec group(t()) :: Group.t()
  def group(%__MODULE__{rank: rank} = coordinator) when rank != nil,
    do: Enum.find(coordinator.groups, &Group.member?(&1, rank))

  defp find(%__MODULE__{} = coordinator, _operation), do: {:ok, coordinator}

  defp find(ref, operation) do
    case Objects.of_ref(ref) do
      {:ok, {:coordinator, coordinator}} -> {:ok, coordinator}
      {:error, error} -> {:error, %{error | operation: operation}}
      _other -> refuse(operation, "this is no coordinator", "what new has given", shown(ref))
    end
  end

  # A call is not routed to a rank that has no such object.
  defp check_place(coordinator, run, operation) do
    cond do
      run.gang not in [nil, coordinator.gang] ->
        refuse(
          operation,
          "the coordinator is of another gang",
          inspect(coordinator.gang),
          shown(run.gang)
        )

      run.rank not in [nil, coordinator.rank] ->
        refuse(
          operation,
          "the coordinator is of another rank",
          shown(coordinator.rank),
          shown(run.rank)
        )

      true ->
        :ok
    end
  end

  defp method(name) do
    with :error <- Signatures.method(name),
         do: refuse("#{name}", "there is no such method", "one of vLLM's", "#{name}")
  end

  defp property_name(name) do
    with :error <- Signatures.property(name),
         do: refuse("#{name}", "there is no such property", "one of vLLM's", "#{name}")
  end

  defp refuse(operation, message, expected, got) do
    fields = [operation: operation, expected: expected, got: got]
    {:error, Error.refusal(:invalid_argument, message, fields)}
  end

  defp shown(term), do: inspect(term, limit: 3, printable_limit: 40)

  defimpl Inspect do
    def inspect(coordinator, _options) do
      names = Enum.map_join(coordinator.groups, ", ", & &1.name)
      ranks = if coordinator.rank, do: "rank #{coordinator.rank}", else: "all ranks"
      "#RankBridge.GroupCoordinator<#{ranks} in #{names}>"
    end
  end
end
