defmodule RankBridge.Transport.Local.FramingTest do
  use ExUnit.Case, async: true

  alias RankBridge.Transport.Local.Framing

  @mib 1_048_576

  test "messages are what they were, wherever their bytes are cut" do
    messages = ["a", String.duplicate("b", 300), <<0, 0, 0, 0>>]
    bytes = messages |> Enum.map(&Framing.encode/1) |> IO.iodata_to_binary()

    for at <- 0..byte_size(bytes) do
      <<first::binary-size(at), second::binary>> = bytes
      {before, {:more, rest}} = Framing.split(first)
      assert {others, {:more, ""}} = Framing.split(rest <> second)
      assert before ++ others == messages
    end
  end

  test "one of no bytes is the end" do
    assert Framing.split(Framing.encode(["a", "b"]) <> <<0::32>>) == {["ab"], :over}
    assert Framing.split(<<0::24>>) == {[], {:more, <<0::24>>}}
  end

  test "a length of more than 256 MiB is none" do
    longest = 256 * @mib
    assert Framing.split(<<longest::32>>) == {[], {:more, <<longest::32>>}}
    one = Framing.encode("one")
    assert Framing.split(one <> <<longest + 1::32>>) == {["one"], {:too_large, longest}}
  end
end
