defmodule RankBridge.FakeGangTest do
  @moduledoc "The whole API against real sidecars on the fake backend."

  use ExUnit.Case, async: true

  import RankBridge.Test.Soon

  alias RankBridge.{Error, Gang, Mesh, Operations, Ref, Tensor}
  alias RankBridge.Test.{Admissions, LiveRanks}

  setup_all do
    ranks = LiveRanks.start(4, "fake")
    on_exit(fn -> LiveRanks.stop(ranks) end)
    %{ranks: ranks}
  end

  setup %{ranks: ranks} do
    gang = start_supervised!({Gang, endpoints_file: ranks.file})
    # Some tests begin with a call whose timeout is shorter than what it takes to connect.
    :ok = RankBridge.await_ready(gang, 60_000)
    %{gang: gang}
  end

  defp values(gang, refs), do: gang |> RankBridge.get!(refs) |> Enum.map(&Tensor.to_list/1)

  defp named(gang, prefix) do
    for group <- RankBridge.Grouping.groups!(gang),
        String.starts_with?(group.name, prefix),
        do: {group.name, group.ranks}
  end

  defp uuid, do: RankBridge.Id.uuid()

  test "a tensor of every dtype comes back as it went", %{gang: gang} do
    for dtype <- RankBridge.Dtype.all() do
      tensor =
        Tensor.new!(dtype, [3, 2], :binary.copy(<<0, 1>>, 3 * RankBridge.Dtype.size(dtype)))

      ref = RankBridge.put_rank!(gang, 1, tensor)
      assert %Ref{rank: 1, dtype: ^dtype, shape: [3, 2]} = ref
      assert RankBridge.get!(gang, ref) == %{tensor | data: IO.iodata_to_binary(tensor.data)}
    end
  end

  test "tensors larger than one chunk come back whole", %{gang: gang} do
    data = :rand.bytes(5 * 1_048_576 + 12_345)

    tensor =
      Tensor.new!(:uint8, [byte_size(data)], [
        binary_part(data, 0, 7),
        [binary_part(data, 7, byte_size(data) - 7)]
      ])

    refs = RankBridge.put!(gang, [tensor, tensor, tensor, tensor])
    assert Enum.map(refs, & &1.rank) == [0, 1, 2, 3]
    for fetched <- RankBridge.get!(gang, refs), do: assert(fetched.data == data)
  end

  @tag sampled: RankBridge.Test.Sampled.part(__ENV__)
  test "a tensor of 256 MiB comes back whole", %{gang: gang} do
    # The length of the pattern divides no chunk, so that chunks that change places are seen.
    pattern = for number <- 1..100_003, into: "", do: <<number * 7 + div(number, 251)>>
    data = pattern |> :binary.copy(2_685) |> binary_part(0, 268_435_456)
    ref = RankBridge.put_rank!(gang, 3, Tensor.new!(:uint8, [byte_size(data)], data))
    fetched = RankBridge.get!(gang, ref)
    assert fetched.shape == [268_435_456]
    assert :crypto.hash(:sha256, fetched.data) == :crypto.hash(:sha256, data)
    assert RankBridge.release!(gang, ref) == 1
  end

  test "empty tensors and tensors without dimensions come back", %{gang: gang} do
    for list <- [[], [[], []], 7.5] do
      ref = RankBridge.put_rank!(gang, 0, list)
      assert gang |> RankBridge.get!(ref) |> Tensor.to_list() == list
    end
  end

  test "tensors are made on the ranks", %{gang: gang} do
    for {init, expected} <- [
          {:zeros, [0.0, 0.0, 0.0]},
          {{:full, 2.5}, [2.5, 2.5, 2.5]},
          {{:full, 3}, [3.0, 3.0, 3.0]},
          {{:full, :infinity}, [:infinity, :infinity, :infinity]},
          {{:arange, 1, 2}, [1.0, 3.0, 5.0]},
          {{:arange, 4.0, 0}, [4.0, 4.0, 4.0]}
        ] do
      refs = RankBridge.create!(gang, :float32, [3], init: init)
      assert values(gang, refs) == List.duplicate(expected, 4)
    end

    one = RankBridge.create!(gang, :bool, [2], init: {:full, true}, rank: 2)
    assert {one.rank, gang |> RankBridge.get!(one) |> Tensor.to_list()} == {2, [true, true]}
  end

  test "seeded tensors are equal on all ranks and differ by seed", %{gang: gang} do
    for init <- [&{:uniform, &1, -1.0, 1.0}, &{:normal, &1, 0.0, 1.0}] do
      [a, a, a, a] = values(gang, RankBridge.create!(gang, :float64, [8], init: init.(1)))
      [b | _others] = values(gang, RankBridge.create!(gang, :float64, [8], init: init.(2)))
      assert a != b
    end
  end

  test "every collective gives what torch gives", %{gang: gang} do
    refs = RankBridge.put!(gang, for(rank <- 0..3, do: [[1.0 * rank, 2.0]]))
    assert RankBridge.barrier!(gang) == :ok

    assert values(gang, RankBridge.broadcast!(gang, refs, src_rank_in_group: 2)) ==
             List.duplicate([[2.0, 2.0]], 4)

    for {op, expected} <- [
          sum: [[6.0, 8.0]],
          product: [[0.0, 16.0]],
          min: [[0.0, 2.0]],
          max: [[3.0, 2.0]],
          avg: [[1.5, 2.0]]
        ] do
      assert values(gang, RankBridge.all_reduce!(gang, refs, op: op)) ==
               List.duplicate(expected, 4)
    end

    assert [nil, %Ref{rank: 1} = gathered, nil, nil] =
             RankBridge.gather!(gang, refs, dst_rank_in_group: 1, dim: 0)

    assert gang |> RankBridge.get!(gathered) |> Tensor.to_list() ==
             for(rank <- 0..3, do: [1.0 * rank, 2.0])

    assert [nil, nil, nil, %Ref{rank: 3} = reduced] =
             RankBridge.reduce!(gang, refs, op: :max, dst_rank_in_group: 3)

    assert gang |> RankBridge.get!(reduced) |> Tensor.to_list() == [[3.0, 2.0]]

    all = RankBridge.all_gather!(gang, refs)
    assert values(gang, all) == List.duplicate([[0.0, 2.0, 1.0, 2.0, 2.0, 2.0, 3.0, 2.0]], 4)
    assert values(gang, refs) == for(rank <- 0..3, do: [[1.0 * rank, 2.0]])
  end

  test "in place, the result takes the place of the input", %{gang: gang} do
    refs = RankBridge.put!(gang, for(rank <- 0..3, do: [rank]))
    again = RankBridge.all_reduce!(gang, refs, in_place: true)
    assert Enum.map(again, & &1.id) == Enum.map(refs, & &1.id)
    assert values(gang, refs) == List.duplicate([6], 4)
  end

  test "an operation id that was used gives the first outcome and runs nothing", %{gang: gang} do
    refs = RankBridge.put!(gang, for(rank <- 0..3, do: [rank]))
    id = uuid()
    first = RankBridge.all_reduce!(gang, refs, operation_id: id)
    assert RankBridge.all_reduce!(gang, refs, operation_id: id) == first
  end

  test "groups are made, used and ended", %{gang: gang} do
    name = "pair-" <> uuid()
    group = RankBridge.new_group!(gang, name, [3, 1])
    assert {group.name, group.ranks, group.backend} == {name, [3, 1], "fake"}
    assert name in Enum.map(RankBridge.Grouping.groups!(gang), & &1.name)
    refs = RankBridge.put!(gang, [[1], [2]], group: name)
    assert Enum.map(refs, & &1.rank) == [3, 1]
    assert values(gang, RankBridge.all_gather!(gang, refs, group: name)) == [[1, 2], [1, 2]]
    assert {:error, %Error{reason: :group_exists}} = RankBridge.new_group(gang, name, [0, 1])
    there = RankBridge.new_group!(gang, name, [3, 1], exist_ok: true)
    assert {there.name, there.ranks} == {name, [3, 1]}

    for {ranks, exist_ok} <- [{[1, 3], true}, {[3], true}, {[3, 1], false}] do
      assert {:error, %Error{reason: :group_exists}} =
               RankBridge.new_group(gang, name, ranks, exist_ok: exist_ok)
    end

    assert RankBridge.destroy_group!(gang, name).name == name
    assert {:error, %Error{reason: :unknown_group}} = RankBridge.barrier(gang, group: name)
    assert {:error, %Error{reason: :unknown_group}} = RankBridge.destroy_group(gang, name)
  end

  test "a group that was ended is made again, with the same ranks or others", %{gang: gang} do
    name = "again-" <> uuid()

    for ranks <- [[3, 1], [3, 1], [0, 2], [2, 1, 0], [3]] do
      RankBridge.new_group!(gang, name, ranks)
      assert named(gang, name) == [{name, ranks}]
      refs = RankBridge.put!(gang, for(rank <- ranks, do: [rank]), group: name)
      all = values(gang, RankBridge.all_gather!(gang, refs, group: name))
      assert all == List.duplicate(ranks, length(ranks))
      RankBridge.destroy_group!(gang, name)
      assert named(gang, name) == []
    end

    RankBridge.form!(gang)
    assert named(gang, name) == []
  end

  test "a mesh that was ended is made again", %{gang: gang} do
    name = "mesh-" <> uuid()

    for axes <- [[dp: 2, tp: 2], [dp: 2, tp: 2], [dp: 1, tp: 4]] do
      groups = gang |> RankBridge.Meshes.new_mesh!(axes, name: name) |> Mesh.groups()
      assert named(gang, name) == groups |> Enum.map(&{&1.name, &1.ranks}) |> Enum.sort()
      RankBridge.form!(gang)
      for group <- groups, do: RankBridge.barrier!(gang, group: group)
      RankBridge.Grouping.destroy_groups!(gang, groups)
      RankBridge.form!(gang)
      assert named(gang, name) == []
    end
  end

  test "the name of a group that exists is refused to every rank", %{gang: gang} do
    name = "there-" <> uuid()
    RankBridge.new_group!(gang, name, [3, 1])

    assert {:error, %Error{reason: :group_exists} = error} =
             RankBridge.new_group(gang, name, [0, 2])

    assert for({rank, %Error{reason: :group_exists}} <- error.outcomes, do: rank) == [0, 1, 2, 3]
    RankBridge.barrier!(gang, group: name)
    RankBridge.destroy_group!(gang, name)
  end

  test "the members of a group that another controller made are asked for", %{
    gang: gang,
    ranks: ranks
  } do
    name = "other-" <> uuid()
    other = start_supervised!({Gang, endpoints_file: ranks.file}, id: :other)
    RankBridge.new_group!(other, name, [2, 0])
    refs = RankBridge.put!(gang, [[5], [6]], group: name)
    assert Enum.map(refs, & &1.rank) == [2, 0]
  end

  test "refs are described, listed and released", %{gang: gang} do
    refs = RankBridge.create!(gang, :int8, [2])
    assert RankBridge.Tensors.describe!(gang, hd(refs)) == hd(refs)
    assert RankBridge.list!(gang) == refs
    assert RankBridge.list!(gang, rank: 3) == [List.last(refs)]
    assert RankBridge.release!(gang, refs) == 4
    assert RankBridge.list!(gang) == []
    assert {:error, %Error{reason: :released_ref}} = RankBridge.get(gang, hd(refs))
    assert {:error, %Error{reason: :released_ref}} = RankBridge.release(gang, hd(refs))
  end

  test "closing the gang frees its refs", %{gang: gang, ranks: ranks} do
    refs = RankBridge.create!(gang, :int8, [2])
    {:ok, session} = Gang.session_id(gang)
    :ok = stop_supervised(Gang)
    other = start_supervised!({Gang, endpoints_file: ranks.file})
    assert {:error, %Error{reason: reason}} = RankBridge.get(other, hd(refs))
    assert reason in [:unknown_session, :unknown_ref, :released_ref]

    sessions =
      other |> RankBridge.status!() |> Enum.flat_map(& &1.sessions) |> Enum.map(&elem(&1, 0))

    refute session in sessions
  end

  test "without a session refs outlive the gang", %{ranks: ranks} do
    shared = start_supervised!({Gang, endpoints_file: ranks.file, session: false}, id: :shared)
    ref = RankBridge.put_rank!(shared, 0, [1, 2])
    :ok = stop_supervised(:shared)
    shared = start_supervised!({Gang, endpoints_file: ranks.file, session: false}, id: :shared)
    assert shared |> RankBridge.get!(ref) |> Tensor.to_list() == [1, 2]
    assert RankBridge.release!(shared, ref) == 1
  end

  test "a gang with a name is called by it, from any process", %{ranks: ranks} do
    name = :"gang_#{uuid()}"
    start_supervised!({Gang, name: name, endpoints_file: ranks.file}, id: name)
    assert Task.await(Task.async(fn -> RankBridge.barrier!(name) end)) == :ok
    assert Gang.size(name) == {:ok, 4}
    :ok = stop_supervised(name)
    assert {:error, %Error{reason: :unavailable, indefinite: false}} = RankBridge.barrier(name)
  end

  test "every rank tells its status", %{gang: gang} do
    statuses = RankBridge.status!(gang)
    assert Enum.map(statuses, & &1.rank) == [0, 1, 2, 3]

    for status <- statuses,
        do:
          assert(
            {status.generation_state, status.backend, status.error} == {:formed, "fake", nil}
          )

    assert for(it <- statuses, do: {it.local_rank, it.local_world_size, it.fs_local_rank}) ==
             for(rank <- 0..3, do: {rank, 4, rank})

    assert Enum.map(statuses, & &1.device) == ["cpu", "cpu", "cpu", "cpu"]

    for %{abilities: abilities} <- statuses do
      assert abilities.collectives == RankBridge.Operations.Declaration.names()
      assert Enum.sort(abilities.dtypes) == Enum.sort(RankBridge.Dtype.all())
      assert :bool in abilities.reductions.bxor
      assert :float32 not in abilities.reductions.bxor

      assert Enum.sort(Map.keys(abilities.reductions)) ==
               Enum.sort(RankBridge.Operations.ReduceOp.all())
    end
  end

  test "a generation is formed again, with groups, and refs stay", %{gang: gang} do
    refs = RankBridge.put!(gang, [[1], [2], [3], [4]])
    [%{generation: before} | _rest] = RankBridge.status!(gang)
    name = "formed-" <> uuid()
    formed = RankBridge.form!(gang, groups: [{name, [2, 0]}])
    assert {formed.generation > before, formed.world_size} == {true, 4}
    assert values(gang, refs) == [[1], [2], [3], [4]]
    assert RankBridge.barrier!(gang, group: name) == :ok
    assert values(gang, RankBridge.all_reduce!(gang, refs)) == List.duplicate([10], 4)
  end

  test "a gang may form a generation as it starts", %{gang: gang, ranks: ranks} do
    [%{generation: before} | _rest] = RankBridge.status!(gang)
    forming = start_supervised!({Gang, endpoints_file: ranks.file, form: true}, id: :forming)
    [%{generation: now} | _rest] = RankBridge.status!(forming)
    assert now > before
  end

  test "an endpoint that is another rank than it should be is refused", %{ranks: ranks} do
    Process.flag(:trap_exit, true)
    {:ok, [a, b, c, d]} = RankBridge.Endpoints.read(ranks.file)

    for wrong <- [[b, a, c, d], [a, b, c]] do
      {:ok, gang} = Gang.start_link(endpoints: wrong)
      assert_receive {:EXIT, ^gang, {:shutdown, %Error{} = error}}, 60_000
      assert %Error{reason: :invalid_argument, indefinite: false} = error
      assert error.expected =~ "rank"
    end
  end

  test "arguments that are wrong are refused before anything is sent", %{gang: gang} do
    refs = RankBridge.create!(gang, :float32, [2])
    [r0, r1, r2, r3] = refs

    for {reason, call} <- [
          invalid_argument: fn -> RankBridge.all_reduce(gang, [r0, r1, r2]) end,
          invalid_argument: fn -> RankBridge.all_reduce(gang, [r0, r1, r2, nil]) end,
          invalid_argument: fn -> RankBridge.all_reduce(gang, [r1, r0, r2, r3]) end,
          invalid_argument: fn -> RankBridge.all_reduce(gang, nil) end,
          invalid_argument: fn ->
            RankBridge.all_reduce(gang, [r0, r1, r2, %{r3 | session_id: "other"}])
          end,
          invalid_argument: fn -> RankBridge.all_reduce(gang, refs, op: :xor) end,
          invalid_argument: fn -> RankBridge.all_reduce(gang, refs, opp: :sum) end,
          invalid_argument: fn -> RankBridge.all_reduce(gang, refs, [:sum]) end,
          invalid_argument: fn -> RankBridge.all_reduce(gang, refs, in_place: 1) end,
          invalid_argument: fn -> RankBridge.all_reduce(gang, refs, timeout: 0) end,
          invalid_argument: fn -> RankBridge.all_reduce(gang, refs, group: :world) end,
          invalid_argument: fn -> RankBridge.gather(gang, refs, dim: 1.0) end,
          invalid_argument: fn -> RankBridge.gather(gang, refs, sizes: 4) end,
          invalid_argument: fn -> RankBridge.all_gather(gang, refs, sizes: []) end,
          invalid_argument: fn -> RankBridge.all_gather(gang, refs, sizes: [1, -1, 1, 1]) end,
          invalid_argument: fn -> RankBridge.reduce_scatter(gang, refs, sizes: [1.0, 1, 1, 1]) end,
          invalid_argument: fn -> RankBridge.all_to_all(gang, refs, sizes: [1, 1, 1, 1]) end,
          invalid_argument: fn -> RankBridge.all_to_all(gang, refs, sizes: [[1, 1, 1, 1]]) end,
          invalid_argument: fn -> RankBridge.all_to_all(gang, refs, input_sizes: [1, 1, 1, 1]) end,
          invalid_argument: fn ->
            RankBridge.Operations.call_rank(gang, 0, :all_to_all, r0, sizes: [[1]])
          end,
          rank_out_of_range: fn -> RankBridge.broadcast(gang, refs, src_rank_in_group: -1) end,
          rank_out_of_range: fn -> RankBridge.broadcast(gang, refs, src_rank_in_group: 4) end,
          rank_out_of_range: fn -> RankBridge.put_rank(gang, 4, [1]) end,
          rank_out_of_range: fn -> RankBridge.get(gang, %{r0 | rank: 9}) end,
          rank_out_of_range: fn -> RankBridge.create(gang, :int8, [1], rank: 4) end,
          invalid_argument: fn -> RankBridge.put(gang, [[1], [2]]) end,
          invalid_argument: fn -> RankBridge.put(gang, [[1], [2], [3], :x]) end,
          invalid_argument: fn -> RankBridge.get(gang, [r0, nil]) end,
          invalid_argument: fn -> RankBridge.release(gang, "r0") end,
          invalid_argument: fn -> RankBridge.create(gang, :int8, [-1]) end,
          unsupported_dtype: fn -> RankBridge.create(gang, :int9, [1]) end,
          invalid_argument: fn -> RankBridge.create(gang, :int8, [1], init: :ones) end,
          invalid_argument: fn -> RankBridge.new_group(gang, <<0xFF>>, [0]) end
        ] do
      assert {:error, %Error{reason: ^reason, indefinite: false} = error} = call.()
      assert error.operation != ""
    end

    assert RankBridge.list!(gang) == refs
    assert RankBridge.barrier!(gang) == :ok
  end

  test "what ranks refuse names its cause and every rank's outcome", %{gang: gang} do
    refs = RankBridge.create!(gang, :float32, [2])
    wrong = List.replace_at(refs, 2, %{Enum.at(refs, 2) | id: "no-such-ref"})

    for calls <- [:ranks, :gang] do
      assert {:error, %Error{} = error} = RankBridge.all_reduce(gang, wrong, calls: calls)

      assert {error.reason, error.operation, error.group} ==
               {:unknown_ref, "all_reduce", "world"}

      assert Enum.map(error.outcomes, &elem(&1, 0)) == [0, 1, 2, 3]
      assert 2 in for(it <- error.ranks, do: it.rank)
      refute error.indefinite
    end

    assert RankBridge.barrier!(gang) == :ok
  end

  test "members that ask for different things are told so, both sides", %{gang: gang} do
    refs =
      for rank <- 0..3,
          do: RankBridge.put_rank!(gang, rank, if(rank == 3, do: [1.0, 2.0], else: [1.0]))

    assert {:error, %Error{reason: :mismatch} = error} = RankBridge.all_reduce(gang, refs)
    refute error.indefinite
    assert Enum.any?(error.ranks, &(&1.state == :disagrees))
    assert_raise Error, ~r/MISMATCH/, fn -> RankBridge.all_reduce!(gang, refs) end
  end

  test "the line of code that made each side's call is shown", %{gang: gang} do
    refs =
      for rank <- 0..3,
          do: RankBridge.put_rank!(gang, rank, if(rank == 3, do: [1.0, 2.0], else: [1.0]))

    {:error, error} = RankBridge.all_reduce(gang, refs, calls: :ranks)
    here = "test/live/fake_gang_test.exs:#{__ENV__.line - 1}"

    assert [%{ranks: [0, 1, 2], site: ^here}, %{ranks: [3], site: ^here, contract: contract}] =
             Error.sides(error)

    assert contract =~ "all_reduce dtype=float32 shape=[2] op=sum"
    assert error.message |> String.split("\n") |> hd() |> String.ends_with?(" at #{here}")

    raised = assert_raise Error, fn -> RankBridge.all_reduce!(gang, refs) end
    there = "test/live/fake_gang_test.exs:#{__ENV__.line - 1}"
    assert raised |> Error.sides() |> Enum.map(& &1.site) |> Enum.uniq() == [there]
  end

  test "a missing rank is named with what it does instead", %{gang: gang} do
    for error <- missed(gang) do
      assert %{doing: :idle, operation: "", site: ""} = activity = activity(error)
      assert activity.for_ms in 150..60_000
      assert error.message =~ ~r/rank 3: +has not come: it has no call, for \d+\.\d s/
    end
  end

  # The errors of three ranks about the last one. On a busy machine, 200 ms may be too short for it to say what it does.
  defp missed(gang) do
    id = RankBridge.Id.uuid()

    for rank <- 0..1,
        do: Operations.submit_rank!(gang, rank, :barrier, nil, operation_id: id, timeout: 60_000)

    # Whoever came after the end of the shortest timeout would be missing, too.
    assert_soon([0, 1], fn -> Admissions.arrived(gang, id) end)
    last = Operations.call_rank(gang, 2, :barrier, nil, operation_id: id, timeout: 1_000)

    errors =
      for result <- [last | for(rank <- 0..1, do: RankBridge.await(gang, id, rank: rank))] do
        assert {:error, %Error{reason: :peer_missing} = error} = result
        error
      end

    if activity(hd(errors)).doing == :silent, do: missed(gang), else: errors
  end

  defp activity(error) do
    assert [%{rank: 3, activity: activity}] = Enum.filter(error.ranks, &(&1.state == :missing))
    activity
  end

  test "the mean of integers is refused and changes nothing", %{gang: gang} do
    refs = RankBridge.put!(gang, for(rank <- 0..3, do: [rank]))

    assert {:error, %Error{indefinite: false}} =
             RankBridge.all_reduce(gang, refs, op: :avg, in_place: true)

    assert values(gang, refs) == [[0], [1], [2], [3]]
  end

  test "calls from many processes at once are all answered", %{gang: gang} do
    tasks =
      for number <- 1..50 do
        Task.async(fn ->
          ref = RankBridge.put_rank!(gang, rem(number, 4), [number])
          gang |> RankBridge.get!(ref) |> Tensor.to_list()
        end)
      end

    assert Task.await_many(tasks, 30_000) == for(number <- 1..50, do: [number])
  end

  test "a caller that traps exits finds no messages left behind", %{gang: gang} do
    Process.flag(:trap_exit, true)
    refs = RankBridge.put!(gang, [[1], [2], [3], [4]])
    RankBridge.get!(gang, refs)
    refute_received _any
  end
end
