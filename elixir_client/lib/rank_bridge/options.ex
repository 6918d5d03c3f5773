defmodule RankBridge.Options do
  @moduledoc "Checks the options of calls, so that a wrong one is an error before anything is sent."

  alias RankBridge.{Error, Group}

  @longest 0xFFFF_FFFF

  @doc """
  The options as a map, with defaults; `operation` is for the error. Every call has `:timeout`; a `:group` is named.
  """
  @spec read(term(), keyword(), String.t()) :: {:ok, map()} | {:error, Error.t()}
  def read(opts, defaults, operation) do
    defaults = Keyword.put_new(defaults, :timeout, nil)

    with true <- Keyword.keyword?(opts),
         {:ok, opts} <- Keyword.validate(opts, defaults),
         opts = opts |> Map.new() |> name_group(),
         true <- timeout?(opts.timeout) do
      {:ok, opts}
    else
      {:error, unknown} -> refuse("unknown options: #{inspect(unknown)}", operation)
      false -> refuse("not options: #{inspect(opts, limit: 10)}", operation)
    end
  end

  defp name_group(%{group: group} = opts), do: %{opts | group: Group.name(group)}
  defp name_group(opts), do: opts

  defp timeout?(nil), do: true
  defp timeout?(timeout), do: is_integer(timeout) and timeout in 1..@longest

  defp refuse(message, operation),
    do: {:error, Error.refusal(:invalid_argument, message, operation: operation)}
end
