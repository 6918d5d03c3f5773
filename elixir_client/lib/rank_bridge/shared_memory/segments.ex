defmodule RankBridge.SharedMemory.Segments do
  @moduledoc false
  # The segments that ranks have given to a gang's callers: which are free, and who has the others.
  #
  # They are kept in a public table, from which each caller takes by itself. One that its holder died with is given up: the
  # rank may still be using it.

  alias RankBridge.Proto.V1

  # Of one rank; more that nobody uses are given up.
  @most_free 4

  @typedoc "A segment that the caller holds: its id, the path of its file, and its room in bytes."
  @type segment :: {id :: String.t(), path :: String.t(), room :: pos_integer()}
  @type table :: :ets.table()
  @type counts :: %{
          shared: non_neg_integer(),
          streamed: non_neg_integer(),
          reason: String.t()
        }

  @doc "A table for the segments of all ranks of a gang, for as long as the calling process lives."
  @spec new() :: table()
  def new, do: :ets.new(:rank_bridge_shared_memory, [:public, read_concurrency: true])

  @doc "A free segment of a target with room enough, and not far too much; the caller has it then."
  @spec take(table(), String.t(), pos_integer()) :: {:ok, segment()} | :none
  def take(table, target, bytes) do
    most = max(2 * bytes, fitting(bytes))
    row = {{target, :"$1"}, :"$2", :"$3", :free}
    guards = [{:>=, :"$3", bytes}, {:"=<", :"$3", most}]
    free = in_table([], fn -> :ets.select(table, [{row, guards, [{{:"$1", :"$2", :"$3"}}]}]) end)

    free
    |> Enum.sort_by(&elem(&1, 2))
    |> Enum.find_value(:none, fn segment ->
      if move(table, target, segment, :free, self()), do: {:ok, segment}
    end)
  end

  # Whether the segment was one's, and is the other's now.
  defp move(table, target, {id, path, room}, from, to) do
    row = {{target, id}, path, room, from}
    moved = [{row, [], [{{{:const, {target, id}}, path, room, {:const, to}}}]}]
    in_table(0, fn -> :ets.select_replace(table, moved) end) == 1
  end

  @doc "Keeps a segment that a rank has just given; the caller has it."
  @spec keep(table(), String.t(), V1.SharedMemory.t()) :: segment()
  def keep(table, target, %V1.SharedMemory{} = memory) do
    row = {{target, memory.id}, memory.path, memory.bytes, self()}
    _ = in_table(true, fn -> :ets.insert(table, row) end)
    {memory.id, memory.path, memory.bytes}
  end

  @doc "The caller uses a segment no more. It is free; others are given up where there are too many."
  @spec give_back(table(), String.t(), segment()) :: :ok
  def give_back(table, target, segment) do
    # Counted when it is free: of several that are given back at once, the last sees all.
    _ = move(table, target, segment, self(), :free)
    free = free(table, target)
    others = List.delete(free, segment)
    give_up_free(table, target, Enum.take(others, max(0, length(free) - @most_free)))
  end

  @doc "The rank may use a segment at any time: nobody else does."
  @spec give_up(table(), String.t(), segment()) :: :ok
  def give_up(table, target, segment) do
    _ = move(table, target, segment, self(), :unwanted)
    :ok
  end

  @doc "A segment has become memory of a tensor on the rank."
  @spec lend(table(), String.t(), segment()) :: :ok
  def lend(table, target, {id, _path, _room}) do
    _ = in_table(true, fn -> :ets.delete(table, {target, id}) end)
    :ok
  end

  @doc "The rank does not know a segment, and perhaps none: those that are free are given up."
  @spec forget(table(), String.t()) :: :ok
  def forget(table, target), do: give_up_free(table, target, free(table, target))

  defp free(table, target) do
    rows = in_table([], fn -> :ets.match_object(table, {{target, :_}, :_, :_, :free}) end)
    for {{_target, id}, path, room, :free} <- rows, do: {id, path, room}
  end

  defp give_up_free(table, target, segments),
    do: Enum.each(segments, &move(table, target, &1, :free, :unwanted))

  @doc """
  Ids of the segments to close on the rank. The caller holds them until `closed/4`. `all_free?`: includes every segment that is
  not in use.
  """
  @spec unwanted(table(), String.t(), boolean()) :: [String.t()]
  def unwanted(table, target, all_free?) do
    rows = in_table([], fn -> :ets.match_object(table, {{target, :_}, :_, :_, :_}) end)

    for {{_target, id}, path, room, holder} <- rows,
        unwanted?(holder, all_free?),
        # Of several callers at once, one gets the segment.
        move(table, target, {id, path, room}, holder, self()),
        do: id
  end

  @doc "What has become of segments that were to be closed: whether the rank has them no more."
  @spec closed(table(), String.t(), [String.t()], boolean()) :: :ok
  def closed(table, target, ids, gone?) do
    for id <- ids, key = {target, id} do
      _ =
        in_table(true, fn ->
          if gone?,
            do: :ets.delete(table, key),
            else: :ets.update_element(table, key, {4, :unwanted})
        end)
    end

    :ok
  end

  defp unwanted?(:unwanted, _all_free?), do: true
  defp unwanted?(:free, all_free?), do: all_free?
  defp unwanted?(holder, _all_free?), do: not Process.alive?(holder)

  @doc "Why a target shares no memory with this host; nil: it may."
  @spec off(table(), String.t()) :: String.t() | nil
  def off(table, target) do
    case in_table([], fn -> :ets.lookup(table, {:off, target}) end) do
      [{_key, reason}] -> reason
      [] -> nil
    end
  end

  @doc "From now on a target's tensors are streamed."
  @spec turn_off(table(), String.t(), String.t()) :: :ok
  def turn_off(table, target, reason) do
    _ = in_table(true, fn -> :ets.insert(table, {{:off, target}, reason}) end)
    :ok
  end

  @doc "Counts a large tensor: nil: it went by shared memory; or why it did not."
  @spec count(table(), String.t(), String.t() | nil) :: :ok
  def count(table, target, nil) do
    _ = in_table(0, fn -> :ets.update_counter(table, {:count, target}, {2, 1}, none(target)) end)
    :ok
  end

  def count(table, target, reason) do
    _ =
      in_table(true, fn ->
        :ets.update_counter(table, {:count, target}, {3, 1}, none(target))
        :ets.update_element(table, {:count, target}, {4, reason})
      end)

    :ok
  end

  @doc "What was counted of a target."
  @spec counts(table(), String.t()) :: counts()
  def counts(table, target) do
    counted = in_table([], fn -> :ets.lookup(table, {:count, target}) end)
    {_key, shared, streamed, reason} = List.first(counted) || none(target)
    %{shared: shared, streamed: streamed, reason: reason}
  end

  defp none(target), do: {{:count, target}, 0, 0, ""}

  @doc """
  Room to ask for, so that tensors of nearly the same size use the same segments: up to an eighth more.

      iex> RankBridge.SharedMemory.Segments.fitting(67_108_864)
      67_108_864
      iex> RankBridge.SharedMemory.Segments.fitting(67_108_865)
      75_497_472
      iex> RankBridge.SharedMemory.Segments.fitting(1)
      1_048_576
  """
  @spec fitting(pos_integer()) :: pos_integer()
  def fitting(bytes) do
    step = max(1_048_576, eighth(bytes, 1))
    div(bytes + step - 1, step) * step
  end

  defp eighth(bytes, step) when bytes < 16 * step, do: step
  defp eighth(bytes, step), do: eighth(bytes, 2 * step)

  # The table is gone with its gang, which may end while it is called. What is called next says so.
  defp in_table(otherwise, fun) do
    fun.()
  rescue
    ArgumentError -> otherwise
  end
end
