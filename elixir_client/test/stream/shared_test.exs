defmodule RankBridge.Stream.SharedTest do
  @moduledoc "A gang's streams for gang calls, to ranks that answer as the test says."

  use ExUnit.Case, async: true

  alias RankBridge.{Calls, Error}
  alias RankBridge.Operations.Declaration
  alias RankBridge.Proto.V1
  alias RankBridge.Stream.Shared
  alias RankBridge.Test.ToldRanks

  @soon 10_000

  defp call(deadline) do
    %Calls{
      rpc: Declaration.of(:barrier).rpc,
      operation: "barrier",
      group: "world",
      operation_id: "it",
      deadline: deadline
    }
  end

  # In a process of its own, as the test plays the ranks.
  defp ask(view, deadline),
    do: Task.async(fn -> Shared.ask(view, 0, "a call", call(deadline)) end)

  # Lets every stream be opened that is being opened, until a call is sent.
  defp answer(outcome) do
    receive do
      {:opening, 0, opener} ->
        send(opener, :open)
        answer(outcome)

      {:sent, 0, server, "a call"} ->
        response = %V1.ExecuteResponse{outcome: outcome}
        send(server, {:say, V1.ExecuteResponse.encode(response)})
    after
      @soon -> flunk("no call was sent")
    end
  end

  test "a call whose stream is not opened in its time fails, and was not sent; the next has one opened" do
    view = ToldRanks.view()

    assert {:error, %Error{reason: :deadline_exceeded, indefinite: false} = error} =
             view |> ask(20) |> Task.await(@soon)

    assert %Error{rank: 0, group: "world", operation: "barrier", operation_id: "it"} = error
    refute_received {:sent, _rank, _server, _bytes}

    calling = ask(view, 60_000)
    answer({:error, %V1.Error{code: :ERROR_CODE_MISMATCH, message: "told so"}})
    assert {:error, %Error{reason: :mismatch, message: "told so"}} = Task.await(calling, @soon)
  end
end
