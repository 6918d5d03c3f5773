defmodule RankBridge.Functions.Source do
  @moduledoc false
  # The source of a module that has a function, and one with a `!`, for each function that ranks offer.
  #
  # What must be given is an argument of its own; optional parameters that have names are in `named`. What Python takes by place
  # alone must be given, and so must all before `*rest`, which is a list.

  alias RankBridge.Function
  alias RankBridge.Function.Parameter
  alias RankBridge.Functions.Types

  @reserved ~w(true false nil when and or not in fn do end catch rescue after else)
  @ours ~w(gang named opts)
  @each """
    @typedoc "What all members get, or each its own."
    @type each(value) :: value | RankBridge.Each.t()
  """
  @real """
    @typedoc "Python's float."
    @type real :: number() | :nan | :infinity | :negative_infinity
  """

  @doc """
  The source of a module of this name, formatted. `loaded` are the Python modules, as the gang's `:load` has them. Raises
  `ArgumentError` if two functions get the same name in Elixir.
  """
  @spec of([Function.t()], String.t(), [String.t()]) :: String.t()
  def of(functions, module, loaded) do
    defined = Enum.map(functions, &Map.put(Map.from_struct(&1), :elixir, name(&1.name)))
    nil = check_names(defined)
    bodies = Enum.map(defined, &function/1)
    text = Enum.join([head(module, loaded, bodies) | bodies], "\n") <> "\nend\n"
    IO.iodata_to_binary([Code.format_string!(text), "\n"])
  end

  defp check_names(defined) do
    several = fn {_elixir, those} -> match?([_one, _another | _more], those) end

    with {elixir, those} <- defined |> Enum.group_by(& &1.elixir) |> Enum.find(several) do
      names = Enum.map_join(those, ", ", &inspect(&1.name))
      raise ArgumentError, "these functions have one name in Elixir, #{elixir}: #{names}"
    end
  end

  defp head(module, loaded, bodies) do
    all = Enum.join(bodies)

    used =
      for name <- ~w(Error Gang Ref Tensor Value), all =~ ~r/\b#{name}\.(t|gang)\(\)/, do: name

    given = if match?([_one], loaded), do: inspect(hd(loaded)), else: inspect(loaded)

    """
    defmodule #{module} do
      @moduledoc #{heredoc("""
    Functions in Python that the ranks of a gang have loaded: `load: #{given}`.

    Each is called on all members of a group, and gives what it returns on each, in group order. Arguments and options are those
    of `RankBridge.call/4`: all members get the same argument, or each its own, by `RankBridge.each/1`; of refs of all members each
    gets its own.

    Written by `mix rank_bridge.gen`. Do not edit.
    """)}

      alias RankBridge.{#{Enum.join(used, ", ")}}

      #{if all =~ "each(", do: @each}
      #{if all =~ "real()", do: @real}
    """
  end

  defp function(function) do
    {needed, optional} = parameters(function.parameters)
    arguments = arguments(needed)
    named? = optional != []
    heads = ["gang"] ++ for({_parameter, variable} <- arguments, do: variable)
    defaults = if(named?, do: [~S(named \\ [])], else: []) ++ [~S(opts \\ [])]

    types = [
      "Gang.gang()" | for({parameter, _variable} <- arguments, do: argument_type(parameter))
    ]

    types = types ++ if(named?, do: [named_type(optional)], else: []) ++ ["keyword()"]

    spec = "(#{Enum.join(types, ", ")})"
    head = "(#{Enum.join(heads ++ defaults, ", ")})"
    call = "(gang, #{inspect(function.name)}, #{given(arguments, named?)}, opts)"
    result = "[#{result(function)}]"

    """

    @doc #{heredoc(doc(function))}
    @spec #{function.elixir}#{spec} :: {:ok, #{result}} | {:error, Error.t()}
    def #{function.elixir}#{head}, do: RankBridge.call#{call}

    @doc "As `#{function.elixir}/#{length(types)}`; raises the error."
    @spec #{function.elixir}!#{spec} :: #{result}
    def #{function.elixir}!#{head}, do: RankBridge.call!#{call}
    """
  end

  defp result(%{yields?: true, returns: returns}), do: Types.of_generator(returns)
  defp result(%{returns: returns}), do: Types.of_result(returns)

  # What is an argument of its own, and what goes by name.
  defp parameters(all) do
    rest? = Enum.any?(all, &(&1.kind == :rest))

    Enum.split_with(all, fn parameter ->
      case parameter.kind do
        :named_rest -> false
        :named -> not parameter.optional?
        :plain -> rest? or not parameter.optional?
        _by_place -> true
      end
    end)
  end

  defp arguments(needed) do
    {arguments, _taken} =
      Enum.map_reduce(needed, @ours, fn parameter, taken ->
        variable = free(name(parameter.name), taken)
        {{parameter, variable}, [variable | taken]}
      end)

    arguments
  end

  defp free(name, taken), do: if(name in taken, do: free(name <> "_", taken), else: name)

  defp argument_type(%Parameter{kind: :rest} = rest), do: "[#{Types.of_argument(rest.type)}]"
  defp argument_type(parameter), do: Types.of_argument(parameter.type)

  defp named_type(optional) do
    if Enum.any?(optional, &(&1.kind == :named_rest)) do
      "keyword()"
    else
      pairs = for it <- optional, do: "{#{atom(it.name)}, #{Types.of_argument(it.type)}}"
      "[#{Enum.join(pairs, " | ")}]"
    end
  end

  defp given(arguments, named?) do
    by_place = for {%{kind: kind}, it} <- arguments, kind not in [:named, :rest], do: it
    rest = for {%{kind: :rest}, it} <- arguments, do: it

    by_name =
      for {%{kind: :named} = it, variable} <- arguments, do: "#{atom(it.name)} => #{variable}"

    map = "%{#{Enum.join(by_name, ", ")}}"

    names =
      cond do
        not named? -> map
        by_name == [] -> "Map.new(named)"
        true -> "Enum.into(named, #{map})"
      end

    by_place = if by_place == [] and rest != [], do: [], else: ["[#{Enum.join(by_place, ", ")}]"]
    "{#{Enum.join(by_place ++ rest, " ++ ")}, #{names}}"
  end

  defp doc(function) do
    shown = "    #{function.name}#{function.signature}"

    yields =
      if function.yields?,
        do: ["It yields: with `RankBridge.start_call/4` each value is a report as it comes."],
        else: []

    [function.doc, "In Python:", shown | yields] |> Enum.reject(&(&1 == "")) |> Enum.join("\n\n")
  end

  # Of functions and variables.
  defp name(python) do
    name = python |> String.replace(~r/[^A-Za-z0-9_]/, "_") |> String.trim_leading("_")
    {first, rest} = String.split_at(name, 1)
    name = String.downcase(first) <> rest

    cond do
      name == "" or first =~ ~r/\d/ -> "f_" <> name
      name in @reserved -> name <> "_"
      true -> name
    end
  end

  # Also of a name that this program has not heard of.
  defp atom(name), do: Macro.inspect_atom(:literal, String.to_atom(name))

  defp heredoc(text) do
    escaped =
      text
      |> String.replace("\\", "\\\\")
      |> String.replace("\#{", "\\\#{")
      |> String.replace("\"\"\"", "\\\"\\\"\\\"")

    lines = for line <- String.split(String.trim_trailing(escaped), "\n"), do: "  #{line}\n"
    ~s("""\n#{lines}  """)
  end
end
