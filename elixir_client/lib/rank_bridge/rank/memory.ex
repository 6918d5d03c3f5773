defmodule RankBridge.Rank.Memory do
  @moduledoc false
  # The segments that a rank has given to a gang's callers: which are free, and who has the others.
  #
  # They are in a table of the rank's process (`RankBridge.Rank.Server`), from which each caller takes by itself: a question to that
  # process would cost as much as copying 1 MiB. A segment that its holder died with is given up: the rank may still be using it.

  alias RankBridge.Proto.V1

  # More that nobody uses are given up.
  @most_free 4

  @typedoc "A segment that the caller holds: its id, the path of its file, and its room in bytes."
  @type segment :: {id :: String.t(), path :: String.t(), room :: pos_integer()}
  @type table :: :ets.table()
  @type counts :: %{
          shared: non_neg_integer(),
          streamed: non_neg_integer(),
          reason: String.t()
        }

  @doc "A table for the segments of a rank, for as long as the calling process lives."
  @spec new() :: table()
  def new, do: :ets.new(:rank_bridge_shared_memory, [:public, read_concurrency: true])

  @doc "Whether anything was ever kept or counted."
  @spec used?(table()) :: boolean()
  def used?(table), do: :ets.info(table, :size) > 0

  @doc "A free segment with room enough, and not far too much; the caller has it then."
  @spec take(table(), pos_integer()) :: {:ok, segment()} | :none
  def take(table, bytes) do
    most = max(2 * bytes, fitting(bytes))
    row = {{:segment, :"$1"}, :"$2", :"$3", :free}
    guards = [{:>=, :"$3", bytes}, {:"=<", :"$3", most}]
    free = in_table([], fn -> :ets.select(table, [{row, guards, [{{:"$1", :"$2", :"$3"}}]}]) end)

    free
    |> Enum.sort_by(&elem(&1, 2))
    |> Enum.find_value(:none, fn segment ->
      if move(table, segment, :free, self()), do: {:ok, segment}
    end)
  end

  # Whether the segment was one's, and is the other's now.
  defp move(table, {id, path, room}, from, to) do
    key = {:segment, id}
    moved = [{{key, path, room, from}, [], [{{{:const, key}, path, room, {:const, to}}}]}]
    in_table(0, fn -> :ets.select_replace(table, moved) end) == 1
  end

  @doc "Keeps a segment that a rank has just given; the caller has it."
  @spec keep(table(), V1.SharedMemory.t()) :: segment()
  def keep(table, %V1.SharedMemory{} = memory) do
    row = {{:segment, memory.id}, memory.path, memory.bytes, self()}
    _ = in_table(true, fn -> :ets.insert(table, row) end)
    {memory.id, memory.path, memory.bytes}
  end

  @doc "The caller uses a segment no more. It is free; others are given up where there are too many."
  @spec give_back(table(), segment()) :: :ok
  def give_back(table, segment) do
    # Counted when it is free: of several that are given back at once, the last sees all.
    _ = move(table, segment, self(), :free)
    free = free(table)
    others = List.delete(free, segment)
    give_up_free(table, Enum.take(others, max(0, length(free) - @most_free)))
  end

  @doc "The rank may use a segment at any time: nobody else does."
  @spec give_up(table(), segment()) :: :ok
  def give_up(table, segment) do
    _ = move(table, segment, self(), :unwanted)
    :ok
  end

  @doc "A segment has become memory of a tensor on the rank."
  @spec lend(table(), segment()) :: :ok
  def lend(table, {id, _path, _room}) do
    _ = in_table(true, fn -> :ets.delete(table, {:segment, id}) end)
    :ok
  end

  @doc "The rank does not know a segment, and perhaps none: those that are free are given up."
  @spec forget(table()) :: :ok
  def forget(table), do: give_up_free(table, free(table))

  defp free(table) do
    rows = in_table([], fn -> :ets.match_object(table, {{:segment, :_}, :_, :_, :free}) end)
    for {{:segment, id}, path, room, :free} <- rows, do: {id, path, room}
  end

  defp give_up_free(table, segments),
    do: Enum.each(segments, &move(table, &1, :free, :unwanted))

  @doc """
  Ids of the segments to close on the rank. The caller holds them until `closed/4`. `all_free?`: includes every segment that is
  not in use.
  """
  @spec unwanted(table(), boolean()) :: [String.t()]
  def unwanted(table, all_free?) do
    rows = in_table([], fn -> :ets.match_object(table, {{:segment, :_}, :_, :_, :_}) end)

    for {{:segment, id}, path, room, holder} <- rows,
        unwanted?(holder, all_free?),
        # Of several callers at once, one gets the segment.
        move(table, {id, path, room}, holder, self()),
        do: id
  end

  @doc "What has become of segments that were to be closed: whether the rank has them no more."
  @spec closed(table(), [String.t()], boolean()) :: :ok
  def closed(table, ids, gone?) do
    for id <- ids, key = {:segment, id} do
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

  @doc "Why the rank shares no memory with this host; nil: it may."
  @spec off(table()) :: String.t() | nil
  def off(table) do
    case in_table([], fn -> :ets.lookup(table, :off) end) do
      [{_key, reason}] -> reason
      [] -> nil
    end
  end

  @doc "From now on tensors are streamed."
  @spec turn_off(table(), String.t()) :: :ok
  def turn_off(table, reason) do
    _ = in_table(true, fn -> :ets.insert(table, {:off, reason}) end)
    :ok
  end

  @doc "Counts a large tensor: nil: it went by shared memory; or why it did not."
  @spec count(table(), String.t() | nil) :: :ok
  def count(table, nil) do
    _ = in_table(0, fn -> :ets.update_counter(table, :count, {2, 1}, none()) end)
    :ok
  end

  def count(table, reason) do
    _ =
      in_table(true, fn ->
        :ets.update_counter(table, :count, {3, 1}, none())
        :ets.update_element(table, :count, {4, reason})
      end)

    :ok
  end

  @doc "What was counted."
  @spec counts(table()) :: counts()
  def counts(table) do
    counted = in_table([], fn -> :ets.lookup(table, :count) end)
    {_key, shared, streamed, reason} = List.first(counted) || none()
    %{shared: shared, streamed: streamed, reason: reason}
  end

  defp none, do: {:count, 0, 0, ""}

  @doc """
  Room to ask for, so that tensors of nearly the same size use the same segments: up to an eighth more.

      iex> RankBridge.Rank.Memory.fitting(67_108_864)
      67_108_864
      iex> RankBridge.Rank.Memory.fitting(67_108_865)
      75_497_472
      iex> RankBridge.Rank.Memory.fitting(1)
      1_048_576
  """
  @spec fitting(pos_integer()) :: pos_integer()
  def fitting(bytes) do
    step = max(1_048_576, eighth(bytes, 1))
    div(bytes + step - 1, step) * step
  end

  defp eighth(bytes, step) when bytes < 16 * step, do: step
  defp eighth(bytes, step), do: eighth(bytes, 2 * step)

  # The table is gone with its rank's process, which may end while it is called. What is called next says so.
  defp in_table(otherwise, fun) do
    fun.()
  rescue
    ArgumentError -> otherwise
  end
end
