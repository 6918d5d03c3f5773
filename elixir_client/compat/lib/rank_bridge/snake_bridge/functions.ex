defmodule RankBridge.SnakeBridge.Functions do
  @moduledoc "What the functions in `RankBridge.SnakeBridge.Names` do on a gang."

  alias RankBridge.{Error, Gang, Group, GroupCoordinator, Mesh, Queue, Ref, Tensor}
  alias RankBridge.GroupCoordinator.{Conventions, Making, Tensors}
  alias RankBridge.SnakeBridge.{Names, Wire}

  @type result :: {:ok, term()} | {:error, Error.t()}

  # Axes of vLLM's groups, by the functions that give them.
  @axes %{get_tp_group: "tp", get_pp_group: "pp", get_dp_group: "dp", get_ep_group: "ep"}
  @reduce_ops ~w(sum product min max avg band bor bxor)a

  @doc "Calls a function of an area with its arguments on the gang, and the rank, of `run`."
  @spec call(Names.area(), atom(), map(), Gang.gang(), Conventions.runtime()) :: result()
  def call(:vllm, :get_world_group, _given, gang, run), do: coordinator(gang, "world", run)

  def call(:vllm, name, _given, gang, run) when is_map_key(@axes, name),
    do: coordinator(gang, @axes[name], run)

  def call(:vllm, :get_tensor_model_parallel_rank, _given, gang, run),
    do: of_tp(gang, run, &GroupCoordinator.property(&1, :rank_in_group))

  def call(:vllm, :get_tensor_model_parallel_world_size, _given, gang, run),
    do: of_tp(gang, run, &GroupCoordinator.property(&1, :world_size))

  def call(:vllm, :broadcast_tensor_dict, given, gang, run),
    do: of_tp(gang, run, &method(&1, :broadcast_tensor_dict, given, run))

  def call(:vllm, :init_distributed_environment, given, gang, _run) do
    with {:ok, size} <- Gang.size(gang) do
      if given.world_size in [-1, nil, size],
        do: {:ok, nil},
        else:
          refuse(
            "init_distributed_environment",
            "world_size is another",
            "#{size}",
            given.world_size
          )
    end
  end

  def call(:vllm, :initialize_model_parallel, given, gang, run),
    do: model_parallel(given, gang, run)

  def call(:vllm, :model_parallel_is_initialized, _given, gang, run) do
    with {:ok, groups} <- Making.all(gang, run),
         do:
           {:ok,
            Enum.any?(groups, &of_axis?(&1, "tp")) and Enum.any?(groups, &of_axis?(&1, "pp"))}
  end

  def call(:vllm, :destroy_model_parallel, _given, gang, run) do
    with {:ok, groups} <- Making.all(gang, run),
         # Not the groups of a mesh, which another caller made.
         ours = Enum.filter(groups, &String.starts_with?(&1.name, ~w(tp/ pp/ dp/))),
         do: Making.destroy(gang, ours, run)
  end

  # The gang is its supervisor's.
  def call(:vllm, :destroy_distributed_environment, _given, _gang, _run), do: {:ok, nil}

  def call(:vllm, name, given, gang, run) do
    "tensor_model_parallel_" <> operation = "#{name}"
    of_tp(gang, run, &method(&1, operation, given, run))
  end

  def call(:distributed, :is_available, _given, _gang, _run), do: {:ok, true}

  def call(:distributed, :is_initialized, _given, gang, run) do
    with {:ok, statuses} <- RankBridge.status(gang, timeout: run.timeout),
         do: {:ok, Enum.all?(statuses, &(&1.error == nil and &1.generation_state == :formed))}
  end

  def call(:distributed, :new_group, given, gang, run) do
    with {:ok, size} <- Gang.size(gang),
         ranks = given.ranks || Enum.to_list(0..(size - 1)),
         {:ok, [group]} <- Making.groups(gang, nil, [ranks], run),
         do: {:ok, {:object, {:group, gang, run.rank, group}}}
  end

  def call(:distributed, :destroy_process_group, given, gang, run) do
    with {:ok, group} <- group(given, gang, run, "destroy_process_group") do
      # The world is the gang's, and that its supervisor's.
      if group.name == "world", do: {:ok, nil}, else: Making.destroy(gang, [group], run)
    end
  end

  def call(:distributed, name, given, gang, run) do
    with {:ok, group} <- group(given, gang, run, "#{name}"),
         do: in_group(name, given, group, gang, run)
  end

  def call(:torch, name, given, gang, run) do
    with {:ok, rank} <- rank(run, "torch.#{name}"), do: make(name, given, gang, rank, run)
  end

  def call(:own, :items, %{of: %Queue{} = queue}, gang, run),
    do: {:ok, {:object, {:items, queue, gang, run.rank}}}

  def call(:own, :items, %{of: %Ref{} = ref}, gang, run) do
    with {:ok, tensor} <- RankBridge.get(gang, ref, timeout: run.timeout) do
      case Tensor.to_list(tensor) do
        rows when is_list(rows) -> {:ok, {:object, {:items, plain(rows), gang, run.rank}}}
        _one -> refuse("items", "a tensor without dimensions", "one or more", ref)
      end
    end
  end

  def call(:own, :items, given, _gang, _run),
    do: refuse("items", "nothing to go through", "a queue, or a tensor", given.of)

  @doc "Elements as the wire has them: complex numbers are marked as such."
  @spec plain(term()) :: term()
  def plain(list) when is_list(list), do: Enum.map(list, &plain/1)
  def plain({real, imag}), do: {:complex, real, imag}
  def plain(number), do: number

  # --- torch.distributed ---

  defp in_group(:get_world_size, _given, group, _gang, _run), do: {:ok, Group.world_size(group)}
  defp in_group(:get_backend, _given, group, _gang, _run), do: {:ok, group.backend}
  defp in_group(:get_process_group_ranks, _given, group, _gang, _run), do: {:ok, group.ranks}

  defp in_group(:get_rank, _given, group, _gang, run) do
    with {:ok, rank} <- rank(run, "get_rank"),
         # As torch: -1 says that it is none of the group.
         do: {:ok, if(Group.member?(group, rank), do: Group.rank_in_group(group, rank), else: -1)}
  end

  defp in_group(:barrier, given, group, gang, run),
    do: collective(gang, group, :barrier, nil, [], given, run)

  defp in_group(:all_reduce, given, group, gang, run) do
    with {:ok, op} <- reduce_op(given.op),
         do:
           collective(
             gang,
             group,
             :all_reduce,
             given.tensor,
             [op: op, in_place: true],
             given,
             run
           )
  end

  defp in_group(:broadcast, given, group, gang, run) do
    with {:ok, src} <- place(group, given.src, given.group_src, "broadcast", 0) do
      opts = [src_rank_in_group: src, in_place: true]
      collective(gang, group, :broadcast, given.tensor, opts, given, run)
    end
  end

  defp in_group(name, given, group, gang, run) when name in [:send, :isend] do
    with {:ok, rank} <- rank(run, "#{name}"),
         {:ok, dst} <- place(group, given.dst, given.group_dst, "#{name}", nil),
         {:ok, ref} <- tensor(gang, rank, given.tensor, run, "#{name}") do
      opts = [group: group.name, tag: given.tag, timeout: run.timeout]

      if name == :send,
        do: with(:ok <- RankBridge.send(gang, rank, ref, dst, opts), do: {:ok, nil}),
        else: RankBridge.PointToPoint.isend(gang, rank, ref, dst, opts)
    end
  end

  defp in_group(name, given, group, gang, run) when name in [:recv, :irecv] do
    with {:ok, rank} <- rank(run, "#{name}"),
         {:ok, src} <- place(group, given.src, given.group_src, "#{name}", nil),
         {:ok, ref} <- tensor(gang, rank, given.tensor, run, "#{name}") do
      opts =
        [group: group.name, tag: given.tag, timeout: run.timeout] ++
          [expected: ref, src_rank_in_group: src]

      if name == :irecv do
        RankBridge.PointToPoint.irecv(gang, rank, opts)
      else
        with {:ok, {_ref, place}} <- RankBridge.recv(gang, rank, opts),
             do: {:ok, Group.rank_at(group, place)}
      end
    end
  end

  # In place: torch gives nothing, or what to wait for.
  defp collective(gang, group, operation, input, opts, given, run) do
    with {:ok, rank} <- rank(run, "#{operation}"),
         {:ok, input} <- input(gang, rank, input, run, "#{operation}") do
      opts = [group: group.name, operation_id: "", timeout: run.timeout] ++ opts

      if given.async_op do
        # What is waited for by its id needs one that is its own.
        RankBridge.Operations.submit_rank(
          gang,
          rank,
          operation,
          input,
          Keyword.delete(opts, :operation_id)
        )
      else
        with {:ok, _ref} <- RankBridge.Operations.call_rank(gang, rank, operation, input, opts),
             do: {:ok, nil}
      end
    end
  end

  defp input(_gang, _rank, nil, _run, "barrier"), do: {:ok, nil}
  defp input(gang, rank, input, run, operation), do: tensor(gang, rank, input, run, operation)

  # What is overwritten has to be there.
  defp tensor(_gang, _rank, %Ref{} = ref, _run, _operation), do: {:ok, ref}

  defp tensor(_gang, _rank, other, _run, operation),
    do: refuse(operation, "the tensor is taken in place", "a ref on a tensor", other)

  defp reduce_op(op) do
    text = "#{op}" |> String.downcase() |> String.split(".") |> List.last()

    case Enum.find(@reduce_ops, &("#{&1}" == text)) do
      nil ->
        refuse("all_reduce", "there is no such op", "one of #{Enum.join(@reduce_ops, ", ")}", op)

      op ->
        {:ok, op}
    end
  rescue
    Protocol.UndefinedError -> refuse("all_reduce", "this is no op", "its name", op)
  end

  # torch counts in the world, and with group_src in the group.
  defp place(group, nil, nil, operation, nil), do: no_place(group, operation, nil)
  defp place(_group, nil, nil, _operation, default), do: {:ok, default}
  defp place(_group, nil, place, _operation, _default), do: {:ok, place}

  defp place(group, rank, _place, operation, _default) do
    if Group.member?(group, rank),
      do: {:ok, Group.rank_in_group(group, rank)},
      else: no_place(group, operation, rank)
  end

  defp no_place(group, operation, rank),
    do: refuse(operation, "the rank is not in the group", Group.listed(group.ranks), rank)

  defp group(%{group: {:group, _gang, _rank, group}}, _gang_too, _run, _operation),
    do: {:ok, group}

  defp group(%{group: %GroupCoordinator{} = coordinator}, _gang, run, operation) do
    with {:ok, rank} <- rank(%{run | rank: run.rank || coordinator.rank}, operation),
         do: {:ok, GroupCoordinator.group(%{coordinator | rank: rank})}
  end

  defp group(%{group: nil}, gang, run, _operation) do
    with {:ok, groups} <- Making.all(gang, run),
         do: {:ok, Enum.find(groups, &(&1.name == "world"))}
  end

  defp group(given, _gang, _run, operation),
    do: refuse(operation, "this is no group", "what new_group has given, or nil", given.group)

  # --- vllm.distributed ---

  defp coordinator(gang, axis, run) do
    with {:ok, size} <- Gang.size(gang),
         {:ok, groups} <- Making.all(gang, run) do
      mine = Enum.filter(groups, &(of_axis?(&1, axis) and mine?(&1, run.rank)))

      cond do
        mine == [] ->
          expected = "groups made by initialize_model_parallel, new or new_mesh"
          refuse("get_#{axis}_group", "there is no group #{axis} of the rank", expected, run.rank)

        mine |> Enum.flat_map(& &1.ranks) |> then(&(&1 != Enum.uniq(&1))) ->
          names = Enum.map_join(mine, ", ", & &1.name)
          refuse("get_#{axis}_group", "there are several groups #{axis}", "one of a rank", names)

        true ->
          {:ok, Making.of_groups(gang, size, run.rank, mine)}
      end
    end
  end

  # Of tp: tp/0, mesh/tp/1.
  defp of_axis?(group, axis), do: axis in String.split(group.name, "/")
  defp mine?(_group, nil), do: true
  defp mine?(group, rank), do: Group.member?(group, rank)

  defp of_tp(gang, run, fun),
    do: with({:ok, coordinator} <- coordinator(gang, "tp", run), do: fun.(coordinator))

  defp method(coordinator, name, given, run) do
    GroupCoordinator.call(coordinator, name, [], Enum.to_list(given), timeout: run.timeout)
  end

  defp model_parallel(given, gang, run) do
    tp = given.tensor_model_parallel_size
    pp = given.pipeline_model_parallel_size

    others = {given.prefill_context_model_parallel_size, given.decode_context_model_parallel_size}

    with {:ok, size} <- Gang.size(gang),
         :ok <- check_sizes(tp, pp, others, size) do
      # As vLLM: data outermost, then stages, tensors innermost.
      axes = [dp: div(size, tp * pp), pp: pp, tp: tp]
      mesh = Mesh.plan!(axes, size)

      Enum.reduce_while([:tp, :pp, :dp], {:ok, nil}, fn axis, done ->
        lines = for group <- Mesh.groups(mesh, axis), do: group.ranks

        case Making.groups(gang, "#{axis}", lines, run) do
          {:ok, _groups} -> {:cont, done}
          error -> {:halt, error}
        end
      end)
    end
  end

  defp check_sizes(tp, pp, others, size) do
    fine? =
      is_integer(tp) and tp > 0 and is_integer(pp) and pp > 0 and rem(size, tp * pp) == 0 and
        others in [{1, 1}, {1, nil}]

    if fine?,
      do: :ok,
      else:
        refuse(
          "initialize_model_parallel",
          "sizes do not fit the gang",
          "sizes that divide #{size}, and 1 for contexts",
          {tp, pp, others}
        )
  end

  # --- torch ---

  defp make(:tensor, given, gang, rank, run) do
    with {:ok, tensor} <- tensor_of(given),
         do: RankBridge.put_rank(gang, rank, tensor, on(given, run))
  end

  defp make(:zeros, given, gang, rank, run), do: create(given, :zeros, gang, rank, run)
  defp make(:ones, given, gang, rank, run), do: create(given, {:full, 1}, gang, rank, run)

  defp make(:full, given, gang, rank, run),
    do: create(given, {:full, given.fill_value}, gang, rank, run)

  defp tensor_of(%{dtype: nil} = given), do: Tensor.coerce(Wire.numbers(given.data))

  defp tensor_of(given) do
    with {:ok, dtype} <- Tensors.dtype(given.dtype, "torch.tensor") do
      try do
        {:ok, Tensor.from_list(Wire.numbers(given.data), dtype)}
      rescue
        error in ArgumentError ->
          {:error, Error.refusal(:invalid_argument, error.message, operation: "torch.tensor")}
      end
    end
  end

  defp create(given, init, gang, rank, run) do
    with {:ok, dtype} <- Tensors.dtype(given.dtype || "float32", "torch"),
         do:
           RankBridge.create(
             gang,
             dtype,
             Tensors.shape(given.size),
             [init: init, rank: rank] ++ on(given, run)
           )
  end

  defp on(given, run), do: [device: given.device || "", timeout: run.timeout]

  # --- who it is ---

  defp rank(%{rank: nil}, operation),
    do: refuse(operation, "which rank is meant?", "a pool that stands for a rank", nil)

  defp rank(%{rank: rank}, _operation), do: {:ok, rank}

  defp refuse(operation, message, expected, got) do
    fields = [operation: operation, expected: expected, got: inspect(got, limit: 5)]
    {:error, Error.refusal(:invalid_argument, message, fields)}
  end
end
