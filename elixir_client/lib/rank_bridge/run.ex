defmodule RankBridge.Run do
  @moduledoc """
  Runs a function for each member of a group, all at once, so that a program reads as it would on the ranks.

      RankBridge.run(gang, fn rank ->
        with {:ok, mine} <- RankBridge.put_rank(gang, rank, [1.0 * rank]),
             {:ok, sum} <- RankBridge.Operations.call_rank(gang, rank, :all_reduce, mine),
             do: RankBridge.get(gang, sum)
      end)
      #=> {:ok, [tensor, tensor, ...]}

  All members have to call the same collectives, in the same order. If one leaves out a collective, or stops, the others get
  `:peer_missing` at their timeout; if one calls another collective, they get `:mismatch`.

  ## Which calls belong together

  `RankBridge.Operations.call_rank/5` and `RankBridge.Operations.submit_rank/5` in such a function need no `:operation_id`: each rank's first
  collective in a group has the same id as the other ranks' first, and so on. So the members cannot take one call for
  another, and a member that is late for a failed call gets the same error as the others. Only calls in the function's own
  process count; in other processes that it starts, collectives need an `:operation_id` that all members know.
  """

  use RankBridge.Bangs

  alias RankBridge.{AtOnce, Entry, Gang, Groups, Options}
  alias RankBridge.Run.{Ids, Outcome}

  @doc """
  Calls a function for each member of a group, all at once, and gives their results, in group order. See
  `RankBridge.Run`.

      RankBridge.run(gang, fn rank -> RankBridge.Operations.call_rank(gang, rank, :barrier, nil) end, group: "trainers")

  `fun` gets a rank of the gang. It returns a value, plain or as `{:ok, value}`, or `{:error, error}`, a failure. Failures
  are returned when all calls have ended: the root cause, with every rank's outcome. Every call has a process of its own, which
  is linked to this one and ends with it; `$callers` are set.

  If `fun` raises, throws or exits for a member, so does this function, with that stacktrace, when all calls have ended. They
  do end, as every wait in them has a timeout. Of several raises, the first in group order counts, but a `RankBridge.Error`
  (as of functions with `!`) may follow from another error: it comes after the others, and has every rank's outcome, like a
  returned one. `{:error, other}` with anything but a `RankBridge.Error` raises an `ArgumentError`.

  Options: `:group` (default "world"), and `:timeout`, of the lookup of the group's members. The calls in `fun` have their own.
  """
  spec_with_bang run(Gang.gang(), (non_neg_integer() -> term()), keyword()) :: [term()]

  def run(gang, fun, opts \\ []) do
    Entry.call(gang, :run, opts, fn view ->
      with {:ok, opts} <- Options.read(opts, [group: view.group], "run"),
           timeout = opts.timeout || view.timeout,
           {:ok, ranks} <- Groups.members(view, opts.group, timeout, "run"),
           do: ranks |> Enum.zip(at_once(ranks, fun)) |> Outcome.gathered()
    end)
  end

  defp at_once(ranks, fun) do
    run = Ids.new()

    ended =
      AtOnce.apart(ranks, fn rank ->
        Ids.begin(run)
        Outcome.of(fn -> fun.(rank) end)
      end)

    for result <- ended do
      case result do
        {:ok, outcome} -> outcome
        {:exit, reason} -> {:raised, :exit, reason, []}
      end
    end
  end
end
