defmodule RankBridge.Hold.Meeting do
  @moduledoc false
  # Steps ranks until all are held before the same call.

  alias RankBridge.{Error, Group, HeldCall}
  alias RankBridge.Hold.{Asking, Keeper}

  # Milliseconds in which ranks that are about to call come to be held.
  @settle 200

  @doc "The calls, by rank."
  @spec reach(Asking.t()) :: Asking.result([HeldCall.t()])
  def reach(asking), do: reach(asking, now() + asking.timeout)

  defp reach(%{hold: hold} = asking, until) do
    left = max(0, until - now())

    case Keeper.wait(hold.keeper, hold.ranks, min(@settle, left)) do
      {:error, error} ->
        {:error, error}

      {state, calls} ->
        cond do
          state == :ok and one_call?(calls) -> {:ok, calls}
          left == 0 -> {:error, late(hold.ranks, calls)}
          true -> step(asking, calls, until)
        end
    end
  end

  defp step(asking, calls, until) do
    with {:ok, _count} <- Asking.release(asking, behind(calls), :ACTION_STEP),
         do: reach(asking, until)
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

  # Of each group, the calls with the lowest number.
  defp behind(calls) do
    calls
    |> Enum.group_by(&{&1.caller, &1.group})
    |> Enum.flat_map(fn {_group, calls} ->
      least = calls |> Enum.map(& &1.number) |> Enum.min()
      Enum.filter(calls, &(&1.number == least))
    end)
  end

  defp now, do: System.monotonic_time(:millisecond)
end
