defmodule RankBridge.Transport.Local.FramingTest do
  use ExUnit.Case, async: true

  alias RankBridge.Transport.Local.Framing

  @mib 1_048_576

  defp decode(bytes), do: Framing.decode(%Framing{}, bytes)

  test "messages are what they were, wherever their bytes are cut" do
    messages = ["a", String.duplicate("b", 300), <<0, 0, 0, 0>>]
    bytes = messages |> Enum.map(&Framing.encode/1) |> IO.iodata_to_binary()

    for at <- 0..byte_size(bytes) do
      <<first::binary-size(at), second::binary>> = bytes
      {before, {:more, framing}} = decode(first)
      assert {others, {:more, %Framing{size: 0}}} = Framing.decode(framing, second)
      assert before ++ others == messages
    end

    {got, _nothing} =
      for <<byte::binary-size(1) <- bytes>>, reduce: {[], %Framing{}} do
        {got, framing} ->
          {messages, {:more, framing}} = Framing.decode(framing, byte)
          {got ++ messages, framing}
      end

    assert got == messages
  end

  test "one of no bytes is the end" do
    assert decode(Framing.encode(["a", "b"]) <> <<0::32>>) == {["ab"], :over}
    assert {[], {:more, %Framing{size: 3}}} = decode(<<0::24>>)
  end

  test "a length of more than 256 MiB is none" do
    longest = 256 * @mib
    assert {[], {:more, %Framing{size: 4}}} = decode(<<longest::32>>)
    one = Framing.encode("one")
    assert decode(one <> <<longest + 1::32>>) == {["one"], {:too_large, longest}}
  end

  test "a message of 128 MiB takes at most 8 times as long as one of 32 MiB" do
    chunk = :binary.copy("x", 65_536)
    # The least of several: others may be at work here, too.
    assert least(128, chunk) <= 8 * least(32, chunk)
  end

  defp least(mib, chunk), do: Enum.min(for _time <- 1..3, do: receiving(mib * @mib, chunk))

  defp receiving(length, chunk) do
    :erlang.garbage_collect()
    started = System.monotonic_time()
    {[], {:more, framing}} = decode(<<length::32>>)
    assert received(framing, chunk, div(length, byte_size(chunk))) == length
    System.monotonic_time() - started
  end

  defp received(framing, chunk, chunks) do
    case Framing.decode(framing, chunk) do
      {[], {:more, framing}} when chunks > 1 -> received(framing, chunk, chunks - 1)
      {[message], {:more, _nothing}} when chunks == 1 -> byte_size(message)
    end
  end
end
