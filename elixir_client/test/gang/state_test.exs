defmodule RankBridge.Gang.StateTest do
  @moduledoc "What a gang knows of losses while it is made whole, and how many it bears."

  use ExUnit.Case, async: true

  alias RankBridge.Gang.{Lost, Restarts, Settings, State, View}
  alias RankBridge.Ref

  setup do
    {:ok, settings} = Settings.read(endpoints: ["a:1"])
    view = %View{gang: self(), channels: nil, timeout: 1, groups: nil}
    %{state: State.new(settings, view)}
  end

  defp reported_losses(state) do
    %Lost{
      ranks: state.lost |> Map.keys() |> Enum.sort(),
      how: state.lost,
      policy: :shrink,
      generation: 9,
      moved: Map.new(state.origin, fn {new, old} -> {old, new} end)
    }
  end

  test "who is lost while the gang shrinks is told by the number that it had at first", %{
    state: state
  } do
    # Of five ranks, 1 is lost; 0, 2, 3, 4 become 0 to 3.
    state = State.lost(state, %{1 => "first"})
    state = State.moved(state, %{0 => 0, 2 => 1, 3 => 2, 4 => 3})
    # Then what was 3 is lost, and what was 0: 2 and 4 become 0 and 1.
    assert State.unknown(state, %{2 => "second"}) == %{2 => "second"}
    state = State.lost(state, %{2 => "second", 0 => "second"})
    state = State.moved(state, %{1 => 0, 3 => 1})

    lost = reported_losses(state)
    assert lost.ranks == [0, 1, 3]
    assert lost.how == %{0 => "second", 1 => "first", 3 => "second"}
    assert lost.moved == %{2 => 0, 4 => 1}

    refs = for rank <- 0..4, do: %Ref{id: "#{rank}", rank: rank}
    assert Lost.kept(lost, refs) == [%Ref{id: "2", rank: 0}, %Ref{id: "4", rank: 1}]
  end

  test "what was known first of a loss is kept", %{state: state} do
    state = State.lost(state, %{1 => "killed"})
    assert State.unknown(state, %{1 => "silent", 0 => "silent"}) == %{0 => "silent"}
    assert State.lost(state, %{1 => "silent"}).lost == %{1 => "killed"}

    # By its number then, also when it has another now.
    state = State.moved(state, %{0 => 1, 1 => 0})
    assert State.unknown(state, %{0 => "silent"}) == %{}
  end

  test "a gang that is ready has lost nobody, and nobody has moved", %{state: state} do
    state = state |> State.lost(%{1 => "killed"}) |> State.moved(%{0 => 0}) |> State.ready()
    assert %{phase: :ready, lost: lost, origin: origin, recovery: nil} = state
    assert {lost, origin} == {%{}, %{}}
    assert state.view.unready == nil
  end

  test "losses are counted within the time that is said, and those that are too many are not forgotten" do
    assert Restarts.add(Restarts.new(0, 1), 1, 0) == {:error, 1}
    assert {:ok, restarts} = Restarts.add(Restarts.new(3, 1), 2, -1_000)
    # Several at once are as many.
    assert Restarts.add(restarts, 2, -500) == {:error, 4}
    assert {:ok, restarts} = Restarts.add(restarts, 1, -500)
    # At the end of the time they still count, then not.
    assert Restarts.add(restarts, 1, 0) == {:error, 4}
    assert {:ok, restarts} = Restarts.add(restarts, 2, 1)
    assert Restarts.add(restarts, 1, 500) == {:error, 4}
    assert {:ok, _restarts} = Restarts.add(restarts, 1, 501)
  end
end
