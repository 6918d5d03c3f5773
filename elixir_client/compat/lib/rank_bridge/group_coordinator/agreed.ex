defmodule RankBridge.GroupCoordinator.Agreed do
  @moduledoc """
  Queues and recordings, which one member makes for all while each member calls its part. The maker sends the result to the
  others point to point, and not by a collective, which would block the making.
  """

  alias RankBridge.{AtOnce, Error, Graph, Group, GroupCoordinator, Queue}
  alias RankBridge.GroupCoordinator.Conventions

  # Messages of callers have other tags.
  @tag 0xFFFF_FFFF

  @type result(value) :: {:ok, value} | {:error, Error.t()}
  @type run :: Conventions.runtime()

  @doc "A queue from one member to all others."
  @spec queue(GroupCoordinator.t(), non_neg_integer(), keyword(), run()) :: result(Queue.t())
  def queue(member, writer, chunks, run) do
    make(
      member,
      {"create_mq_broadcaster", "writer_rank", writer},
      run,
      fn ->
        opts = [writer_rank: writer] ++ in_group(member, run) ++ chunks
        RankBridge.Compat.create_mq_broadcaster(member.gang, opts)
      end,
      &RankBridge.Queues.shut_down_queue(member.gang, &1)
    )
  end

  @doc "A queue from each other member to one: the one that the rank writes, and those that it reads."
  @spec queues_to_one(GroupCoordinator.t(), non_neg_integer(), keyword(), run()) ::
          result({Queue.t() | nil, [Queue.t() | nil]})
  def queues_to_one(member, reader, chunks, run) do
    made =
      make(
        member,
        {"create_single_reader_mq_broadcasters", "reader_rank_in_group", reader},
        run,
        fn ->
          opts = [reader_rank_in_group: reader] ++ in_group(member, run) ++ chunks
          RankBridge.Compat.create_single_reader_mq_broadcasters(member.gang, opts)
        end,
        fn queues ->
          for %Queue{} = queue <- queues,
              do: RankBridge.Queues.shut_down_queue(member.gang, queue)
        end
      )

    with {:ok, queues} <- made do
      if place(member) == reader,
        do: {:ok, {nil, queues}},
        else: {:ok, {Enum.at(queues, place(member)), []}}
    end
  end

  @doc "Records what all members do while each runs its function. The graph is nil in a group of one."
  @spec graph(GroupCoordinator.t(), (() -> result(term())), run()) ::
          result({Graph.t() | nil, term()})
  def graph(member, fun, run) when is_function(fun, 0) do
    # A single member calls no collective.
    if others(member) == [],
      do: with({:ok, given} <- fun.(), do: {:ok, {nil, given}}),
      else: record(member, fun, run)
  end

  def graph(_member, other, _run) do
    refuse(
      "graph_capture",
      "graph_capture_context is what is recorded",
      "a function of no arguments",
      inspect(other, limit: 3)
    )
  end

  defp record(member, fun, run) do
    with {:ok, _begun} <- begin_capture(member, run) do
      try do
        fun.()
      catch
        kind, reason ->
          _ = end_capture(member, false, run)
          :erlang.raise(kind, reason, __STACKTRACE__)
      else
        {:ok, given} ->
          with {:ok, graph} <- end_capture(member, true, run), do: {:ok, {graph, given}}

        {:error, %Error{} = error} ->
          _ = end_capture(member, false, run)
          {:error, error}

        other ->
          _ = end_capture(member, false, run)
          raise ArgumentError, "neither {:ok, value} nor an error: #{inspect(other, limit: 5)}"
      end
    end
  end

  @doc "Begins a recording, once all members have called this."
  @spec begin_capture(GroupCoordinator.t(), run()) :: result(Graph.t())
  def begin_capture(member, run) do
    make(
      member,
      {"graph_capture", "first", 0},
      run,
      fn -> RankBridge.Graphs.begin_capture(member.gang, nil, in_group(member, run)) end,
      fn graph -> drop(member, graph, run) end
    )
  end

  @doc "Ends a recording, once all members have called this. It becomes a graph if all members ask to keep it."
  @spec end_capture(GroupCoordinator.t(), boolean(), run()) :: result(Graph.t())
  def end_capture(member, keep?, run) do
    if place(member) == 0 do
      votes = member |> others() |> AtOnce.map(&receive_message(member, &1, run))
      agreed? = keep? and Enum.all?(votes, &(&1 == {:ok, true}))

      share_result(
        member,
        "graph_capture",
        run,
        fn -> ended(member, agreed?, run) end,
        fn _graph -> :ok end
      )
    else
      with {:ok, nil} <- send_message(member, 0, keep?, run),
           do: receive_result(member, 0, "graph_capture", run)
    end
  end

  defp ended(member, true, run),
    do: RankBridge.Graphs.end_capture(member.gang, in_group(member, run))

  defp ended(member, false, run) do
    _ = drop(member, nil, run)
    {:error, Error.refusal(:aborted, "not all members have recorded", operation: "graph_capture")}
  end

  defp drop(member, _graph, run) do
    with {:ok, graph} <- RankBridge.Graphs.end_capture(member.gang, in_group(member, run)),
         do: RankBridge.Graphs.release_graph(member.gang, graph)
  end

  # --- messages between members ---

  # `undo` removes a result that not all members received.
  defp make(member, {operation, name, maker}, run, fun, undo) do
    places = 0..(Group.world_size(group(member)) - 1)

    cond do
      not (is_integer(maker) and maker in places) ->
        expected = "0 to #{places.last}"
        refuse(operation, "#{name} is not in the group", expected, inspect(maker, limit: 3))

      place(member) == maker ->
        share_result(member, operation, run, fun, undo)

      true ->
        receive_result(member, maker, operation, run)
    end
  end

  defp share_result(member, operation, run, fun, undo) do
    result = fun.()
    text = result |> :erlang.term_to_binary() |> then(&{:bytes, &1})
    sendings = member |> others() |> AtOnce.map(&send_message(member, &1, text, run))

    with {:ok, value} <- result,
         {:error, error} <- Enum.find(sendings, {:ok, value}, &match?({:error, _error}, &1)) do
      _ = undo.(value)
      {:error, %{error | operation: operation}}
    end
  end

  defp receive_result(member, maker, operation, run) do
    with {:ok, message} <- receive_message(member, maker, run),
         {:ok, value} <- :erlang.binary_to_term(bytes(message), [:safe]) do
      {:ok, value}
    else
      {:error, error} -> {:error, %{error | operation: operation}}
    end
  end

  defp bytes({:bytes, bytes}), do: bytes
  defp bytes(bytes), do: bytes

  defp send_message(member, place, value, run) do
    opts = [tag: @tag] ++ in_group(member, run)

    with :ok <- RankBridge.send_object(member.gang, member.rank, value, place, opts),
         do: {:ok, nil}
  end

  defp receive_message(member, place, run) do
    opts = [tag: @tag, src_rank_in_group: place] ++ in_group(member, run)

    with {:ok, {value, _src}} <- RankBridge.recv_object(member.gang, member.rank, opts),
         do: {:ok, value}
  end

  defp others(member),
    do: Enum.to_list(0..(Group.world_size(group(member)) - 1)) -- [place(member)]

  defp group(member), do: GroupCoordinator.group(member)
  defp place(member), do: Group.rank_in_group(group(member), member.rank)

  defp in_group(member, run), do: [group: group(member).name, timeout: run.timeout]

  defp refuse(operation, message, expected, got) do
    fields = [operation: operation, expected: expected, got: got]
    {:error, Error.refusal(:invalid_argument, message, fields)}
  end
end
