defmodule RankBridge.Test.Hostile.Bystander do
  @moduledoc "A process with a channel to a good server, on which it makes one call after the other, all along."

  use GenServer

  alias RankBridge.Test.Hostile.{Bytes, Case, Run, Server}

  # Milliseconds between two calls, to leave the machine to the tests.
  @pause 3

  @doc "Starts the process and its server."
  @spec start_link(term()) :: GenServer.on_start()
  def start_link(_arg), do: GenServer.start_link(__MODULE__, nil)

  @doc "How many calls have ended well, after one more, and the ends of those that have not."
  @spec calls(pid()) :: {non_neg_integer(), [term()]}
  def calls(pid), do: GenServer.call(pid, :calls, 30_000)

  @impl GenServer
  def init(nil) do
    server =
      Server.start(%Case{name: "good", section: "", play: [Bytes.response(1, "good on 1")]})

    channel = Run.connect(server)
    send(self(), :call)
    {:ok, %{server: server.ref, channel: channel, well: 0, ill: []}}
  end

  @impl GenServer
  def handle_call(:calls, _from, state) do
    state = call(state)
    {:reply, {state.well, state.ill}, state}
  end

  @impl GenServer
  def handle_info(:call, state) do
    Process.send_after(self(), :call, @pause)
    {:noreply, call(state)}
  end

  def handle_info({server, _n, _what}, %{server: server} = state), do: {:noreply, state}

  # A second connection would mean that the first was lost.
  defp call(state) do
    case Run.call(state.channel, 20_000, wait_for_ready: true) do
      {:ok, "good on 1"} -> %{state | well: state.well + 1}
      other -> %{state | ill: [other | state.ill]}
    end
  end
end
