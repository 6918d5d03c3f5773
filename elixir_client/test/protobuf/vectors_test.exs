defmodule RankBridge.Protobuf.VectorsTest do
  use ExUnit.Case, async: true

  alias RankBridge.Protobuf
  alias RankBridge.Test.{PlainForm, Vectors}

  test "bytes decode to the fields and back" do
    for line <- Vectors.lines("messages.jsonl") do
      module = PlainForm.module(line["message"])
      bytes = Base.decode64!(line["bytes"])
      message = module.decode(bytes)
      assert PlainForm.to_plain(message) == line["fields"]
      assert module.encode(message) == bytes
    end
  end

  test "fields encode to the bytes" do
    for line <- Vectors.lines("messages.jsonl") do
      module = PlainForm.module(line["message"])
      message = PlainForm.from_plain(module, line["fields"])
      assert Base.encode64(module.encode(message)) == line["bytes"]
    end
  end

  test "noncanonical bytes decode to the fields and encode canonically" do
    for line <- Vectors.lines("noncanonical.jsonl") do
      module = PlainForm.module(line["message"])
      message = module.decode(Base.decode64!(line["bytes"]))
      assert {line["why"], PlainForm.to_plain(message)} == {line["why"], line["fields"]}

      assert {line["why"], Base.encode64(module.encode(message))} ==
               {line["why"], line["canonical"]}
    end
  end

  for line <- Vectors.lines("malformed.jsonl") do
    test "malformed bytes are refused: #{line["why"]}" do
      module = PlainForm.module(unquote(line["message"]))
      bytes = Base.decode64!(unquote(line["bytes"]))
      assert {:error, %Protobuf.DecodeError{} = error} = Protobuf.decode(module, bytes)
      assert Exception.message(error) =~ "malformed protobuf: "
      assert_raise Protobuf.DecodeError, fn -> module.decode(bytes) end
    end
  end
end
