defmodule RankBridge.SharedMemoryTest do
  @moduledoc "Tensors by memory that ranks share with this host, against real ranks."

  use ExUnit.Case, async: true

  alias RankBridge.{Dtype, Gang, Sessions, Tensor}
  alias RankBridge.Gang.View
  alias RankBridge.Proto.V1
  alias RankBridge.Rank.{Memory, Server}
  alias RankBridge.Test.{LiveRanks, OsProcess}

  doctest RankBridge.Rank.Memory

  @moduletag timeout: 180_000
  @mib 1_048_576

  setup_all do
    ranks = Map.new(["fake", "gloo"], &{&1, LiveRanks.start(2, &1)})
    on_exit(fn -> for {_backend, it} <- ranks, do: LiveRanks.stop(it) end)
    %{ranks: ranks}
  end

  defp gang(ranks, opts \\ []) do
    spec =
      Supervisor.child_spec({Gang, [endpoints_file: ranks.file] ++ opts}, restart: :temporary)

    gang = start_supervised!(spec, id: make_ref())
    :ok = RankBridge.await_ready(gang, 60_000)
    gang
  end

  defp transfers(gang, rank \\ 0) do
    {:ok, counts} = RankBridge.Tensors.transfers(gang, rank)
    counts
  end

  defp large(bytes \\ 2 * @mib + 12), do: :crypto.strong_rand_bytes(bytes)

  defp uint8(data), do: %Tensor{dtype: :uint8, shape: [byte_size(data)], data: data}

  for backend <- ["fake", "gloo"] do
    test "what is put comes back, of every dtype and shape, on #{backend}", %{ranks: ranks} do
      gang = gang(ranks[unquote(backend)])

      for dtype <- Dtype.all() do
        elements = div(@mib, Dtype.size(dtype))
        data = if dtype == :bool, do: :binary.copy(<<0, 1>>, div(@mib, 2)), else: large(@mib)

        for {shape, data} <- [
              {[elements], data},
              {[2, div(elements, 2)], data},
              {[], binary_part(data, 0, Dtype.size(dtype))},
              {[3, 0], ""}
            ] do
          tensor = %Tensor{dtype: dtype, shape: shape, data: data}
          ref = RankBridge.put_rank!(gang, 1, tensor)
          assert RankBridge.get!(gang, ref) == tensor
          {:ok, 1} = RankBridge.release(gang, ref)
        end
      end

      assert transfers(gang, 1) == %{shared: 4 * length(Dtype.all()), streamed: 0, reason: ""}
      assert transfers(gang, 0) == %{shared: 0, streamed: 0, reason: ""}
    end
  end

  test "64 MiB, as iodata", %{ranks: ranks} do
    gang = gang(ranks["gloo"])
    data = large(64 * @mib)
    <<head::binary-size(1000), tail::binary>> = data
    tensor = %{uint8(data) | data: [head, [tail]]}
    ref = RankBridge.put_rank!(gang, 0, tensor)
    assert RankBridge.get!(gang, ref).data == data
    assert %{shared: 2, streamed: 0} = transfers(gang)
  end

  test "refs that were put stay as they are, whatever is put and fetched after them", %{
    ranks: ranks
  } do
    gang = gang(ranks["fake"])
    tensors = for _ <- 1..8, do: uint8(large())
    refs = Enum.map(tensors, &RankBridge.put_rank!(gang, 0, &1))

    fetched =
      refs
      |> Task.async_stream(&RankBridge.get!(gang, &1), max_concurrency: 8, timeout: 60_000)
      |> Enum.map(fn {:ok, tensor} -> tensor end)

    assert fetched == tensors
    assert %{shared: 16, streamed: 0} = transfers(gang)
  end

  test "a bool that is none is refused, and the memory is used again", %{ranks: ranks} do
    gang = gang(ranks["fake"])
    bad = %{uint8(:binary.copy(<<2>>, @mib)) | dtype: :bool}
    assert {:error, %{reason: :invalid_argument}} = RankBridge.put_rank(gang, 0, bad)
    good = uint8(large())
    assert RankBridge.get!(gang, RankBridge.put_rank!(gang, 0, good)) == good
  end

  test "without it, and over TCP, tensors are streamed", %{ranks: ranks} do
    off = gang(ranks["fake"], shared_memory: false)
    far = start_supervised!({Gang, LiveRanks.by_tcp(ranks["fake"])}, id: make_ref())
    unowned = gang(ranks["fake"], session: false)
    tensor = uint8(large())

    for gang <- [off, far, unowned] do
      ref = RankBridge.put_rank!(gang, 0, tensor)
      assert RankBridge.get!(gang, ref) == tensor
      {:ok, 1} = RankBridge.release(gang, ref)
      assert transfers(gang) == %{shared: 0, streamed: 0, reason: ""}
    end
  end

  @tag sampled: RankBridge.Test.Sampled.part(__ENV__)
  test "a rank that shares no memory, or has no room, gets and gives streams" do
    for {arguments, message} <- [
          {["--no-shared-memory"], "shares no memory"},
          {["--max-shared-bytes", "#{2 * @mib}"], "too many bytes of shared memory"}
        ] do
      ranks = LiveRanks.start(1, "fake", arguments)
      gang = gang(ranks)
      tensor = uint8(large())
      assert RankBridge.get!(gang, RankBridge.put_rank!(gang, 0, tensor)) == tensor
      assert %{shared: 0, streamed: 2, reason: reason} = transfers(gang)
      assert reason =~ message
      LiveRanks.stop(ranks)
    end
  end

  test "other sizes that nobody uses make room" do
    ranks = LiveRanks.start(1, "fake", ["--max-shared-bytes", "#{12 * @mib}"])
    gang = gang(ranks)

    for mib <- [1, 9, 3, 10, 1] do
      tensor = uint8(large(mib * @mib))
      ref = RankBridge.put_rank!(gang, 0, tensor)
      assert RankBridge.get!(gang, ref) == tensor
      {:ok, 1} = RankBridge.release(gang, ref)
    end

    # Of the largest, one is the tensor's while it is fetched, and there is no room for another.
    assert %{shared: shared, streamed: 2} = transfers(gang)
    assert shared == 8
    LiveRanks.stop(ranks)
  end

  test "the few free segments are those that were used last" do
    table = Memory.new()

    segments =
      for mib <- 1..6 do
        memory = %V1.SharedMemory{id: "#{mib}", path: "/#{mib}", bytes: mib * 10 * @mib}
        segment = Memory.keep(table, memory)
        Memory.give_back(table, segment)
        assert {:ok, ^segment} = Memory.take(table, memory.bytes)
        Memory.give_back(table, segment)
        segment
      end

    assert length(:ets.match_object(table, {:_, :_, :_, :free})) == 4
    {id, _path, _size} = List.last(segments)
    refute id in Memory.unwanted(table, false)
  end

  @tag sampled: RankBridge.Test.Sampled.part(__ENV__)
  test "wrong and closed sessions cost no memory on the rank" do
    ranks = LiveRanks.start(1, "fake", ["--max-shared-bytes", "#{16 * @mib}"])
    gang = gang(ranks)
    tensor = uint8(large())
    ref = RankBridge.put_rank!(gang, 0, tensor)

    for session <- 1..12 do
      assert RankBridge.get!(gang, ref) == tensor
      closed = %{ref | session_id: "closed #{session}"}
      assert {:error, %{reason: :unknown_session}} = RankBridge.get(gang, closed)
      unowned = %{ref | session_id: ""}
      assert {:error, %{reason: :wrong_session}} = RankBridge.get(gang, unowned)
    end

    assert %{shared: 13, streamed: 24} = transfers(gang)
    assert length(files(gang)) <= 6
    LiveRanks.stop(ranks)
  end

  test "a session that is closed and opened again shares memory again" do
    ranks = LiveRanks.start(1, "fake", ["--max-shared-bytes", "#{16 * @mib}"])
    gang = gang(ranks)
    {:ok, view} = View.fetch(gang)
    tensor = uint8(large())

    for turn <- 1..6 do
      ref = RankBridge.put_rank!(gang, 0, tensor)
      assert RankBridge.get!(gang, ref) == tensor
      assert RankBridge.get!(gang, ref) == tensor
      # One finds that its memory is gone, and is streamed.
      assert %{shared: shared, streamed: streamed} = transfers(gang)
      assert {shared, streamed} == {3 * turn - (turn - 1), turn - 1}
      :ok = Sessions.close(view, 60_000)
      :ok = Sessions.open(view)
    end

    LiveRanks.stop(ranks)
  end

  test "what a caller died with is given up", %{ranks: ranks} do
    gang = gang(ranks["fake"])
    tensor = uint8(large())
    ref = RankBridge.put_rank!(gang, 0, tensor)
    ^tensor = RankBridge.get!(gang, ref)
    {:ok, view} = View.fetch(gang)
    {:ok, memory} = Server.memory(view, 0)
    {pid, monitor} = spawn_monitor(fn -> {:ok, _held} = Memory.take(memory, 2 * @mib) end)
    assert_receive {:DOWN, ^monitor, :process, ^pid, :normal}, 60_000
    assert Memory.take(memory, 2 * @mib) == :none
    assert RankBridge.get!(gang, ref) == tensor
    assert {:ok, _free} = Memory.take(memory, 2 * @mib)
    assert [{{:segment, _id}, _, _, _}] = :ets.match_object(memory, {{:segment, :_}, :_, :_, :_})
  end

  test "a rank that was killed and replaced shares memory anew, and leaves nothing" do
    ranks = LiveRanks.start(2, "gloo")
    gang = gang(ranks)
    tensor = uint8(large())
    ref = RankBridge.put_rank!(gang, 1, tensor)
    ^tensor = RankBridge.get!(gang, ref)
    %{pid: pid} = gang |> RankBridge.status!() |> Enum.at(1)
    before = directory(gang, 1)
    assert Elixir.File.dir?(before)
    OsProcess.kill(pid)
    {:ok, _generation} = await_formed(gang)
    refute Elixir.File.exists?(before)
    ref = RankBridge.put_rank!(gang, 1, tensor)
    assert RankBridge.get!(gang, ref) == tensor
    assert directory(gang, 1) != before
    LiveRanks.stop(ranks)
  end

  # What rank 0 shares, by inode: each piece is open more than once.
  defp files(gang) do
    directory = directory(gang, 0)

    for name <- Elixir.File.ls!(directory),
        path = Path.join(directory, name),
        {:ok, "/memfd:rankbridge-tensor" <> _rest} <- [Elixir.File.read_link(path)],
        {:ok, %{inode: inode}} <- [Elixir.File.stat(path)],
        uniq: true,
        do: inode
  end

  defp directory(gang, rank) do
    {:ok, view} = View.fetch(gang)
    {:ok, memory} = Server.memory(view, rank)

    [{_key, path, _size, _holder} | _] = :ets.match_object(memory, {{:segment, :_}, :_, :_, :_})

    Path.dirname(path)
  end

  defp await_formed(gang) do
    # The rank that takes the place of the dead one begins when the machine has time for it.
    case RankBridge.form(gang, timeout: 60_000) do
      {:ok, formed} -> {:ok, formed}
      {:error, %{reason: :unavailable}} -> await_formed(gang)
    end
  end
end
