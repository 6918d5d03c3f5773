defmodule RankBridge.Hidden do
  @moduledoc false
  # Values that nobody may read in the state of a process, in the specification of a child, or in a crash report: keys, passwords,
  # headers. A hidden value is a function that returns it: all of these show that it is a function, and no more.

  @type t(value) :: (() -> value)

  @doc "Hides a value. A function of no arguments hides one already."
  @spec hide(value | t(value)) :: t(value) when value: term()
  def hide(hidden) when is_function(hidden, 0), do: hidden
  def hide(value), do: fn -> value end

  @doc "The value that is hidden; nil: none is."
  @spec reveal(t(value) | nil) :: value | nil when value: term()
  def reveal(nil), do: nil
  def reveal(hidden), do: hidden.()

  @doc """
  What a process shows of itself, by `c:GenServer.format_status/1`: its state as `shown` returns it, of its last message the kind
  alone, and no arguments of functions that have failed.
  """
  @spec format_status(map(), (state -> term())) :: map() when state: term()
  def format_status(status, shown) do
    hidden = [
      state: shown,
      message: &kind/1,
      reason: &without_arguments/1,
      log: fn _log -> [] end
    ]

    Enum.reduce(hidden, status, fn {key, fun}, status -> Map.replace_lazy(status, key, fun) end)
  end

  defp kind(message) when is_tuple(message) and tuple_size(message) > 0, do: elem(message, 0)
  defp kind(message), do: message

  defp without_arguments({why, [_at | _from] = stacktrace}) do
    stacktrace =
      Enum.map(stacktrace, fn
        {module, name, arguments, where} when is_list(arguments) ->
          {module, name, length(arguments), where}

        other ->
          other
      end)

    {why, stacktrace}
  end

  defp without_arguments(reason), do: reason
end
