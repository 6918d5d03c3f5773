defmodule RankBridge.Transport.FlowControlTest do
  use ExUnit.Case, async: true

  alias RankBridge.Transport.HTTP2.{FlowControl, Settings}

  test "a window takes as much as it holds, and not a byte more" do
    window = FlowControl.new(100)
    assert {:ok, %{available: 0} = empty} = FlowControl.charge(window, 100)
    assert :error = FlowControl.charge(window, 101)
    assert :error = FlowControl.charge(empty, 1)
    assert {:ok, _} = FlowControl.charge(empty, 0)
  end

  test "small replenishments are gathered to a quarter of the window" do
    {:ok, window} = FlowControl.charge(FlowControl.new(100), 60)
    assert {0, window} = FlowControl.replenish(window, 24)
    assert {25, window} = FlowControl.replenish(window, 1)
    assert %{available: 65, owed: 0} = window
  end

  test "whatever is charged and replenished, what is available and owed never exceeds the size" do
    seed = :rand.seed(:exsss, System.unique_integer([:positive]))
    message = "seed: #{inspect(:rand.export_seed_s(seed))}"

    Enum.reduce(1..5_000, {FlowControl.new(10_000), 0}, fn _, {window, held} ->
      bytes = :rand.uniform(3_000)

      {window, held} =
        case FlowControl.charge(window, bytes) do
          {:ok, window} -> {window, held + bytes}
          :error -> {window, held}
        end

      freed = if held > 0, do: :rand.uniform(held), else: 0
      {_increment, window} = FlowControl.replenish(window, freed)
      assert window.available + window.owed + held - freed == 10_000, message
      {window, held - freed}
    end)
  end

  test "a send window may become negative, but not larger than 2^31-1" do
    assert {:ok, -5} = FlowControl.grow(10, -15)
    assert {:ok, 2_147_483_647} = FlowControl.grow(2_147_483_646, 1)
    assert :error = FlowControl.grow(2_147_483_647, 1)
  end

  test "settings are taken in order, unknown ones ignored, impossible ones refused" do
    assert {:ok, %{max_concurrent_streams: 7, initial_window_size: 1, max_frame_size: 20_000}} =
             Settings.apply_pairs(%Settings{}, [
               {3, 5},
               {3, 7},
               {4, 1},
               {5, 20_000},
               {99, 1},
               {1, 0},
               {6, 10}
             ])

    assert {:error, :flow_control_error, _} =
             Settings.apply_pairs(%Settings{}, [{4, 2_147_483_648}])

    assert {:error, :protocol_error, _} = Settings.apply_pairs(%Settings{}, [{5, 16_383}])
    assert {:error, :protocol_error, _} = Settings.apply_pairs(%Settings{}, [{5, 16_777_216}])
    assert {:error, :protocol_error, _} = Settings.apply_pairs(%Settings{}, [{2, 1}])
  end
end
