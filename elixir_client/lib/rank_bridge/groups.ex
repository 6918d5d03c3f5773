defmodule RankBridge.Groups do
  @moduledoc false
  # Making and ending groups, and who their members are.

  alias RankBridge.{Calls, CallSite, Error, Group, Id, Options, Traces}
  alias RankBridge.Gang.View
  alias RankBridge.Proto.V1

  @world "world"

  @doc "Ranks of the gang that are in a group, in group order. An empty name means \"world\"."
  @spec members(View.t(), term(), pos_integer(), String.t()) ::
          {:ok, [non_neg_integer()]} | {:error, Error.t()}
  def members(view, group, _timeout, _operation) when group in ["", @world],
    do: {:ok, View.all_ranks(view)}

  def members(view, group, timeout, operation) when is_binary(group) do
    case lookup(view, group) do
      [{^group, ranks}] -> {:ok, ranks}
      [] -> ask_members(view, group, timeout, operation)
    end
  end

  def members(_view, group, _timeout, operation) do
    message = "not the name of a group: #{inspect(group, limit: 5)}"
    {:error, Error.refusal(:invalid_argument, message, operation: operation)}
  end

  # Not every rank needs to know of every group, so all are asked. Members know best: who is none need not have heard of
  # a group's end.
  defp ask_members(view, name, timeout, operation) do
    call = %Calls{
      rpc: V1.GroupService.describe_group(),
      operation: operation,
      group: name,
      deadline: timeout,
      changes?: false
    }

    request = %V1.DescribeGroupRequest{name: name}
    results = Calls.each(view, for(rank <- View.all_ranks(view), do: {rank, request}), call)

    known = for {_rank, {:ok, %V1.Group{} = group}} <- results, do: group

    case {Enum.find(known, & &1.rank_in_group), known} do
      {%V1.Group{} = group, _known} ->
        remember(view, name, group.ranks)
        {:ok, group.ranks}

      {nil, [group | _others]} ->
        {:ok, group.ranks}

      {nil, []} ->
        Calls.gathered(results, false)
    end
  end

  @doc "Forgets who is in a group, because it may have changed."
  @spec forget(View.t(), String.t()) :: :ok
  def forget(view, name) do
    _ = in_table(true, fn -> :ets.delete(view.groups, name) end)
    :ok
  end

  @doc "Forgets who is in any group."
  @spec forget_all(View.t()) :: :ok
  def forget_all(view) do
    _ = in_table(true, fn -> :ets.delete_all_objects(view.groups) end)
    :ok
  end

  defp lookup(view, name), do: in_table([], fn -> :ets.lookup(view.groups, name) end)

  @doc "Keeps in mind who is in a group."
  @spec remember(View.t(), String.t(), [non_neg_integer()]) :: :ok
  def remember(view, name, ranks) do
    _ = in_table(true, fn -> :ets.insert(view.groups, {name, ranks}) end)
    :ok
  end

  # The table is gone with its gang, which may end while it is called. What is called next says so.
  defp in_table(otherwise, fun) do
    fun.()
  rescue
    ArgumentError -> otherwise
  end

  @doc "Makes a group; see `RankBridge.new_group/4`."
  @spec create(View.t(), String.t(), [non_neg_integer()], keyword()) ::
          {:ok, Group.t()} | {:error, Error.t()}
  def create(view, name, ranks, opts) do
    with {:ok, opts} <- Options.read(opts, [group: view.group, operation_id: nil], "new_group"),
         timeout = opts.timeout || view.timeout,
         {:ok, members} <- members(view, opts.group, timeout, "new_group"),
         {:ok, [group | _others]} <-
           call_members(view, V1.GroupService.new_group(), "new_group", opts, members, fn call ->
             %V1.NewGroupRequest{call: call, name: name, ranks: ranks}
           end) do
      remember(view, group.name, group.ranks)
      {:ok, group |> Group.from_proto() |> Group.of_gang()}
    end
  end

  @doc "Ends a group; see `RankBridge.destroy_group/3`."
  @spec destroy(View.t(), String.t(), keyword()) :: {:ok, Group.t()} | {:error, Error.t()}
  def destroy(view, name, opts) do
    with {:ok, opts} <- Options.read(opts, [operation_id: nil], "destroy_group"),
         opts = Map.put(opts, :group, name),
         timeout = opts.timeout || view.timeout,
         {:ok, members} <- members(view, name, timeout, "destroy_group") do
      forget(view, name)

      result =
        call_members(
          view,
          V1.GroupService.destroy_group(),
          "destroy_group",
          opts,
          members,
          fn call ->
            %V1.DestroyGroupRequest{call: call}
          end
        )

      with {:ok, [group | _others]} <- result,
           do: {:ok, group |> Group.from_proto() |> Group.of_gang()}
    end
  end

  defp call_members(view, rpc, operation, opts, members, request) do
    timeout = opts.timeout || view.timeout
    id = opts.operation_id || Id.uuid()

    request =
      request.(%V1.Call{
        group: opts.group,
        operation_id: id,
        timeout_ms: timeout,
        session_id: view.session_id,
        traceparent: Traces.traceparent(),
        site: CallSite.current()
      })

    call = %Calls{
      rpc: rpc,
      operation: operation,
      group: opts.group,
      operation_id: id,
      deadline: Calls.deadline(timeout)
    }

    Calls.all(view, for(rank <- members, do: {rank, request}), call)
  end

  @doc "Every group that any rank is a member of; see `RankBridge.Grouping.groups/2`."
  @spec list(View.t(), keyword()) :: {:ok, [Group.t()]} | {:error, Error.t()}
  def list(view, opts) do
    with {:ok, opts} <- Options.read(opts, [], "list_groups") do
      call = %Calls{
        rpc: V1.GroupService.list_groups(),
        operation: "list_groups",
        deadline: opts.timeout || view.timeout,
        changes?: false
      }

      requests = for rank <- View.all_ranks(view), do: {rank, %V1.ListGroupsRequest{}}

      with {:ok, responses} <- Calls.all(view, requests, call) do
        # A rank outside a group may not know yet that the group has ended.
        reported =
          for response <- responses, group <- response.groups, group.rank_in_group, do: group

        groups = reported |> Enum.uniq_by(& &1.name) |> Enum.sort_by(& &1.name)
        {:ok, Enum.map(groups, &(&1 |> Group.from_proto() |> Group.of_gang()))}
      end
    end
  end
end
