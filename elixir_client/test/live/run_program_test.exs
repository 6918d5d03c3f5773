defmodule RankBridge.RunProgramTest do
  @moduledoc "Programs that real ranks run, on Gloo."

  use ExUnit.Case, async: true

  alias RankBridge.{Error, Gang, Program, Tensor}
  alias RankBridge.Test.LiveRanks

  @ways [:ranks, :gang]

  setup_all do
    ranks = LiveRanks.start(3, "gloo")
    on_exit(fn -> LiveRanks.stop(ranks) end)
    %{ranks: ranks}
  end

  setup %{ranks: ranks} do
    gang = start_supervised!({Gang, endpoints_file: ranks.file})
    %{gang: gang, refs: RankBridge.put!(gang, for(rank <- 0..2, do: [1.0 * rank]))}
  end

  defp values(gang, refs), do: gang |> RankBridge.get!(refs) |> Enum.map(&Tensor.to_list/1)
  defp on_each(value), do: List.duplicate(value, 3)

  test "a step takes what another gives, and what is not kept is freed", context do
    %{gang: gang, refs: refs} = context

    program =
      Program.new()
      |> Program.all_reduce(refs, as: :total)
      |> Program.loop(3, &Program.all_reduce(&1, :total, as: :total))
      |> Program.all_gather(:total, as: :rows, dim: 0)
      |> Program.barrier()
      |> Program.reduce(refs, as: :largest, op: :max, dst_rank_in_group: 2)
      |> Program.all_gather(refs, as: :parts, layout: :list)

    for calls <- @ways do
      before = length(RankBridge.list!(gang))
      opts = [keep: [:rows, :largest, :parts], calls: calls]

      assert {:ok, [rows, [nil, nil, largest], parts]} =
               RankBridge.Programs.run_program(gang, program, opts)

      assert values(gang, rows) == on_each([81.0, 81.0, 81.0])
      assert gang |> RankBridge.get!(largest) |> Tensor.to_list() == [2.0]
      for part <- parts, do: assert(values(gang, part) == [[0.0], [1.0], [2.0]])
      assert values(gang, refs) == [[0.0], [1.0], [2.0]]
      assert length(RankBridge.list!(gang)) == before + 3 + 1 + 9
    end
  end

  test "what is changed in place, the steps after it see; nothing has to be kept", context do
    %{gang: gang, refs: refs} = context
    program = Program.loop(Program.new(), 4, &Program.all_reduce(&1, refs, in_place: true))

    for {calls, factor} <- [ranks: 27.0, gang: 27.0 * 81] do
      assert RankBridge.Programs.run_program!(gang, program, calls: calls) == []
      assert values(gang, refs) == on_each([3.0 * factor])
    end
  end

  test "it can be submitted, and waited for longer than its timeout; or each rank has its part",
       context do
    %{gang: gang, refs: refs} = context
    program = Program.new() |> Program.all_reduce(refs, as: :total) |> Program.barrier()
    operation = RankBridge.submit!(gang, :run_program, program, keep: [:total])
    assert [total] = RankBridge.await!(gang, operation, timeout: 60_000)
    assert values(gang, total) == on_each([3.0])

    sums =
      RankBridge.run!(gang, fn rank ->
        part = Program.all_reduce(Program.new(), Enum.at(refs, rank), as: :sum)
        [sum] = RankBridge.Operations.call_rank!(gang, rank, :run_program, part, keep: [:sum])
        sum
      end)

    assert values(gang, sums) == on_each([3.0])
  end

  test "where one member cannot, nobody does, and the step is named", context do
    %{gang: gang, refs: refs} = context
    others = RankBridge.put!(gang, on_each([1.0]))
    RankBridge.release!(gang, Enum.at(others, 1))

    program =
      Program.new()
      |> Program.all_reduce(refs, in_place: true)
      |> Program.loop(2, &Program.all_reduce(&1, others, in_place: true))

    for calls <- @ways do
      opts = [calls: calls, timeout: 1_000]
      assert {:error, %Error{} = error} = RankBridge.Programs.run_program(gang, program, opts)
      assert {error.reason, error.indefinite} == {:released_ref, false}
      assert error.message =~ "step 1.0"
      assert values(gang, refs) == [[0.0], [1.0], [2.0]]
      assert RankBridge.barrier!(gang) == :ok
    end
  end

  test "what a list stands for no step takes, and a name stays of its shape", context do
    %{gang: gang, refs: refs} = context
    none = Program.new()

    for program <- [
          none |> Program.all_gather(refs, as: :it, layout: :list) |> Program.all_reduce(:it),
          none |> Program.all_reduce(refs, as: :it) |> Program.all_gather(:it, as: :it)
        ] do
      assert {:error, %Error{reason: :invalid_argument} = error} =
               RankBridge.Programs.run_program(gang, program)

      assert error.message =~ "step 1"
    end
  end
end
