defmodule RankBridge.DocsTest do
  @moduledoc "The documentation's examples do what they say: their matches are what they claim."

  use ExUnit.Case, async: true

  import ExUnit.CaptureIO

  alias RankBridge.{Gang, Tensor}
  alias RankBridge.Test.LiveRanks

  @docs Path.expand("../../../docs", __DIR__)

  setup_all do
    ranks = LiveRanks.start(4, "fake")
    on_exit(fn -> LiveRanks.stop(ranks) end)
    %{ranks: ranks}
  end

  # The Elixir programs in a page.
  defp programs(page) do
    for [_all, program] <- Regex.scan(~r/```elixir\n(.*?)```/s, page(page)), do: program
  end

  defp page(name), do: @docs |> Path.join(name) |> File.read!()

  # What its variables are after a program that has a gang, by name too, tensors on each of its ranks, and a queue.
  defp run(program, ranks) do
    gang = start_supervised!({Gang, name: MyGang, endpoints_file: ranks.file, timeout: 60_000})
    on_each = fn -> RankBridge.put!(gang, for(rank <- 0..3, do: [1.0 * rank])) end
    name = "numbers #{System.unique_integer()}"
    readers = [writer_rank_in_group: 0, reader_ranks_in_group: [1]]
    queue = RankBridge.Queues.new_queue!(gang, name, readers)

    given = [
      gang: gang,
      refs: on_each.(),
      counts: on_each.(),
      gradients: on_each.(),
      batches: [on_each.(), on_each.()],
      tensor: Tensor.new!(:uint8, [1_048_576], :binary.copy(<<7>>, 1_048_576)),
      queue: queue
    ]

    {result, variables} = Code.eval_string(program, given)
    {result, Map.new(variables)}
  end

  # How many Elixir programs each page has, and what runs them: these tests, or others.
  @pages %{
    "gang_calls.md" => 2,
    "groups_and_meshes.md" => 1,
    "harness.md" => 1,
    "hold.md" => 1,
    "objects.md" => 1,
    "point_to_point.md" => 1,
    "programs.md" => 1,
    "queues.md" => 1,
    "streams.md" => 1,
    "tensors.md" => 1,
    "tls.md" => 1
  }

  test "every page with programs is known here" do
    found =
      for path <- Path.wildcard(Path.join(@docs, "*.md")),
          name = Path.basename(path),
          count = length(programs(name)),
          count > 0,
          into: %{},
          do: {name, count}

    assert found == @pages
  end

  @tag timeout: 120_000
  test "the examples of gang calls", %{ranks: ranks} do
    assert [calls, stream] = programs("gang_calls.md")
    {:ok, %{sums: [sum | _others], gang: gang}} = run(calls, ranks)
    assert gang |> RankBridge.get!(sum) |> Tensor.to_list() == [6.0]
    stop_supervised!(MyGang)
    {:ok, %{first: first, second: second}} = run(stream, ranks)
    assert {first.operation, second.operation} == {:all_reduce, :barrier}
  end

  @tag timeout: 120_000
  test "the example of programs", %{ranks: ranks} do
    assert [program] = programs("programs.md")
    {{:ok, [rows]}, %{gang: gang}} = run(program, ranks)
    assert gang |> RankBridge.get!(hd(rows)) |> Tensor.to_list() == [6.0, 6.0, 6.0, 6.0]
  end

  @tag timeout: 120_000
  test "the example of streams", %{ranks: ranks} do
    assert [program] = programs("streams.md")
    {:ok, %{results: [{:ok, _first}, {:ok, second}], gang: gang}} = run(program, ranks)
    assert gang |> RankBridge.get!(hd(second)) |> Tensor.to_list() == [6.0]
  end

  @tag timeout: 120_000
  test "the example of tensors", %{ranks: ranks} do
    assert [program] = programs("tensors.md")
    {{:ok, transfers}, %{tensor: tensor}} = run(program, ranks)
    assert tensor.data == :binary.copy(<<7>>, 1_048_576)
    assert {transfers.shared, transfers.streamed} == {2, 0}
  end

  @tag timeout: 120_000
  test "the example of queues", %{ranks: ranks} do
    assert [program] = programs("queues.md")
    # A reader goes on until the queue is shut down.
    three = String.replace(program, "value <- stream", "value <- Enum.take(stream, 3)")
    assert three != program

    assert {[1, 2, 3], _variables} =
             run(String.replace(three, "IO.inspect(value)", "value"), ranks)
  end

  @tag timeout: 120_000
  test "the example of breakpoints", %{ranks: ranks} do
    assert [program] = programs("hold.md")
    {{:ok, variables}, printed} = with_io(fn -> {:ok, elem(run(program, ranks), 1)} end)

    for {line, rank} <- printed |> String.split("\n", trim: true) |> Enum.with_index(),
        do: assert(line =~ ~r/^rank #{rank} is held before all_reduce world#\d+.*: breakpoint$/)

    assert length(variables.calls) == 4
    assert {variables.most, variables.place} == {[2.0, 2.0, 2.0, 3.0], 0}
    sums = RankBridge.get!(variables.gang, variables.sums)
    assert Enum.map(sums, &Tensor.to_list/1) == List.duplicate([6.0, 8.0], 4)
  end

  @tag timeout: 120_000
  test "the example of groups, meshes and layouts", %{ranks: ranks} do
    [_all, program] =
      Regex.run(
        ~r/<!-- elixir example: begin -->\n```elixir\n(.*?)```/s,
        page("groups_and_meshes.md")
      )

    assert program =~ ~s("endpoints.json")
    Code.eval_string(String.replace(program, "endpoints.json", ranks.file))
  end

  @tag timeout: 120_000
  test "the example of values and maps of tensors", %{ranks: ranks} do
    assert [program] = programs("objects.md")
    {given, variables} = run(program, ranks)
    assert variables.config == %{"steps" => 100, "names" => ["a", "b"]}
    assert variables.losses == for(rank <- 0..3, do: %{"rank" => rank, "loss" => 0.5})
    assert {variables.total, variables.weights.rank} == {9, 0}
    assert {given.rank, given.dtype, given.shape} == {3, :bfloat16, [256, 256]}
  end

  @tag timeout: 120_000
  test "the example of point to point", %{ranks: ranks} do
    assert [program] = programs("point_to_point.md")
    {{:ok, nil}, %{received: received, gang: gang}} = run(program, ranks)
    assert received.rank == 2
    assert gang |> RankBridge.get!(received) |> Tensor.to_list() == [0.0]
  end
end
