defmodule RankBridge.CallSite do
  @moduledoc """
  The line of the caller's own code goes with each operation: errors about several ranks show each one's.

  It is the innermost line on the caller's stack that is neither of this client nor of Elixir or OTP, as
  `"lib/my_app/training.ex:88"`. The VM keeps no frame of a function whose last act is the call: then it is the line that has
  called that function, or none, as of a task that does nothing else. To look takes 1 to 5 microseconds of each operation; an
  application that makes very many small ones may do without:

      config :rank_bridge, call_sites: false
  """

  @nobodys_own [
    :rank_bridge,
    :rank_bridge_compat,
    :elixir,
    :stdlib,
    :kernel,
    :ex_unit,
    :logger,
    :mix,
    :iex
  ]

  @doc "The line of the caller's own code; empty: there is none, or the application does without."
  @spec current() :: String.t()
  def current do
    if Application.get_env(:rank_bridge, :call_sites, true) do
      {:current_stacktrace, frames} = :erlang.process_info(self(), :current_stacktrace)
      first_of(frames)
    else
      ""
    end
  end

  @spec first_of(Exception.stacktrace()) :: String.t()
  defp first_of([{module, _function, _arity, location} | callers]) do
    if own?(module) and location != [],
      do: "#{location[:file]}:#{location[:line]}",
      else: first_of(callers)
  end

  defp first_of(_frames), do: ""

  # To find a module's application takes longer than to look at the stack.
  defp own?(module) do
    key = {__MODULE__, module}

    case :persistent_term.get(key, nil) do
      nil ->
        own? = application_of(module) not in @nobodys_own
        :persistent_term.put(key, own?)
        own?

      own? ->
        own?
    end
  end

  defp application_of(module) do
    case :application.get_application(module) do
      {:ok, application} -> application
      :undefined -> nil
    end
  end
end
