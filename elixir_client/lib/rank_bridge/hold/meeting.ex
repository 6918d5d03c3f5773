defmodule RankBridge.Hold.Meeting do
  @moduledoc false
  # Steps ranks until all are held before the same call.

  alias RankBridge.{Error, Group, HeldCall}
  alias RankBridge.Hold.{Asking, Keeper}

  # Milliseconds in which ranks that are about to call come to be held.
  @settle 200

  @typedoc "Numbers of the calls out of which ranks were stepped, by rank, caller and group."
  @type stepped :: %{{non_neg_integer(), atom(), String.t()} => non_neg_integer()}

  @doc "The calls, by rank."
  @spec reach(Asking.t()) :: Asking.result([HeldCall.t()])
  def reach(asking), do: reach(asking, %{}, now() + asking.timeout)

  defp reach(%{hold: hold} = asking, stepped, until) do
    left = max(0, until - now())

    case Keeper.wait(hold.keeper, hold.ranks, min(@settle, left)) do
      {:error, error} ->
        {:error, error}

      {state, calls} ->
        cond do
          state == :ok and one_call?(calls) -> {:ok, calls}
          left == 0 -> {:error, late(hold.ranks, calls)}
          true -> step(asking, behind(calls, hold.ranks, stepped), stepped, until)
        end
    end
  end

  defp step(asking, calls, stepped, until) do
    with {:ok, _count} <- Asking.release(asking, calls, :ACTION_STEP) do
      now = for call <- calls, into: %{}, do: {{call.rank, call.caller, call.group}, call.number}
      reach(asking, Map.merge(stepped, now), until)
    end
  end

  @doc """
  The calls to step: of each group those with the lowest number, as other ranks may wait in them.

  None where a rank that is not held was stepped out of an earlier call of that group: it is still to come.
  """
  @spec behind([HeldCall.t()], [non_neg_integer()], stepped()) :: [HeldCall.t()]
  def behind(calls, ranks, stepped) do
    away = ranks -- Enum.map(calls, & &1.rank)

    calls
    |> Enum.group_by(&{&1.caller, &1.group})
    |> Enum.flat_map(fn {{caller, group}, calls} ->
      least = calls |> Enum.map(& &1.number) |> Enum.min()
      comes? = fn rank -> Map.get(stepped, {rank, caller, group}, least) < least end
      if Enum.any?(away, comes?), do: [], else: Enum.filter(calls, &(&1.number == least))
    end)
  end

  @doc "The error of a wait for ranks: how many, or which."
  @spec late(Keeper.wanted(), [HeldCall.t()]) :: Error.t()
  def late(wanted, calls) do
    held = calls |> Enum.map(& &1.rank) |> Enum.uniq()

    Error.refusal(:deadline_exceeded, "the ranks were not held in time",
      expected: if(is_list(wanted), do: "ranks #{Group.listed(wanted)}", else: "#{wanted} ranks"),
      got: if(held == [], do: "none", else: "ranks #{Group.listed(held)}")
    )
  end

  defp one_call?(calls),
    do: match?([_one], Enum.uniq_by(calls, &{&1.caller, &1.group, &1.operation, &1.number}))

  defp now, do: System.monotonic_time(:millisecond)
end
