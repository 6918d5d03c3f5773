defmodule RankBridge.JSONTest do
  use ExUnit.Case, async: true

  alias RankBridge.JSON
  alias RankBridge.Test

  doctest RankBridge.JSON

  test "what the encoder of the tests writes is read" do
    for term <- [
          nil,
          true,
          0,
          -12,
          "",
          "a\"\\\n\u0001ä😀",
          [],
          [1, [2]],
          %{},
          %{"a" => %{"b" => [nil]}}
        ] do
      assert JSON.decode(IO.iodata_to_binary(Test.JSON.encode(term))) == {:ok, term}
    end
  end

  test "numbers, escapes and spaces are read" do
    assert JSON.decode(" [ 1 , 2.5 , -0 , 1e2 , \"\\ud83d\\ude00\\/\\b\" ] ") ==
             {:ok, [1, 2.5, 0, 100.0, "😀/\b"]}
  end

  test "anything else is refused" do
    for text <- [
          "",
          "[1",
          "[1,]",
          "{",
          "{1:2}",
          "{\"a\"}",
          "{\"a\":1,}",
          "01",
          "1.",
          "nul",
          "\"",
          "\"\\x\"",
          "\"\\ud83d\"",
          "\"\\ude00\"",
          "\"\\u12\"",
          "\"\\\"",
          "\"\n\"",
          <<?", 0xFF, ?">>,
          "1 2",
          "1e999"
        ] do
      assert {text, JSON.decode(text)} == {text, :error}
    end
  end
end
