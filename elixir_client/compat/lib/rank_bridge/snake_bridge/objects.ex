defmodule RankBridge.SnakeBridge.Objects do
  @moduledoc """
  The objects of the refs that SnakeBridge has, and each one's session. Known on the node that made the refs.

  A named session ends when it is released. An automatic session, which SnakeBridge names after a process, lives as long as any
  of these: that process; a process that made an object in the session; the callers of a task that made one, and their
  callers. So a task's objects do not die with it. A release because the session's own process has died changes nothing.
  """

  use GenServer

  alias RankBridge.{Error, Gang, Graph, Group, GroupCoordinator, Operation, Queue, Ref}
  alias RankBridge.SnakeBridge.Wire

  @typedoc "The object of a ref: with its gang and its rank, where it needs them."
  @type object ::
          {:coordinator, GroupCoordinator.t()}
          | {:tensor, Gang.gang(), Ref.t()}
          | {:work, Gang.gang(), Operation.t()}
          | {:queue, Gang.gang(), non_neg_integer() | nil, Queue.t()}
          | {:group, Gang.gang(), non_neg_integer() | nil, Group.t()}
          | {:capture, GroupCoordinator.t(), Graph.t() | :new | :recording}
          | {:items, [term()] | Queue.t(), Gang.gang(), non_neg_integer() | nil}

  @prefix "rankbridge-"
  # As SnakeBridge names the sessions that it makes on its own.
  @automatic ~r/\Aauto_(<0\.\d+\.\d+>)_\d+\z/

  @doc "Keeps an object in a session, and gives its id and session. A tensor that has one keeps both."
  @spec put(object(), String.t()) :: {String.t(), String.t()}
  def put(object, session_id) do
    :ok = ensure_started()
    keepers = if owner(session_id), do: keepers(owner(session_id)), else: []
    GenServer.call(__MODULE__, {:put, object, session_id, keepers}, :infinity)
  end

  # Tasks name their callers.
  defp keepers(owner),
    do: Enum.uniq([owner, self() | Process.get(:"$callers", [])])

  defp owner(session_id) do
    with [_whole, text] <- Regex.run(@automatic, session_id) do
      text |> String.to_charlist() |> :erlang.list_to_pid()
    end
  rescue
    ArgumentError -> nil
  end

  @doc "Puts an object into the place of another."
  @spec replace(String.t(), object()) :: :ok
  def replace(id, object), do: GenServer.call(__MODULE__, {:replace, id, object}, :infinity)

  @doc "The object of an id, and its session."
  @spec fetch(String.t()) :: {:ok, object(), String.t()} | :error
  def fetch(id) do
    case :ets.lookup(__MODULE__, id) do
      [{^id, object, session_id}] -> {:ok, object, session_id}
      [] -> :error
    end
  rescue
    ArgumentError -> :error
  end

  @doc "Whether an id was given out here, be it released by now."
  @spec ours?(term()) :: boolean()
  def ours?(id), do: is_binary(id) and String.starts_with?(id, @prefix)

  @doc "The object that a SnakeBridge ref stands for: its struct, or its wire map."
  @spec of_ref(term()) :: {:ok, object()} | {:error, Error.t()}
  def of_ref(ref) do
    id = Wire.id(ref)

    cond do
      not ours?(id) ->
        {:error,
         Error.refusal(:unknown_ref, "the ref is of no rank",
           expected: "a ref of RankBridge",
           got: inspect(ref, limit: 8, printable_limit: 80)
         )}

      match?({:ok, _object, _session_id}, fetch(id)) ->
        {:ok, object, _session_id} = fetch(id)
        {:ok, object}

      true ->
        message = "the ref was released, or its session has ended"
        {:error, Error.refusal(:released_ref, message, got: id)}
    end
  end

  @doc "Forgets an object, and frees what it holds on its rank. Gives whether it was there."
  @spec release(String.t()) :: {:ok, boolean()} | {:error, Error.t()}
  def release(id) do
    :ok = ensure_started()
    objects = GenServer.call(__MODULE__, {:take, id}, :infinity)
    with :ok <- free(objects), do: {:ok, objects != []}
  end

  @doc """
  Forgets all objects of a session, and frees what they hold. Gives how many there were: none of an automatic session
  whose own process has died, see the module.
  """
  @spec release_session(String.t()) :: {:ok, non_neg_integer()} | {:error, Error.t()}
  def release_session(session_id) do
    :ok = ensure_started()

    if gone?(owner(session_id)) do
      {:ok, 0}
    else
      objects = GenServer.call(__MODULE__, {:take_session, session_id}, :infinity)
      with :ok <- free(objects), do: {:ok, length(objects)}
    end
  end

  defp gone?(nil), do: false
  defp gone?(owner), do: not Process.alive?(owner)

  # Tensors take memory on their ranks; the other objects end with their group, or their gang.
  defp free(objects) do
    objects
    |> Enum.flat_map(fn
      {:tensor, gang, ref} -> [{gang, ref}]
      _other -> []
    end)
    |> Enum.group_by(&elem(&1, 0), &elem(&1, 1))
    |> Enum.reduce(:ok, fn {gang, refs}, so_far ->
      case RankBridge.release(gang, refs) do
        {:ok, _count} -> so_far
        # With the gang, its refs are gone.
        {:error, %Error{reason: :unavailable, rank: nil}} -> so_far
        {:error, error} -> {:error, error}
      end
    end)
  end

  # Not before it is needed: most programs have no SnakeBridge.
  defp ensure_started do
    case Supervisor.start_child(RankBridge.Supervisor, __MODULE__) do
      {:ok, _pid} -> :ok
      {:error, {:already_started, _pid}} -> :ok
    end
  end

  @doc false
  @spec start_link(term()) :: GenServer.on_start()
  def start_link(_opts), do: GenServer.start_link(__MODULE__, nil, name: __MODULE__)

  @impl true
  def init(_opts) do
    table = :ets.new(__MODULE__, [:named_table, :protected, read_concurrency: true])
    {:ok, %{table: table, tensors: %{}, sessions: %{}, keepers: %{}, monitors: %{}}}
  end

  @impl true
  def handle_call({:put, object, session_id, keepers}, _from, state) do
    state = watch(state, session_id, keepers)

    case state.tensors[tensor(object)] do
      nil ->
        id = @prefix <> RankBridge.Id.uuid()
        :ets.insert(state.table, {id, object, session_id})
        {:reply, {id, session_id}, remember(state, id, object, session_id)}

      id ->
        {:reply, {id, :ets.lookup_element(state.table, id, 3)}, state}
    end
  end

  def handle_call({:replace, id, object}, _from, state) do
    _ = :ets.update_element(state.table, id, {2, object})
    {:reply, :ok, state}
  end

  def handle_call({:take, id}, _from, state) do
    {objects, state} = take([id], state)
    {:reply, objects, state}
  end

  def handle_call({:take_session, session_id}, _from, state) do
    {objects, state} = take_session(session_id, state)
    {:reply, objects, state}
  end

  @impl true
  def handle_info({:DOWN, _monitor, :process, pid, _reason}, state) do
    {sessions, keepers} = Map.pop(state.keepers, pid, [])
    state = %{state | keepers: keepers, monitors: Map.delete(state.monitors, pid)}

    {objects, state} =
      Enum.reduce(sessions, {[], state}, fn session_id, {objects, state} ->
        if kept?(state, session_id) do
          {objects, state}
        else
          {more, state} = take_session(session_id, state)
          {more ++ objects, state}
        end
      end)

    # Its ranks may be slow; other callers are waiting.
    _ = if objects != [], do: {:ok, _pid} = Task.start(fn -> free(objects) end)
    {:noreply, state}
  end

  def handle_info(_other, state), do: {:noreply, state}

  defp watch(state, session_id, keepers) do
    Enum.reduce(keepers, state, fn pid, state ->
      monitors = Map.put_new_lazy(state.monitors, pid, fn -> Process.monitor(pid) end)
      sessions = Map.get(state.keepers, pid, MapSet.new())
      keepers = Map.put(state.keepers, pid, MapSet.put(sessions, session_id))
      %{state | monitors: monitors, keepers: keepers}
    end)
  end

  defp kept?(state, session_id),
    do: Enum.any?(state.keepers, fn {_pid, sessions} -> session_id in sessions end)

  defp remember(state, id, object, session_id) do
    tensors =
      if tensor(object), do: Map.put(state.tensors, tensor(object), id), else: state.tensors

    ids = Map.get(state.sessions, session_id, MapSet.new())
    sessions = Map.put(state.sessions, session_id, MapSet.put(ids, id))
    %{state | tensors: tensors, sessions: sessions}
  end

  defp tensor({:tensor, gang, ref}), do: {gang, ref.id}
  defp tensor(_other), do: nil

  defp take_session(session_id, state),
    do: state.sessions |> Map.get(session_id, []) |> Enum.to_list() |> take(state)

  defp take(ids, state) do
    Enum.reduce(ids, {[], state}, fn id, {objects, state} ->
      case :ets.take(state.table, id) do
        [{^id, object, session_id}] -> {[object | objects], forget(state, id, object, session_id)}
        [] -> {objects, state}
      end
    end)
  end

  defp forget(state, id, object, session_id) do
    left = MapSet.delete(state.sessions[session_id], id)

    sessions =
      if Enum.empty?(left),
        do: Map.delete(state.sessions, session_id),
        else: Map.put(state.sessions, session_id, left)

    %{state | sessions: sessions, tensors: Map.delete(state.tensors, tensor(object))}
  end
end
