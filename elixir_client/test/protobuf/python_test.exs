defmodule RankBridge.Protobuf.PythonTest do
  @moduledoc "Random messages go to Python's protobuf and come back, in both directions."

  use ExUnit.Case, async: true

  alias RankBridge.Test.{PlainForm, PythonEcho, RandomMessage, Vectors}

  @count 3_000

  setup_all do
    names = "messages.jsonl" |> Vectors.lines() |> Enum.map(& &1["message"]) |> Enum.uniq()
    %{names: names}
  end

  test "Python reads what Elixir writes, and writes the same bytes", %{names: names} do
    :rand.seed(:exsss, ExUnit.configuration()[:seed])

    sent =
      for _ <- 1..@count do
        name = Enum.random(names)
        message = name |> PlainForm.module() |> RandomMessage.draw()
        {name, message, Base.encode64(message.__struct__.encode(message))}
      end

    port = PythonEcho.start()

    for chunk <- Enum.chunk_every(sent, 20) do
      requests = for {name, _message, bytes} <- chunk, do: %{"message" => name, "bytes" => bytes}
      answers = PythonEcho.ask(port, requests, length(chunk))

      for {{name, message, bytes}, answer} <- Enum.zip(chunk, answers) do
        assert {name, answer["bytes"]} == {name, bytes}
        assert answer["fields"] == PlainForm.to_plain(message)
      end
    end

    Port.close(port)
  end

  test "Elixir reads what Python writes, and writes the same bytes" do
    port = PythonEcho.start()
    request = %{"random" => @count, "seed" => ExUnit.configuration()[:seed]}

    for answer <- PythonEcho.ask(port, [request], @count) do
      module = PlainForm.module(answer["message"])
      message = module.decode(Base.decode64!(answer["bytes"]))
      assert PlainForm.to_plain(message) == answer["fields"]
      assert message == PlainForm.from_plain(module, answer["fields"])
      assert Base.encode64(module.encode(message)) == answer["bytes"]
    end

    Port.close(port)
  end
end
