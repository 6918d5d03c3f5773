defmodule RankBridge.Transport.ProtocolTest do
  @moduledoc "The protocol core, without sockets and processes."

  use ExUnit.Case, async: true

  alias RankBridge.Transport.HTTP2.{Frame, HPACK, Parser, Request, Protocol}

  @head HPACK.encode([{":status", "200"}, {"content-type", "application/grpc"}])
  @tail HPACK.encode([{"grpc-status", "0"}])

  defp request(data, fields \\ []) do
    struct!(
      %Request{block: fn -> "" end, caller: self(), data: [data], bytes: byte_size(data)},
      fields
    )
  end

  defp open(opts, settings) do
    {_preface, _bytes, [], protocol} = Protocol.take(Protocol.new(opts))
    protocol = Protocol.receive_bytes(protocol, Frame.settings(settings))
    {_ack, _bytes, [], protocol} = Protocol.take(protocol)
    Protocol.written(protocol, protocol.unwritten)
  end

  # What the protocol sends now, as frames.
  defp sent(protocol) do
    {out, bytes, events, protocol} = Protocol.take(protocol)
    binary = IO.iodata_to_binary(out)
    assert byte_size(binary) == bytes
    {:ok, frames, _} = Parser.push(Parser.new(16_777_215), binary)
    {frames, events, protocol}
  end

  test "random windows, frame sizes and writers bring every byte across, and no byte too early" do
    seed = :rand.seed(:exsss, System.unique_integer([:positive]))
    message = "seed: #{inspect(:rand.export_seed_s(seed))}"

    for _ <- 1..30 do
      window = Enum.random([0, 1, 100, 5_000])
      protocol = open([write_cap: Enum.random([1, 1_000, 100_000])], [{4, window}])

      bodies =
        for _ <- 1..:rand.uniform(6),
            into: %{},
            do: {make_ref(), :rand.bytes(Enum.random([0, 1, 70_000]))}

      protocol =
        Enum.reduce(bodies, protocol, fn {ref, body}, protocol ->
          Protocol.open(protocol, ref, request(body))
        end)

      got = play(protocol, %{}, %{0 => 65_535}, window, message)
      assert Enum.sort(Map.values(got)) == Enum.sort(Map.values(bodies)), message
    end
  end

  # Plays the server: takes frames, checks them against the windows it gave, and gives more at random.
  defp play(protocol, got, windows, initial, message) do
    {frames, _events, protocol} = sent(protocol)

    {got, windows} =
      Enum.reduce(frames, {got, windows}, fn
        {:headers, id, _block, end?, true}, {got, windows} ->
          {Map.put(got, id, {"", end?}), Map.put(windows, id, initial)}

        {:data, id, data, end?, bytes}, {got, windows} ->
          {body, false} = got[id]
          windows = windows |> Map.update!(id, &(&1 - bytes)) |> Map.update!(0, &(&1 - bytes))
          assert windows[id] >= 0 and windows[0] >= 0 and bytes <= 16_384, message
          {Map.put(got, id, {body <> data, end?}), windows}
      end)

    protocol = Protocol.written(protocol, protocol.unwritten)

    if map_size(protocol.refs) > 0 and
         Enum.all?(protocol.streams, fn {_, stream} -> stream.fin == :sent end) do
      Map.new(got, fn {id, {body, true}} -> {id, body} end)
    else
      {id, _} = Enum.random(windows)
      increment = :rand.uniform(40_000)
      protocol = Protocol.receive_bytes(protocol, Frame.window_update(id, increment))
      play(protocol, got, Map.update!(windows, id, &(&1 + increment)), initial, message)
    end
  end

  test "responses of many streams, mixed and cut anywhere, reach the right callers in order" do
    seed = :rand.seed(:exsss, System.unique_integer([:positive]))
    message = "seed: #{inspect(:rand.export_seed_s(seed))}"

    for _ <- 1..100 do
      refs = for _ <- 1..5, do: make_ref()
      protocol = Enum.reduce(refs, open([], []), &Protocol.open(&2, &1, request("x")))
      {_frames, [], protocol} = sent(protocol)

      # Each stream's frames in order, the streams mixed.
      responses =
        for {ref, n} <- Enum.with_index(refs) do
          chunks = for _ <- 1..:rand.uniform(5), do: :rand.bytes(:rand.uniform(500))
          id = 2 * n + 1
          data = for chunk <- chunks, do: Frame.data(id, chunk, byte_size(chunk), false)

          {ref, chunks,
           [Frame.headers(id, @head, false, 16_384)] ++
             data ++ [Frame.headers(id, @tail, true, 16_384)]}
        end

      bytes = responses |> Enum.map(&elem(&1, 2)) |> mix() |> IO.iodata_to_binary()
      {events, protocol} = feed(protocol, bytes, [])
      assert Protocol.stream_count(protocol) == 0

      for {ref, chunks, _frames} <- responses do
        own = for {^ref, event} <- events, do: event
        assert [{:headers, [{":status", "200"} | _], false} | rest] = own
        assert {:headers, [{"grpc-status", "0"}], true} = List.last(rest)

        assert Enum.map_join(Enum.drop(rest, -1), fn {:data, data, false} -> data end) ==
                 Enum.join(chunks),
               message
      end
    end
  end

  defp mix(lists) do
    case Enum.reject(lists, &(&1 == [])) do
      [] ->
        []

      lists ->
        {[[head | tail]], others} = Enum.split(Enum.shuffle(lists), 1)
        [head | mix([tail | others])]
    end
  end

  defp feed(protocol, "", events), do: {events, protocol}

  defp feed(protocol, bytes, events) do
    size = min(:rand.uniform(700), byte_size(bytes))
    <<head::binary-size(size), rest::binary>> = bytes
    {_frames, more, protocol} = protocol |> Protocol.receive_bytes(head) |> sent()
    feed(protocol, rest, events ++ more)
  end

  test "random bytes never crash the core, and end it with every caller told" do
    seed = :rand.seed(:exsss, System.unique_integer([:positive]))
    message = "seed: #{inspect(:rand.export_seed_s(seed))}"

    for _ <- 1..2_000 do
      ref = make_ref()
      {_frames, [], protocol} = open([], []) |> Protocol.open(ref, request("x")) |> sent()

      # Plausible frame headers lead deeper than mere noise.
      noise =
        for _ <- 1..5 do
          payload = :rand.bytes(:rand.uniform(20) - 1)

          <<byte_size(payload)::24, :rand.uniform(11) - 1, :rand.uniform(256) - 1,
            Enum.random([0, 1, 3])::32>> <> payload
        end

      {_frames, events, protocol} =
        protocol |> Protocol.receive_bytes(IO.iodata_to_binary(noise)) |> sent()

      if protocol.status == :closed do
        assert Protocol.stream_count(protocol) == 0, message
        assert Enum.any?(events, &match?({^ref, _}, &1)), message
      end
    end
  end

  test "what is not written holds back new streams and data, not answers" do
    protocol = open([write_cap: 1_000], [])
    [one, two] = for _ <- 1..2, do: make_ref()

    protocol =
      protocol
      |> Protocol.open(one, request(:binary.copy("x", 5_000)))
      |> Protocol.open(two, request("y"))

    {frames, [], protocol} = sent(protocol)
    assert Enum.all?(frames, &(elem(&1, 1) == 1))

    protocol = Protocol.receive_bytes(protocol, Frame.ping("12345678", false))
    assert {[{:ping, "12345678", true}], [], protocol} = sent(protocol)

    protocol = Protocol.written(protocol, protocol.unwritten)

    assert {[{:headers, 3, _, false, true}, {:data, 3, "y", true, 1}], [], _protocol} =
             sent(protocol)
  end

  test "a peer that asks for answers and does not read them is given up" do
    flood = :binary.copy(Frame.ping("12345678", false), 50_000)
    protocol = Enum.reduce_while(1..20, open([], []), &flood(&1, &2, flood))
    assert %{status: :closed, error: {:enhance_your_calm, _}} = protocol
  end

  defp flood(_n, protocol, flood) do
    {_frames, [], protocol} = protocol |> Protocol.receive_bytes(flood) |> sent()
    if protocol.status == :closed, do: {:halt, protocol}, else: {:cont, protocol}
  end

  test "data of a stream beyond its caller's limit ends it" do
    ref = make_ref()

    {_frames, [], protocol} =
      open([], []) |> Protocol.open(ref, request("x", limit: 10)) |> sent()

    bytes =
      IO.iodata_to_binary([
        Frame.headers(1, @head, false, 16_384),
        Frame.data(1, "12345678901", 11, false)
      ])

    assert {frames, events, _protocol} = protocol |> Protocol.receive_bytes(bytes) |> sent()
    assert {:rst_stream, 1, :cancel} in frames
    assert {ref, {:closed, {:too_large, 10}, true}} == List.last(events)
  end

  test "consumption replenishes a stream only where the caller said so" do
    for {replenish, answer} <- [{:receipt, [{:window_update, 1, 60}]}, {:consumption, []}] do
      ref = make_ref()

      {_, [], protocol} =
        open([stream_window: 100], [])
        |> Protocol.open(ref, request("x", replenish: replenish))
        |> sent()

      bytes =
        IO.iodata_to_binary([
          Frame.headers(1, @head, false, 16_384),
          Frame.data(1, <<0::480>>, 60, false)
        ])

      assert {^answer, _events, protocol} = protocol |> Protocol.receive_bytes(bytes) |> sent()

      if replenish == :consumption do
        assert {[], [], protocol} = protocol |> Protocol.consume(ref, 24) |> sent()
        assert {[{:window_update, 1, 25}], [], _} = protocol |> Protocol.consume(ref, 1) |> sent()
      end
    end
  end
end
