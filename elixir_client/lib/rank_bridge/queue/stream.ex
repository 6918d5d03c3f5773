defmodule RankBridge.Queue.Stream do
  @moduledoc false
  # A queue of a gang as an enumerable and a collectable, as `File.Stream` is a file. See `RankBridge.Queue.stream/3`.
  #
  # ## Reading
  #
  # Enumerating dequeues, one value for each element that is asked for and none ahead: `Enum.take(stream, 3)` leaves the
  # fourth value in the queue. It ends when the writer has shut the queue down and everything that it wrote was read, when
  # the queue is shut down at this reader, or when no value came within `:timeout`.
  #
  # It raises the `RankBridge.Error` in every other case. A queue ends with its generation and with its group: that is
  # no ordinary end, and an enumeration that meets it raises, as does one of a queue that the reader does not have.
  #
  # Each reader has every value. Two enumerations at one reader share its values.
  #
  # ## Writing
  #
  # Collecting enqueues each value at the queue's writer, in order, and waits while a reader has `max_chunks` unread. It
  # raises the error of a value that was not written; those before it stay in the queue. It does not shut the queue down.

  alias RankBridge.{Entry, Error, Gang, Queue, Queues, Ranks, RankStatus}

  @enforce_keys [:gang, :queue, :timeout, :opts]
  defstruct [:gang, :queue, :timeout, :opts, :rank_in_group]

  @type t :: %__MODULE__{
          gang: Gang.gang(),
          queue: Queue.t(),
          timeout: timeout(),
          opts: keyword(),
          rank_in_group: non_neg_integer() | nil
        }

  @doc "The values of a queue. Raises ArgumentError for wrong options."
  @spec new(Gang.gang(), Queue.t(), keyword()) :: t()
  def new(gang, %Queue{} = queue, opts) do
    opts = Keyword.validate!(opts, [:rank_in_group, timeout: :infinity])
    timeout = opts[:timeout]

    unless timeout == :infinity or (is_integer(timeout) and timeout > 0) do
      raise ArgumentError, "expected :timeout to be at least 1, got: #{inspect(timeout)}"
    end

    place = opts[:rank_in_group]

    %__MODULE__{
      gang: gang,
      queue: queue,
      timeout: timeout,
      # Without a limit of its own, each call has the gang's, and is made again.
      opts: if(timeout == :infinity, do: [], else: [timeout: timeout]),
      rank_in_group: place
    }
  end

  @doc "The elements that are left, lazily."
  @spec elements(t()) :: Enumerable.t()
  def elements(%__MODULE__{} = stream) do
    Stream.resource(
      fn -> generation!(stream) end,
      fn generation ->
        case dequeue!(stream, generation) do
          {:ok, value} -> {[value], generation}
          :ended -> {:halt, generation}
        end
      end,
      fn _generation -> :ok end
    )
  end

  @doc "Writes a value; waits for room."
  @spec enqueue!(t(), RankBridge.Value.t()) :: :ok
  def enqueue!(%__MODULE__{timeout: timeout} = stream, value) do
    case Queues.enqueue(stream.gang, stream.queue, value, stream.opts) do
      # Nothing was written.
      {:error, %Error{reason: :peer_missing, indefinite: false}} when timeout == :infinity ->
        enqueue!(stream, value)

      {:error, error} ->
        raise error

      _written ->
        :ok
    end
  end

  defp dequeue!(%{timeout: timeout} = stream, generation) do
    case Queues.dequeue(stream.gang, stream.queue, [rank_in_group: place(stream)] ++ stream.opts) do
      {:ok, value} ->
        {:ok, value}

      # Nothing was read.
      {:error, %Error{reason: :peer_missing, indefinite: false}} ->
        if timeout == :infinity, do: dequeue!(stream, generation), else: :ended

      {:error, %Error{reason: reason} = error} when reason in [:unknown_queue, :aborted] ->
        if not lost_value?(error, stream) and shut_down?(stream, generation),
          do: :ended,
          else: raise(error)

      {:error, error} ->
        raise error
    end
  end

  # The only reader need not be named.
  defp place(%{rank_in_group: nil, queue: %{reader_ranks_in_group: [only]}}), do: only
  defp place(%{rank_in_group: place}), do: place

  # Of the reader, which has to have the queue.
  defp generation!(%{queue: queue} = stream) do
    case place(stream) do
      place when is_integer(place) and place in 0..(length(queue.ranks) - 1)//1 ->
        rank = Enum.fetch!(queue.ranks, place)
        known = Queues.queues!(stream.gang, [rank: rank] ++ stream.opts)

        unless Enum.any?(known, &({&1.group, &1.name} == {queue.group, queue.name})) do
          raise Error.refusal(:unknown_queue, "the reader has no such queue",
                  operation: "dequeue",
                  group: queue.group,
                  expected: "a queue that was not shut down, of this generation",
                  got: queue.name
                )
        end

        {rank, status!(stream, rank).generation}

      # Refused by the call.
      _wrong ->
        {nil, 0}
    end
  end

  # In shared memory the phase :data begins with the value itself: an abort there has lost it.
  defp lost_value?(%Error{reason: :aborted, phase: :data}, stream),
    do: place(stream) in stream.queue.shared_memory_ranks_in_group

  defp lost_value?(_error, _stream), do: false

  # Whether only the queue has ended, and not its generation or its group.
  defp shut_down?(stream, {rank, generation}) do
    status = status!(stream, rank)

    status.generation == generation and status.generation_state == :formed and
      Enum.any?(status.groups, &(&1.name == stream.queue.group))
  end

  @spec status!(t(), non_neg_integer()) :: RankStatus.t()
  defp status!(stream, rank) do
    case Entry.call(stream.gang, :status, [], &Ranks.status_of(&1, rank, [])) do
      {:ok, status} -> status
      {:error, error} -> raise error
    end
  end

  defimpl Enumerable do
    def reduce(stream, acc, fun),
      do: Enumerable.reduce(RankBridge.Queue.Stream.elements(stream), acc, fun)

    def count(_stream), do: {:error, __MODULE__}
    def member?(_stream, _value), do: {:error, __MODULE__}
    def slice(_stream), do: {:error, __MODULE__}
  end

  defimpl Collectable do
    def into(stream) do
      collector = fn
        stream, {:cont, value} ->
          :ok = RankBridge.Queue.Stream.enqueue!(stream, value)
          stream

        stream, :done ->
          stream

        _stream, :halt ->
          :ok
      end

      {stream, collector}
    end
  end

  defimpl Inspect do
    def inspect(stream, _options),
      do:
        "#RankBridge.Queue.Stream<#{Kernel.inspect(stream.queue)} on #{Kernel.inspect(stream.gang)}>"
  end
end
