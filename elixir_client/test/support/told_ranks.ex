defmodule RankBridge.Test.ToldRanks do
  @moduledoc "Ranks that tell the test all that they hear, and say what it tells them."

  alias RankBridge.Gang.View
  alias RankBridge.Proto.V1
  alias RankBridge.Stream.Shared
  alias RankBridge.Transport.Status

  defstruct [:rank, :test, open: :ok, said: [], transport: __MODULE__]

  @doc "A gang's view of ranks 0 to 2, without streams yet, that tell the calling process; `changed` of each."
  @spec view(map()) :: View.t()
  def view(changed \\ %{}) do
    ranks =
      for rank <- 0..2,
          into: %{},
          do: {rank, struct!(%__MODULE__{rank: rank, test: self()}, changed)}

    Map.merge(View.__struct__(), %{
      ranks: ranks,
      targets: Map.new(0..2, &{&1, "rank #{&1}"}),
      streams: Shared.new(),
      gang: self()
    })
  end

  # --- the transport ---

  @doc false
  def start_unary(channel, path, bytes, opts) do
    send(channel.test, {:unary, channel.rank, path, IO.iodata_to_binary(bytes), opts})
    channel
  end

  @doc false
  def await(call) do
    value = %V1.Value{kind: {:int, 100 + call.rank}}
    {:ok, V1.BarrierResponse.encode(%V1.BarrierResponse{outcome: {:value, value}})}
  end

  @doc false
  def open_stream(channel, _path, _opts) do
    send(channel.test, {:opening, channel.rank, self()})
    receive do: (:open -> opened(channel))
  end

  defp opened(%{open: %Status{} = status}), do: {:error, status}
  defp opened(channel), do: {:ok, channel}

  @doc false
  def room?(_call), do: true

  @doc false
  def send_message(call, bytes) do
    send(call.test, {:sent, call.rank, self(), IO.iodata_to_binary(bytes)})
    {:ok, call}
  end

  @doc false
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
