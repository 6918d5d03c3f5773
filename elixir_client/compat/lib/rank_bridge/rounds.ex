defmodule RankBridge.Rounds do
  @moduledoc "Some ranks at a time: OLMo-core's `do_n_at_a_time`, in rounds that the controller begins and ends."

  use RankBridge.Bangs

  alias RankBridge.{
    AtOnce,
    Calls,
    Collectives,
    Entry,
    Error,
    Gang,
    Group,
    Groups,
    ManyGroups,
    Options
  }

  @doc """
  Calls a function for each member of a group, for at most `n` of them at once, and gives what it gave for each, in group
  order.

      RankBridge.Compat.do_n_at_a_time(gang, 2, fn rank -> load(gang, rank) end)

  `fun` gets a rank of the gang, and gives `{:ok, value}` or `{:error, error}`. Those of one round run at once, each in a
  process of its own; after each round, the last one included, comes a barrier of the group. `plan/2` says whose turn
  it is when; for `n` nil, one on each host at a time, `by_host/1` does.

  A turn that fails strands no other rank: the rounds go on, and its error is returned at the end, or raised again if it was
  raised. If a barrier fails, its error is returned at once, and no other round begins. Options: `:group` (default "world"), and
  `:timeout`, of each barrier.
  """
  spec_with_bang do_n_at_a_time(
                   Gang.gang(),
                   pos_integer() | nil,
                   (non_neg_integer() -> {:ok, term()} | {:error, Error.t()}),
                   keyword()
                 ) :: [term()]

  def do_n_at_a_time(gang, n, fun, opts \\ []) do
    Entry.call(gang, :do_n_at_a_time, opts, fn view ->
      with {:ok, opts} <- Options.read(opts, [group: "world"], "do_n_at_a_time"),
           {:ok, ranks, rounds} <- turns(view, n, opts),
           {:ok, results} <- run(view, rounds, fun, opts, []),
           do: ranks |> Enum.map(&{&1, finished(results[&1])}) |> Calls.gathered(true)
    end)
  end

  @doc """
  Whose turn it is in each round, if at most `n` have theirs at once: with r rounds, each r-th member's.

      iex> RankBridge.Rounds.plan([0, 1, 2, 3, 4, 5, 6, 7], 3)
      [[0, 3, 6], [1, 4, 7], [2, 5]]
  """
  @spec plan([rank], pos_integer()) :: [[rank]] when rank: non_neg_integer()
  def plan(ranks, n) do
    rounds = div(length(ranks) + n - 1, n)
    for first <- 0..(rounds - 1)//1, do: ranks |> Enum.drop(first) |> Enum.take_every(rounds)
  end

  @doc """
  Whose turn it is in each round, if it is that of one rank on each host: first everybody's first, and so on. The group
  knows its places. Raises a `RankBridge.Error` if it does not.

      iex> places = for host <- ["a", "a", "b"], do: %RankBridge.Place{host: host, local_rank: 0}
      iex> RankBridge.Rounds.by_host(%RankBridge.Group{name: "g", ranks: [4, 5, 6], places: places})
      [[4, 6], [5]]
  """
  @spec by_host(Group.t()) :: [[non_neg_integer()]]
  def by_host(group) do
    hosts = for {_host, ranks} <- Group.by_host(group), do: ranks
    longest = hosts |> Enum.map(&length/1) |> Enum.max()

    for turn <- 0..(longest - 1),
        do: for(rank <- Enum.map(hosts, &Enum.at(&1, turn)), rank, do: rank)
  end

  defp turns(view, nil, opts) do
    with {:ok, group} <- ManyGroups.describe(view, opts.group, timeout(opts)),
         do: {:ok, group.ranks, by_host(group)}
  rescue
    error in Error -> {:error, error}
  end

  defp turns(view, n, opts) when is_integer(n) and n > 0 do
    timeout = opts.timeout || view.timeout

    with {:ok, ranks} <- Groups.members(view, opts.group, timeout, "do_n_at_a_time"),
         do: {:ok, ranks, plan(ranks, n)}
  end

  defp turns(_view, n, opts) do
    {:error,
     Error.refusal(:invalid_argument, "this is no number of ranks",
       operation: "do_n_at_a_time",
       group: opts.group,
       expected: "1 or more, or nil",
       got: inspect(n, limit: 3)
     )}
  end

  defp run(_view, [], _fun, _opts, results), do: {:ok, Map.new(results)}

  defp run(view, [round | others], fun, opts, results) do
    results = AtOnce.map(round, &{&1, turn(fun, &1)}) ++ results

    with {:ok, nil} <- Collectives.run(view, :barrier, nil, [group: opts.group] ++ timeout(opts)),
         do: run(view, others, fun, opts, results)
  end

  defp turn(fun, rank) do
    case fun.(rank) do
      {:ok, value} ->
        {:ok, value}

      {:error, %Error{} = error} ->
        {:error, error}

      other ->
        raise ArgumentError, "neither {:ok, value} nor an error: #{inspect(other, limit: 5)}"
    end
  catch
    kind, reason -> {:raised, kind, reason, __STACKTRACE__}
  end

  defp finished({:raised, kind, reason, stacktrace}), do: :erlang.raise(kind, reason, stacktrace)
  defp finished(result), do: result

  defp timeout(%{timeout: nil}), do: []
  defp timeout(%{timeout: timeout}), do: [timeout: timeout]
end
