defmodule RankBridge.Bangs do
  @moduledoc false
  # Functions that give `{:ok, value}` or `{:error, %RankBridge.Error{}}`, each beside one with a `!`, which gives the value or
  # raises the error.
  #
  #     defmodule RankBridge.Objects do
  #       use RankBridge.Bangs
  #
  #       @doc "Gives every member a list of all members' values."
  #       spec_with_bang all_gather_object(Gang.gang(), [Value.t()], keyword()) :: [[Value.t()]]
  #
  #       def all_gather_object(gang, values, opts \\ []) do
  #         ...
  #
  # `spec_with_bang` is the function's `@spec`, with the value's type: `:ok` of a function that gives `:ok` and no value. It also
  # defines `all_gather_object!/3`. `RankBridge.Facade` reads what a module has declared so.

  # A module named in a type is not needed at compile time.
  @lazily {:__info__, 1}

  @typedoc """
  A function that has a bang.

  * `parameters` - as they stand in its head, with their defaults
  * `types`, `value` - of its arguments, and of what it gives; both quoted
  * `doc` - its documentation, nil if it has none
  * `file`, `line` - where it is declared, and where an editor finds it
  """
  @type function_with_bang :: %{
          name: atom(),
          parameters: [Macro.t()],
          types: [Macro.t()],
          value: Macro.t(),
          doc: String.t() | nil,
          file: String.t(),
          line: pos_integer()
        }

  @doc "Imports `spec_with_bang/1`."
  defmacro __using__(_opts) do
    quote do
      import RankBridge.Bangs, only: [spec_with_bang: 1]
      Module.register_attribute(__MODULE__, :specs_with_bang, accumulate: true)
      @before_compile RankBridge.Bangs
    end
  end

  @doc "The `@spec` of the function that follows, and its bang: `spec_with_bang name(type, ...) :: type of the value`."
  defmacro spec_with_bang({:"::", _meta, [{name, _, types}, value]}) do
    [value | types] = for type <- [value | types], do: expanded(type, __CALLER__)

    declared =
      Macro.escape(%{
        name: name,
        types: types,
        value: value,
        file: __CALLER__.file,
        line: __CALLER__.line
      })

    quote do
      @specs_with_bang Map.put(unquote(declared), :doc, RankBridge.Bangs.text(@doc))
      unquote(spec(name, types, value))
    end
  end

  @doc "Defines the bangs, and says which functions have one."
  defmacro __before_compile__(%{module: module}) do
    functions =
      for declared <- module |> Module.get_attribute(:specs_with_bang) |> Enum.reverse(),
          do: Map.put(declared, :parameters, parameters(module, declared))

    quote do
      unquote_splicing(Enum.map(functions, &bang/1))

      @doc false
      @spec __with_bang__() :: [RankBridge.Bangs.function_with_bang()]
      def __with_bang__, do: unquote(Macro.escape(functions))
    end
  end

  @doc "The quoted `@spec` of a function that gives this value."
  @spec spec(atom(), [Macro.t()], Macro.t()) :: Macro.t()
  def spec(name, types, :ok) do
    quote do:
            @spec(unquote(name)(unquote_splicing(types)) :: :ok | {:error, RankBridge.Error.t()})
  end

  def spec(name, types, value) do
    quote do
      @spec unquote(name)(unquote_splicing(types)) ::
              {:ok, unquote(value)} | {:error, RankBridge.Error.t()}
    end
  end

  @doc "The quoted bang of a function, with its documentation. It calls the function in `module`."
  @spec bang(function_with_bang(), Macro.t()) :: Macro.t()
  def bang(%{name: name, parameters: parameters} = function, module \\ quote(do: __MODULE__)) do
    doc = "As `#{name}/#{length(parameters)}`; raises the error."

    quote line: function.line do
      @doc unquote(doc)
      unquote(bang_without_doc(function, module))
    end
  end

  @doc "As `bang/2`, without documentation."
  @spec bang_without_doc(function_with_bang(), Macro.t()) :: Macro.t()
  def bang_without_doc(%{name: name, value: type} = function, module) do
    call = quote(do: unquote(module).unquote(name)(unquote_splicing(variables(function))))

    {success, value} = if type == :ok, do: {:ok, :ok}, else: quote(do: {{:ok, value}, value})

    quote do
      @file unquote({function.file, function.line})
      @spec unquote(:"#{name}!")(unquote_splicing(function.types)) :: unquote(type)
      def unquote(:"#{name}!")(unquote_splicing(function.parameters)) do
        case unquote(call) do
          unquote(success) -> unquote(value)
          {:error, error} -> raise error
        end
      end
    end
  end

  @doc "The variables of a function's parameters."
  @spec variables(function_with_bang()) :: [Macro.t()]
  def variables(function) do
    for parameter <- function.parameters do
      with {:\\, _meta, [variable, _default]} <- parameter, do: variable
    end
  end

  @doc "The text that a module's documentation attribute holds."
  @spec text({non_neg_integer(), String.t()} | String.t() | nil) :: String.t() | nil
  def text({_line, text}), do: text
  def text(text), do: text

  # The names are those of a clause that matches everything. The only default is that of options.
  defp parameters(module, %{name: name, types: types}) do
    arity = length(types)
    {:v1, :def, _meta, clauses} = Module.get_definition(module, {name, arity})

    names =
      Enum.find_value(clauses, fn {_meta, arguments, _guards, _body} ->
        Enum.all?(
          arguments,
          &match?({name, _, context} when is_atom(name) and is_atom(context), &1)
        ) &&
          for {name, _meta, _context} <- arguments, do: {name, [], nil}
      end)

    if Module.defines?(module, {name, arity - 1}),
      do: List.update_at(names, -1, &{:\\, [], [&1, []]}),
      else: names
  end

  defp expanded(type, env) do
    env = %{env | function: @lazily}

    Macro.prewalk(type, fn
      {:__aliases__, _meta, _parts} = module -> Macro.expand(module, env)
      other -> other
    end)
  end
end
