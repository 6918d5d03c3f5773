defmodule RankBridge.Rank.ServerTest do
  @moduledoc "What the process of a rank's stream tells of calls that were not answered."

  use ExUnit.Case, async: true

  alias RankBridge.Gang.{Channels, View}
  alias RankBridge.Proto.V1
  alias RankBridge.Rank.Server
  alias RankBridge.Test.GangChildren
  alias RankBridge.Transport.Status

  defmodule Ending do
    @moduledoc "A rank that answers the first call when the second one comes, and ends the stream so."

    defstruct [:status, transport: __MODULE__, sent: 0]

    def open_stream(channel, _path, _opts), do: {:ok, channel}
    def room?(_call), do: true
    def send_message(call, _bytes), do: {:ok, %{call | sent: call.sent + 1}}
    def hear(_call, _message), do: :unknown
    def cancel(_call), do: :ok

    def arrived(%{sent: 2, status: nil}), do: {:done, [first()], []}
    def arrived(%{sent: 2, status: status}), do: {:error, [first()], status}
    def arrived(call), do: {:ok, [], call}

    def first, do: V1.ExecuteResponse.encode(%V1.ExecuteResponse{number: 1})
  end

  # To what was pushed into a stream, which nothing else sends again.
  defp answers(status) do
    view =
      Map.merge(View.__struct__(), %{
        channels: Channels.put(Channels.table(), [{%Ending{status: status}, "rank 0"}]),
        gang: self()
      })

    :ok = GangChildren.start(self())
    server = Server.of(view, 0)
    assert Server.of(view, 0) == server
    {:ok, stream} = Server.open(server, self(), 10_000)
    request = %{kind: :call, bytes: "", id: "", deadline: 60_000, stream: stream}
    pushed = for _time <- 1..2, do: Server.push(server, request)
    answers = for ref <- pushed, do: Server.await(server, ref, 10_000)
    # What comes later does not go on the next stream.
    assert Server.await(server, Server.push(server, request), 10_000) == :never
    answers
  end

  test "what a stream that ended well has not answered was never begun" do
    first = Ending.first()

    assert [{:ok, ^first}, {:error, %Status{code: :unavailable, sent?: false}}] = answers(nil)
  end

  test "what a stream that failed has not answered may have been begun" do
    lost = Status.new(:unavailable, "the connection is lost", true)
    assert answers(lost) == [{:ok, Ending.first()}, {:error, lost}]
  end
end
