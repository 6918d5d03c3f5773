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
    Sessions,
    Telemetry
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

  defp describe(view, ranks, opts),
    do:
      ask(view, ranks, %V1.DescribeRankRequest{}, V1.RankService.describe_rank(), "status", opts)

  defp ask(view, ranks, request, rpc, operation, opts) do
    with {:ok, opts} <- Options.read(opts, [], operation) do
      call = %Calls{
        rpc: rpc,
        operation: operation,
        deadline: opts.timeout || view.timeout,
        changes?: false
      }

      {:ok, Calls.each(view, for(rank <- ranks, do: {rank, request}), call)}
    end
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

  defp check_pid(other) do
    {:error,
     Error.refusal(:invalid_argument, ":pid is wrong",
       operation: "kill_rank",
       expected: "a process id",
       got: inspect(other, limit: 3)
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
