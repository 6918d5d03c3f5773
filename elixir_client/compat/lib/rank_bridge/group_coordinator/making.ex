defmodule RankBridge.GroupCoordinator.Making do
  @moduledoc "Makes coordinators, and the groups that they are of."

  alias RankBridge.{Error, Gang, Group, GroupCoordinator, Place, Turns}
  alias RankBridge.GroupCoordinator.Conventions

  @type result(value) :: {:ok, value} | {:error, Error.t()}

  @doc "A coordinator of `given`, see `RankBridge.GroupCoordinator.new/6`, for the rank of `run`."
  @spec new(map(), Conventions.runtime()) :: result(GroupCoordinator.t())
  def new(given, run) do
    with {:ok, gang} <- gang(run, "new"),
         :ok <- check_ranks(given.group_ranks),
         {:ok, statuses} <- statuses(gang, run),
         :ok <- check_backend(given.torch_distributed_backend, statuses),
         {:ok, rank} <- rank(run, given.local_rank, statuses),
         :ok <- check_member(rank, given.group_ranks),
         {:ok, groups} <- groups(gang, given.group_name, given.group_ranks, run),
         do: {:ok, of_groups(gang, length(statuses), rank, groups)}
  end

  @doc "A coordinator of groups that are there."
  @spec of_groups(Gang.gang(), pos_integer(), non_neg_integer() | nil, [Group.t(), ...]) ::
          GroupCoordinator.t()
  def of_groups(gang, size, rank, groups),
    do: %GroupCoordinator{gang: gang, size: size, rank: rank, groups: groups}

  @doc "The gang that a call is for."
  @spec gang(Conventions.runtime(), String.t()) :: result(Gang.gang())
  def gang(run, operation) do
    case run.gang || Conventions.default_gang() do
      nil -> refuse(operation, "no gang is given", "one in __runtime__, or configured", "none")
      gang -> {:ok, gang}
    end
  end

  @doc """
  Groups of a name, made as far as they are not there: `name/0`, `name/1`. nil: a name that says who is in them. One
  process of a program makes groups at a time, so that all may ask for the same.
  """
  @spec groups(Gang.gang(), String.t() | nil, [[non_neg_integer()]], Conventions.runtime()) ::
          result([Group.t()])
  def groups(gang, name, group_ranks, run) do
    with {:ok, name} <- name(name, group_ranks) do
      wanted =
        for {ranks, number} <- Enum.with_index(group_ranks), do: {"#{name}/#{number}", ranks}

      # What is half there may be in the making: it is looked at again when that is over.
      case there(gang, wanted, run) do
        {:ok, groups} -> {:ok, groups}
        _not_all -> one_at_a_time(gang, fn -> made(gang, wanted, run) end)
      end
    end
  end

  # All members of a program come at once, and only one shall do what is done for all.
  defp one_at_a_time(gang, fun), do: Turns.take({__MODULE__, gang}, fun)

  @doc "Ends groups on all members, as far as they are there."
  @spec destroy(Gang.gang(), [Group.t()], Conventions.runtime()) :: result(nil)
  def destroy(gang, groups, run) do
    one_at_a_time(gang, fn ->
      with {:ok, _groups} <-
             RankBridge.Grouping.destroy_groups(gang, groups, timeout: run.timeout),
           do: {:ok, nil}
    end)
  end

  defp made(gang, wanted, run) do
    with :none <- there(gang, wanted, run),
         {:error, %Error{reason: :group_exists} = error} <-
           RankBridge.Grouping.new_groups(gang, wanted, timeout: run.timeout) do
      # Another program was first.
      with :none <- there(gang, wanted, run), do: {:error, error}
    else
      {:ok, _groups} -> there(gang, wanted, run)
      other -> other
    end
  end

  # All of them as they are now, or none is there.
  defp there(gang, wanted, run) do
    with {:ok, statuses} <- statuses(gang, run) do
      known = known(statuses)
      names = Enum.map(wanted, &elem(&1, 0))

      cond do
        Enum.all?(wanted, fn {name, ranks} -> match?(%{^name => %{ranks: ^ranks}}, known) end) ->
          {:ok, Enum.map(names, &known[&1])}

        Enum.any?(names, &is_map_key(known, &1)) ->
          shown = names |> Enum.flat_map(&List.wrap(known[&1])) |> Enum.map_join(", ", & &1.name)
          message = "there are other groups of the name"
          refuse(:group_exists, "new", message, inspect(wanted, limit: 20), shown)

        true ->
          :none
      end
    end
  end

  @doc "Every group of the gang, by name."
  @spec all(Gang.gang(), Conventions.runtime()) :: result([Group.t()])
  def all(gang, run) do
    with {:ok, statuses} <- statuses(gang, run),
         do: {:ok, statuses |> known() |> Map.values() |> Enum.sort_by(& &1.name)}
  end

  # The groups that all their members report, with places.
  defp known(statuses) do
    places = Map.new(statuses, &{&1.rank, %Place{host: &1.host, local_rank: &1.local_rank}})
    groups = for status <- statuses, group <- status.groups, group.rank_in_group, do: group

    for {name, [group | _others] = all} <- Enum.group_by(groups, & &1.name),
        length(all) == Group.world_size(group),
        into: %{} do
      {name, %{Group.of_gang(group) | places: Enum.map(group.ranks, &places[&1]), sequence: 0}}
    end
  end

  defp statuses(gang, run) do
    with {:ok, statuses} <- RankBridge.status(gang, timeout: run.timeout) do
      case Enum.find(statuses, & &1.error) do
        nil -> {:ok, statuses}
        status -> {:error, status.error}
      end
    end
  end

  defp name(nil, group_ranks) do
    hash = :crypto.hash(:sha256, :erlang.term_to_binary(group_ranks, minor_version: 2))
    {:ok, "anonymous-" <> (hash |> binary_part(0, 10) |> Base.encode16(case: :lower))}
  end

  defp name(name, _group_ranks) when is_binary(name) or is_atom(name), do: {:ok, "#{name}"}

  defp name(other, _group_ranks),
    do: refuse("new", "group_name is wrong", "a text or nil", inspect(other, limit: 3))

  defp check_ranks(group_ranks) do
    whole? =
      is_list(group_ranks) and group_ranks != [] and
        Enum.all?(group_ranks, fn ranks ->
          is_list(ranks) and ranks != [] and Enum.all?(ranks, &is_integer/1)
        end)

    if whole? do
      ranks = Enum.concat(group_ranks)

      if ranks == Enum.uniq(ranks),
        do: :ok,
        else:
          refuse(
            "new",
            "ranks are named twice",
            "each rank in one group at most, once",
            Group.listed(ranks -- Enum.uniq(ranks))
          )
    else
      expected = "a list of lists of ranks"
      refuse("new", "group_ranks are wrong", expected, inspect(group_ranks, limit: 8))
    end
  end

  defp check_backend(nil, _statuses), do: :ok

  defp check_backend(backend, statuses) do
    case statuses
         |> Enum.map(& &1.backend)
         |> Enum.uniq()
         |> Enum.reject(&(&1 == "#{backend}")) do
      [] -> :ok
      [own | _] -> refuse("new", "the gang has another backend", "#{own}, or nil", "#{backend}")
    end
  rescue
    Protocol.UndefinedError -> refuse("new", "no backend", "a text", inspect(backend, limit: 3))
  end

  defp rank(%{rank: rank}, _local_rank, statuses) when rank != nil, do: in_gang(rank, statuses)
  defp rank(_run, nil, _statuses), do: {:ok, nil}

  defp rank(_run, local_rank, statuses) do
    if statuses |> Enum.map(& &1.host) |> Enum.uniq() |> length() == 1 do
      in_gang(local_rank, statuses)
    else
      message = "local_rank does not say which rank is meant: they are on several hosts"
      refuse("new", message, "a pool or a rank in __runtime__", inspect(local_rank, limit: 3))
    end
  end

  defp in_gang(rank, statuses) do
    size = length(statuses)

    if is_integer(rank) and rank in 0..(size - 1) do
      {:ok, rank}
    else
      message = "the gang has no such rank"
      refuse(:rank_out_of_range, "new", message, "0 to #{size - 1}", inspect(rank, limit: 3))
    end
  end

  defp check_member(nil, _group_ranks), do: :ok

  defp check_member(rank, group_ranks) do
    ranks = Enum.concat(group_ranks)

    if rank in ranks,
      do: :ok,
      else:
        refuse(
          "new",
          "the rank is in none of the groups",
          "one of #{Group.listed(ranks)}",
          "#{rank}"
        )
  end

  defp refuse(operation, message, expected, got),
    do: refuse(:invalid_argument, operation, message, expected, got)

  defp refuse(reason, operation, message, expected, got) do
    fields = [operation: operation, expected: expected, got: got]
    {:error, Error.refusal(reason, message, fields)}
  end
end
