defmodule RankBridge.Case.Lent do
  @moduledoc false
  # What a test has of ranks that others use before and after it.
  #
  # * `wanted` - the gang that it wants
  # * `ranks` - the gang that has started the ranks, without a session
  # * `gang`, `group` - the test's own, on these ranks; nil: not yet
  # * `ended` - how the test has ended; nil: not yet

  alias RankBridge.{Error, Gang, Generations, Grouping}
  alias RankBridge.Case.{Lender, Wanted}

  @enforce_keys [:wanted, :ranks]
  defstruct [:wanted, :ranks, :gang, :group, :ended]

  @type t :: %__MODULE__{
          wanted: Wanted.t(),
          ranks: pid(),
          gang: pid() | nil,
          group: String.t() | nil,
          ended: :passed | :failed | nil
        }

  @starting 120_000
  @forming 30_000

  @doc "Gives the test a gang with a session and a group. Raises where the ranks cannot be had."
  @spec begin(t()) :: t()
  def begin(lent) do
    group = "test-#{System.unique_integer([:positive])}"

    with :ok <- RankBridge.await_ready(lent.ranks, @starting),
         {:ok, gang} <- own_gang(lent, group),
         :ok <- own_group(lent, gang, group) do
      %{lent | gang: gang, group: group}
    else
      {:error, error} -> raise error
    end
  end

  defp own_group(lent, gang, group) do
    ranks = Enum.to_list(0..(lent.wanted.size - 1))

    with {:error, error} <-
           Grouping.new_group(gang, group, ranks, group: "world", timeout: @forming) do
      Lender.end_gang(gang)
      {:error, error}
    else
      {:ok, _group} -> :ok
    end
  end

  defp own_gang(lent, group) do
    with {:ok, endpoints} <- Gang.endpoints(lent.ranks) do
      Lender.start_gang(
        endpoints: endpoints,
        form: false,
        group: group,
        timeout: lent.wanted.timeout
      )
    end
  end

  @doc """
  Ends the test's gang, and makes the ranks as they were. Gives what the test has left behind, in words; an error: the ranks
  cannot be used any more.
  """
  @spec finish(t()) :: {:ok, [String.t()]} | {:error, Error.t()}
  def finish(%__MODULE__{ranks: ranks} = lent) do
    if lent.gang, do: Lender.end_gang(lent.gang)

    with {:ok, statuses} <- Generations.status(ranks),
         :ok <- formed(lent, statuses),
         {:ok, groups} <- groups_left(ranks),
         {:ok, refs} <- refs_left(ranks),
         do: {:ok, for(name <- groups, name != lent.group, do: "group #{inspect(name)}") ++ refs}
  end

  defp formed(lent, statuses) do
    if lent.ended == :passed and whole?(statuses) do
      :ok
    else
      with {:ok, _formed} <- Generations.form(lent.ranks, timeout: @forming), do: :ok
    end
  end

  defp whole?(statuses) do
    Enum.all?(statuses, &(&1.generation_state == :formed and &1.pending_operations == 0)) and
      match?([_one], Enum.uniq(for it <- statuses, do: it.generation))
  end

  defp groups_left(ranks) do
    with {:ok, groups} <- Grouping.groups(ranks),
         names = for(it <- groups, it.name != "world", do: it.name),
         {:ok, _ended} <- Grouping.destroy_groups(ranks, names, timeout: @forming),
         do: {:ok, names}
  end

  # Without a session of its own, the gang has the shared ones.
  defp refs_left(ranks) do
    with {:ok, refs} <- RankBridge.list(ranks),
         {:ok, _count} <- RankBridge.release(ranks, refs) do
      counts = refs |> Enum.frequencies_by(& &1.rank) |> Enum.sort()
      {:ok, for({rank, it} <- counts, do: "#{it} refs in the shared session of rank #{rank}")}
    end
  end
end
