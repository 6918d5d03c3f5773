defmodule RankBridge.Traces do
  @moduledoc """
  The caller's place in a trace goes with each operation, and ranks that send traces make a span below it.

  The application names a function that gives it as the header `traceparent` of W3C Trace Context has it, or nil:

      config :rank_bridge, traceparent: {MyApp.Traces, :traceparent}

  It is called by the process that calls the operation. With OpenTelemetry, what is injected into an empty carrier has it.
  """

  @doc "What the application's function gives; empty: there is none, or it gives nil."
  @spec traceparent() :: String.t()
  def traceparent do
    case Application.get_env(:rank_bridge, :traceparent) do
      nil -> ""
      {module, function} -> apply(module, function, []) || ""
    end
  end
end
