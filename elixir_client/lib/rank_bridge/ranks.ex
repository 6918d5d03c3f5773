defmodule RankBridge.Ranks do
  @moduledoc false
  # What the ranks are doing, and forming their generations: behind the functions of `RankBridge`.

  alias RankBridge.{
    Calls,
    Error,
    Group,
    Groups,
    Options,
    Pending,
    RankStatus,
    RecordedOperation,
    Sessions,
    Telemetry,
    ThreadStack
  }

  alias RankBridge.Gang.View
  alias RankBridge.Proto.V1

  @forming_timeout 10_000

  @typedoc "A generation that was formed; `took_us` in microseconds."
  @type formed :: %{
          generation: pos_integer(),
          world_size: pos_integer(),
          took_us: non_neg_integer()
        }

  @doc "What every rank is doing. A rank that cannot be asked has an `error`."
  @spec status(View.t(), keyword()) :: {:ok, [RankStatus.t()]} | {:error, Error.t()}
  def status(view, opts) do
    with {:ok, results} <- describe(view, View.all_ranks(view), opts) do
      {:ok,
       for {rank, result} <- results do
         case result do
           {:ok, response} -> RankStatus.from_proto(response)
           {:error, error} -> %RankStatus{rank: rank, error: error}
         end
       end}
    end
  end

  @doc "What one rank is doing."
  @spec status_of(View.t(), non_neg_integer(), keyword()) ::
          {:ok, RankStatus.t()} | {:error, Error.t()}
  def status_of(view, rank, opts) do
    with :ok <- View.check_rank(view, rank, "status"),
         {:ok, results} <- describe(view, [rank], opts),
         {:ok, [response]} <- Calls.gathered(results, false),
         do: {:ok, RankStatus.from_proto(response)}
  end

  @doc "What every rank has not answered yet. A rank that cannot be asked has an `error`."
  @spec pending(View.t(), keyword()) :: {:ok, [Pending.t()]} | {:error, Error.t()}
  def pending(view, opts) do
    request = %V1.ListPendingRequest{}
    ranks = View.all_ranks(view)

    with {:ok, results} <-
           ask(view, ranks, request, V1.RankService.list_pending(), "pending", opts) do
      {:ok,
       for {rank, result} <- results do
         case result do
           {:ok, response} -> Pending.from_proto(rank, response)
           {:error, error} -> %Pending{rank: rank, error: error}
         end
       end}
    end
  end

  @doc "The record of every rank; an error if one cannot be asked. See `RankBridge.Generations.record/2`."
  @spec record(View.t(), keyword()) :: {:ok, [[RecordedOperation.t()]]} | {:error, Error.t()}
  def record(view, opts) do
    with {:ok, records} <- each_record(view, opts), do: Calls.gathered(records, false)
  end

  @doc "As `record/2`, with an error in the place of each record that cannot be had."
  @spec each_record(View.t(), keyword()) ::
          {:ok, [{non_neg_integer(), {:ok, [RecordedOperation.t()]} | {:error, Error.t()}}]}
          | {:error, Error.t()}
  def each_record(view, opts) do
    with {:ok, opts} <- Options.read(opts, [limit: 0, group: "", caller: nil], "record"),
         :ok <- check_limit(opts.limit),
         :ok <- check_group(opts.group),
         {:ok, by_script} <- by_script(opts.caller) do
      request = %V1.GetRecordRequest{limit: opts.limit, group: opts.group, by_script: by_script}
      requests = for rank <- View.all_ranks(view), do: {rank, request}
      call = question(view, V1.DebugService.get_record(), "record", opts.timeout)

      {:ok,
       for {rank, result} <- Calls.each(view, requests, call) do
         {rank, with({:ok, response} <- result, do: {:ok, operations(response)})}
       end}
    end
  end

  defp operations(%V1.GetRecordResponse{operations: operations}),
    do: Enum.map(operations, &RecordedOperation.from_proto/1)

  defp check_limit(limit) when is_integer(limit) and limit in 0..0xFFFF_FFFF, do: :ok

  defp check_limit(other), do: wrong(:limit, "record", "a number of operations, or 0: all", other)

  defp check_group(group) when is_binary(group), do: :ok
  defp check_group(other), do: wrong(:group, "record", "a group, or its name", other)

  defp by_script(nil), do: {:ok, nil}
  defp by_script(:controller), do: {:ok, false}
  defp by_script(:script), do: {:ok, true}
  defp by_script(other), do: wrong(:caller, "record", ":controller or :script", other)

  @doc "The stacks of every rank's threads; an error if one cannot be asked. See `RankBridge.Generations.stacks/2`."
  @spec stacks(View.t(), keyword()) :: {:ok, [[ThreadStack.t()]]} | {:error, Error.t()}
  def stacks(view, opts) do
    request = %V1.GetStacksRequest{}
    ranks = View.all_ranks(view)

    with {:ok, results} <-
           ask(view, ranks, request, V1.DebugService.get_stacks(), "stacks", opts),
         {:ok, responses} <- Calls.gathered(results, false) do
      {:ok,
       for(%{threads: threads} <- responses, do: Enum.map(threads, &ThreadStack.from_proto/1))}
    end
  end

  defp describe(view, ranks, opts),
    do:
      ask(view, ranks, %V1.DescribeRankRequest{}, V1.RankService.describe_rank(), "status", opts)

  defp ask(view, ranks, request, rpc, operation, opts) do
    with {:ok, opts} <- Options.read(opts, [], operation) do
      call = question(view, rpc, operation, opts.timeout)
      {:ok, Calls.each(view, for(rank <- ranks, do: {rank, request}), call)}
    end
  end

  defp question(view, rpc, operation, timeout) do
    %Calls{
      rpc: rpc,
      operation: operation,
      deadline: timeout || view.timeout,
      changes?: false
    }
  end

  @doc "Kills a rank's process; see `RankBridge.Generations.kill_rank/3`."
  @spec kill(View.t(), non_neg_integer(), keyword()) :: {:ok, pos_integer()} | {:error, Error.t()}
  def kill(view, rank, opts) do
    with {:ok, opts} <- Options.read(opts, [pid: 0], "kill_rank"),
         :ok <- check_pid(opts.pid),
         :ok <- View.check_rank(view, rank, "kill_rank") do
      call = %Calls{
        rpc: V1.RankService.kill_rank(),
        operation: "kill_rank",
        deadline: opts.timeout || view.timeout
      }

      Calls.one(view, rank, %V1.KillRankRequest{pid: opts.pid}, call)
    end
  end

  defp check_pid(pid) when is_integer(pid) and pid in 0..0xFFFF_FFFF, do: :ok

  defp check_pid(other), do: wrong(:pid, "kill_rank", "a process id", other)

  defp wrong(option, operation, expected, got) do
    {:error,
     Error.refusal(:invalid_argument, "#{inspect(option)} is wrong",
       operation: operation,
       expected: expected,
       got: inspect(got, limit: 3)
     )}
  end

  @doc "Forms the next generation, and opens the session in it; see `RankBridge.form/2`."
  @spec form(View.t(), keyword()) :: {:ok, formed()} | {:error, Error.t()}
  def form(view, opts) do
    with {:ok, opts} <- Options.read(opts, [groups: [], endpoints: nil], "form"),
         {:ok, groups} <- describe_groups(opts.groups) do
      timeout = opts.timeout || @forming_timeout
      endpoints = opts.endpoints || for(rank <- View.all_ranks(view), do: View.target(view, rank))
      request = %V1.FormRequest{endpoints: endpoints, groups: groups, timeout_ms: timeout}

      call = %Calls{
        rpc: V1.GangService.form(),
        operation: "form",
        deadline: Calls.deadline(timeout),
        # The rank that is asked may be one that was just replaced.
        wait_for_ready?: true
      }

      Groups.forget_all(view)

      Telemetry.form(view.known_as, fn ->
        with {:ok, formed} <- again(fn -> Calls.one(view, 0, request, call) end),
             :ok <- again(fn -> Sessions.open(view, true) end),
             do: {:ok, Map.take(formed, [:generation, :world_size, :took_us])}
      end)
    end
  end

  # A connection to a rank that died may not be known to be lost yet; the next one leads to the new rank.
  defp again(fun) do
    with {:error, %Error{reason: :unavailable}} <- fun.(), do: fun.()
  end

  defp describe_groups(groups), do: {:ok, Enum.map(groups, &describe_group/1)}

  defp describe_group(%Group{name: name, ranks: ranks}), do: describe_group({name, ranks})
  defp describe_group({name, ranks}), do: %V1.GroupDescription{name: name, ranks: ranks}
end
