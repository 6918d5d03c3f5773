defmodule RankBridge.Waiting do
  @moduledoc false
  # The one caller that waits for the answer of a server, and the timer that ends its wait with the message
  # `{:timeout, timer, :late}`.

  @enforce_keys [:from, :timer]
  defstruct [:from, :timer]

  @type t :: %__MODULE__{from: GenServer.from(), timer: reference() | nil}

  @doc "Starts the timer of a caller that waits `timeout` milliseconds."
  @spec new(GenServer.from(), timeout()) :: t()
  def new(from, :infinity), do: %__MODULE__{from: from, timer: nil}

  def new(from, timeout),
    do: %__MODULE__{from: from, timer: :erlang.start_timer(timeout, self(), :late)}

  @doc "Answers the caller. Nobody waits then: `nil`."
  @spec answer(t(), term()) :: nil
  def answer(waiting, answer) do
    _ = waiting.timer && :erlang.cancel_timer(waiting.timer)
    GenServer.reply(waiting.from, answer)
    nil
  end
end
