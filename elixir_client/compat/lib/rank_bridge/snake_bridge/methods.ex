defmodule RankBridge.SnakeBridge.Methods do
  @moduledoc """
  What Python's objects of our kinds have: methods and attributes, on what a ref stands for.

  | kind | methods | attributes |
  | --- | --- | --- |
  | GroupCoordinator | those of `RankBridge.GroupCoordinator` | its properties |
  | Tensor | `tolist`, `item`, `dim`, `numel`, `size` | `shape`, `dtype`, `device`, `ndim` |
  | Work | `wait`, `is_completed` | |
  | MessageQueue | `enqueue`, `dequeue`, `broadcast_object`, `wait_until_ready`, `shutdown` | |
  | ProcessGroup | `rank`, `size`, `name` | `group_name` |
  | graph_capture | `__enter__`, `__exit__`, `replay` | |

  All have `__repr__` and `__str__`, which ask nobody; tensors and queues have `__iter__`.
  """

  alias RankBridge.{Error, Group, GroupCoordinator, Queue, Tensor}
  alias RankBridge.GroupCoordinator.{Agreed, Conventions, Signatures}
  alias RankBridge.SnakeBridge.{Functions, Objects}

  @type result :: {:ok, term()} | {:error, Error.t()}
  @type named :: [{String.t(), term()}]

  # Name, needed, optional.
  @tensor [tolist: [], item: [], dim: [], numel: [], size: [dim: nil]]
  @work [wait: [timeout: nil], is_completed: []]
  @queue [
    enqueue: [obj: nil, timeout: nil],
    dequeue: [timeout: nil, cancel: nil, indefinite: false],
    broadcast_object: [obj: nil],
    wait_until_ready: [],
    shutdown: []
  ]
  @group [rank: [], size: [], name: []]
  @capture [
    __enter__: [],
    __exit__: [exc_type: nil, exc_value: nil, traceback: nil],
    replay: []
  ]

  @doc "Library, module and name of an object's type."
  @spec type(Objects.object()) :: {String.t(), String.t(), String.t()}
  def type({:coordinator, _coordinator}), do: {"vllm", "vllm.distributed", "GroupCoordinator"}
  def type({:tensor, _gang, _ref}), do: {"torch", "torch", "Tensor"}
  def type({:work, _gang, _operation}), do: {"torch", "torch.distributed", "Work"}

  def type({:queue, _gang, _rank, _queue}),
    do: {"vllm", "vllm.distributed.device_communicators.shm_broadcast", "MessageQueue"}

  def type({:group, _gang, _rank, _group}), do: {"torch", "torch.distributed", "ProcessGroup"}
  def type({:capture, _coordinator, _state}), do: {"vllm", "vllm.distributed", "graph_capture"}
  def type({:items, _items, _gang, _rank}), do: {"rankbridge", "rankbridge", "items"}

  @doc "Calls a method of the object with an id."
  @spec call(String.t(), Objects.object(), String.t(), [term()], named(), Conventions.runtime()) ::
          result()
  def call(_id, object, name, _positional, _named, _run) when name in ["__repr__", "__str__"],
    do: {:ok, shown(object)}

  def call(_id, {:queue, gang, rank, queue}, "__iter__", _positional, _named, _run),
    do: {:ok, {:object, {:items, queue, gang, rank}}}

  def call(_id, {:tensor, gang, ref}, "__iter__", _positional, _named, run),
    do: Functions.call(:own, :items, %{of: ref}, gang, run)

  def call(
        _id,
        {:coordinator, %{rank: rank} = coordinator},
        "graph_capture",
        _positional,
        named,
        _run
      ) do
    # What is recorded is what the caller does between entering and leaving.
    if rank == nil or named != [],
      do:
        refuse(
          "graph_capture",
          "a rank's own, without a context",
          shown({:coordinator, coordinator})
        ),
      else: {:ok, {:object, {:capture, coordinator, :new}}}
  end

  def call(_id, {:coordinator, coordinator}, name, positional, named, run) do
    runtime = [gang: run.gang, rank: run.rank, timeout: run.timeout]
    GroupCoordinator.call(coordinator, name, positional, named, runtime)
  end

  def call(id, object, name, positional, named, run) do
    with {:ok, method, optional} <- method(object, name),
         signature = %Signatures{name: method, needed: [], optional: optional, gives: ""},
         {:ok, given} <- Conventions.bind(signature, positional, named),
         do: run(method, id, object, given, run)
  end

  defp method(object, name) do
    {_library, _module, type} = type(object)

    case Enum.find(methods(object), fn {method, _optional} -> "#{method}" == name end) do
      nil -> refuse(name, "a method of #{type}", name)
      {method, optional} -> {:ok, method, optional}
    end
  end

  defp methods({:tensor, _gang, _ref}), do: @tensor
  defp methods({:work, _gang, _operation}), do: @work
  defp methods({:queue, _gang, _rank, _queue}), do: @queue
  defp methods({:group, _gang, _rank, _group}), do: @group
  defp methods({:capture, _coordinator, _state}), do: @capture
  defp methods(_other), do: []

  # --- tensors ---

  defp run(:tolist, _id, {:tensor, gang, ref}, _given, run) do
    with {:ok, tensor} <- RankBridge.get(gang, ref, timeout: run.timeout),
         do: {:ok, tensor |> Tensor.to_list() |> Functions.plain()}
  end

  defp run(:item, id, {:tensor, _gang, ref} = object, given, run) do
    if Enum.product(ref.shape) == 1 do
      with {:ok, list} <- run(:tolist, id, object, given, run),
           do: {:ok, list |> List.wrap() |> List.flatten() |> hd()}
    else
      refuse("item", "a tensor of one element", shown(object))
    end
  end

  defp run(:dim, _id, {:tensor, _gang, ref}, _given, _run), do: {:ok, length(ref.shape)}
  defp run(:numel, _id, {:tensor, _gang, ref}, _given, _run), do: {:ok, Enum.product(ref.shape)}

  defp run(:size, _id, {:tensor, _gang, ref}, %{dim: nil}, _run),
    do: {:ok, List.to_tuple(ref.shape)}

  defp run(:size, _id, {:tensor, _gang, ref} = object, %{dim: dim}, _run) do
    case is_integer(dim) and Enum.fetch(ref.shape, dim) do
      {:ok, size} -> {:ok, size}
      _other -> refuse("size", "a dimension of #{shown(object)}", inspect(dim, limit: 3))
    end
  end

  # --- what was begun ---

  defp run(:wait, _id, {:work, gang, operation}, given, run) do
    timeout = if is_number(given.timeout), do: ceil(given.timeout * 1000), else: run.timeout

    with {:ok, value} <- RankBridge.Operations.wait(gang, operation, timeout: timeout),
         do: {:ok, value}
  end

  defp run(:is_completed, _id, {:work, gang, operation}, _given, run),
    do: RankBridge.Operations.is_complete(gang, operation, timeout: run.timeout)

  # --- queues ---

  defp run(:enqueue, _id, {:queue, gang, rank, queue}, given, run) do
    with :ok <- at_writer(queue, rank, "enqueue"),
         :ok <- RankBridge.Queues.enqueue(gang, queue, given.obj, seconds(given, run)),
         do: {:ok, nil}
  end

  defp run(:dequeue, _id, {:queue, gang, rank, queue}, given, run),
    do: dequeue(gang, rank, queue, seconds(given, run))

  # As vLLM's: who writes has written, who reads has read.
  defp run(:broadcast_object, _id, {:queue, gang, rank, queue}, given, run) do
    if rank == nil or Queue.writer(queue) == rank do
      with :ok <- RankBridge.Queues.enqueue(gang, queue, given.obj, timeout: run.timeout),
           do: {:ok, given.obj}
    else
      dequeue(gang, rank, queue, timeout: run.timeout)
    end
  end

  defp run(:wait_until_ready, _id, {:queue, _gang, _rank, _queue}, _given, _run), do: {:ok, nil}

  defp run(:shutdown, _id, {:queue, gang, rank, queue}, _given, run) do
    place = if rank, do: [rank_in_group: Enum.find_index(queue.ranks, &(&1 == rank))], else: []
    opts = place ++ [timeout: run.timeout]
    with :ok <- RankBridge.Queues.shut_down_queue(gang, queue, opts), do: {:ok, nil}
  end

  # --- groups ---

  defp run(:size, _id, {:group, _gang, _rank, group}, _given, _run),
    do: {:ok, Group.world_size(group)}

  defp run(:name, _id, {:group, _gang, _rank, group}, _given, _run), do: {:ok, group.name}

  defp run(:rank, _id, {:group, _gang, own, group}, _given, run) do
    case run.rank || own do
      nil ->
        refuse("rank", "a pool that stands for a rank", "none")

      rank ->
        {:ok, if(Group.member?(group, rank), do: Group.rank_in_group(group, rank), else: -1)}
    end
  end

  # --- recordings ---

  defp run(:__enter__, id, {:capture, coordinator, :new}, _given, run) do
    with {:ok, _graph} <- Agreed.begin_capture(coordinator, run) do
      :ok = Objects.replace(id, {:capture, coordinator, :recording})
      {:ok, nil}
    end
  end

  defp run(:__exit__, id, {:capture, coordinator, :recording}, given, run) do
    with {:ok, graph} <- Agreed.end_capture(coordinator, given.exc_type == nil, run) do
      :ok = Objects.replace(id, {:capture, coordinator, graph})
      # The exception, if there was one, goes on.
      {:ok, false}
    end
  end

  defp run(:replay, _id, {:capture, coordinator, %RankBridge.Graph{} = graph}, _given, run) do
    opts = [operation_id: "", timeout: run.timeout]
    RankBridge.Operations.call_rank(coordinator.gang, coordinator.rank, :replay, graph, opts)
  end

  defp run(name, _id, {:capture, _coordinator, _state} = object, _given, _run),
    do: refuse("#{name}", "to be entered, left, then replayed", shown(object))

  @doc "Reads one value as the rank; nil reads as the only reader."
  @spec dequeue(RankBridge.Gang.gang(), non_neg_integer() | nil, Queue.t(), keyword()) :: result()
  def dequeue(gang, nil, queue, opts), do: RankBridge.Queues.dequeue(gang, queue, opts)

  def dequeue(gang, rank, queue, opts) do
    place = Enum.find_index(queue.ranks, &(&1 == rank))
    RankBridge.Queues.dequeue(gang, queue, [rank_in_group: place] ++ opts)
  end

  defp at_writer(queue, rank, operation) do
    if rank in [nil, Queue.writer(queue)],
      do: :ok,
      else: refuse(operation, "rank #{Queue.writer(queue)}, who writes", "rank #{rank}")
  end

  # --- attributes ---

  @doc "An attribute of an object. Asks nobody."
  @spec attribute(Objects.object(), String.t()) :: result()
  def attribute({:coordinator, coordinator}, name),
    do: GroupCoordinator.property(coordinator, name)

  def attribute({:tensor, _gang, ref}, "shape"), do: {:ok, List.to_tuple(ref.shape)}
  def attribute({:tensor, _gang, ref}, "dtype"), do: {:ok, "torch.#{ref.dtype}"}
  def attribute({:tensor, _gang, ref}, "device"), do: {:ok, ref.device}
  def attribute({:tensor, _gang, ref}, "ndim"), do: {:ok, length(ref.shape)}
  def attribute({:group, _gang, _rank, group}, "group_name"), do: {:ok, group.name}

  def attribute(object, name) do
    {_library, _module, type} = type(object)
    refuse(name, "an attribute of #{type}", name)
  end

  defp shown({:coordinator, coordinator}), do: inspect(coordinator)
  defp shown({:tensor, _gang, ref}), do: inspect(ref)
  defp shown({:group, _gang, _rank, group}), do: "ProcessGroup #{group.name}"
  defp shown({:queue, _gang, _rank, queue}), do: "MessageQueue #{queue.name}"
  defp shown({:work, _gang, operation}), do: "Work #{operation.name} #{operation.id}"
  defp shown({:capture, coordinator, _state}), do: "graph_capture of #{inspect(coordinator)}"
  defp shown({:items, _items, _gang, _rank}), do: "items"

  # A queue's own timeout is in seconds, as Python has it.
  defp seconds(%{timeout: seconds}, _run) when is_number(seconds) and seconds > 0,
    do: [timeout: ceil(seconds * 1000)]

  defp seconds(_given, run), do: [timeout: run.timeout]

  defp refuse(operation, expected, got) do
    fields = [operation: operation, expected: expected, got: got]
    {:error, Error.refusal(:invalid_argument, "the object has no such use", fields)}
  end
end
