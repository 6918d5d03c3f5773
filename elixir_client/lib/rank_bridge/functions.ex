defmodule RankBridge.Functions do
  @moduledoc """
  Functions of your own, in Python, which the ranks have loaded.

  A gang loads a module into each rank: `{RankBridge.Gang, name: MyGang, size: 4, load: "priv/app.py"}`. What the module marks
  with `@rankbridge_server.function` can be called by its name, and nothing else:

      # priv/app.py
      import rankbridge_server

      @rankbridge_server.function
      def scaled(batch, factor: float = 2.0):
          return batch * factor

      # Elixir
      {:ok, refs} = RankBridge.put(MyGang, for(rank <- 0..3, do: [1.0 * rank]))
      {:ok, scaled} = RankBridge.call(MyGang, :scaled, [refs, factor: 3.0])

  Arguments and results are values (`t:RankBridge.Value.t/0`). A ref arrives as the tensor that it stands for, and a tensor that
  is returned becomes a new ref. The functions of one group run one after another, in one order on all its members, beside the
  group's collectives.

  ## Arguments

  `args` is a list, as in a call of Elixir: values by their place, and then those that have names: `[refs, factor: 3.0]`. A map
  has names alone, and `{list, map}` has both, where names are no atoms. A pair that is a value, as `{:bytes, "abc"}`, is no
  name and its value.

  All members get the same. A list of refs, one of each member in group order as `RankBridge.put/3` gives it, is shared out: each
  member gets its own. So is what `each/1` marks: `[RankBridge.each([1, 2, 3, 4])]`.

  ## When a function raises

  The error is `:function_failed`, and its `raised` has the exception's type, text, rank and traceback. Members that wait for the
  one on which it was raised are released. A function that does not end in `:timeout` is asked to end (`context.cancelled` in
  Python): the error is `:deadline_exceeded`, and the function goes on until it heeds that. One that never does is ended with its
  rank: `RankBridge.kill_rank/3`.
  """

  use RankBridge.Bangs

  alias RankBridge.{Calls, Collectives, Each, Entry, Function, Gang}
  alias RankBridge.{Operation, Operations, Options, Value}
  alias RankBridge.Functions.ReportStream
  alias RankBridge.Gang.View
  alias RankBridge.Proto.V1

  @doc """
  Calls a function on every member of a group, and gives what it returns on each, in group order.

      {:ok, losses} = RankBridge.call(gang, :train_step, [batches, lr: 0.1], timeout: 600_000)

  `args` as in `RankBridge.Functions`; `[]`: none. Options: `:group`, `:operation_id` and `:calls`, as of collectives; `:timeout` is
  of the function, too. Errors of its own: `:function_failed`; `:unknown_function`; `:invalid_argument`: the arguments do
  not fit the function's parameters, and nothing has run.
  """
  spec_with_bang call(Gang.gang(), atom() | String.t(), list() | map() | tuple(), keyword()) :: [
                   Value.t()
                 ]

  def call(gang, function, args, opts \\ []) do
    Entry.call(gang, :call, opts, fn view ->
      Collectives.run(view, :call_function, args, of_function(opts, function))
    end)
  end

  @doc """
  Calls a function on one rank alone, and gives what it returns there: as `call/4`, but no other member is asked, and it begins at
  once.
  """
  spec_with_bang call_alone(
                   Gang.gang(),
                   non_neg_integer(),
                   atom() | String.t(),
                   list() | map() | tuple(),
                   keyword()
                 ) :: Value.t()

  def call_alone(gang, rank, function, args, opts \\ []) do
    Entry.call(gang, :call_alone, opts, fn view ->
      Operations.run_rank(view, rank, :call_function, args, alone(opts, function))
    end)
  end

  @doc """
  Calls a function as `call/4`, and returns as soon as every member has the call.

      {:ok, call} = RankBridge.start_call(gang, :train, [epochs: 3], timeout: 3_600_000)
      for report <- RankBridge.Functions.reports(gang, call), do: IO.inspect(report.value)
      {:ok, values} = RankBridge.await(gang, call)

  `RankBridge.await/3` waits for what it returns, and `RankBridge.cancel/3` withdraws it where it has not begun, and asks it to end
  where it has. It is an operation that was submitted: it goes on when its caller ends, see `RankBridge.Operations`.
  """
  spec_with_bang start_call(Gang.gang(), atom() | String.t(), list() | map() | tuple(), keyword()) ::
                   Operation.t()

  def start_call(gang, function, args, opts \\ []) do
    opts = of_function(opts, function)

    Entry.call(gang, :start_call, opts, fn view ->
      Operations.begin_gang(view, :call_function, args, opts)
    end)
  end

  @doc "Calls a function on one rank alone as `call_alone/5`, and returns as soon as the rank has the call: see `start_call/4`."
  spec_with_bang start_call_alone(
                   Gang.gang(),
                   non_neg_integer(),
                   atom() | String.t(),
                   list() | map() | tuple(),
                   keyword()
                 ) :: Operation.t()

  def start_call_alone(gang, rank, function, args, opts \\ []) do
    opts = alone(opts, function)

    Entry.call(gang, :start_call_alone, opts, fn view ->
      Operations.begin_rank(view, rank, :call_function, args, opts)
    end)
  end

  @doc "The functions that the ranks offer, by name. Option `:rank`: the one that is asked (default 0)."
  spec_with_bang functions(Gang.gang(), keyword()) :: [Function.t()]

  def functions(gang, opts \\ []) do
    Entry.call(gang, :functions, opts, fn view ->
      with {:ok, opts} <- Options.read(opts, [rank: 0], "functions"),
           :ok <- View.check_rank(view, opts.rank, "functions"),
           {:ok, response} <- list(view, opts),
           do: {:ok, Enum.map(response.functions, &Function.from_proto/1)}
    end)
  end

  defp list(view, opts) do
    call = %Calls{
      rpc: V1.FunctionService.list_functions(),
      operation: "functions",
      deadline: opts.timeout || view.timeout,
      changes?: false
    }

    Calls.one(view, opts.rank, %V1.ListFunctionsRequest{}, call)
  end

  @doc """
  What a call reports on its ranks, as a lazy enumerable of `RankBridge.Report`: what Python's `context.report` is given, and what
  a generator yields.

      MyGang |> RankBridge.Functions.reports(call) |> Stream.filter(&(&1.rank == 0)) |> Enum.each(&show/1)

  It has the reports from the first on, as far as the ranks keep them, those of each rank in order, and ends when the call has
  ended on all of them. Each enumeration begins anew, and its process keeps its mailbox as it is. A rank keeps the newest 1,024
  reports of a call, of at most 4 MiB: a slow reader holds up nobody, but misses reports, and `missed` of the next one counts
  them.

  `call` is what `start_call/4` gave, or the `:operation_id` of any call, also of one that is still to come. Options:

    * `:timeout` - milliseconds to wait for the next report; without one by then the enumeration ends. Default: until the call ends
    * `:group` - with an id: the group on whose members it was called (default "world"); or `:rank`, that one alone

  Raises a `RankBridge.Error` where it begins, if there is no such gang or group; and where it goes on, if a rank is lost while the
  call runs there.
  """
  @spec reports(Gang.gang(), Operation.t() | String.t(), keyword()) :: Enumerable.t()
  def reports(gang, call, opts \\ []), do: ReportStream.new(gang, call, opts)

  @doc """
  Marks an argument of which each member of the group gets its own: `values` has one for each, in group order.

      RankBridge.call(gang, :seed, [RankBridge.each([11, 12, 13, 14])])
  """
  @spec each(Enumerable.t()) :: Each.t()
  def each(values), do: %Each{values: Enum.to_list(values)}

  defp of_function(opts, function), do: Options.put(opts, :function, function)
  defp alone(opts, function), do: opts |> of_function(function) |> Options.put(:alone, true)
end
