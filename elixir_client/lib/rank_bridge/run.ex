defmodule RankBridge.Run do
  @moduledoc """
  A function for each member of a group, all of them at once: programs that read as they would on the ranks.

      RankBridge.run(gang, fn rank ->
        with {:ok, mine} <- RankBridge.put(gang, rank, [1.0 * rank]),
             {:ok, sum} <- RankBridge.call_rank(gang, rank, :all_reduce, mine),
             do: RankBridge.get(gang, sum)
      end)
      #=> {:ok, [tensor, tensor, ...]}

  What one of them does, the others have to do, too, in the same order: where one leaves out a collective, or stops, the
  others get `:peer_missing` at the timeout of theirs, or `:mismatch` if they meet it in another one.

  ## Which calls belong together

  `RankBridge.call_rank/5` and `RankBridge.submit_rank/5` in such a function need no `:operation_id`: each rank's first
  collective in a group has the same id as the other ranks' first, and so on. So the members cannot take one call for
  another; who is late for one that has failed is told what the others were told. This counts what the function calls in
  its own process; in others that it starts, collectives need an `:operation_id` that all members know.
  """

  use RankBridge.Facade

  alias RankBridge.{AtOnce, Gang, Groups, Options}
  alias RankBridge.Run.{Ids, Outcome}

  @doc """
  Calls a function for each member of a group, all at once, and gives what it gave for each, in group order. See
  `RankBridge.Run`.

      RankBridge.run(gang, fn rank -> RankBridge.call_rank(gang, rank, :barrier, nil) end, group: "trainers")

  `fun` gets a rank of the gang. What it gives is a value; of `{:ok, value}` that is the value, and `{:error, error}` is a
  failure, told when all have ended: the root cause, with every rank's outcome. Every call has a process of its own, which
  is linked to this one and ends with it; `$callers` are set.

  If it raises, throws or exits for a member, so does this function, with that stacktrace, when all have ended: which they
  do, as what they wait for has a timeout. Of several, that is the first in group order, but an error that follows from
  another (a `RankBridge.Error`, as of functions with `!`) comes after the others, and is told as a given one is: of all
  ranks. `{:error, other}` for what is no `RankBridge.Error` raises an `ArgumentError`.

  Options: `:group` (default "world"), and `:timeout`, of asking who is in the group. The calls in `fun` have theirs.
  """
  defcall run(
            gang :: Gang.gang(),
            fun :: (non_neg_integer() -> term()),
            opts :: keyword() \\ []
          ) :: [term()] do
    with {:ok, opts} <- Options.read(opts, [group: "world"], "run"),
         timeout = opts.timeout || view.timeout,
         {:ok, ranks} <- Groups.members(view, opts.group, timeout, "run"),
         do: ranks |> Enum.zip(at_once(ranks, fun)) |> Outcome.gathered()
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
