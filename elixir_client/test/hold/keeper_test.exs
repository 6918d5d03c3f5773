defmodule RankBridge.Hold.KeeperTest do
  @moduledoc "What a breakpoint's process knows to be held, in whichever order ranks and their answers say it."

  use ExUnit.Case, async: true

  alias RankBridge.Error
  alias RankBridge.Hold.Keeper
  alias RankBridge.Proto.V1

  # One that reads no rank: what ranks say are messages of this test.
  setup do
    {:ok, keeper} = GenServer.start(Keeper, {%{known_as: nil}, [], "", nil, self()})
    on_exit(fn -> Keeper.stop(keeper) end)
    %{keeper: keeper}
  end

  defp say(keeper, rank, said), do: send(keeper, {:said, rank, said})

  defp say_held(keeper, rank, held_id),
    do: say(keeper, rank, %V1.HeldCall{rank: rank, held_id: held_id})

  defp say_let_go(keeper, rank, held_id),
    do: say(keeper, rank, %V1.LetGo{held_id: held_id, action: :ACTION_STEP})

  defp held(keeper) do
    {:ok, calls} = Keeper.wait(keeper, 0, 1)
    for call <- calls, do: {call.rank, call.held_id}
  end

  defp noted(keeper), do: MapSet.to_list(:sys.get_state(keeper).released)

  test "a call that was let go is held no more, before the rank says so", %{keeper: keeper} do
    say_held(keeper, 1, 1)
    say_held(keeper, 0, 1)
    assert held(keeper) == [{0, 1}, {1, 1}]
    assert Keeper.released(keeper, [{0, 1}]) == :ok
    assert held(keeper) == [{1, 1}]
    say_let_go(keeper, 0, 1)
    say_held(keeper, 0, 2)
    assert held(keeper) == [{0, 2}, {1, 1}]
    assert noted(keeper) == []
  end

  test "nor is one of which the rank says only then that it was held", %{keeper: keeper} do
    assert Keeper.released(keeper, [{0, 1}]) == :ok
    say_held(keeper, 0, 1)
    assert held(keeper) == []
    say_let_go(keeper, 0, 1)
    assert {held(keeper), noted(keeper)} == {[], []}
  end

  test "nothing is noted of one of which the rank has said so", %{keeper: keeper} do
    say_held(keeper, 0, 1)
    say_let_go(keeper, 0, 1)
    assert Keeper.released(keeper, [{0, 1}]) == :ok
    assert {held(keeper), noted(keeper)} == {[], []}
  end

  test "with a rank end its calls, and what is noted of them", %{keeper: keeper} do
    say_held(keeper, 0, 1)
    say_held(keeper, 1, 1)
    assert Keeper.released(keeper, [{0, 1}]) == :ok
    error = Error.refusal(:unavailable, "it is gone", rank: 0)
    send(keeper, {:ended, 0, error})
    assert Keeper.ended(keeper) == {:ok, %{0 => error}}
    assert {held(keeper), noted(keeper)} == {[{1, 1}], []}
  end

  test "several wait at once, each for its own ranks, and as long as it says", context do
    %{keeper: keeper} = context
    say_held(keeper, 1, 1)

    [both, late] =
      for {ranks, timeout} <- [{[1, 2], 10_000}, {[3], 50}],
          do: Task.async(fn -> Keeper.wait(keeper, ranks, timeout) end)

    assert {:late, [%{rank: 1}]} = Task.await(late)
    say_held(keeper, 2, 1)
    assert {:ok, [%{rank: 1}, %{rank: 2}]} = Task.await(both)
    assert :sys.get_state(keeper).waiting == %{}
  end
end
