defmodule RankBridge.Hold do
  @moduledoc """
  Breakpoints: they hold ranks before a collective, so that one can look at what each of them brings, and let it go, step by step.

      alias RankBridge.Hold

      {:ok, hold} = Hold.open(gang, operation: :all_reduce, has: :nan)
      adding = Task.async(fn -> RankBridge.all_reduce(gang, refs, timeout: 600_000) end)
      {:ok, [call]} = Hold.wait(hold, ranks: 1)
      IO.puts(call)
      # rank 2 is held before all_reduce world#1: NaN in input 0
      {:ok, [%{inputs: [input]}]} = Hold.inspect_held(hold, count: 4)
      {:ok, 1} = Hold.resume(hold)
      {:ok, sums} = Task.await(adding)
      :ok = Hold.close(hold)

  Both operations of controllers and what the user's own code calls of torch.distributed are held. A held call is not longer in
  time for it: an operation is withdrawn at its timeout. Sends, receives and queues of controllers, and functions that one rank
  alone calls, are not held; the collectives within those are.

  A breakpoint is there until it is closed, and no longer than the process that has opened it lives: its end, also that of the VM,
  lets go all that is held. Any process may use a hold. On a rank that is lost, the breakpoint is gone: `ended/1` says so, and a
  gang that has shrunk needs another hold.

  Option `:timeout` of every function: in milliseconds, of each answer of the ranks; of `wait/2` and `together/2`, of the whole.
  """

  use RankBridge.Bangs

  alias RankBridge.{Entry, Error, Gang, Group, HeldCall, Inspection, Options}
  alias RankBridge.Gang.View
  alias RankBridge.Hold.{Asking, Breakpoint, Difference, Keeper, Meeting}
  alias RankBridge.Proto.V1

  @derive {Inspect, only: [:gang, :ranks]}
  @enforce_keys [:gang, :ranks, :numbers, :keeper, :timeout]
  defstruct @enforce_keys

  @typedoc """
  `ranks` - on which it is set; `numbers` - of the breakpoint, by rank; `keeper` - the process that keeps it set; `timeout` - the
  gang's.
  """
  @type t :: %__MODULE__{
          gang: Gang.gang(),
          ranks: [non_neg_integer()],
          numbers: %{non_neg_integer() => pos_integer()},
          keeper: pid(),
          timeout: pos_integer()
        }

  # Elements of each input that a rank gives at once.
  @most_elements 65_536

  @doc """
  Sets a breakpoint for the calling process: ranks are held before the calls that it means, until they are let go.

  Words, all of which must be true of a call; none: each call.

    * `:group` - is of this group, a name or a `RankBridge.Group`
    * `:operation` - is of this kind: `:all_reduce`; `:call_function`: a function is about to begin
    * `:number` - is this one of its group, counted from 1; each rank is held there once
    * `:at` - is made by this line: the end of its path, and the number: "train.py:88"
    * `:function` - calls this function
    * `:caller` - `:script`: is your own code's; `:controller`: is a controller's operation
    * `:has` - `:nan`, `:inf`, or both in a list: has one of these in an input
    * `:above` - has an element in an input whose absolute value is more; with `:has`, one of them is enough
    * `:mismatch` - true: was one whose members did not agree; the rank is held after it
    * `:slower` - was one that took more seconds; the rank is held after it; with `:mismatch`, one of them is enough

  Option `:ranks`: those on which it is set; default: all. If it cannot be set on one of them, it is set nowhere, and the error's
  `outcomes` say why.
  """
  spec_with_bang open(Gang.gang(), keyword()) :: t()

  def open(gang, opts \\ []) do
    Entry.call(gang, :hold, opts, fn view ->
      with {:ok, opts} <- Options.read(opts, [ranks: nil] ++ Breakpoint.words(), "hold"),
           {:ok, ranks} <- ranks(view, opts.ranks),
           {:ok, breakpoint} <- Breakpoint.new(opts),
           timeout = opts.timeout || view.timeout,
           {:ok, keeper, numbers} <- Keeper.start(view, ranks, breakpoint, timeout) do
        fields = %{gang: gang, ranks: ranks, numbers: numbers, keeper: keeper}
        {:ok, struct!(__MODULE__, Map.put(fields, :timeout, view.timeout))}
      end
    end)
  end

  @doc "Removes the breakpoint. What it holds goes on. Closing twice is no error."
  @spec close(t()) :: :ok
  def close(%__MODULE__{} = hold), do: Keeper.stop(hold.keeper)

  @doc "Ranks on which the breakpoint is set no more, though it was not closed, with the error that has ended it there."
  spec_with_bang ended(t()) :: %{non_neg_integer() => Error.t()}
  def ended(hold), do: Asking.named(Keeper.ended(hold.keeper), "ended")

  @doc """
  Waits until ranks are held, and gives the calls that they hold, by rank.

  Option `:ranks`: how many ranks, or a list of them; default: all on which the breakpoint is set. `:deadline_exceeded`: they were
  not held in time; `got` says which were. If too few ranks are left, the error is that of `ended/1`.
  """
  spec_with_bang wait(t(), keyword()) :: [HeldCall.t()]

  def wait(hold, opts \\ []) do
    with {:ok, opts} <- Options.read(opts, [ranks: hold.ranks], "wait"),
         :ok <- check_wanted(hold, opts.ranks) do
      hold.keeper
      |> Keeper.wait(opts.ranks, opts.timeout || hold.timeout)
      |> in_time(opts.ranks)
      |> Asking.named("wait")
    end
  end

  @doc "The calls that the breakpoint holds now, by rank. The ranks are asked."
  spec_with_bang held(t(), keyword()) :: [HeldCall.t()]
  def held(hold, opts \\ []), do: Asking.enter(hold, :held, opts, [], &Asking.held/1)

  @doc """
  Looks at each call that is held: its inputs, and where the user's code is that made it. It changes nothing.

  Options: `:start`, the first element of each input that is given, in row-major order (default 0), and `:count`, how many, at most
  65,536 (default 0: none).
  """
  spec_with_bang inspect_held(t(), keyword()) :: [Inspection.t()]

  def inspect_held(hold, opts \\ []) do
    Asking.enter(hold, :inspect_held, opts, [start: 0, count: 0], fn asking ->
      with :ok <- check_elements(asking.opts),
           {:ok, calls} <- Asking.held(asking) do
        request = %V1.InspectRequest{start: asking.opts.start, count: asking.opts.count}
        Asking.inspect_held(asking, calls, request)
      end
    end)
  end

  @doc """
  Finds the first element at which an input of two ranks' held calls differs, bit for bit, in row-major order; nil: they do not
  differ, as far as both go.

  Option `:input`: which input (default 0). `:unknown_operation`: a rank holds no call. `:invalid_argument`: a call has no such
  input.
  """
  spec_with_bang differs_at(t(), non_neg_integer(), non_neg_integer(), keyword()) ::
                   non_neg_integer() | nil

  def differs_at(hold, one, other, opts \\ []) do
    Asking.enter(hold, :differs_at, opts, [input: 0], fn asking ->
      with {:ok, calls} <- Asking.held(asking),
           do: Difference.find(asking, calls, one, other)
    end)
  end

  @doc "Lets all that is held go on. Gives how many calls that were. The breakpoint stays."
  spec_with_bang resume(t(), keyword()) :: non_neg_integer()

  def resume(hold, opts \\ []),
    do: Asking.enter(hold, :resume, opts, [], &let_go(&1, :ACTION_CONTINUE))

  @doc "As `resume/2`, and holds each of these ranks again at its next call, whichever that is."
  spec_with_bang step(t(), keyword()) :: non_neg_integer()
  def step(hold, opts \\ []), do: Asking.enter(hold, :step, opts, [], &let_go(&1, :ACTION_STEP))

  @doc """
  Steps ranks until all on which the breakpoint is set are held before the same call, and gives these calls, by rank.

  A breakpoint that is set while ranks run holds one before a call that another has entered already, and in which that one waits.
  A rank that does not come to any call is not held either: the others are stepped into the call in which they wait for it.
  """
  spec_with_bang together(t(), keyword()) :: [HeldCall.t()]

  def together(hold, opts \\ []),
    do: Asking.enter(hold, :together, opts, [], &Meeting.reach/1)

  @doc """
  Lets the held calls not be made. Gives how many they were.

  Operations fail with `:cancelled`, having done nothing; the user's own code goes on with its tensors as they are. Others that are
  not held may wait for these ranks. Option `:message`: what the errors say.
  """
  spec_with_bang skip(t(), keyword()) :: non_neg_integer()

  def skip(hold, opts \\ []),
    do: Asking.enter(hold, :skip, opts, [message: ""], &let_go(&1, :ACTION_SKIP))

  @doc """
  Lets the held calls fail, without being made. Gives how many they were.

  Operations fail with `:aborted`, having done nothing; in the user's own code, the call raises
  `rankbridge_server.BreakpointError`. Others that are not held may wait for these ranks. Option `:message`: what the errors say.
  """
  spec_with_bang fail(t(), keyword()) :: non_neg_integer()

  def fail(hold, opts \\ []),
    do: Asking.enter(hold, :fail, opts, [message: ""], &let_go(&1, :ACTION_FAIL))

  defp ranks(view, nil), do: {:ok, View.all_ranks(view)}

  defp ranks(view, [_ | _] = ranks) do
    checked = for rank <- ranks, do: View.check_rank(view, rank, "hold")
    with nil <- Enum.find(checked, &(&1 != :ok)), do: {:ok, ranks |> Enum.uniq() |> Enum.sort()}
  end

  defp ranks(_view, other), do: refuse("hold", ":ranks is wrong", "a list of ranks", other)

  defp check_wanted(hold, wanted) do
    count = length(hold.ranks)

    fits? =
      if is_list(wanted),
        do: wanted -- hold.ranks == [],
        else: is_integer(wanted) and wanted in 0..count

    expected = "0 to #{count}, or some of #{Group.listed(hold.ranks)}"
    if fits?, do: :ok, else: refuse("wait", ":ranks is wrong", expected, wanted)
  end

  defp in_time({:late, calls}, wanted), do: {:error, Meeting.late(wanted, calls)}
  defp in_time(answer, _wanted), do: answer

  defp let_go(asking, action) do
    with :ok <- check_message(asking),
         {:ok, calls} <- Asking.held(asking),
         do: Asking.release(asking, calls, action)
  end

  defp check_elements(%{start: start, count: count}) do
    fits? =
      is_integer(start) and start in 0..0x7FFF_FFFF_FFFF_FFFF and
        is_integer(count) and count in 0..@most_elements

    expected = ":start 0 or more, :count 0 to #{@most_elements}"

    if fits?,
      do: :ok,
      else:
        refuse("inspect_held", "there are no such elements", expected, start: start, count: count)
  end

  defp check_message(asking) do
    case asking.opts do
      %{message: message} when not is_binary(message) ->
        refuse(asking.operation, ":message is wrong", "a text", message)

      _text_or_none ->
        :ok
    end
  end

  defp refuse(operation, message, expected, got) do
    {:error,
     Error.refusal(:invalid_argument, message,
       operation: operation,
       expected: expected,
       got: inspect(got, limit: 5, printable_limit: 40)
     )}
  end
end
