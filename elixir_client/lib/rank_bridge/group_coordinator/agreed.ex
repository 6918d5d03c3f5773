defmodule RankBridge.GroupCoordinator.Agreed do
  @moduledoc """
  What one member makes for all: queues and recordings, of which each member calls its part. Who makes them tells the others,
  point to point and not by a collective, which would hold up the making.
  """

  alias RankBridge.{AtOnce, Error, Graph, Group, GroupCoordinator, Queue}
  alias RankBridge.GroupCoordinator.Conventions

  # Messages of callers have other tags.
  @tag 0xFFFF_FFFF

  @type result(value) :: {:ok, value} | {:error, Error.t()}
  @type run :: Conventions.runtime()

  @doc "A queue from one member to all others."
  @spec queue(GroupCoordinator.t(), non_neg_integer(), keyword(), run()) :: result(Queue.t())
  def queue(it, writer, chunks, run) do
    make(
      it,
      {"create_mq_broadcaster", "writer_rank", writer},
      run,
      fn ->
        opts = [writer_rank: writer] ++ in_group(it, run) ++ chunks
        RankBridge.create_mq_broadcaster(it.gang, opts)
      end,
      &RankBridge.shut_down_queue(it.gang, &1)
    )
  end

  @doc "A queue from each other member to one: the one that the rank writes, and those that it reads."
  @spec queues_to_one(GroupCoordinator.t(), non_neg_integer(), keyword(), run()) ::
          result({Queue.t() | nil, [Queue.t() | nil]})
  def queues_to_one(it, reader, chunks, run) do
    made =
      make(
        it,
        {"create_single_reader_mq_broadcasters", "reader_rank_in_group", reader},
        run,
        fn ->
          opts = [reader_rank_in_group: reader] ++ in_group(it, run) ++ chunks
          RankBridge.create_single_reader_mq_broadcasters(it.gang, opts)
        end,
        fn queues ->
          for %Queue{} = queue <- queues, do: RankBridge.shut_down_queue(it.gang, queue)
        end
      )

    with {:ok, queues} <- made do
      if place(it) == reader,
        do: {:ok, {nil, queues}},
        else: {:ok, {Enum.at(queues, place(it)), []}}
    end
  end

  @doc "Records what all members do while each runs its function. The graph is nil for who is alone."
  @spec graph(GroupCoordinator.t(), (() -> result(term())), run()) ::
          result({Graph.t() | nil, term()})
  def graph(it, fun, run) when is_function(fun, 0) do
    # Who is alone calls no collective.
    if others(it) == [],
      do: with({:ok, given} <- fun.(), do: {:ok, {nil, given}}),
      else: record(it, fun, run)
  end

  def graph(_it, other, _run) do
    refuse(
      "graph_capture",
      "graph_capture_context is what is recorded",
      "a function of no arguments",
      inspect(other, limit: 3)
    )
  end

  defp record(it, fun, run) do
    with {:ok, _begun} <- begin_capture(it, run) do
      try do
        fun.()
      catch
        kind, reason ->
          _ = end_capture(it, false, run)
          :erlang.raise(kind, reason, __STACKTRACE__)
      else
        {:ok, given} ->
          with {:ok, graph} <- end_capture(it, true, run), do: {:ok, {graph, given}}

        {:error, %Error{} = error} ->
          _ = end_capture(it, false, run)
          {:error, error}

        other ->
          _ = end_capture(it, false, run)
          raise ArgumentError, "neither {:ok, value} nor an error: #{inspect(other, limit: 5)}"
      end
    end
  end

  @doc "Begins to record, once all members have come for it."
  @spec begin_capture(GroupCoordinator.t(), run()) :: result(Graph.t())
  def begin_capture(it, run) do
    make(
      it,
      {"graph_capture", "first", 0},
      run,
      fn -> RankBridge.begin_capture(it.gang, nil, in_group(it, run)) end,
      fn graph -> drop(it, graph, run) end
    )
  end

  @doc "Ends it, once all members have come for that: kept as a graph if all of them want so."
  @spec end_capture(GroupCoordinator.t(), boolean(), run()) :: result(Graph.t())
  def end_capture(it, keep?, run) do
    if place(it) == 0 do
      told = it |> others() |> AtOnce.map(&hear(it, &1, run))
      fine? = keep? and Enum.all?(told, &(&1 == {:ok, true}))
      made(it, "graph_capture", run, fn -> ended(it, fine?, run) end, fn _graph -> :ok end)
    else
      with {:ok, nil} <- tell(it, 0, keep?, run), do: heard(it, 0, "graph_capture", run)
    end
  end

  defp ended(it, true, run), do: RankBridge.end_capture(it.gang, in_group(it, run))

  defp ended(it, false, run) do
    _ = drop(it, nil, run)
    {:error, Error.refusal(:aborted, "not all members have recorded", operation: "graph_capture")}
  end

  defp drop(it, _graph, run) do
    with {:ok, graph} <- RankBridge.end_capture(it.gang, in_group(it, run)),
         do: RankBridge.release_graph(it.gang, graph)
  end

  # --- telling ---

  # `undo` is for what not all have heard of.
  defp make(it, {operation, name, maker}, run, fun, undo) do
    places = 0..(Group.world_size(group(it)) - 1)

    cond do
      not (is_integer(maker) and maker in places) ->
        expected = "0 to #{places.last}"
        refuse(operation, "#{name} is not in the group", expected, inspect(maker, limit: 3))

      place(it) == maker ->
        made(it, operation, run, fun, undo)

      true ->
        heard(it, maker, operation, run)
    end
  end

  defp made(it, operation, run, fun, undo) do
    result = fun.()
    text = result |> :erlang.term_to_binary() |> then(&{:bytes, &1})
    told = it |> others() |> AtOnce.map(&tell(it, &1, text, run))

    with {:ok, value} <- result,
         {:error, error} <- Enum.find(told, {:ok, value}, &match?({:error, _error}, &1)) do
      _ = undo.(value)
      {:error, %{error | operation: operation}}
    end
  end

  defp heard(it, maker, operation, run) do
    with {:ok, told} <- hear(it, maker, run),
         {:ok, value} <- :erlang.binary_to_term(bytes(told), [:safe]) do
      {:ok, value}
    else
      {:error, error} -> {:error, %{error | operation: operation}}
    end
  end

  defp bytes({:bytes, bytes}), do: bytes
  defp bytes(bytes), do: bytes

  defp tell(it, place, value, run) do
    opts = [tag: @tag] ++ in_group(it, run)
    RankBridge.send_object(it.gang, it.rank, value, place, opts)
  end

  defp hear(it, place, run) do
    opts = [tag: @tag, src_rank_in_group: place] ++ in_group(it, run)
    with {:ok, {value, _src}} <- RankBridge.recv_object(it.gang, it.rank, opts), do: {:ok, value}
  end

  defp others(it), do: Enum.to_list(0..(Group.world_size(group(it)) - 1)) -- [place(it)]
  defp group(it), do: GroupCoordinator.group(it)
  defp place(it), do: Group.rank_in_group(group(it), it.rank)

  defp in_group(it, run), do: [group: group(it).name, timeout: run.timeout]

  defp refuse(operation, message, expected, got) do
    fields = [operation: operation, expected: expected, got: got]
    {:error, Error.refusal(:invalid_argument, message, fields)}
  end
end
