defmodule RankBridge.Transport.FrameTest do
  use ExUnit.Case, async: true

  alias RankBridge.Transport.HTTP2.{Error, Frame, Parser}

  @frames [
    {:settings, [{3, 100}, {4, 65_536}]},
    :settings_ack,
    {:ping, "12345678", false},
    {:ping, "12345678", true},
    {:headers, 1, "block", false, true},
    {:data, 1, "some data", false, 9},
    {:data, 1, "", true, 0},
    {:window_update, 0, 1_000},
    {:window_update, 3, 2_147_483_647},
    {:rst_stream, 3, :cancel},
    {:goaway, 5, :enhance_your_calm, "too_many_pings"}
  ]

  defp encode({:settings, pairs}), do: Frame.settings(pairs)
  defp encode(:settings_ack), do: Frame.settings_ack()
  defp encode({:ping, opaque, ack?}), do: Frame.ping(opaque, ack?)
  defp encode({:headers, id, block, end?, true}), do: Frame.headers(id, block, end?, 16_384)
  defp encode({:data, id, data, end?, bytes}), do: Frame.data(id, data, bytes, end?)
  defp encode({:window_update, id, increment}), do: Frame.window_update(id, increment)
  defp encode({:rst_stream, id, code}), do: Frame.rst_stream(id, code)
  defp encode({:goaway, id, code, debug}), do: Frame.goaway(id, code, debug)

  defp bytes(frames), do: frames |> Enum.map(&encode/1) |> IO.iodata_to_binary()

  defp feed(chunks, parser) do
    Enum.reduce(chunks, {[], parser}, fn chunk, {frames, parser} ->
      {:ok, more, parser} = Parser.push(parser, chunk)
      {frames ++ more, parser}
    end)
  end

  test "frames survive in one piece and byte by byte" do
    bytes = bytes(@frames)
    assert {:ok, @frames, _} = Parser.push(Parser.new(16_384), bytes)
    assert {@frames, _} = feed(for(<<byte <- bytes>>, do: <<byte>>), Parser.new(16_384))
  end

  test "frames survive every single cut" do
    bytes = bytes(@frames)

    for cut <- 0..byte_size(bytes) do
      <<head::binary-size(cut), tail::binary>> = bytes
      assert {@frames, _} = feed([head, tail], Parser.new(16_384))
    end
  end

  test "random frames survive random cuts" do
    seed = :rand.seed(:exsss, System.unique_integer([:positive]))
    message = "seed: #{inspect(:rand.export_seed_s(seed))}"

    for _ <- 1..200 do
      frames =
        for _ <- 1..:rand.uniform(20) do
          data = :rand.bytes(:rand.uniform(3_000) - 1)
          {:data, :rand.uniform(1_000), data, :rand.uniform(2) == 1, byte_size(data)}
        end

      assert {^frames, _} = frames |> bytes() |> random_cuts() |> feed(Parser.new(16_384)),
             message
    end
  end

  defp random_cuts(""), do: []

  defp random_cuts(bytes) do
    size = min(:rand.uniform(4_000), byte_size(bytes))
    <<head::binary-size(size), rest::binary>> = bytes
    [head | random_cuts(rest)]
  end

  test "padding and priority fields are taken off; flow control charges the padding" do
    assert {:ok, {:data, 1, "abc", true, 6}} = Frame.decode(0, 0x9, 1, <<2, "abc", 0, 0>>)

    assert {:ok, {:headers, 1, "abc", false, true}} =
             Frame.decode(1, 0x2C, 1, <<1, 0::40, "abc", 0>>)

    assert {:error, {:connection, 0, :protocol_error, _}} = Frame.decode(0, 0x8, 1, <<4, "abc">>)
    assert {:error, {:connection, 0, :frame_size_error, _}} = Frame.decode(0, 0x8, 1, "")
  end

  test "a header block above the frame size goes on in CONTINUATION" do
    block = :binary.copy("h", 40_000)
    bytes = IO.iodata_to_binary(Frame.headers(7, block, true, 16_384))

    assert {:ok,
            [
              {:headers, 7, one, true, false},
              {:continuation, 7, two, false},
              {:continuation, 7, three, true}
            ], _} = Parser.push(Parser.new(16_384), bytes)

    assert one <> two <> three == block
  end

  test "a frame above the size that was allowed is an error as soon as its length is known" do
    large = <<16_385::24, 0, 0, 1::32>>

    assert {:error, {:connection, 0, :frame_size_error, _}, []} =
             Parser.push(Parser.new(16_384), large)

    {:ok, [], parser} = Parser.push(Parser.new(16_384), binary_part(large, 0, 2))

    assert {:error, {:connection, 0, :frame_size_error, _}, []} =
             Parser.push(parser, binary_part(large, 2, 7))
  end

  test "frames before a malformed one are not lost" do
    bytes = bytes([{:ping, "12345678", false}]) <> <<3::24, 6, 0, 0::32, "abc">>

    assert {:error, {:connection, 0, :frame_size_error, _}, [{:ping, "12345678", false}]} =
             Parser.push(Parser.new(16_384), bytes)
  end

  test "error codes have names, and unknown ones stay numbers" do
    for number <- 0..13, do: assert(number |> Error.code() |> Error.number() == number)
    assert Error.code(99) == 99
    assert Error.number(99) == 99
    assert Error.name(:refused_stream) == "REFUSED_STREAM"
  end
end
