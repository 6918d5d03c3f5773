defmodule RankBridge.Operations.Arguments do
  @moduledoc false
  # Makes of the options of an operation what its requests say, so that a wrong one is an error before.

  alias RankBridge.{Calls, Error, Graph, Group, Options, Program, Queue}
  alias RankBridge.Gang.View
  alias RankBridge.Operations.{Declaration, ReduceOp}

  @names Declaration.names()
  @layouts [:concatenated, :stacked, :list]

  # What each call has, but those that go as one have in common. The group is put in before: `in_its_group/3`.
  @of_call [group: "", operation_id: nil]
  @of_all @of_call ++ [calls: nil]

  @typedoc "Who is called: all members of a group, or one rank."
  @type caller :: :of_gang | :of_rank

  @doc "Options with a group, unless they name one: that of the graph or the queue that a call is on, else the gang's."
  @spec in_its_group(View.t(), term(), term()) :: term()
  def in_its_group(view, opts, input), do: Options.put_new(opts, :group, group(view, opts, input))

  defp group(_view, _opts, %Graph{group: group}), do: group

  defp group(view, opts, _input) do
    case Options.pop(opts, :queue) do
      {%Queue{group: group}, _others} -> group
      _other -> view.group
    end
  end

  @doc "A call's options with their defaults, and what its requests say of them."
  @spec read(atom(), caller(), keyword()) :: {:ok, map(), keyword()} | {:error, Error.t()}
  def read(name, :of_gang, opts) do
    with {:ok, opts, fields} <- read(name, :of_gang, opts, @of_all),
         :ok <- check_calls(opts, name),
         do: {:ok, opts, fields}
  end

  def read(name, :of_rank, opts), do: read(name, :of_rank, opts, @of_call)

  @doc "The same of one of several calls that go as one."
  @spec read_coalesced(atom(), caller(), keyword()) ::
          {:ok, map(), keyword()} | {:error, Error.t()}
  def read_coalesced(name, caller, opts) do
    common = Keyword.keyword?(opts) && Enum.find([:timeout | Keyword.keys(@of_all)], &opts[&1])

    if common,
      do: refuse("#{name}", "", "#{inspect(common)} is an option of all calls that go as one"),
      else: read(name, caller, opts, [])
  end

  defp read(name, caller, opts, common) do
    if Declaration.known?(name),
      do: read(Declaration.of(name), name, caller, opts, common),
      else:
        {:error,
         Error.refusal(:invalid_argument, "there is no such operation",
           expected: "one of #{Enum.map_join(@names, ", ", &inspect/1)}",
           got: inspect(name, limit: 3)
         )}
  end

  defp read(declaration, name, caller, opts, common) do
    options = declaration.options ++ Map.fetch!(declaration, caller)
    defaults = for {option, {_kind, default}} <- options, do: {option, default}

    with :ok <- check_called_on(declaration, caller, name),
         {:ok, opts} <- Options.read(opts, common ++ defaults, "#{name}"),
         {:ok, fields} <- fields(options, opts, "#{name}"),
         do: {:ok, opts, fields}
  end

  defp check_called_on(%{called_on: :rank}, :of_gang, name),
    do: refuse("#{name}", "", "this operation is called on one rank, not on all members at once")

  defp check_called_on(%{called_on: :gang}, :of_rank, name),
    do: refuse("#{name}", "", "this operation is called on all members at once")

  defp check_called_on(_declaration, _caller, _name), do: :ok

  defp check_calls(%{calls: calls}, _name) when calls in [nil, :gang, :ranks], do: :ok

  defp check_calls(opts, name) do
    refuse("#{name}", opts.group, "there is no such way to call a gang",
      expected: ":gang or :ranks",
      got: inspect(opts.calls, limit: 3)
    )
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
          refuse(call.operation, call.group, "sizes do not fit the group",
            expected: "#{members} rows of #{members}, one for each member",
            got: "rows of #{Group.listed(Enum.map(rows, &length/1))}"
          )
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
  defp field_name(:keep, _name), do: :results
  defp field_name(_kind, name), do: name

  defp field(:rank_in_group, rank) when is_integer(rank) and rank in 0..0xFFFF_FFFF,
    do: {:ok, rank}

  defp field(:rank_in_group, _other), do: {:rank_out_of_range, "a rank in the group"}
  defp field(:any_rank_in_group, nil), do: {:ok, nil}
  defp field(:any_rank_in_group, rank), do: field(:rank_in_group, rank)
  defp field(:tag, tag) when is_integer(tag) and tag in 0..0xFFFF_FFFF, do: {:ok, tag}
  defp field(:tag, _other), do: {:invalid_argument, "0 to #{0xFFFF_FFFF}"}
  defp field(:dim, dim) when is_integer(dim) and dim in -0x8000_0000..0x7FFF_FFFF, do: {:ok, dim}
  defp field(:dim, _other), do: {:invalid_argument, "a dimension"}
  # Absent, the layout says which one.
  defp field(:own_dim, nil), do: {:ok, nil}
  defp field(:own_dim, dim), do: field(:dim, dim)
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

  for layout <- @layouts do
    proto = :"GATHER_LAYOUT_#{layout |> Atom.to_string() |> String.upcase()}"
    defp field(:layout, unquote(layout)), do: {:ok, unquote(proto)}
  end

  defp field(:layout, _other), do: {:invalid_argument, one_of(@layouts)}
  defp field(:queue, %Queue{name: name}), do: {:ok, name}
  defp field(:queue, name) when is_binary(name), do: {:ok, name}
  defp field(:queue, _other), do: {:invalid_argument, "a queue, or its name"}

  defp field(:function, name) when is_atom(name) and name not in [nil, true, false],
    do: {:ok, Atom.to_string(name)}

  defp field(:function, name) when is_binary(name) and name != "", do: {:ok, name}
  defp field(:function, _other), do: {:invalid_argument, "the name of a function"}

  defp field(:keep, keep) when is_list(keep) do
    names = for name <- keep, {:ok, text} <- [Program.name(name)], uniq: true, do: text
    if length(names) == length(keep), do: {:ok, names}, else: field(:keep, nil)
  end

  defp field(:keep, _other), do: {:invalid_argument, "a list of names, each once"}
  defp field(:boolean, value) when is_boolean(value), do: {:ok, value}
  defp field(:boolean, _other), do: {:invalid_argument, "true or false"}

  defp field(:reduce_op, op) do
    with :error <- ReduceOp.to_proto(op), do: {:invalid_argument, one_of(ReduceOp.all())}
  end

  defp one_of(names), do: "one of #{Enum.map_join(names, ", ", &inspect/1)}"

  defp wrong(kind, reason, name, expected, opts, operation) do
    what = if kind in [:sizes, :rows_of_sizes], do: "do not fit the group", else: "is wrong"

    {:error,
     Error.refusal(reason, "#{name} #{what}",
       operation: operation,
       group: Map.get(opts, :group, ""),
       expected: expected,
       got: inspect(Map.fetch!(opts, name), limit: 5)
     )}
  end

  defp refuse(operation, group, message, sides \\ []) do
    fields = [operation: operation, group: group] ++ sides
    {:error, Error.refusal(:invalid_argument, message, fields)}
  end
end
