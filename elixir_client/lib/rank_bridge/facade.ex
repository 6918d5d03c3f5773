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
  #     use RankBridge.Facade, of: [RankBridge.Objects, {RankBridge.Queues, only: []}]
  #
  # has both of them too, with their documentation. Of a module with `only`, it has the functions with these names; the
  # others are there for one release more, deprecated.

  # A module named in a type is not needed at compile time.
  @lazily {:__info__, 1}

  @doc "Declares functions with `defcall/2`; those of the modules in `:of` are here too."
  defmacro __using__(opts) do
    delegates =
      for of <- Keyword.get(opts, :of, []),
          {module, only} = module_and_names(of, __CALLER__),
          call <- module.__calls__(),
          do: delegate(module, only, call)

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

  @doc "The result of a function that gives no value."
  @spec without_value(:ok | {:ok, nil} | {:error, error}) :: :ok | {:error, error}
        when error: term()
  def without_value({:ok, nil}), do: :ok
  def without_value(result), do: result

  @doc "The text that a module's documentation attribute holds."
  @spec written({non_neg_integer(), String.t()} | String.t() | nil) :: String.t() | nil
  def written({_line, text}), do: text
  def written(text), do: text

  defp module_and_names({module, only: names}, env), do: {Macro.expand(module, env), names}
  defp module_and_names(module, env), do: {Macro.expand(module, env), :all}

  defp delegate(module, only, {{name, parameters, types, given}, text}) do
    body = quote do: unquote(module).unquote(name)(unquote_splicing(variables(parameters)))

    if only == :all or name in only do
      quote do
        @doc unquote(text)
        unquote(safe(name, parameters, types, given, body))
        unquote(raising(name, parameters, types, given))
      end
    else
      quote do
        @doc false
        @deprecated unquote("use #{inspect(module)}.#{name}")
        unquote(safe(name, parameters, types, given, body))
        unquote(raising(name, parameters, types, given, module))
      end
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

  # What has no value is `:ok`.
  defp safe(name, parameters, types, :ok, body) do
    quote do
      @spec unquote(name)(unquote_splicing(types)) :: :ok | {:error, RankBridge.Error.t()}
      def unquote(name)(unquote_splicing(parameters)),
        do: RankBridge.Facade.without_value(unquote(body))
    end
  end

  defp safe(name, parameters, types, given, body) do
    quote do
      @spec unquote(name)(unquote_splicing(types)) ::
              {:ok, unquote(given)} | {:error, RankBridge.Error.t()}
      def unquote(name)(unquote_splicing(parameters)), do: unquote(body)
    end
  end

  # `since` is the module that has the function now, if this one is deprecated.
  defp raising(name, parameters, types, given, since \\ nil) do
    documented =
      if since do
        quote do
          @doc false
          @deprecated unquote("use #{inspect(since)}.#{name}!")
        end
      else
        quote do: @doc(unquote("As `#{name}/#{length(parameters)}`; raises the error."))
      end

    module = since || quote(do: __MODULE__)
    call = quote(do: unquote(module).unquote(name)(unquote_splicing(variables(parameters))))

    quote do
      unquote(documented)
      @spec unquote(:"#{name}!")(unquote_splicing(types)) :: unquote(given)
      def unquote(:"#{name}!")(unquote_splicing(parameters)),
        do: unquote(value_or_raise(call, given))
    end
  end

  defp value_or_raise(call, given) do
    value = if given == :ok, do: :ok, else: quote(do: value)
    success = if given == :ok, do: :ok, else: {:ok, value}

    quote do
      case unquote(call) do
        unquote(success) -> unquote(value)
        {:error, error} -> raise error
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
