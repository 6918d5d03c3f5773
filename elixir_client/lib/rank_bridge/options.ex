defmodule RankBridge.Options do
  @moduledoc false
  # Checks the options of calls, so that a wrong one is an error before anything is sent.

  alias RankBridge.{Error, Group}

  @longest 0xFFFF_FFFF

  @doc """
  The options as a map, with defaults; `operation` is for the error. Every call has `:timeout`, and `:unready`, which was
  heeded before (`RankBridge.Gang.Readiness`); a `:group` is named.
  """
  @spec read(term(), keyword(), String.t()) :: {:ok, map()} | {:error, Error.t()}
  def read(opts, defaults, operation) do
    defaults = defaults |> Keyword.put_new(:timeout, nil) |> Keyword.put(:unready, nil)

    with true <- Keyword.keyword?(opts),
         {:ok, opts} <- Keyword.validate(opts, defaults),
         {unready, opts} = opts |> Map.new() |> name_group() |> Map.pop(:unready),
         true <- timeout?(opts.timeout) and unready in [nil, :wait, :fail] do
      {:ok, opts}
    else
      {:error, [unknown | _others]} -> refuse(no_such(unknown, defaults, operation), operation)
      false -> refuse("not options: #{inspect(opts, limit: 10)}", operation)
    end
  end

  @doc "Options with one more. What are no options stays as it is, for `read/3` to refuse."
  @spec put(term(), atom(), term()) :: term()
  def put(opts, name, value),
    do: if(Keyword.keyword?(opts), do: Keyword.put(opts, name, value), else: opts)

  @doc "Options with one more unless it is there, as `put/3`."
  @spec put_new(term(), atom(), term()) :: term()
  def put_new(opts, name, value),
    do: if(Keyword.keyword?(opts), do: Keyword.put_new(opts, name, value), else: opts)

  @doc "One option, or its default, and the others, as `put/3`."
  @spec pop(term(), atom(), term()) :: {term(), term()}
  def pop(opts, name, default \\ nil),
    do: if(Keyword.keyword?(opts), do: Keyword.pop(opts, name, default), else: {default, opts})

  @doc "Those of some names, and the others, as `put/3`."
  @spec split(term(), [atom()]) :: {keyword(), term()}
  def split(opts, names),
    do: if(Keyword.keyword?(opts), do: Keyword.split(opts, names), else: {[], opts})

  defp name_group(%{group: group} = opts), do: %{opts | group: Group.name(group)}
  defp name_group(opts), do: opts

  defp timeout?(nil), do: true
  defp timeout?(timeout), do: is_integer(timeout) and timeout in 1..@longest

  defp no_such(name, known, operation) do
    meant = known |> Keyword.keys() |> Enum.max_by(&likeness("#{&1}", "#{name}"))

    if likeness("#{meant}", "#{name}") > 0.75,
      do: "`#{operation}` has no option #{inspect(name)}; did you mean #{inspect(meant)}?",
      else: "`#{operation}` has no option #{inspect(name)}"
  end

  defp likeness(name, given),
    do: if(String.starts_with?(name, given), do: 1.0, else: String.jaro_distance(name, given))

  defp refuse(message, operation),
    do: {:error, Error.refusal(:invalid_argument, message, operation: operation)}
end
