defmodule RankBridge.SnakeBridge.RuntimeClientTest do
  @moduledoc "What is ours is answered, what is not is passed on unchanged; and errors say what happened."

  use ExUnit.Case, async: false

  alias RankBridge.{Error, Group}
  alias RankBridge.SnakeBridge.{Names, Objects, RuntimeClient}
  alias SnakeBridge.Runtime

  doctest RankBridge.SnakeBridge.Names

  defmodule Snakepit do
    @behaviour SnakeBridge.RuntimeClient

    @impl true
    def execute(tool, payload, opts) do
      send(self(), {:passed_on, tool, payload, opts})
      {:ok, "of Snakepit"}
    end

    @impl true
    def execute_stream(tool, payload, callback, opts) do
      send(self(), {:passed_on, tool, payload, opts})
      callback.("an item of Snakepit")
      :ok
    end
  end

  setup do
    Application.put_env(:rank_bridge, :snakebridge_fallback, Snakepit)
    Application.put_env(:rank_bridge, :pools, of_no_gang: {NoGang, 0})
    Process.put(:snakebridge_runtime_client, RuntimeClient)

    on_exit(fn ->
      for key <- [:snakebridge_fallback, :pools, :gang],
          do: Application.delete_env(:rank_bridge, key)
    end)
  end

  test "it is SnakeBridge's behaviour" do
    assert SnakeBridge.RuntimeClient in RuntimeClient.module_info(:attributes)[:behaviour]
  end

  test "what is not ours goes on as it came" do
    Application.put_env(:rank_bridge, :gang, NoGang)

    for {tool, payload, opts} <- [
          {"snakebridge.call",
           %{"python_module" => "numpy", "function" => "mean", "args" => [[1]]}, [timeout: 5]},
          {"snakebridge.call",
           %{"call_type" => "class", "python_module" => "vllm", "class" => "LLM"}, []},
          {"snakebridge.call",
           %{"call_type" => "helper", "function" => "vllm.x", "helper" => "vllm.x"}, []},
          {"snakebridge.call",
           %{"call_type" => "module_attr", "python_module" => "vllm.distributed", "attr" => "x"},
           []},
          {"snakebridge.call",
           %{
             "call_type" => "method",
             "instance" => %{"__type__" => "ref", "id" => "py-1"},
             "function" => "all_reduce"
           }, []},
          {"snakebridge.call",
           %{"call_type" => "get_attr", "instance" => %{"id" => "py-1"}, "attr" => "first_rank"},
           []},
          {"snakebridge.call", %{"call_type" => "stream_next", "stream_ref" => %{"id" => "py-2"}},
           []},
          # A pool that stands for no rank, and torch without one that does.
          {"snakebridge.call",
           %{"python_module" => "torch.distributed", "function" => "get_rank"},
           [pool_name: :of_snakepit]},
          {"snakebridge.call",
           %{"python_module" => "torch", "function" => "zeros", "args" => [[2]]}, []},
          {"snakebridge.release_ref", %{"ref" => %{"__type__" => "ref", "id" => "py-1"}}, []},
          {"snakebridge.helpers", %{"helper_config" => %{}}, []}
        ] do
      assert RuntimeClient.execute(tool, payload, opts) == {:ok, "of Snakepit"}
      assert_received {:passed_on, ^tool, ^payload, ^opts}
      items = self()

      assert RuntimeClient.execute_stream(tool, payload, &send(items, &1), opts) == :ok
      assert_received {:passed_on, ^tool, ^payload, ^opts}
      assert_received "an item of Snakepit"
    end
  end

  test "without a gang, nothing but refs of ours is ours" do
    payload = %{"python_module" => "torch.distributed", "function" => "get_rank"}
    assert {:ok, "of Snakepit"} = RuntimeClient.execute("snakebridge.call", payload, [])

    assert {:ok, "of Snakepit"} =
             Vllm.Distributed.GroupCoordinator.new([[0]], 0, "gloo", false, [])
  end

  test "a session is released here and there" do
    {id, session} = Objects.put({:group, NoGang, nil, %Group{name: "g", ranks: [0]}}, "both")
    assert Runtime.release_session(session) == :ok
    assert_received {:passed_on, "snakebridge.release_session", %{"session_id" => "both"}, _opts}
    assert Objects.fetch(id) == :error
    Application.put_env(:rank_bridge, :snakebridge_fallback, NoSuchModule)
    assert Runtime.release_session(session) == :ok
  end

  test "without Snakepit, what is not ours is an error" do
    Application.put_env(:rank_bridge, :snakebridge_fallback, NoSuchModule)

    assert {:error, %Elixir.Snakepit.Error{category: :pool, message: message}} =
             Runtime.call("numpy", :mean, [[1]], [])

    assert message =~ "numpy.mean"
    assert {:error, %{category: :pool}} = Runtime.stream("numpy", :mean, [[1]], [], & &1)
  end

  test "a gang that is not there is told as such" do
    assert {:error, %Elixir.Snakepit.Error{category: :worker, details: %{reason: :unavailable}}} =
             Runtime.call("torch.distributed", :barrier, [], __runtime__: [pool_name: :of_no_gang])
  end

  test "every reason has a category" do
    categories = %{
      peer_missing: :timeout,
      deadline_exceeded: :timeout,
      peer_lost: :worker,
      unavailable: :worker,
      stale_generation: :worker,
      function_failed: :python_error,
      backend_failed: :python_error,
      internal: :python_error,
      cancelled: :grpc_error,
      not_allowed: :grpc_error,
      resource_exhausted: :pool,
      invalid_argument: :validation,
      mismatch: :validation,
      released_ref: :validation
    }

    for {reason, category} <- categories, do: assert(RuntimeClient.category(reason) == category)
  end

  test "a ref of Snakepit is refused where a rank's is needed" do
    Application.put_env(:rank_bridge, :gang, NoGang)
    ref = %SnakeBridge.Ref{id: "py-1", session_id: "s", library: "torch", python_module: "torch"}

    assert {:error, %Elixir.Snakepit.Error{category: :validation} = error} =
             Runtime.call("torch.distributed", :all_reduce, [ref], [])

    assert error.details.reason == :unknown_ref
    refute_received {:passed_on, _tool, _payload, _opts}
  end

  test "what has no items cannot be gone through" do
    Application.put_env(:rank_bridge, :gang, NoGang)

    assert {:error, %Elixir.Snakepit.Error{category: :validation}} =
             Runtime.stream("torch.distributed", :is_available, [], [], &send(self(), &1))

    assert {:error, %Error{}} =
             RankBridge.SnakeBridge.Calls.stream(
               %{"module_path" => "rankbridge", "function" => "items", "args" => [1]},
               & &1,
               []
             )
  end

  test "names are those of Python" do
    assert {"torch.distributed", :all_reduce} in Names.all()
    assert {"vllm.distributed.parallel_state", :get_tp_group} in Names.all()
    assert Names.class?("vllm.distributed.parallel_state", "GroupCoordinator")
    refute Names.class?("torch.distributed", "GroupCoordinator")
  end
end
