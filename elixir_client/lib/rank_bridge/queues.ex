defmodule RankBridge.Queues do
  @moduledoc """
  Message queues: one member of a group writes values, and every reader reads each of them, in order. vLLM's message queue
  broadcasters.

      {:ok, queue} = RankBridge.Queues.new_queue(gang, "steps")
      :ok = RankBridge.Queues.enqueue(gang, queue, %{"step" => 1})
      {:ok, %{"step" => 1}} = RankBridge.Queues.dequeue(gang, queue, rank_in_group: 1)

  A queue belongs to its group and its generation, not to a session. Writers and readers wait only for each other, not for
  the group's collectives. Values are any `t:RankBridge.Value.t/0`. Readers on the writer's host get them through shared memory.

  Writing and reading can be submitted at the ranks that do it, and are then followed by `RankBridge.Operations.wait/3` and the like:

      RankBridge.Operations.submit_rank(gang, RankBridge.Queue.writer(queue), :enqueue, value, queue: queue)
      RankBridge.Operations.submit_rank(gang, 2, :dequeue, nil, queue: queue)

  With an `:operation_id`, a value is written or taken once, however often it is asked for.
  """

  use RankBridge.Bangs

  alias RankBridge.{
    Calls,
    CallSite,
    Entry,
    Error,
    Gang,
    Group,
    Groups,
    Id,
    Operations,
    Options,
    Queue,
    Traces,
    Value
  }

  alias RankBridge.Gang.View
  alias RankBridge.Proto.V1

  # Milliseconds for ending what was half made.
  @closing 5_000

  @doc """
  Makes a message queue, on all members of a group or on none.

  `name` is 1 to 128 bytes, unique in the group. Options: those of collectives and

    * `:writer_rank_in_group` - the member that writes (default 0)
    * `:reader_ranks_in_group` - the members that read (default: all but the writer)
    * `:max_chunk_bytes` - size of the room for one value; larger ones travel on their own (default 4 MiB)
    * `:max_chunks` - values that may be unread by the slowest reader, at most 1,024 (default 6)

  `:name_exists`; `:rank_out_of_range`; `:invalid_argument`: the writer is to read, or a size is too large.
  """
  spec_with_bang new_queue(Gang.gang(), String.t(), keyword()) :: Queue.t()

  def new_queue(gang, name, opts \\ []) do
    Entry.call(gang, :new_queue, opts, fn view -> make(view, name, opts) end)
  end

  @doc "On the view of a gang: `new_queue/3`."
  @spec make(View.t(), String.t(), keyword()) :: {:ok, Queue.t()} | {:error, Error.t()}
  def make(view, name, opts) do
    defaults =
      [group: view.group, operation_id: nil, writer_rank_in_group: 0, reader_ranks_in_group: nil] ++
        [max_chunk_bytes: nil, max_chunks: nil]

    with {:ok, opts} <- Options.read(opts, defaults, "new_queue"),
         {:ok, fields} <- fields(name, opts),
         timeout = opts.timeout || view.timeout,
         {:ok, members} <- Groups.members(view, opts.group, timeout, "new_queue"),
         do: make(view, fields, members, opts, timeout)
  end

  defp fields(name, opts) do
    checks = [
      {is_binary(name), :invalid_argument, "name", "a text", name},
      place_check("writer_rank_in_group", opts.writer_rank_in_group),
      readers_check(opts.reader_ranks_in_group),
      size_check("max_chunk_bytes", opts.max_chunk_bytes, 0xFFFF_FFFF_FFFF_FFFF),
      size_check("max_chunks", opts.max_chunks, 0xFFFF_FFFF)
    ]

    case Enum.find(checks, fn {fine?, _reason, _what, _expected, _got} -> not fine? end) do
      nil ->
        {:ok,
         [
           name: name,
           writer_rank_in_group: opts.writer_rank_in_group,
           reader_ranks_in_group: opts.reader_ranks_in_group || [],
           max_chunk_bytes: opts.max_chunk_bytes || 0,
           max_chunks: opts.max_chunks || 0
         ]}

      {false, reason, what, expected, got} ->
        refuse(reason, "#{what} is wrong", "new_queue", opts.group, expected, got)
    end
  end

  defp place_check(what, place),
    do: {place?(place), :rank_out_of_range, what, "a rank in the group", place}

  # On the wire, no reader would be all but the writer.
  defp readers_check(readers) do
    fine? =
      readers == nil or (is_list(readers) and readers != [] and Enum.all?(readers, &place?/1))

    reason =
      if is_list(readers) and readers != [], do: :rank_out_of_range, else: :invalid_argument

    {fine?, reason, "reader_ranks_in_group", "a list of ranks in the group, or nil", readers}
  end

  defp size_check(what, size, most) do
    fine? = size == nil or (is_integer(size) and size in 1..most)
    {fine?, :invalid_argument, what, "1 to #{most}, or nil", size}
  end

  defp place?(place), do: is_integer(place) and place in 0..0xFFFF_FFFF

  defp make(view, fields, members, opts, timeout) do
    id = opts.operation_id || Id.uuid()

    header = %V1.Call{
      group: opts.group,
      operation_id: id,
      timeout_ms: timeout,
      session_id: view.session_id,
      traceparent: Traces.traceparent(),
      site: CallSite.current()
    }

    call = %Calls{
      rpc: V1.QueueService.new_queue(),
      operation: "new_queue",
      group: opts.group,
      operation_id: id,
      deadline: Calls.deadline(timeout)
    }

    request = struct!(V1.NewQueueRequest, [{:call, header} | fields])
    results = Calls.each(view, for(rank <- members, do: {rank, request}), call)

    with {:ok, [proto | _others]} <- Calls.gathered(results, true) do
      {:ok, Queue.from_proto(proto, members)}
    else
      {:error, error} ->
        half =
          for {rank, result} <- results,
              not match?({:error, %Error{indefinite: false}}, result),
              do: rank

        _ = ends(view, half, fields[:name], opts.group, min(view.timeout, @closing))
        # Perhaps the group has other members by now.
        Groups.forget(view, opts.group)
        {:error, error}
    end
  end

  @doc """
  Writes a value, at the queue's writer; waits while a reader has `max_chunks` unread.

  Options: `:timeout`, `:operation_id`. `:peer_missing`: readers, which it names, have not read in time, and the value is
  not in the queue; `:aborted`: a reader has shut the queue down; `:unknown_queue`: it was shut down at the writer.
  """
  spec_with_bang enqueue(Gang.gang(), Queue.t(), Value.t(), keyword()) :: :ok

  def enqueue(gang, queue, value, opts \\ []) do
    Entry.call_without_value(gang, :enqueue, opts, fn view -> write(view, queue, value, opts) end)
  end

  defp write(view, queue, value, opts) do
    with :ok <- check(queue, "enqueue"),
         do: Operations.run_rank(view, Queue.writer(queue), :enqueue, value, of(queue, opts))
  end

  @doc """
  Reads the next value, at one of the queue's readers; waits until there is one.

  Options: `:rank_in_group` - which reader (default: the only one), `:timeout`, `:operation_id`. `:peer_missing`: nothing
  was written in time, and nothing was read; `:aborted`: the writer has shut the queue down, and all was read;
  `:unknown_queue`: it was shut down at this reader.
  """
  spec_with_bang dequeue(Gang.gang(), Queue.t(), keyword()) :: Value.t()

  def dequeue(gang, queue, opts \\ []) do
    Entry.call(gang, :dequeue, opts, fn view ->
      {place, opts} = Options.pop(opts, :rank_in_group)

      with :ok <- check(queue, "dequeue"),
           {:ok, place} <- reader(queue, place),
           {:ok, rank} <- rank_at(queue, place, "dequeue"),
           do: Operations.run_rank(view, rank, :dequeue, nil, of(queue, opts))
    end)
  end

  defp reader(%Queue{reader_ranks_in_group: [only]}, nil), do: {:ok, only}

  defp reader(queue, nil) do
    expected = "rank_in_group, one of #{Group.listed(queue.reader_ranks_in_group)}"
    refuse(:invalid_argument, "which reader is meant?", "dequeue", queue.group, expected, nil)
  end

  defp reader(_queue, place), do: {:ok, place}

  @doc """
  Writes a value, and reads one at every reader: vLLM's `MessageQueue.broadcast_object`. Gives what each reader got, in
  the order of `reader_ranks_in_group`.

  What was written before and is unread at a reader comes there first. Options: `:timeout`, for the writing, and again for
  the reading; `:operation_id`. If the value is not written, nothing is read, and the error is the writer's own; if a
  reader cannot read, the others have read.
  """
  spec_with_bang broadcast_through(Gang.gang(), Queue.t(), Value.t(), keyword()) :: [Value.t()]

  def broadcast_through(gang, queue, value, opts \\ []) do
    Entry.call(gang, :broadcast_through, opts, fn view ->
      with {:ok, nil} <- write(view, queue, value, opts) do
        queue
        |> Queue.readers()
        |> RankBridge.AtOnce.map(fn rank ->
          {rank, Operations.run_rank(view, rank, :dequeue, nil, of(queue, opts))}
        end)
        |> Calls.gathered(true)
      end
    end)
  end

  @doc """
  Ends a queue: wakes the members that wait for it. Its other members learn of the end.

  Options: `:rank_in_group` - at which member (default: at all of them, as far as it has not ended there), `:timeout`.
  `:unknown_queue`: the member has no such queue.
  """
  spec_with_bang shut_down_queue(Gang.gang(), Queue.t(), keyword()) :: :ok

  def shut_down_queue(gang, queue, opts \\ []) do
    Entry.call_without_value(gang, :shut_down_queue, opts, fn view ->
      shut_down(view, queue, opts)
    end)
  end

  @doc "On the view of a gang: `shut_down_queue/3`."
  @spec shut_down(View.t(), Queue.t(), keyword()) :: {:ok, nil} | {:error, Error.t()}
  def shut_down(view, queue, opts) do
    with :ok <- check(queue, "shut_down_queue"),
         {:ok, opts} <- Options.read(opts, [rank_in_group: nil], "shut_down_queue"),
         {:ok, ranks} <- ranks(queue, opts.rank_in_group),
         :ok <- check_ranks(view, ranks),
         timeout = opts.timeout || view.timeout,
         results = ends(view, ranks, queue.name, queue.group, timeout),
         {:ok, _response} <- ended(results, opts.rank_in_group),
         do: {:ok, nil}
  end

  defp ranks(queue, nil), do: {:ok, queue.ranks}

  defp ranks(queue, place) do
    with {:ok, rank} <- rank_at(queue, place, "shut_down_queue"), do: {:ok, [rank]}
  end

  defp check_ranks(view, ranks) do
    Enum.find_value(ranks, :ok, fn rank ->
      with :ok <- View.check_rank(view, rank, "shut_down_queue"), do: nil
    end)
  end

  defp ended(results, nil) do
    results
    |> Enum.reject(&match?({_rank, {:error, %Error{reason: :unknown_queue}}}, &1))
    |> Calls.gathered(true)
  end

  defp ended([{_rank, result}], _place), do: result

  @doc """
  Every queue that any rank has an end of, by group and name; also those that another program has made.

  Options: `:rank` - to ask this one alone, `:timeout`.
  """
  spec_with_bang queues(Gang.gang(), keyword()) :: [Queue.t()]

  def queues(gang, opts \\ []) do
    Entry.call(gang, :queues, opts, fn view ->
      with {:ok, opts} <- Options.read(opts, [rank: nil], "queues"),
           timeout = opts.timeout || view.timeout,
           {:ok, ranks} <- asked(view, opts.rank),
           {:ok, queues} <- lists(view, ranks, timeout),
           do: described(view, queues, timeout)
    end)
  end

  defp asked(view, nil), do: {:ok, View.all_ranks(view)}

  defp asked(view, rank),
    do: with(:ok <- View.check_rank(view, rank, "queues"), do: {:ok, [rank]})

  @doc """
  The queue of a name: also one that another program has made. Option `:group` (default "world"). `:unknown_queue`: no
  member of the group has it.
  """
  spec_with_bang queue(Gang.gang(), String.t(), keyword()) :: Queue.t()

  def queue(gang, name, opts \\ []) do
    Entry.call(gang, :queue, opts, fn view ->
      with {:ok, opts} <- Options.read(opts, [group: view.group], "queue"),
           timeout = opts.timeout || view.timeout,
           {:ok, members} <- Groups.members(view, opts.group, timeout, "queue"),
           {:ok, queues} <- lists(view, members, timeout) do
        case Enum.find(queues, &(&1.group == opts.group and &1.name == name)) do
          nil ->
            message = "no member of the group has such a queue"
            refuse(:unknown_queue, message, "queue", opts.group, "the name of a queue", name)

          queue ->
            {:ok, Queue.from_proto(queue, members)}
        end
      end
    end)
  end

  # The ranks' descriptions of each queue, which are equal at all its ends.
  defp lists(view, ranks, timeout) do
    call = %Calls{
      rpc: V1.QueueService.list_queues(),
      operation: "queues",
      deadline: timeout,
      changes?: false
    }

    requests = for rank <- ranks, do: {rank, %V1.ListQueuesRequest{}}

    with {:ok, responses} <- Calls.all(view, requests, call) do
      queues = for response <- responses, queue <- response.queues, do: queue
      {:ok, queues |> Enum.uniq_by(&{&1.group, &1.name}) |> Enum.sort_by(&{&1.group, &1.name})}
    end
  end

  defp described(view, queues, timeout) do
    queues
    |> Enum.reduce_while({:ok, []}, fn queue, {:ok, done} ->
      case Groups.members(view, queue.group, timeout, "queues") do
        {:ok, members} -> {:cont, {:ok, [Queue.from_proto(queue, members) | done]}}
        # Its group has ended meanwhile, and so has the queue.
        {:error, %Error{reason: :unknown_group}} -> {:cont, {:ok, done}}
        {:error, error} -> {:halt, {:error, error}}
      end
    end)
    |> case do
      {:ok, reversed} -> {:ok, Enum.reverse(reversed)}
      error -> error
    end
  end

  defp ends(view, ranks, name, group, timeout) do
    call = %Calls{
      rpc: V1.QueueService.shut_down_queue(),
      operation: "shut_down_queue",
      group: group,
      deadline: timeout
    }

    request = %V1.ShutDownQueueRequest{call: %V1.Call{group: group}, queue: name}
    Calls.each(view, for(rank <- ranks, do: {rank, request}), call)
  end

  defp of(queue, opts), do: Options.put(opts, :queue, queue)

  defp check(%Queue{}, _operation), do: :ok

  defp check(other, operation) do
    expected = "what new_queue or queue has given"
    refuse(:invalid_argument, "this is no queue", operation, "", expected, other)
  end

  defp rank_at(queue, place, operation) do
    size = length(queue.ranks)

    if is_integer(place) and place in 0..(size - 1) do
      {:ok, Enum.fetch!(queue.ranks, place)}
    else
      message = "rank_in_group is not in the group"
      refuse(:rank_out_of_range, message, operation, queue.group, "0 to #{size - 1}", place)
    end
  end

  defp refuse(reason, message, operation, group, expected, got) do
    {:error,
     Error.refusal(reason, message,
       operation: operation,
       group: group,
       expected: expected,
       got: inspect(got, limit: 5)
     )}
  end
end
