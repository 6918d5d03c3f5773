# The Elixir client as a subject of `make bench`, which starts this program, with its standard input and output as pipes:
#
#   mix run scripts/bench.exs SIZE [ARGUMENT...]
#
# It starts a gang of so many ranks on Gloo, with these arguments of `rankbridge up`, writes a line "has WAY OPERATION"
# for everything that it can time, and "ready". To a line "WAY OPERATION CALLS" it answers "took" and the nanoseconds of
# each call, or "failed" and why. It ends with its standard input. The ways are files in scripts/bench; one that is not
# there is not there yet.
defmodule RankBridge.Bench do
  @moduledoc "Times calls, and tells."

  alias RankBridge.{Ref, Tensor}

  @mib 1_048_576
  @transferred %{"64MB" => 64 * @mib, "1GiB" => 1024 * @mib}

  # Calls under way of those that flow.
  @depth 4

  @typedoc """
  What is called and timed, and what is done with its result, untimed; or what begins a call and what awaits it, which is
  timed from one answer to the next, with so many under way that the next is always on its way.
  """
  @type operation ::
          {(() -> term()), (term() -> term())} | {:flow, (() -> term()), (term() -> term())}

  @doc "The same collectives, however they are called: `opts` go with each. In place, as the native calls are."
  @spec collectives(RankBridge.Gang.gang(), keyword()) :: %{String.t() => operation()}
  def collectives(gang, opts) do
    [small, reduced, sent] =
      for count <- [1, @mib, @mib], do: RankBridge.create!(gang, :float32, [count])

    in_place = [in_place: true] ++ opts

    %{
      "barrier" => {fn -> RankBridge.barrier!(gang, opts) end, &Function.identity/1},
      "all_reduce_4B" =>
        {fn -> RankBridge.all_reduce!(gang, small, in_place) end, &Function.identity/1},
      "all_reduce_4MB" =>
        {fn -> RankBridge.all_reduce!(gang, reduced, in_place) end, &Function.identity/1},
      "broadcast_4MB" =>
        {fn -> RankBridge.broadcast!(gang, sent, in_place) end, &Function.identity/1}
    }
  end

  @doc """
  Tensors from a rank and to it, all of them `:shared` or `:streamed`: one that went the other way is an error. What is large
  is made when it is first asked for.
  """
  @spec transfers(RankBridge.Gang.gang(), :shared | :streamed) :: %{String.t() => operation()}
  def transfers(gang, way) do
    {:ok, size} = RankBridge.Gang.size(gang)
    rank = rem(1, size)

    fetches =
      for {name, bytes} <- @transferred do
        fetch = fn -> RankBridge.get!(gang, held(gang, rank, bytes)) end
        {"fetch_" <> name, {fetch, fn _tensor -> check(gang, rank, way) end}}
      end

    puts =
      for {name, bytes} <- @transferred do
        put = fn -> RankBridge.put_rank!(gang, rank, whole(bytes)) end

        released = fn ref ->
          RankBridge.release!(gang, [ref])
          check(gang, rank, way)
        end

        {"put_" <> name, {put, released}}
      end

    Map.new(fetches ++ puts)
  end

  defp check(gang, rank, way) do
    {:ok, done} = RankBridge.Tensors.transfers(gang, rank)
    other = if way == :shared, do: done.streamed, else: done.shared
    if other > 0, do: raise("#{other} tensors did not go #{way}: #{done.reason}")
  end

  defp held(gang, rank, bytes),
    do: kept({:held, bytes}, fn -> RankBridge.create!(gang, :uint8, [bytes], rank: rank) end)

  defp whole(bytes),
    do: kept({:whole, bytes}, fn -> Tensor.new!(:uint8, [bytes], :binary.copy(<<1>>, bytes)) end)

  @spec kept(term(), (() -> value)) :: value when value: Ref.t() | Tensor.t()
  defp kept(key, make) do
    with nil <- Process.get(key) do
      made = make.()
      Process.put(key, made)
      made
    end
  end

  @doc "Answers lines until there are none."
  @spec serve(%{String.t() => %{String.t() => operation()}}) :: :ok
  def serve(ways) do
    for {way, operations} <- ways, {name, _} <- operations, do: IO.puts("has #{way} #{name}")
    IO.puts("ready")

    for line <- IO.stream(:stdio, :line) do
      [way, name, calls] = String.split(line)
      IO.puts(answer(ways[way][name], String.to_integer(calls)))
    end

    :ok
  end

  defp answer(operation, calls) do
    Enum.join(["took" | times(operation, calls)], " ")
  rescue
    error -> "failed " <> (error |> Exception.message() |> String.replace("\n", " "))
  end

  defp times({:flow, begin, await}, calls) do
    under_way = :queue.from_list(for _call <- 1..@depth, do: begin.())

    {times, {under_way, _since}} =
      Enum.map_reduce(1..calls, {under_way, System.monotonic_time(:nanosecond)}, fn _call,
                                                                                    {under_way,
                                                                                     since} ->
        {{:value, oldest}, under_way} = :queue.out(under_way)
        await.(oldest)
        now = System.monotonic_time(:nanosecond)
        {now - since, {:queue.in(begin.(), under_way), now}}
      end)

    under_way |> :queue.to_list() |> Enum.each(await)
    times
  end

  defp times({call, done}, calls) do
    for _call <- 1..calls do
      began = System.monotonic_time(:nanosecond)
      result = call.()
      took = System.monotonic_time(:nanosecond) - began
      done.(result)
      took
    end
  end
end

[size | arguments] = System.argv()
gang = RankBridge.Bench.Gang

children = [
  {RankBridge.Gang,
   name: gang, size: String.to_integer(size), arguments: arguments, timeout: 120_000}
]

{:ok, supervisor} = Supervisor.start_link(children, strategy: :one_for_one)
:ok = RankBridge.await_ready(gang, 60_000)

ways =
  for file <- __DIR__ |> Path.join("bench/*.exs") |> Path.wildcard(), into: %{} do
    {operations, _bindings} = Code.eval_file(file)
    {Path.basename(file, ".exs"), operations.(gang)}
  end

:ok = RankBridge.Bench.serve(ways)
Supervisor.stop(supervisor)
