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

    {got, _framing} =
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

  test "the chunks of a message stay as they came until it is whole" do
    chunk = :binary.copy("x", 65_536)
    {[], {:more, framing}} = decode(<<16 * @mib::32>>)

    framing =
      for came <- 1..255, reduce: framing do
        framing ->
          {[], {:more, framing}} = Framing.decode(framing, chunk)
          assert length(framing.chunks) == 1 + came
          framing
      end

    assert {[message], {:more, %Framing{chunks: []}}} = Framing.decode(framing, chunk)
    assert message == :binary.copy(chunk, 256)
  end
end
