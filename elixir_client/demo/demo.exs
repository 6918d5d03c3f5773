# Drives a gang of four ranks or more: mix run demo/demo.exs ENDPOINTS_FILE
#
# Prints one line for each step, the same lines in every language but for the times:
#
#     columns 1-12   the step
#     columns 13-66  what was done
#     columns 67-76  how long it took, in milliseconds with one decimal, right-aligned, then " ms"
#
# Rank r brings a float32[256, 1024] whose element i, counted in row-major order, is (r + 1) * (i mod 251), so that
# every expected value is exact. Every value is checked; the time for checking is not counted. The last line
# is "all values are right". The first difference ends the program with status 1 and a line on stderr.

defmodule Demo do
  alias RankBridge.{Gang, Tensor}

  @shape [256, 1024]
  @elements 256 * 1024

  def run(endpoints_file) do
    started = now()
    gang = step("connect", fn -> connect(endpoints_file) end)
    {:ok, size} = Gang.size(gang)
    inputs = for rank <- 0..(size - 1), do: tensor(rank + 1)

    refs =
      step("put", fn ->
        {RankBridge.put!(gang, inputs), "float32[256, 1024] on each of #{size} ranks"}
      end)

    step("barrier", fn -> {RankBridge.barrier!(gang), "group world, #{size} members"} end)

    copies =
      step("broadcast", fn ->
        {RankBridge.broadcast!(gang, refs, src_rank_in_group: 2), "from rank 2 to all"}
      end)

    sums =
      step("all_reduce", fn -> {RankBridge.all_reduce!(gang, refs, op: :sum), "sum, to all"} end)

    gathered =
      step("gather", fn ->
        {RankBridge.gather!(gang, refs, dst_rank_in_group: 1, dim: 0),
         "to rank 1, along dimension 0"}
      end)

    [nil, joined | others] = gathered
    check("gather gives the others none", Enum.all?(others, &is_nil/1))

    read(gang, "broadcast", copies, Enum.map(copies, fn _ -> tensor(3) end))
    total = div(size * (size + 1), 2)
    read(gang, "all_reduce", sums, Enum.map(sums, fn _ -> tensor(total) end))
    rows = Tensor.new!(:float32, [256 * size, 1024], Enum.map(inputs, & &1.data))
    read(gang, "gather", [joined], [rows])
    read(gang, "put", refs, inputs)

    all = [joined | refs ++ copies ++ sums]
    released = step("release", fn -> {RankBridge.release!(gang, all), "#{length(all)} refs"} end)
    check("every ref is released", released == length(all))
    check("no ref is left", RankBridge.list!(gang) == [])
    step("close", fn -> {Gang.stop(gang), "session and connections"} end)
    line("total", "", now() - started)
    IO.puts("all values are right")
  end

  defp connect(endpoints_file) do
    with {:ok, gang} <- Gang.start_link(endpoints_file: endpoints_file),
         {:ok, [status | _]} <- RankBridge.status(gang) do
      {gang,
       "#{status.world_size} ranks, backend #{status.backend}, generation #{status.generation}"}
    else
      {:error, error} -> fail(Exception.message(error))
    end
  end

  # The tensor whose element i is factor * (i mod 251).
  defp tensor(factor) do
    period = for i <- 0..250, into: <<>>, do: <<factor * i::little-float-32>>
    repeated = :binary.copy(period, div(@elements, 251) + 1)
    Tensor.new!(:float32, @shape, binary_part(repeated, 0, 4 * @elements))
  end

  defp read(gang, what, refs, expected) do
    count = if length(refs) == 1, do: "1 tensor", else: "#{length(refs)} tensors"
    tensors = step("read back", fn -> {RankBridge.get!(gang, refs), "#{count} of #{what}"} end)

    for {ref, got, wanted} <- Enum.zip([refs, tensors, expected]) do
      same? =
        {got.dtype, got.shape, got.data} == {wanted.dtype, wanted.shape, Tensor.to_binary(wanted)}

      check("#{what} on rank #{ref.rank} has the expected values", same?)
    end
  end

  defp step(name, fun) do
    started = now()
    {result, what} = fun.()
    line(name, what, now() - started)
    result
  end

  defp line(name, what, microseconds) do
    time = :erlang.float_to_binary(microseconds / 1000, decimals: 1)

    IO.puts(
      String.pad_trailing(name, 12) <>
        String.pad_trailing(what, 54) <> String.pad_leading(time, 10) <> " ms"
    )
  end

  defp check(what, true), do: what
  defp check(what, false), do: fail("not so: #{what}")

  defp fail(message) do
    IO.puts(:stderr, message)

    # At once, and with its status: an exit of the program's processes could be taken for something else.
    System.halt(1)
  end

  defp now, do: System.monotonic_time(:microsecond)
end

case System.argv() do
  [endpoints_file] ->
    Demo.run(endpoints_file)

  _other ->
    IO.puts(:stderr, "usage: mix run demo/demo.exs ENDPOINTS_FILE")
    System.halt(2)
end
