defmodule RankBridge.GroupCoordinatorTest do
  @moduledoc "A coordinator is called as SnakeBridge's generated module is, and knows what it is without asking anybody."

  use ExUnit.Case, async: true

  alias RankBridge.{Error, Group, GroupCoordinator, Place}
  alias RankBridge.GroupCoordinator.{Conventions, Signatures}

  doctest RankBridge.GroupCoordinator.Conventions

  @places [
    %Place{host: "a", local_rank: 0},
    %Place{host: "a", local_rank: 1},
    %Place{host: "b", local_rank: 0}
  ]
  @groups [
    %Group{name: "tp/0", ranks: [0, 3, 1], places: @places},
    %Group{name: "tp/1", ranks: [2], places: [%Place{host: "b", local_rank: 1}]}
  ]

  defp of(rank), do: %GroupCoordinator{gang: NoGang, size: 5, rank: rank, groups: @groups}

  test "every generated function is there, with its arities" do
    generated =
      for {name, arity} <- Vllm.Distributed.GroupCoordinator.__info__(:functions),
          not String.starts_with?("#{name}", "__"),
          do: {name, arity}

    assert length(generated) > 50
    assert generated -- GroupCoordinator.__info__(:functions) == []
  end

  test "what may be left out is given by position or by name" do
    for signature <- Signatures.methods() ++ [Signatures.constructor()] do
      names = signature.needed ++ Keyword.keys(signature.optional)
      values = for {_name, number} <- Enum.with_index(names), do: {:value, number}
      {needed, rest} = Enum.split(values, length(signature.needed))
      named = Enum.zip(Keyword.keys(signature.optional), rest)

      {:ok, by_place} = Conventions.bind(signature, values, [])
      assert Map.take(by_place, names) == Map.new(Enum.zip(names, values))
      {positional, keywords, []} = Conventions.split(named, [])
      assert Conventions.bind(signature, needed ++ positional, keywords) == {:ok, by_place}
      texts = for {name, value} <- named, do: {"#{name}", value}
      assert Conventions.bind(signature, needed, texts) == {:ok, by_place}

      {:ok, defaults} = Conventions.bind(signature, needed, [])

      assert Map.drop(defaults, signature.needed) ==
               Map.new(signature.optional ++ signature.named)
    end
  end

  test "arguments that do not fit are refused, and name what does" do
    {:ok, gather} = Signatures.method("all_gather")

    for {positional, named, expected} <- [
          {[:t, 0, 1], [], "2 at most"},
          {[:t, 0], [dim: 0], "once"},
          {[:t], [dims: 0], "input_, dim"},
          {[], [dim: 0], "input_"}
        ] do
      assert {:error, %Error{reason: :invalid_argument, operation: "all_gather"} = error} =
               Conventions.bind(gather, positional, named)

      assert error.expected == expected
    end

    assert Signatures.method("all_gone") == :error
  end

  test "arguments are wrapped and appended as SnakeBridge does it" do
    assert Conventions.split(0, []) == {[0], [], []}
    assert Conventions.split(nil, []) == {[], [], []}
    assert Conventions.split([], dim: 1) == {[], [dim: 1], []}
    assert Conventions.split([[dim: 0]], []) == {[[dim: 0]], [], []}

    assert Conventions.split([1], __args__: [2], __runtime__: [rank: 3]) ==
             {[1, 2], [], [rank: 3]}
  end

  test "the runtime's options say how long, and where" do
    no_settings = %{timeout: nil, gang: nil, rank: nil}
    assert Conventions.runtime([], "x") == {:ok, no_settings}
    assert Conventions.runtime([affinity: :hint, session_id: "s"], "x") == {:ok, no_settings}
    assert {:ok, %{timeout: 250}} = Conventions.runtime([timeout: 250], "x")
    assert {:ok, %{timeout: 600_000}} = Conventions.runtime([timeout_profile: :ml_inference], "x")

    assert {:ok, %{timeout: 5}} =
             Conventions.runtime([timeout_profile: :batch_job, timeout: 5], "x")

    assert {:ok, %{timeout: endless}} = Conventions.runtime([timeout: :infinity], "x")
    assert endless > 2_000_000_000
    assert {:ok, %{gang: G, rank: 2}} = Conventions.runtime([gang: G, rank: 2], "x")

    for wrong <- [[timeout: 0], [timeout: "5"], [rank: :one], :none] do
      assert {:error, %Error{reason: :invalid_argument, operation: "x"}} =
               Conventions.runtime(wrong, "x")
    end
  end

  test "a rank's properties are those of its group" do
    expected = %{
      first_rank: 0,
      last_rank: 1,
      next_rank: 1,
      prev_rank: 0,
      is_first_rank: false,
      is_last_rank: false,
      rank: 3,
      ranks: [0, 3, 1],
      rank_in_group: 1,
      local_rank: 1,
      world_size: 3
    }

    for {name, value} <- expected do
      assert apply(GroupCoordinator, name, [of(3)]) === {:ok, value}
      assert GroupCoordinator.property(of(3), "#{name}") === {:ok, value}
    end

    assert Map.keys(expected) == Enum.sort(Keyword.keys(Signatures.properties()))
  end

  test "the properties of all ranks are by rank of the gang; nil is for those in no group" do
    assert GroupCoordinator.rank_in_group(of(nil)) == {:ok, [0, 2, 0, 1, nil]}
    assert GroupCoordinator.next_rank(of(nil)) == {:ok, [3, 0, 2, 1, nil]}
    assert GroupCoordinator.is_last_rank(of(nil)) == {:ok, [false, true, true, false, nil]}
    assert GroupCoordinator.ranks(of(nil)) == {:ok, [[0, 3, 1], [0, 3, 1], [2], [0, 3, 1], nil]}
  end

  test "what is refused asks nobody" do
    for {result, expected} <- [
          {GroupCoordinator.barrier(of(3), __runtime__: [rank: 1]), "3"},
          {GroupCoordinator.barrier(of(3), __runtime__: [gang: Other]), "NoGang"},
          {GroupCoordinator.call(of(3), "gone", [], [], []), "one of vLLM's"},
          {GroupCoordinator.property(of(3), :gone), "one of vLLM's"},
          {GroupCoordinator.send(of(3), 1, [1]), "another rank in the group"},
          {GroupCoordinator.recv(of(3), [1], :float32, src: 1), "another rank in the group"},
          {GroupCoordinator.broadcast_object_list(of(3), :no_list, src: 1), "a list"},
          {GroupCoordinator.broadcast_object_list(of(3), [], group: :g), "nil"},
          {GroupCoordinator.create_mq_broadcaster(of(3), [3]), "0 to 2"},
          {GroupCoordinator.create_mq_broadcaster(of(3), [0, :handle]), "nil"},
          {GroupCoordinator.graph_capture(of(3), []), "a function of no arguments"},
          {GroupCoordinator.prepare_communication_buffer_for_model(of(3), [%{}]),
           "a shape and a dtype"},
          {GroupCoordinator.all_reduce(of(nil), [1.0]),
           "a list of 5, one for each rank of the gang"}
        ] do
      assert {:error, %Error{reason: :invalid_argument, indefinite: false} = error} = result
      assert error.expected == expected
    end

    assert {:error, %Error{reason: :unsupported_dtype}} = GroupCoordinator.recv(of(3), 1, :f, [])
    assert {:error, %Error{reason: :unknown_ref}} = GroupCoordinator.barrier(%{"id" => "other"})

    assert {:error, %Error{reason: :released_ref}} =
             GroupCoordinator.first_rank(%{"id" => "rankbridge-1"})
  end

  test "who is alone has back what it gave, and sends to nobody" do
    alone = of(2)
    ref = %RankBridge.Ref{id: "t", rank: 2}
    assert GroupCoordinator.all_reduce(alone, ref) == {:ok, ref}
    assert GroupCoordinator.all_gather(alone, ref, [7]) == {:ok, ref}
    assert GroupCoordinator.all_gatherv(alone, [ref, ref], []) == {:ok, [ref, ref]}
    assert GroupCoordinator.gather(alone, ref, [5]) == {:ok, ref}
    assert GroupCoordinator.dispatch(alone, ref, ref, []) == {:ok, {ref, ref}}
    assert GroupCoordinator.broadcast_object(alone, [2]) == {:ok, 2}
    assert GroupCoordinator.broadcast_tensor_dict(alone, [%{"t" => ref}]) == {:ok, %{"t" => ref}}
    assert GroupCoordinator.barrier(alone) == {:ok, nil}
    assert GroupCoordinator.send(alone, ref, []) == {:ok, nil}
    assert GroupCoordinator.recv(alone, [1], :float32, []) == {:ok, nil}
    assert GroupCoordinator.send_tensor_dict(alone, %{"a" => 1}, []) == {:ok, %{"a" => 1}}

    for result <- [
          GroupCoordinator.broadcast(alone, ref, [1]),
          GroupCoordinator.broadcast_object(alone, [2, 1])
        ] do
      assert {:error, %Error{reason: :rank_out_of_range, expected: "0"}} = result
    end

    assert {:error, %Error{reason: :invalid_argument}} = GroupCoordinator.send_object(alone, 1, 0)
  end

  test "a coordinator is shown without asking anybody" do
    assert inspect(of(3)) == "#RankBridge.GroupCoordinator<rank 3 in tp/0, tp/1>"
    assert inspect(of(nil)) == "#RankBridge.GroupCoordinator<all ranks in tp/0, tp/1>"
  end
end
