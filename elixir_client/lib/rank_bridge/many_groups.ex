defmodule RankBridge.ManyGroups do
  @moduledoc false
  # Groups that are made and ended together, meshes and layouts: behind the functions of `RankBridge`.

  alias RankBridge.{Calls, Error, Group, Groups, Layout, Mesh, Options, Place, Ranks}
  alias RankBridge.Gang.View

  # Milliseconds for ending each group that is of no use.
  @ending 5_000

  # After one of these the generation is over, or a rank cannot be reached: nothing else will be ended either.
  @over [:peer_lost, :not_formed, :stale_generation, :backend_failed, :aborted, :forming_failed] ++
          [:unavailable]

  @type group :: Group.t() | {String.t(), [non_neg_integer()]}

  @doc "Each rank's host; see `RankBridge.Generations.hosts/2`."
  @spec hosts(View.t(), keyword()) :: {:ok, [String.t()]} | {:error, Error.t()}
  def hosts(view, opts) do
    with {:ok, statuses} <- statuses(view, opts),
         do: {:ok, Enum.map(statuses, & &1.host)}
  end

  @doc "One group, and where its members run; see `RankBridge.Grouping.group/3`."
  @spec describe(View.t(), String.t(), keyword()) :: {:ok, Group.t()} | {:error, Error.t()}
  def describe(view, name, opts) do
    name = if name == "", do: "world", else: Group.name(name)

    with {:ok, statuses} <- Ranks.status(view, opts) do
      reachable =
        for {%{error: nil} = status, rank} <- Enum.with_index(statuses), do: {rank, status}

      known = reachable |> Enum.map(&elem(&1, 1)) |> known()

      case known do
        %{^name => group} ->
          places = Map.new(reachable, fn {rank, status} -> {rank, place(status)} end)
          {:ok, %{group | places: Enum.map(group.ranks, &places[&1])}}

        _unknown when reachable == [] ->
          gathered(statuses)

        _unknown ->
          message = "no rank that answers is a member of a group #{inspect(name)}"
          expected = "one of #{known |> Map.keys() |> Enum.sort() |> Enum.join(", ")}"
          {:error, refusal(:unknown_group, message, "group", expected, inspect(name))}
      end
    end
  end

  @doc "Makes all of several groups, or none; see `RankBridge.Grouping.new_groups/3`."
  @spec create(View.t(), [group()], keyword()) :: {:ok, [Group.t()]} | {:error, Error.t()}
  def create(view, groups, opts) do
    with {:ok, opts} <- Options.read(opts, [], "new_groups"),
         {:ok, wanted} <- check_groups(view, groups),
         {:ok, statuses} <- statuses(view, []),
         :ok <- check_free(statuses, wanted),
         do: make(view, wanted, opts.timeout)
  end

  @doc "Ends those of several groups that exist; see `RankBridge.Grouping.destroy_groups/3`."
  @spec destroy(View.t(), [Group.t() | String.t()], keyword()) ::
          {:ok, [Group.t()]} | {:error, Error.t()}
  def destroy(view, groups, opts) do
    names = groups |> Enum.map(&Group.name/1) |> Enum.uniq()

    with {:ok, opts} <- Options.read(opts, [], "destroy_groups"),
         :ok <- check_not_world(names),
         {:ok, statuses} <- statuses(view, []) do
      known = known(statuses)

      ended =
        for name <- names, is_map_key(known, name) do
          {name, end_known(view, known[name], timeout: opts.timeout)}
        end

      case for({name, {:error, error}} <- ended, do: {name, error}) do
        [] ->
          {:ok, for({_name, {:ok, group}} <- ended, do: group)}

        [{_name, error} | _others] = failed ->
          names = Enum.map(failed, &elem(&1, 0))
          {:error, add(error, "groups that were not ended: #{listing(names)}")}
      end
    end
  end

  # Another program may have ended the group and made it again with other members.
  defp end_known(view, group, opts) do
    Groups.remember(view, group.name, group.ranks)
    Groups.destroy(view, group.name, opts)
  end

  @doc "Makes the groups of a mesh; see `RankBridge.Meshes.new_mesh/3`."
  @spec new_mesh(View.t(), [{Mesh.axis(), integer()}], keyword()) ::
          {:ok, Mesh.t()} | {:error, Error.t()}
  def new_mesh(view, axes, opts) do
    with {:ok, opts} <- mesh_options(opts, "new_mesh"),
         {:ok, mesh, statuses} <- plan(view, axes, opts),
         {:ok, wanted} <- check_groups(view, Mesh.groups(mesh)),
         :ok <- check_free(statuses, wanted),
         {:ok, [made | _others]} <- make(view, wanted, opts.timeout),
         do: {:ok, %{mesh | backend: made.backend, generation: made.generation}}
  end

  @doc "A mesh whose groups are there; see `RankBridge.Meshes.mesh/3`."
  @spec mesh(View.t(), [{Mesh.axis(), integer()}], keyword()) ::
          {:ok, Mesh.t()} | {:error, Error.t()}
  def mesh(view, axes, opts) do
    with {:ok, opts} <- mesh_options(opts, "mesh"),
         {:ok, mesh, statuses} <- plan(view, axes, opts),
         known = known(statuses),
         wanted = Mesh.groups(mesh),
         :ok <- check_there(mesh, wanted, known),
         :ok <- check_same(mesh, wanted, known) do
      seen = known[hd(wanted).name]
      {:ok, %{mesh | backend: seen.backend, generation: seen.generation}}
    end
  end

  @doc "Makes the groups of a layout; see `RankBridge.Meshes.new_layout/3`."
  @spec new_layout(View.t(), Layout.t(), keyword()) :: {:ok, Layout.t()} | {:error, Error.t()}
  def new_layout(view, %Layout{} = layout, opts) do
    if layout.size == View.size(view) do
      with {:ok, [made | _others]} <- create(view, Layout.groups(layout), opts),
           do: {:ok, %{layout | backend: made.backend, generation: made.generation}}
    else
      message = "layout #{inspect(layout.name)} is for a gang of another size"
      expected = "#{View.size(view)} ranks"
      {:error, refusal(:invalid_argument, message, "layout", expected, "#{layout.size}")}
    end
  end

  # --- making, one after the other: they all pass through the lane of "world" ---

  defp make(view, wanted, timeout), do: make(view, wanted, timeout, [])

  defp make(_view, [], _timeout, made), do: {:ok, Enum.reverse(made)}

  defp make(view, [{name, ranks} | others], timeout, made) do
    case Groups.create(view, name, ranks, timeout: timeout) do
      {:ok, group} ->
        make(view, others, timeout, [group | made])

      {:error, error} ->
        half = if error.indefinite, do: [name], else: []

        case unmake(view, half ++ Enum.map(made, & &1.name), []) do
          [] -> {:error, error}
          left -> {:error, add(error, "groups that may be left: #{listing(left)}")}
        end
    end
  end

  defp unmake(_view, [], left), do: left

  defp unmake(view, [name | others], left) do
    case Groups.destroy(view, name, timeout: min(view.timeout, @ending)) do
      {:ok, _group} ->
        unmake(view, others, left)

      {:error, error} ->
        reasons = reasons(error)

        cond do
          Enum.any?(reasons, &(&1 in @over)) -> left ++ [name | others]
          Enum.all?(reasons, &(&1 == :unknown_group)) -> unmake(view, others, left)
          true -> unmake(view, others, left ++ [name])
        end
    end
  end

  defp reasons(%Error{outcomes: []} = error), do: [error.reason]
  defp reasons(error), do: for({_rank, %Error{reason: reason}} <- error.outcomes, do: reason)

  defp add(error, detail), do: %{error | message: "#{error.message}; #{detail}"}

  # --- what ranks report ---

  defp statuses(view, opts) do
    with {:ok, statuses} <- Ranks.status(view, opts), do: gathered(statuses)
  end

  defp gathered(statuses) do
    results =
      for {status, rank} <- Enum.with_index(statuses) do
        {rank, if(status.error, do: {:error, status.error}, else: {:ok, status})}
      end

    Calls.gathered(results, false)
  end

  # Every group as its own members report it: other ranks may not know yet that it has ended.
  defp known(statuses) do
    for status <- Enum.sort_by(statuses, & &1.generation),
        group <- status.groups,
        group.rank_in_group != nil,
        into: %{},
        do: {group.name, Group.of_gang(group)}
  end

  defp place(status), do: %Place{host: status.host, local_rank: status.local_rank}

  defp mesh_options(opts, operation) do
    defaults = [ranks: nil, name: "mesh", flattened: [], local: false]
    Options.read(opts, defaults, operation)
  end

  defp plan(view, axes, opts) do
    ranks = opts.ranks || View.size(view)
    plan_opts = [name: opts.name, flattened: opts.flattened]

    # Once before any rank is asked, and again with the ranks' answers.
    with {:ok, mesh} <- Mesh.plan(axes, ranks, plan_opts),
         :ok <- check_range(view, "mesh #{inspect(mesh.name)}", mesh.ranks),
         {:ok, statuses} <- statuses(view, []),
         places = for(rank <- mesh.ranks, do: place(Enum.at(statuses, rank))),
         {:ok, mesh} <-
           Mesh.plan(axes, mesh.ranks, [local: opts.local, places: places] ++ plan_opts),
         do: {:ok, mesh, statuses}
  end

  # --- checks ---

  defp check_groups(view, groups) when is_list(groups) do
    wanted = Enum.map(groups, &pair/1)

    with nil <- Enum.find_value(wanted, &wrong_group(view, &1)),
         names = Enum.map(wanted, &elem(&1, 0)),
         [] <- names -- Enum.uniq(names) do
      {:ok, wanted}
    else
      %Error{} = error -> {:error, error}
      twice -> wrong("several groups have one name", "each name once", listing(twice))
    end
  end

  defp check_groups(_view, groups),
    do: wrong("not groups", "a list of names and ranks", inspect(groups, limit: 5))

  defp pair(%Group{name: name, ranks: ranks}), do: {name, ranks}
  defp pair(other), do: other

  defp wrong_group(view, {name, ranks} = group) when is_binary(name) and is_list(ranks) do
    good? = byte_size(name) in 1..128 and ranks != [] and Enum.uniq(ranks) == ranks

    with true <- good?,
         :ok <- check_range(view, "group #{inspect(name)}", ranks) do
      nil
    else
      {:error, error} -> error
      false -> no_group(group)
    end
  end

  defp wrong_group(_view, other), do: no_group(other)

  defp no_group(other) do
    {:error, error} =
      wrong(
        "not a group that can be made",
        "a name of 1 to 128 bytes, one rank at least, each once",
        inspect(other, limit: 8)
      )

    error
  end

  defp check_range(view, what, ranks) do
    last = View.size(view) - 1

    case Enum.reject(ranks, &(is_integer(&1) and &1 in 0..last)) do
      [] ->
        :ok

      outside ->
        message = "#{what} names ranks outside the gang"
        expected = "0 to #{last}"
        got = Group.listed(outside)
        {:error, refusal(:rank_out_of_range, message, "new_groups", expected, got)}
    end
  end

  defp check_free(statuses, wanted) do
    known = known(statuses)
    names = Enum.map(wanted, &elem(&1, 0))

    case Enum.filter(names, &is_map_key(known, &1)) do
      [] ->
        :ok

      taken ->
        message = "#{length(taken)} of #{length(names)} groups exist already; none was made"

        expected = "names of no group"
        {:error, refusal(:group_exists, message, "new_groups", expected, listing(taken))}
    end
  end

  defp check_not_world(names) do
    if Enum.any?(names, &(&1 in ["", "world"])) do
      message = "group \"world\" ends with its generation"

      {:error,
       refusal(:invalid_argument, message, "destroy_groups", "other groups", inspect("world"))}
    else
      :ok
    end
  end

  defp check_there(mesh, wanted, known) do
    case for(group <- wanted, not is_map_key(known, group.name), do: group.name) do
      [] ->
        :ok

      missing ->
        message =
          "mesh #{inspect(mesh.name)}: #{length(missing)} of its #{length(wanted)} groups are not there"

        expected = listing(Enum.map(wanted, & &1.name))
        {:error, refusal(:unknown_group, message, "mesh", expected, "not #{listing(missing)}")}
    end
  end

  defp check_same(mesh, wanted, known) do
    case Enum.filter(wanted, &(known[&1.name].ranks != &1.ranks)) do
      [] ->
        :ok

      [first | _others] = other ->
        message =
          "mesh #{inspect(mesh.name)}: #{length(other)} of its #{length(wanted)} groups have other members"

        expected = "#{first.name} of ranks #{Group.listed(first.ranks)}"
        got = "ranks #{Group.listed(known[first.name].ranks)}"
        {:error, refusal(:invalid_argument, message, "mesh", expected, got)}
    end
  end

  defp wrong(message, expected, got),
    do: {:error, refusal(:invalid_argument, message, "new_groups", expected, got)}

  defp refusal(reason, message, operation, expected, got),
    do: Error.refusal(reason, message, operation: operation, expected: expected, got: got)

  defp listing(names) do
    {shown, others} = Enum.split(names, 8)
    more = if others == [], do: "", else: " and #{length(others)} more"
    Enum.map_join(shown, ", ", &inspect/1) <> more
  end
end
