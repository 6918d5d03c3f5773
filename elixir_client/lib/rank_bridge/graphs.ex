defmodule RankBridge.Graphs do
  @moduledoc """
  Collectives that are recorded as they run, and run again in one call: vLLM's `graph_capture`.

      {:ok, {graph, sums}} =
        RankBridge.Graphs.graph_capture(gang, "step", fn -> RankBridge.all_reduce(gang, gradients) end)

      {:ok, [^sums]} = RankBridge.Graphs.replay(gang, graph)

  The ranks record the collectives on tensors (`RankBridge.Collectives`) that the gang's session runs in one
  group, from any process. Recording does not change how they run. Collectives that fail, and those on refs of another
  session, are not recorded. A replay reads the current contents of the same inputs, and writes to the refs that the first
  run gave: it allocates nothing. A replay can be submitted, too: `RankBridge.submit(gang, :replay, graph)`.

  A graph outlives its generation, but not its session.
  """

  use RankBridge.Bangs

  alias RankBridge.{Calls, Collectives, Entry, Error, Gang, Graph, Groups, Id, Options}
  alias RankBridge.Gang.View
  alias RankBridge.Proto.V1

  @doc """
  Records a group's collectives while a function runs, on all its members or on none. Gives the graph and the function's
  value.

      RankBridge.Graphs.graph_capture(gang, "step", fn ->
        with {:ok, sums} <- RankBridge.all_reduce(gang, gradients),
             :ok <- RankBridge.barrier(gang),
             do: {:ok, sums}
      end)

  `name` is the graph's: 1 to 128 bytes, unique in the session; nil: one that nothing else has. `fun` gives
  `{:ok, value}` or `{:error, error}`. If it gives an error, raises, throws or exits, the recording is ended, nothing is
  kept, and that is what comes of this call, too. If this process is killed meanwhile, the recording goes on until
  `end_capture/2`, or until the session ends.

  Option `:group` (default "world"). Errors: as of `begin_capture/3` and `end_capture/2`.
  """
  spec_with_bang graph_capture(
                   Gang.gang(),
                   String.t() | nil,
                   (() -> {:ok, term()} | {:error, Error.t()}),
                   keyword()
                 ) :: {Graph.t(), term()}

  def graph_capture(gang, name, fun, opts \\ []) do
    Entry.call(gang, :graph_capture, opts, fn view ->
      with {:ok, graph} <- begin(view, name, opts),
           {:ok, given} <- recorded(view, graph, fun, opts),
           {:ok, graph} <- keep(view, opts),
           do: {:ok, {graph, given}}
    end)
  end

  defp recorded(view, graph, fun, opts) do
    case fun.() do
      {:ok, given} ->
        {:ok, given}

      {:error, %Error{} = error} ->
        :ok = drop(view, graph, timeout(view, opts))
        {:error, error}

      other ->
        raise ArgumentError, "neither {:ok, value} nor an error: #{inspect(other, limit: 5)}"
    end
  catch
    kind, reason ->
      :ok = drop(view, graph, timeout(view, opts))
      :erlang.raise(kind, reason, __STACKTRACE__)
  end

  @doc """
  Begins to record the session's collectives in a group, on every member or on none; see `graph_capture/4`.

  Option `:group` (default "world"). `:name_exists`: the session has a graph of that name; `:invalid_argument`: it records
  in the group already.
  """
  spec_with_bang begin_capture(Gang.gang(), String.t() | nil, keyword()) :: Graph.t()

  def begin_capture(gang, name, opts \\ []) do
    Entry.call(gang, :begin_capture, opts, fn view -> begin(view, name, opts) end)
  end

  defp begin(view, name, opts) do
    with {:ok, opts} <- Options.read(opts, [group: view.group], "begin_capture"),
         {:ok, name} <- check_name(name, opts),
         timeout = opts.timeout || view.timeout,
         {:ok, members} <- Groups.members(view, opts.group, timeout, "begin_capture") do
      begin(view, name, opts.group, members, timeout)
    end
  end

  defp check_name(nil, _opts), do: {:ok, "graph-" <> Id.uuid()}
  defp check_name(name, _opts) when is_binary(name), do: {:ok, name}

  defp check_name(other, opts) do
    {:error,
     Error.refusal(:invalid_argument, "this is no name of a graph",
       operation: "begin_capture",
       group: opts.group,
       expected: "a text, or nil",
       got: inspect(other, limit: 3)
     )}
  end

  defp begin(view, name, group, members, timeout) do
    header = %V1.Call{group: group, session_id: view.session_id}
    request = %V1.BeginCaptureRequest{call: header, graph: name}
    call = call(V1.GraphService.begin_capture(), "begin_capture", group, timeout)
    results = Calls.each(view, for(rank <- members, do: {rank, request}), call)

    with {:ok, [proto | _others]} <- Calls.gathered(results, true) do
      {:ok, Graph.from_proto(proto, view.session_id, members)}
    else
      {:error, error} ->
        begun =
          for {rank, result} <- results,
              not match?({:error, %Error{indefinite: false}}, result),
              do: rank

        graph = %Graph{name: name, group: group, session_id: view.session_id, ranks: begun}
        :ok = drop(view, graph, timeout)
        # Perhaps the group has other members by now.
        Groups.forget(view, group)
        {:error, error}
    end
  end

  @doc """
  Ends the session's recording in a group, and keeps it as a graph, on every member or on none.

  Option `:group` (default "world"). `:unknown_graph`: it records nothing there; `:resource_exhausted`: more was done than
  a graph can have.
  """
  spec_with_bang end_capture(Gang.gang(), keyword()) :: Graph.t()

  def end_capture(gang, opts \\ []) do
    Entry.call(gang, :end_capture, opts, fn view -> keep(view, opts) end)
  end

  defp keep(view, opts) do
    with {:ok, opts} <- Options.read(opts, [group: view.group], "end_capture"),
         timeout = opts.timeout || view.timeout,
         {:ok, members} <- Groups.members(view, opts.group, timeout, "end_capture") do
      results = ends(view, members, opts.group, view.session_id, timeout)

      with {:error, error} <- Calls.gathered(results, true) do
        _ = release_ended(view, results, view.session_id, timeout)
        {:error, error}
      else
        {:ok, [proto | _others]} -> {:ok, Graph.from_proto(proto, view.session_id, members)}
      end
    end
  end

  @doc """
  Runs a graph again on all members of its group, as one operation: one call and one admission. Gives for each
  collective, in order, what its function gives; nil for a barrier.

  `graph` is the graph, or its name in the gang's session. Options: those of collectives; `:group` is the graph's own, of
  a name "world". `:unknown_graph`; `:released_ref`: one of its refs is gone; `:mismatch`: the members have recorded
  different collectives; or what a collective can fail with. If one cannot be done, none is.
  """
  spec_with_bang replay(Gang.gang(), Graph.t() | String.t(), keyword()) :: [term()]

  def replay(gang, graph, opts \\ []) do
    Entry.call(gang, :replay, opts, fn view -> Collectives.run(view, :replay, graph, opts) end)
  end

  @doc """
  Forgets a graph on every rank that has it, and gives it as it was. Its refs stay.

  `graph` is the graph, or its name in the gang's session. `:unknown_graph`: no rank has it.
  """
  spec_with_bang release_graph(Gang.gang(), Graph.t() | String.t(), keyword()) :: Graph.t()

  def release_graph(gang, graph, opts \\ []) do
    Entry.call(gang, :release_graph, opts, fn view ->
      with {:ok, opts} <- Options.read(opts, [], "release_graph"),
           {:ok, graph} <- find(view, graph) do
        names = for rank <- graph.ranks, do: {rank, graph.name}
        results = releases(view, graph.session_id, names, opts.timeout || view.timeout)

        with {:ok, [proto | _others]} <- results |> but_unknown() |> Calls.gathered(true) do
          holders = for {rank, {:ok, _proto}} <- results, do: rank
          {:ok, Graph.from_proto(proto, graph.session_id, holders)}
        end
      end
    end)
  end

  # A name says nothing of who has recorded it. Where nobody has, all say so.
  defp but_unknown(results) do
    case Enum.reject(results, &match?({_rank, {:error, %Error{reason: :unknown_graph}}}, &1)) do
      [] -> results
      others -> others
    end
  end

  defp find(view, %Graph{ranks: [_ | _]} = graph) do
    with :ok <- check_ranks(view, graph.ranks), do: {:ok, graph}
  end

  defp find(view, name) when is_binary(name),
    do: {:ok, %Graph{name: name, session_id: view.session_id, ranks: View.all_ranks(view)}}

  defp find(_view, other) do
    {:error,
     Error.refusal(:invalid_argument, "this is no graph",
       operation: "release_graph",
       expected: "a graph, or its name",
       got: inspect(other, limit: 3)
     )}
  end

  defp check_ranks(view, ranks) do
    Enum.find_value(ranks, :ok, fn rank ->
      with :ok <- View.check_rank(view, rank, "release_graph"), do: nil
    end)
  end

  # Ends a recording and keeps no graph of it. Failures are not reported.
  defp drop(view, graph, timeout) do
    results = ends(view, graph.ranks, graph.group, graph.session_id, timeout)
    release_ended(view, results, graph.session_id, timeout)
  end

  defp ends(view, ranks, group, session_id, timeout) do
    request = %V1.EndCaptureRequest{call: %V1.Call{group: group, session_id: session_id}}
    call = call(V1.GraphService.end_capture(), "end_capture", group, timeout)
    Calls.each(view, for(rank <- ranks, do: {rank, request}), call)
  end

  defp release_ended(view, results, session_id, timeout) do
    _ =
      releases(
        view,
        session_id,
        for({rank, {:ok, graph}} <- results, do: {rank, graph.name}),
        timeout
      )

    :ok
  end

  defp releases(view, session_id, names, timeout) do
    requests =
      for {rank, name} <- names,
          do: {rank, %V1.ReleaseGraphRequest{session_id: session_id, graph: name}}

    Calls.each(
      view,
      requests,
      call(V1.GraphService.release_graph(), "release_graph", "", timeout)
    )
  end

  defp call(rpc, operation, group, timeout),
    do: %Calls{rpc: rpc, operation: operation, group: group, deadline: timeout}

  defp timeout(view, opts), do: opts[:timeout] || view.timeout
end
