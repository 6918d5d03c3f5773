defmodule RankBridge.Queue do
  @moduledoc """
  A message queue: one member writes values, and every reader takes them out in order. It is plain data: these functions call
  no rank. See `RankBridge.Queues`.

  * `name` - unique in its group
  * `group` - name of its group
  * `ranks` - ranks of the gang that are members of the group, in group order
  * `writer_rank_in_group` - the member that writes
  * `reader_ranks_in_group` - the members that read, in ascending order
  * `shared_memory_ranks_in_group` - those of the readers that are given values in shared memory; the others are given
    them by the backend
  * `max_chunk_bytes` - size of the room for one value, in bytes; a larger one travels on its own
  * `max_chunks` - values that may be unread by the slowest reader

  A queue belongs to its group and its generation, not to a session.

      iex> queue = %RankBridge.Queue{
      ...>   name: "q", group: "odd", ranks: [5, 0, 3], writer_rank_in_group: 1, reader_ranks_in_group: [0, 2]
      ...> }
      iex> {RankBridge.Queue.writer(queue), RankBridge.Queue.readers(queue)}
      {0, [5, 3]}
  """

  alias RankBridge.Gang
  alias RankBridge.Proto.V1

  @type t :: %__MODULE__{
          name: String.t(),
          group: String.t(),
          ranks: [non_neg_integer()],
          writer_rank_in_group: non_neg_integer(),
          reader_ranks_in_group: [non_neg_integer()],
          shared_memory_ranks_in_group: [non_neg_integer()],
          max_chunk_bytes: non_neg_integer(),
          max_chunks: non_neg_integer()
        }

  @enforce_keys [:name, :group, :ranks, :writer_rank_in_group, :reader_ranks_in_group]
  defstruct @enforce_keys ++
              [shared_memory_ranks_in_group: [], max_chunk_bytes: 4_194_304, max_chunks: 6]

  @doc "The queue that a rank describes; `ranks` are the members of its group, in group order."
  @spec from_proto(V1.Queue.t(), [non_neg_integer()]) :: t()
  def from_proto(%V1.Queue{} = queue, ranks) do
    fields =
      [:name, :group, :writer_rank_in_group, :reader_ranks_in_group] ++
        [:shared_memory_ranks_in_group, :max_chunk_bytes, :max_chunks]

    struct!(__MODULE__, queue |> Map.take(fields) |> Map.put(:ranks, ranks))
  end

  @doc "Rank in the gang of the writer."
  @spec writer(t()) :: non_neg_integer()
  def writer(%__MODULE__{} = queue), do: Enum.fetch!(queue.ranks, queue.writer_rank_in_group)

  @doc "Ranks in the gang of the readers."
  @spec readers(t()) :: [non_neg_integer()]
  def readers(%__MODULE__{} = queue),
    do: Enum.map(queue.reader_ranks_in_group, &Enum.fetch!(queue.ranks, &1))

  @doc """
  The queue of a gang as an enumerable, which reads it, and a collectable, which writes to it, as `File.Stream` is a file.

      stream = RankBridge.Queue.stream(gang, queue, rank_in_group: 1)
      Enum.into([1, 2, 3, 4], stream)
      Enum.take(stream, 3)
      for value <- stream, do: handle(value)

  Options:

    * `:rank_in_group` - which reader reads (default: the only one)
    * `:timeout` - milliseconds that reading waits for one value, after which the enumeration ends; and that writing waits
      for room, after which it raises. `:infinity`
  """
  @spec stream(Gang.gang(), t(), rank_in_group: non_neg_integer(), timeout: timeout()) ::
          RankBridge.Queue.Stream.t()
  def stream(gang, %__MODULE__{} = queue, opts \\ []),
    do: RankBridge.Queue.Stream.new(gang, queue, opts)

  defimpl Inspect do
    def inspect(queue, _options) do
      readers = queue |> RankBridge.Queue.readers() |> RankBridge.Group.listed()
      place = "#{Kernel.inspect(queue.name)} of group #{Kernel.inspect(queue.group)}"
      "#RankBridge.Queue<#{place}, from rank #{RankBridge.Queue.writer(queue)} to #{readers}>"
    end
  end
end
