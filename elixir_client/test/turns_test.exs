defmodule RankBridge.TurnsTest do
  use ExUnit.Case, async: true

  import RankBridge.Test.Soon

  alias RankBridge.Turns

  defp begin(key, name) do
    test = self()

    pid =
      spawn(fn ->
        Turns.take(key, fn ->
          send(test, {:has, name})
          receive do: (:over -> :ok)
        end)

        send(test, {:done, name})
      end)

    pid
  end

  test "one process at a time has the turn of a key, in the order in which they asked" do
    key = make_ref()
    first = begin(key, 1)
    assert_receive {:has, 1}
    second = begin(key, 2)
    # It has asked before the third does; another key's turn comes meanwhile.
    assert_soon(2, fn -> Turns |> :sys.get_state() |> Map.get(key, []) |> length() end)
    assert Turns.take(make_ref(), fn -> :other end) == :other
    third = begin(key, 3)
    refute_received {:has, _}
    send(first, :over)
    assert_receive {:has, 2}
    assert_receive {:done, 1}
    refute_received {:has, 3}
    send(second, :over)
    assert_receive {:has, 3}
    send(third, :over)
    assert_receive {:done, 3}
    assert Turns.take(key, fn -> :again end) == :again
  end

  test "the end of a process is the end of its turn, and of its waiting" do
    key = make_ref()
    first = begin(key, 1)
    assert_receive {:has, 1}
    second = begin(key, 2)
    third = begin(key, 3)
    Process.exit(second, :kill)
    Process.exit(first, :kill)
    assert_receive {:has, 3}
    refute_received {:has, 2}
    send(third, :over)
    assert_receive {:done, 3}
  end

  test "a turn that raises is over" do
    key = make_ref()
    assert_raise RuntimeError, fn -> Turns.take(key, fn -> raise "no" end) end
    assert Turns.take(key, fn -> :next end) == :next
  end
end
