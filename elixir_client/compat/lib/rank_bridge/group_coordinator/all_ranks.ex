defmodule RankBridge.GroupCoordinator.AllRanks do
  @moduledoc """
  A coordinator that speaks for all ranks: each method is each rank's part, all at once. What differs from rank to rank is a
  list by rank of the gang.
  """

  alias RankBridge.{AtOnce, Error, Graph, Group, GroupCoordinator, Queue}
  alias RankBridge.GroupCoordinator.{Conventions, Making, Part, Signatures}

  @type result :: {:ok, term()} | {:error, Error.t()}

  # Who does not give one does not send.
  @of_givers [:send, :isend, :send_tensor_dict, :isend_tensor_dict]
  # Everyone sends but who is sent to, and receives but who is received from.
  @of_others [:send_object, :isend_object, :recv, :irecv, :recv_object, :irecv_object] ++
               [:recv_tensor_dict, :irecv_tensor_dict]
  @of_sources [:broadcast_object, :broadcast_object_list, :broadcast_tensor_dict]

  @doc "A property of each rank, by rank of the gang."
  @spec property(GroupCoordinator.t(), atom()) :: [term()]
  def property(coordinator, name) do
    by_rank(
      coordinator.size,
      for(rank <- members(coordinator), do: {rank, Part.property(at(coordinator, rank), name)})
    )
  end

  @doc "A method on all ranks at once."
  @spec call(GroupCoordinator.t(), atom(), map(), Conventions.runtime()) :: result()
  def call(coordinator, :destroy, _given, run),
    do: Making.destroy(coordinator.gang, coordinator.groups, run)

  def call(coordinator, :create_mq_broadcaster, given, run) do
    opts = [writer_rank: given.writer_rank] ++ Part.chunks(given)

    each_group(
      coordinator,
      run,
      &RankBridge.Compat.create_mq_broadcaster(coordinator.gang, opts ++ &1),
      fn queue, group -> List.duplicate(queue, Group.world_size(group)) end
    )
  end

  def call(coordinator, :create_single_reader_mq_broadcasters, given, run) do
    opts = [reader_rank_in_group: given.reader_rank_in_group] ++ Part.chunks(given)

    each_group(
      coordinator,
      run,
      &RankBridge.Compat.create_single_reader_mq_broadcasters(coordinator.gang, opts ++ &1),
      fn queues, _group -> queues end
    )
  end

  def call(coordinator, :graph_capture, %{graph_capture_context: fun}, run)
      when is_function(fun, 0) do
    several = Enum.filter(coordinator.groups, &(Group.world_size(&1) > 1))

    recorded =
      Enum.reduce(several, fn -> with({:ok, given} <- fun.(), do: {:ok, {[], given}}) end, fn
        group, inner -> fn -> record(coordinator, group, inner, run) end
      end)

    with {:ok, {graphs, given}} <- recorded.() do
      of_ranks = for %Graph{} = graph <- graphs, rank <- graph.ranks, do: {rank, graph}
      {:ok, {by_rank(coordinator.size, of_ranks), given}}
    end
  end

  def call(_it, :graph_capture, given, _run),
    do: refuse("graph_capture", "a function of no arguments", given.graph_capture_context)

  def call(coordinator, name, given, run) do
    with :ok <- check_lists(name, given, coordinator.size) do
      members(coordinator)
      |> Enum.filter(&takes_part?(coordinator, name, given, &1))
      |> AtOnce.map(fn rank ->
        {rank, Part.call(at(coordinator, rank), name, own(given, coordinator, rank), run)}
      end)
      |> gathered(name, coordinator.size)
    end
  end

  defp gathered(results, name, size) do
    case Enum.any?(results, &match?({_rank, {:error, _error}}, &1)) do
      true ->
        {:error, Error.combine(Enum.map(results, &outcome/1))}

      false when name == :barrier ->
        {:ok, nil}

      false ->
        {:ok, by_rank(size, for({rank, {:ok, value}} <- results, do: {rank, value}))}
    end
  end

  defp outcome({rank, {:ok, _value}}), do: {rank, :ok}
  defp outcome({rank, {:error, error}}), do: {rank, error}

  defp record(coordinator, group, inner, run) do
    with {:ok, {graph, {graphs, given}}} <-
           RankBridge.Graphs.graph_capture(coordinator.gang, nil, inner, in_group(group, run)),
         do: {:ok, {[graph | graphs], given}}
  end

  # A queue, or several, in each group: all of them or none.
  defp each_group(coordinator, run, fun, by_place) do
    Enum.reduce_while(coordinator.groups, {:ok, []}, fn group, {:ok, made} ->
      case fun.(in_group(group, run)) do
        {:ok, given} ->
          {:cont, {:ok, [{group, given} | made]}}

        {:error, error} ->
          for {_group, given} <- made, %Queue{} = queue <- List.wrap(given) do
            _ = RankBridge.Queues.shut_down_queue(coordinator.gang, queue)
          end

          {:halt, {:error, error}}
      end
    end)
    |> case do
      {:ok, made} ->
        of_ranks =
          for {group, given} <- made,
              {rank, queue} <- Enum.zip(group.ranks, by_place.(given, group)),
              do: {rank, queue}

        {:ok, by_rank(coordinator.size, of_ranks)}

      error ->
        error
    end
  end

  # --- who takes part, and what is whose ---

  defp takes_part?(_it, name, given, rank) when name in @of_givers,
    do: Enum.at(given[:tensor] || given[:tensor_dict] || [], rank) != nil

  defp takes_part?(coordinator, name, given, rank) when name in @of_others do
    member = at(coordinator, rank)
    other = if is_map_key(given, :dst), do: given.dst, else: given.src
    Part.property(member, :world_size) > 1 and Part.property(member, :rank_in_group) != other
  end

  defp takes_part?(_it, _name, _given, _rank), do: true

  defp own(given, coordinator, rank) do
    Map.new(given, fn
      {:sizes, sizes} when is_list(sizes) ->
        group = GroupCoordinator.group(at(coordinator, rank))
        {:sizes, Enum.map(group.ranks, &Enum.at(sizes, &1))}

      {name, value} ->
        mine? = name in Signatures.of_each_rank() and is_list(value)
        {name, if(mine?, do: Enum.at(value, rank), else: value)}
    end)
  end

  # Of what a source gives alone, nil stands for nothing at all.
  defp check_lists(name, given, size) do
    Enum.find_value(given, :ok, fn {parameter, value} ->
      optional? = value == nil and (name in @of_sources or parameter in [:sizes, :extra_tensors])

      list? = is_list(value) and length(value) == size

      if parameter in Signatures.of_each_rank() and not optional? and not list?,
        do: refuse("#{name}", "a list of #{size}, one for each rank of the gang", value)
    end)
  end

  defp members(coordinator), do: coordinator.groups |> Enum.flat_map(& &1.ranks) |> Enum.sort()
  defp at(coordinator, rank), do: %{coordinator | rank: rank}

  defp by_rank(size, of_ranks) do
    of_ranks = Map.new(of_ranks)
    for rank <- 0..(size - 1), do: of_ranks[rank]
  end

  defp in_group(group, run), do: [group: group.name, timeout: run.timeout]

  defp refuse(operation, expected, got) do
    fields = [operation: operation, expected: expected, got: inspect(got, limit: 5)]
    message = "a coordinator of all ranks takes what each rank gives"
    {:error, Error.refusal(:invalid_argument, message, fields)}
  end
end
