defmodule RankBridge.SnakeBridge.LoadedFunctionsTest do
  @moduledoc "Functions that real ranks have loaded, called as SnakeBridge calls Python: test/support/functions/app.py of the library."

  use ExUnit.Case, async: false

  alias RankBridge.Error.Raised
  alias RankBridge.Gang
  alias RankBridge.SnakeBridge.RuntimeClient
  alias RankBridge.Test.LiveRanks
  alias SnakeBridge.Runtime

  @app Path.expand("../../../test/support/functions/app.py", __DIR__)

  setup_all do
    ranks = LiveRanks.start(2, "fake", ["--load", @app])
    on_exit(fn -> LiveRanks.stop(ranks) end)
    %{ranks: ranks}
  end

  setup %{ranks: ranks} do
    gang = start_supervised!({Gang, endpoints_file: ranks.file})

    settings = [
      gang: gang,
      pools: [rank_1: 1],
      snakebridge_functions: ["app"],
      snakebridge_fallback: NoSuchModule
    ]

    for {name, value} <- settings, do: Application.put_env(:rank_bridge, name, value)
    Process.put(:snakebridge_runtime_client, RuntimeClient)

    on_exit(fn ->
      for {name, _value} <- settings, do: Application.delete_env(:rank_bridge, name)
    end)
  end

  @alone [__runtime__: [pool_name: :rank_1, timeout: 10_000]]

  test "a function runs on the rank of the pool, or on all" do
    assert Runtime.call("app", :place, [], @alone) == {:ok, {1, 2}}
    assert Runtime.call("app", :place, [], []) == {:ok, [{0, 2}, {1, 2}]}
  end

  test "arguments go by place and by name, and values come back as they went" do
    for value <- [nil, 2, "x", 0.5, [1, {2, nil}], %{"a" => [true]}, %{1 => 2}] do
      assert Runtime.call("app", :echo, [value], @alone) == {:ok, value}
      assert Runtime.call("app", :echo, [], [value: value] ++ @alone) == {:ok, value}
    end

    # Ranks have no atoms.
    assert Runtime.call("app", :echo, [[:ok]], @alone) == {:ok, ["ok"]}
    assert {:error, error} = Runtime.call("app", :echo, [MapSet.new([1])], @alone)
    assert error.category == :validation
  end

  test "a tensor is a ref, which the function gets as the tensor" do
    {:ok, ones} = Runtime.call("torch", :ones, [[2]], @alone)
    assert {:ok, scaled} = Runtime.call("app", :scaled, [ones, 3], [shift: 1] ++ @alone)
    assert Runtime.call_method(scaled, :tolist, []) == {:ok, [4.0, 4.0]}
  end

  test "what a function raises is an error of Python, with its traceback" do
    assert {:error, %Snakepit.Error{category: :python_error} = error} =
             Runtime.call("app", :fail, ["no batch", 1], [])

    assert error.message =~ "LookupError: no batch"
    assert error.python_traceback =~ "raise LookupError(text)"
    assert %{reason: :function_failed, raised: %Raised{rank: 1}} = error.details

    assert {:error, %Snakepit.Error{category: :validation, python_traceback: nil}} =
             Runtime.call("app", :no_such_function, [], [])
  end

  test "a stream gives what a function yields, as it comes, or the items of what another returns" do
    assert Runtime.stream("app", :halves, [3], @alone, &send(self(), {:item, &1})) == :ok
    assert_received {:item, 1.5}
    assert_received {:item, 0.75}
    refute_received {:item, _more}

    assert Runtime.stream("app", :echo, [["a", "b"]], @alone, &send(self(), {:item, &1})) == :ok
    assert_received {:item, "a"}
    assert_received {:item, "b"}

    assert {:error, %Snakepit.Error{}} = Runtime.stream("app", :halves, ["x"], @alone, & &1)
  end

  test "other modules are passed on" do
    Application.put_env(:rank_bridge, :snakebridge_functions, ["another"])
    assert {:error, %Snakepit.Error{category: :pool}} = Runtime.call("app", :place, [], @alone)
  end
end
