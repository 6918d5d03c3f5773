defmodule RankBridge.Stream.ServerTest do
  @moduledoc "What the process behind a stream tells of calls that were not answered."

  use ExUnit.Case, async: true

  alias RankBridge.Stream.Server
  alias RankBridge.Transport.Status

  defmodule Ending do
    @moduledoc "A rank that answers the first call when the second one comes, and ends the stream so."

    defstruct [:status, transport: __MODULE__, sent: 0]

    def open_stream(channel, _path, _opts), do: {:ok, channel}
    def room?(_call), do: true
    def send_message(call, _bytes), do: {:ok, %{call | sent: call.sent + 1}}
    def hear(_call, _message), do: :unknown
    def cancel(_call), do: :ok

    def arrived(%{sent: 2, status: nil}), do: {:done, ["first"], []}
    def arrived(%{sent: 2, status: status}), do: {:error, ["first"], status}
    def arrived(call), do: {:ok, [], call}
  end

  defp answers(status) do
    {:ok, server} = Server.start(%Ending{status: status}, self(), :infinity, 10_000)
    request = %{bytes: "", id: "", deadline: 60_000, behind: :any}
    for ref <- for(_time <- 1..2, do: Server.push(server, request)), do: Server.await(ref)
  end

  test "what a stream that ended well has not answered was never begun" do
    assert [{:ok, "first"}, {:error, %Status{code: :unavailable, sent?: false}}] = answers(nil)
  end

  test "what a stream that failed has not answered may have been begun" do
    lost = Status.new(:unavailable, "the connection is lost", true)
    assert answers(lost) == [{:ok, "first"}, {:error, lost}]
  end
end
