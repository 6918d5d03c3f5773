defmodule RankBridge.Gang.EventStream do
  @moduledoc false
  # A gang's events as a lazy enumerable: behind `RankBridge.Gang.events/2`.

  alias RankBridge.Gang
  alias RankBridge.Gang.{Event, EventBuffer}

  @defaults [timeout: :infinity, max_events: 1_000]

  @doc "The events of a gang. Raises ArgumentError for wrong options. Nothing is subscribed to before it is enumerated."
  @spec new(Gang.gang(), keyword()) :: Enumerable.t()
  def new(gang, opts) do
    opts = Keyword.validate!(opts, @defaults)
    timeout = if opts[:timeout] == :infinity, do: :infinity, else: positive!(opts, :timeout)
    max_events = positive!(opts, :max_events)

    Stream.resource(
      fn -> EventBuffer.start(gang, max_events) end,
      &next(&1, timeout),
      &EventBuffer.stop/1
    )
  end

  defp next(buffer, timeout) do
    case EventBuffer.take(buffer, timeout) do
      {:ok, %Event{} = event} -> {[event], buffer}
      :ended -> {:halt, buffer}
    end
  end

  defp positive!(opts, name) do
    case opts[name] do
      number when is_integer(number) and number > 0 ->
        number

      other ->
        raise ArgumentError, "expected #{inspect(name)} to be at least 1, got: #{inspect(other)}"
    end
  end
end
