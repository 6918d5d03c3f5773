defmodule RankBridge.Facade do
  @moduledoc false
  # A module that has functions of other modules, with their documentation and their bangs (`RankBridge.Bangs`).
  #
  #     use RankBridge.Facade, of: [RankBridge.Objects, {RankBridge.Queues, only: []}]
  #
  # Of a module with `only`, it has the functions with these names; the others are there for one release more, deprecated.

  alias RankBridge.Bangs

  @doc "Defines the functions of the modules in `:of`. A reader who looks for one finds it in its own module."
  defmacro __using__(of: modules) do
    for of <- modules,
        {module, only} = module_and_names(of, __CALLER__),
        function <- module.__with_bang__() do
      if only == :all or function.name in only,
        do: delegate(module, function),
        else: deprecated(module, function)
    end
  end

  defp module_and_names({module, only: names}, env), do: {Macro.expand(module, env), names}
  defp module_and_names(module, env), do: {Macro.expand(module, env), :all}

  defp delegate(module, function) do
    quote do
      @doc unquote(function.doc)
      unquote(safe(module, function))
      unquote(Bangs.bang(function))
    end
  end

  defp deprecated(module, %{name: name} = function) do
    quote do
      @doc false
      @deprecated unquote("use #{inspect(module)}.#{name}")
      unquote(safe(module, function))
      @doc false
      @deprecated unquote("use #{inspect(module)}.#{name}!")
      unquote(Bangs.bang_without_doc(function, module))
    end
  end

  defp safe(module, %{name: name} = function) do
    quote do
      @file unquote({function.file, function.line})
      unquote(Bangs.spec(name, function.types, function.value))

      def unquote(name)(unquote_splicing(function.parameters)),
        do: unquote(module).unquote(name)(unquote_splicing(Bangs.variables(function)))
    end
  end
end
