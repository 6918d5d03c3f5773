defmodule RankBridge.Test.PuppetRanks do
  @moduledoc "Ranks that report each request to the test, and answer as the test says. Without a stream they answer themselves."

  alias RankBridge.Gang.{Channels, View}
  alias RankBridge.Proto.V1
  alias RankBridge.Test.GangChildren
  alias RankBridge.Transport.Status

  defstruct [:rank, :test, :answer, open: :ok, room?: true, said: [], transport: __MODULE__]

  @doc """
  A gang's view of ranks 0 to 2 that report to the calling process; `changed` of each, and `of_one` of one: `open` is what comes of opening a stream,
  or `:ask`, for the test to say so. After a message of more than 10,000 bytes there is no room until the test says `:room`.
  """
  @spec view(map(), %{non_neg_integer() => map()}) :: View.t()
  def view(changed \\ %{}, of_one \\ %{}) do
    :ok = GangChildren.start(self())

    rows =
      for rank <- 0..2 do
        changed = Map.merge(changed, Map.get(of_one, rank, %{}))
        {struct!(%__MODULE__{rank: rank, test: self()}, changed), "rank #{rank}"}
      end

    channels = Channels.put(Channels.table(), rows)
    Map.merge(View.__struct__(), %{channels: channels, gang: self()})
  end

  # --- the transport ---

  @doc false
  def start_unary(channel, path, bytes, opts) do
    method = Path.basename(path)
    send(channel.test, {:unary, channel.rank, method, IO.iodata_to_binary(bytes), opts})
    %{channel | answer: answer(method, %V1.Value{kind: {:int, 100 + channel.rank}})}
  end

  defp answer("Submit", _value), do: %V1.SubmitResponse{outcome: {:operation_id, "it"}}
  defp answer("Await", value), do: %V1.AwaitResponse{outcome: {:value, value}}
  defp answer("Cancel", _value), do: %V1.CancelResponse{outcome: {:cancelled, true}}

  defp answer("Call", value) do
    result = %V1.OperationResult{outcome: {:value, value}}
    outcomes = %V1.MemberOutcomes{members: [%V1.MemberOutcome{rank: 0, result: result}]}
    %V1.CallResponse{outcome: {:outcomes, outcomes}}
  end

  @doc false
  def await(%{answer: %module{} = answer}), do: {:ok, module.encode(answer)}

  @doc false
  def open_stream(channel, _path, _opts) do
    send(channel.test, {:opening, channel.rank, self()})

    case channel.open do
      :ask -> receive do: (:open -> {:ok, channel})
      :ok -> {:ok, channel}
      %Status{} = status -> {:error, status}
    end
  end

  @doc false
  def room?(call), do: call.room?

  @doc false
  def send_message(call, bytes) do
    send(call.test, {:sent, call.rank, self(), IO.iodata_to_binary(bytes)})
    {:ok, %{call | room?: IO.iodata_length(bytes) <= 10_000}}
  end

  @doc false
  def hear(call, {:say, :room}), do: {:ok, %{call | room?: true}}
  def hear(call, {:say, what}), do: {:ok, %{call | said: call.said ++ [what]}}
  def hear(_call, _message), do: :unknown

  @doc false
  def arrived(%{said: [:over | _]}), do: {:done, [], []}
  def arrived(%{said: [%Status{} = status | _]}), do: {:error, [], status}
  def arrived(call), do: {:ok, call.said, %{call | said: []}}

  @doc false
  def cancel(call) do
    send(call.test, {:hung_up, call.rank})
    :ok
  end
end
