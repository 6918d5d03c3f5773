defmodule RankBridge.Facade do
  @moduledoc false
  # Functions on a gang, each declared once: with its documentation, its types, and its body.
  #
  #     defmodule RankBridge.Objects do
  #       use RankBridge.Facade
  #
  #       @doc "Gives every member a list of all members' values."
  #       defcall all_gather_object(gang :: Gang.gang(), values :: [Value.t()], opts :: keyword() \\ []) :: [[Value.t()]],
  #         do: Collectives.run(view, :all_gather_object, values, opts)
  #     end
  #
  # defines `all_gather_object/3`, which gives `{:ok, lists}` or `{:error, %RankBridge.Error{}}`, and
  # `all_gather_object!/3`, which gives the lists or raises the error.
  #
  # Where the first argument is a `gang`, the function goes through `RankBridge.Entry`, and its body has the gang's `view`. The
  # body passes `view` on, and not the gang: a function goes through the entry once.
  #
  # A module that says
  #
  #     use RankBridge.Facade, of: [RankBridge.Objects]
  #
  # has both of them too, with their documentation.

  # A module named in a type is not needed at compile time.
  @lazily {:__info__, 1}

  @doc "Declares functions with `defcall/2`; those of the modules in `:of` are here too."
  defmacro __using__(opts) do
    modules = Enum.map(Keyword.get(opts, :of, []), &Macro.expand(&1, __CALLER__))
    delegates = for module <- modules, call <- module.__calls__(), do: delegate(module, call)

    quote do
      import RankBridge.Facade, only: [defcall: 2]
      Module.register_attribute(__MODULE__, :calls, accumulate: true)
      @before_compile RankBridge.Facade
      unquote_splicing(delegates)
    end
  end

  @doc "Stores the declarations."
  defmacro __before_compile__(env) do
    calls = env.module |> Module.get_attribute(:calls) |> Enum.reverse()

    quote do
      @doc false
      def __calls__, do: unquote(Macro.escape(calls))
    end
  end

  @doc "Declares a function: `defcall name(argument :: type, ...) :: type, do: ...`."
  defmacro defcall({:"::", _meta, [{name, _, arguments}, given]}, do: body) do
    types = for argument <- arguments, do: argument |> type_of() |> expanded(__CALLER__)
    given = expanded(given, __CALLER__)
    parameters = Enum.map(arguments, &parameter/1)
    call = Macro.escape({name, parameters, types, given})

    quote do
      @calls {unquote(call), RankBridge.Facade.written(@doc)}
      unquote(safe(name, parameters, types, given, entered(name, parameters, body)))
      unquote(raising(name, parameters, types, given))
    end
  end

  @doc "The text that a module's documentation attribute holds."
  @spec written({non_neg_integer(), String.t()} | String.t() | nil) :: String.t() | nil
  def written({_line, text}), do: text
  def written(text), do: text

  defp delegate(module, {{name, parameters, types, given}, text}) do
    body = quote do: unquote(module).unquote(name)(unquote_splicing(variables(parameters)))

    quote do
      @doc unquote(text)
      unquote(safe(name, parameters, types, given, body))
      unquote(raising(name, parameters, types, given))
    end
  end

  # `view` is the variable that the body has.
  defp entered(name, [{:gang, _meta, nil} | _others] = parameters, body) do
    opts = Enum.find(variables(parameters), [], &match?({:opts, _meta, nil}, &1))

    quote do
      RankBridge.Entry.call(
        unquote({:gang, [], nil}),
        unquote(name),
        unquote(opts),
        fn unquote({:view, [], nil}) -> unquote(body) end
      )
    end
  end

  defp entered(_name, _parameters, body), do: body

  defp safe(name, parameters, types, given, body) do
    quote do
      @spec unquote(name)(unquote_splicing(types)) ::
              {:ok, unquote(given)} | {:error, RankBridge.Error.t()}
      def unquote(name)(unquote_splicing(parameters)), do: unquote(body)
    end
  end

  defp raising(name, parameters, types, given) do
    quote do
      @doc unquote("As `#{name}/#{length(parameters)}`; raises the error.")
      @spec unquote(:"#{name}!")(unquote_splicing(types)) :: unquote(given)
      def unquote(:"#{name}!")(unquote_splicing(parameters)) do
        case unquote(name)(unquote_splicing(variables(parameters))) do
          {:ok, value} -> value
          {:error, error} -> raise error
        end
      end
    end
  end

  # An argument is `name :: type`, or `name :: type \\ default`.
  defp type_of({:\\, _meta, [argument, _default]}), do: type_of(argument)
  defp type_of({:"::", _meta, [_variable, type]}), do: type

  defp parameter({:\\, meta, [argument, default]}),
    do: {:\\, meta, [parameter(argument), default]}

  defp parameter({:"::", _meta, [{name, _, _}, _type]}), do: {name, [], nil}

  defp variables(parameters) do
    for parameter <- parameters do
      case parameter do
        {:\\, _meta, [variable, _default]} -> variable
        variable -> variable
      end
    end
  end

  defp expanded(type, env) do
    env = %{env | function: @lazily}

    Macro.prewalk(type, fn
      {:__aliases__, _meta, _parts} = module -> Macro.expand(module, env)
      other -> other
    end)
  end
end
