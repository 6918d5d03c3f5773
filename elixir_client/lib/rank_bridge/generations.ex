defmodule RankBridge.Generations do
  @moduledoc "The ranks of a gang: what they are doing, where they run, and forming their generations."

  use RankBridge.Bangs

  alias RankBridge.{
    Collectives,
    Entry,
    Gang,
    ManyGroups,
    Pending,
    Ranks,
    RankStatus,
    RecordedOperation,
    ThreadStack
  }

  @doc "The status of each rank. A rank that cannot be reached is in the list, with an `error`."
  spec_with_bang status(Gang.gang(), keyword()) :: [RankStatus.t()]

  def status(gang, opts \\ []) do
    Entry.call(gang, :status, opts, fn view -> Ranks.status(view, opts) end)
  end

  @doc """
  What each rank has accepted and not answered yet, and who is missing. A rank that cannot be reached is in the list, with an
  `error`. Ranks are asked one by one: what they say is not of one moment.
  """
  spec_with_bang pending(Gang.gang(), keyword()) :: [Pending.t()]

  def pending(gang, opts \\ []) do
    Entry.call(gang, :pending, opts, fn view -> Ranks.pending(view, opts) end)
  end

  @doc """
  The record of each rank, by rank: its last operations, in the order in which they ended, then those under way, the oldest
  first. A rank answers whatever the gang is doing, as long as its process runs. If a rank cannot be reached, that is an error,
  whose `outcomes` say which.

  Options: `:limit`, at most so many operations of each rank, the last ones (0, the default: all that it keeps, 10,000 unless it
  was started otherwise); `:group`, only those of this group, or of the one of this name (default: those of all groups);
  `:caller`, only operations (`:controller`) or only calls of the user's own code (`:script`, of ranks that record them).

      {:ok, [[last], _of_rank_1]} = RankBridge.record(MyGang, limit: 1)
      {last.contract, last.site, last.code}
      #=> {"all_reduce dtype=float32 shape=[4] op=sum", "lib/my_app/training.ex:88", nil}
  """
  spec_with_bang record(Gang.gang(), keyword()) :: [[RecordedOperation.t()]]

  def record(gang, opts \\ []) do
    Entry.call(gang, :record, opts, fn view -> Ranks.record(view, opts) end)
  end

  @doc """
  The stacks of the threads of each rank's process that run Python, by rank; the main thread is each rank's first. If a rank
  cannot be reached, that is an error, as of `record/2`.

      {:ok, [[main | _others], _of_rank_1]} = RankBridge.stacks(MyGang)
      {main.name, hd(main.frames).function}
      #=> {"MainThread", "Line._read"}
  """
  spec_with_bang stacks(Gang.gang(), keyword()) :: [[ThreadStack.t()]]

  def stacks(gang, opts \\ []) do
    Entry.call(gang, :stacks, opts, fn view -> Ranks.stacks(view, opts) end)
  end

  @doc """
  Asks all members of a group whether they are there, in the order of the group's other operations.

  The ranks admit it like a collective, but do not use the backend. It is always a gang call (`RankBridge.Collectives`).
  """
  spec_with_bang ping(Gang.gang(), keyword()) :: :ok

  def ping(gang, opts \\ []) do
    Entry.call_without_value(gang, :ping, opts, fn view ->
      Collectives.run(view, :ping, nil, opts)
    end)
  end

  @doc "The name of each rank's host, by rank."
  spec_with_bang hosts(Gang.gang(), keyword()) :: [String.t()]

  def hosts(gang, opts \\ []) do
    Entry.call(gang, :hosts, opts, fn view -> ManyGroups.hosts(view, opts) end)
  end

  @doc """
  Kills a rank's process, as SIGKILL does, and gives its process id: for a rank in which a function never returns. The gang
  loses the rank, and acts as its `:on_rank_lost` says.

  Option `:pid`: the process that is meant, so that no replacement is killed by mistake (`RankBridge.RankStatus` has it).
  `:invalid_argument`: the process is another, or has other ranks, too, as on the backend `:fake`; nothing happened.
  """
  spec_with_bang kill_rank(Gang.gang(), non_neg_integer(), keyword()) :: pos_integer()

  def kill_rank(gang, rank, opts \\ []) do
    Entry.call(gang, :kill_rank, opts, fn view -> Ranks.kill(view, rank, opts) end)
  end

  @doc """
  Forms the next generation of all ranks: either every rank has it, or none. Opens the gang's session on new ranks.
  Waits for ranks that cannot be reached yet, such as those that are being replaced.

  Options: `:groups` (a list of `{name, ranks}`, or of groups, beside "world"), `:endpoints` (a target for each rank as the
  sidecars can reach each other; default: those that this gang uses). The default timeout is 10,000.
  """
  spec_with_bang form(Gang.gang(), keyword()) :: Ranks.formed()

  def form(gang, opts \\ []) do
    Entry.call(gang, :form, opts, fn view -> Ranks.form(view, opts) end)
  end
end
