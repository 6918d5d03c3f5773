defmodule RankBridge.Collectives.Arguments do
  @moduledoc "Makes of the options of a collective what its requests say, so that a wrong one is an error before."

  alias RankBridge.{Calls, Error, Options}
  alias RankBridge.Collectives.{Declaration, ReduceOp}

  @names Declaration.names()

  @doc "A call's options with their defaults, and what its requests say of them."
  @spec read(atom(), :of_gang | :of_rank, keyword()) ::
          {:ok, map(), keyword()} | {:error, Error.t()}
  def read(name, _caller, _opts) when name not in @names do
    {:error,
     Error.refusal(:invalid_argument, "there is no such collective",
       expected: "one of #{Enum.map_join(@names, ", ", &inspect/1)}",
       got: inspect(name, limit: 3)
     )}
  end

  def read(name, caller, opts) do
    declaration = Declaration.of(name)
    options = declaration.options ++ Map.fetch!(declaration, caller)
    defaults = for {option, {_kind, default}} <- options, do: {option, default}

    with {:ok, opts} <-
           Options.read(opts, [group: "world", operation_id: nil] ++ defaults, "#{name}"),
         {:ok, fields} <- fields(options, opts, "#{name}"),
         do: {:ok, opts, fields}
  end

  @doc """
  What each member's request says: the same for all, but for the row of sizes that it sends, and the column that it
  gets.
  """
  @spec shares(keyword(), pos_integer(), Calls.t()) :: {:ok, [keyword()]} | {:error, Error.t()}
  def shares(fields, members, call) do
    case Keyword.pop(fields, :rows_of_sizes, []) do
      {[], fields} ->
        {:ok, List.duplicate(fields, members)}

      {rows, fields} ->
        if Enum.map(rows, &length/1) == List.duplicate(members, members) do
          columns = rows |> Enum.zip() |> Enum.map(&Tuple.to_list/1)
          {:ok, for({row, column} <- Enum.zip(rows, columns), do: share(row, column, fields))}
        else
          {:error,
           Error.refusal(:invalid_argument, "sizes do not fit the group",
             operation: call.operation,
             group: call.group,
             expected: "#{members} rows of #{members}, one for each member",
             got: "rows of #{inspect(Enum.map(rows, &length/1), limit: 5)}"
           )}
        end
    end
  end

  defp share(row, column, fields), do: [input_sizes: row, output_sizes: column] ++ fields

  defp fields(options, opts, operation) do
    Enum.reduce_while(options, {:ok, []}, fn {name, {kind, _default}}, {:ok, fields} ->
      case field(kind, Map.fetch!(opts, name)) do
        {:ok, value} -> {:cont, {:ok, [{field_name(kind, name), value} | fields]}}
        {reason, expected} -> {:halt, wrong(kind, reason, name, expected, opts, operation)}
      end
    end)
  end

  defp field_name(:rows_of_sizes, _name), do: :rows_of_sizes
  defp field_name(_kind, name), do: name

  defp field(:rank_in_group, rank) when is_integer(rank) and rank in 0..0xFFFF_FFFF,
    do: {:ok, rank}

  defp field(:rank_in_group, _other), do: {:rank_out_of_range, "a rank in the group"}
  defp field(:dim, dim) when is_integer(dim) and dim in -0x8000_0000..0x7FFF_FFFF, do: {:ok, dim}
  defp field(:dim, _other), do: {:invalid_argument, "a dimension"}
  defp field(:sizes, nil), do: {:ok, []}

  defp field(:sizes, [_ | _] = sizes) do
    if Enum.all?(sizes, &(is_integer(&1) and &1 in 0..0x7FFF_FFFF_FFFF_FFFF)),
      do: {:ok, sizes},
      else: {:invalid_argument, "0 or more for each member"}
  end

  defp field(:sizes, _other), do: {:invalid_argument, "one size for each member"}
  defp field(:rows_of_sizes, nil), do: {:ok, []}

  defp field(:rows_of_sizes, [_ | _] = rows) do
    if Enum.all?(rows, &match?({:ok, [_ | _]}, field(:sizes, &1))),
      do: {:ok, rows},
      else: {:invalid_argument, "a row of sizes for each member"}
  end

  defp field(:rows_of_sizes, _other), do: {:invalid_argument, "a row of sizes for each member"}
  defp field(:boolean, value) when is_boolean(value), do: {:ok, value}
  defp field(:boolean, _other), do: {:invalid_argument, "true or false"}

  defp field(:reduce_op, op) do
    with :error <- ReduceOp.to_proto(op),
         do: {:invalid_argument, "one of #{Enum.map_join(ReduceOp.all(), ", ", &inspect/1)}"}
  end

  defp wrong(kind, reason, name, expected, opts, operation) do
    what = if kind in [:sizes, :rows_of_sizes], do: "do not fit the group", else: "is wrong"

    {:error,
     Error.refusal(reason, "#{name} #{what}",
       operation: operation,
       group: opts.group,
       expected: expected,
       got: inspect(Map.fetch!(opts, name), limit: 5)
     )}
  end
end
