defmodule RankBridge.Rank.Memory do
  @moduledoc false
  # The segments that a rank has given to this gang's callers, of `RankBridge.Rank.Server`: which are free, and who holds the
  # others. The server hands them out; their holders read and write them by themselves. A segment whose holder died is
  # given up: the rank may still be using it.

  alias RankBridge.Proto.V1

  # More segments that nobody uses are given up.
  @most_free 4

  @typedoc "A segment that a caller holds: its id, the path of its file, and its room in bytes."
  @type segment :: {id :: String.t(), path :: String.t(), room :: pos_integer()}

  @typedoc "See `RankBridge.Tensors.transfers/3`."
  @type counts :: %{
          shared: non_neg_integer(),
          streamed: non_neg_integer(),
          reason: String.t()
        }

  @typedoc """
  * `rows` - the path, the room and the holder of each segment, by its id. What is `:unwanted` is to be closed on the rank
  * `holders` - the monitors of holders, with the segments' ids
  * `off` - why the rank shares no memory with this host; nil: it may
  * `age` - of the segment that was given back last
  """
  @type t :: %__MODULE__{
          rows: %{String.t() => {String.t(), pos_integer(), holder()}},
          holders: %{reference() => [String.t()]},
          off: String.t() | nil,
          counts: counts(),
          age: non_neg_integer()
        }

  @typep holder :: {:held, reference()} | {:free, age :: non_neg_integer()} | :unwanted

  @typedoc """
  What has become of a segment, from its holder:

  * `:free` - nobody uses it
  * `:lent` - it is the memory of a tensor on the rank
  * `:unwanted` - the rank may use it at any time
  * `:unknown` - the rank does not know it, and perhaps no other
  * `:closed` - the rank has it no more
  """
  @type fate :: :free | :lent | :unwanted | :unknown | :closed

  defstruct rows: %{},
            holders: %{},
            off: nil,
            counts: %{shared: 0, streamed: 0, reason: ""},
            age: 0

  @doc """
  A free segment with room enough, and not far too much, for a holder. If there is none: the ids of segments to close on the
  rank before another is opened, which the holder has then. Or why there is no memory.
  """
  @spec take(t(), pos_integer(), pid()) ::
          {{:ok, segment()} | {:none, [String.t()]} | {:off, String.t()}, t()}
  def take(%{off: reason} = memory, _bytes, _holder) when reason != nil,
    do: {{:off, reason}, memory}

  def take(memory, bytes, holder) do
    most = max(2 * bytes, fitting(bytes))

    memory.rows
    |> Enum.filter(&match?({_id, {_path, room, {:free, _}}} when room in bytes..most, &1))
    |> Enum.min_by(fn {_id, {_path, room, _free}} -> room end, fn -> nil end)
    |> case do
      nil ->
        unwanted = for {id, {_path, _room, :unwanted}} <- memory.rows, do: id
        {{:none, unwanted}, hold(memory, unwanted, holder)}

      {id, {path, room, _free}} ->
        {{:ok, {id, path, room}}, hold(memory, [id], holder)}
    end
  end

  @doc "Ids of all segments that are not in use, for a holder who closes them on the rank to make room."
  @spec take_unused(t(), pid()) :: {[String.t()], t()}
  def take_unused(memory, holder) do
    unused = for {id, {_path, _room, state}} <- memory.rows, not match?({:held, _}, state), do: id
    {unused, hold(memory, unused, holder)}
  end

  @doc "Keeps a segment that the rank has just given to a holder."
  @spec keep(t(), V1.SharedMemory.t(), pid()) :: t()
  def keep(memory, %V1.SharedMemory{id: id, path: path, bytes: room}, holder) do
    rows = Map.put(memory.rows, id, {path, room, :unwanted})
    hold(%{memory | rows: rows}, [id], holder)
  end

  defp hold(memory, [], _holder), do: memory

  defp hold(memory, ids, holder) do
    monitor = Process.monitor(holder)
    memory = %{memory | holders: Map.put(memory.holders, monitor, ids)}
    Enum.reduce(ids, memory, &put(&2, &1, {:held, monitor}))
  end

  defp put(memory, id, state) do
    %{^id => {path, room, _before}} = memory.rows
    %{memory | rows: %{memory.rows | id => {path, room, state}}}
  end

  @doc "What has become of segments that one holder has taken at once."
  @spec done(t(), [String.t()], fate()) :: t()
  def done(memory, ids, fate) do
    held = for id <- ids, {_path, _room, {:held, monitor}} <- [memory.rows[id]], do: {id, monitor}
    for {_id, monitor} <- held, do: Process.demonitor(monitor, [:flush])
    memory = %{memory | holders: Map.drop(memory.holders, Enum.map(held, &elem(&1, 1)))}
    held |> Enum.reduce(memory, fn {id, _monitor}, memory -> become(memory, id, fate) end)
  end

  defp become(memory, id, :free),
    do: %{memory | age: memory.age + 1} |> put(id, {:free, memory.age}) |> without_too_many()

  defp become(memory, id, :unknown) do
    for {id, {_path, _room, {:free, _}}} <- memory.rows, reduce: put(memory, id, :unwanted) do
      memory -> put(memory, id, :unwanted)
    end
  end

  defp become(memory, id, :unwanted), do: put(memory, id, :unwanted)

  defp become(memory, id, gone) when gone in [:lent, :closed],
    do: %{memory | rows: Map.delete(memory.rows, id)}

  # Those that were used last stay.
  defp without_too_many(memory) do
    for({id, {_path, _room, {:free, age}}} <- memory.rows, do: {age, id})
    |> Enum.sort(:desc)
    |> Enum.drop(@most_free)
    |> Enum.reduce(memory, fn {_age, id}, memory -> put(memory, id, :unwanted) end)
  end

  @doc "A holder has ended."
  @spec holder_ended(t(), reference()) :: t()
  def holder_ended(memory, monitor), do: done(memory, memory.holders[monitor], :unwanted)

  @doc "From now on tensors are streamed, for this reason."
  @spec turn_off(t(), String.t()) :: t()
  def turn_off(memory, reason), do: %{memory | off: reason}

  @doc "Counts a large tensor: nil: it went by shared memory; or why it did not."
  @spec count(t(), String.t() | nil) :: t()
  def count(%{counts: counts} = memory, nil),
    do: %{memory | counts: %{counts | shared: counts.shared + 1}}

  def count(%{counts: counts} = memory, reason),
    do: %{memory | counts: %{counts | streamed: counts.streamed + 1, reason: reason}}

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
end
