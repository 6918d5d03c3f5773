defmodule RankBridge.Operations.Composed do
  @moduledoc false
  # What members bring to an operation, also to one that is made of others: calls that go as one, and programs.

  alias RankBridge.{Calls, Error, Program}
  alias RankBridge.Operations.{Arguments, Declaration, Inputs}
  alias RankBridge.Proto.V1

  # In place of the id of a ref: what an earlier step has given under a name.
  @sign "%"
  @longest 0xFFFF_FFFF
  # As deep as requests are read everywhere.
  @deepest 32

  @typedoc "Who is called, and the group's members; of one rank's part that rank alone."
  @type called :: {Arguments.caller(), [non_neg_integer()]}

  @doc "As `RankBridge.Operations.Inputs.read/6`, of every operation."
  @spec read(Declaration.t(), term(), Arguments.caller(), [non_neg_integer()], map(), Calls.t()) ::
          {:ok, Inputs.t()} | {:error, Error.t()}
  def read(%{takes: takes}, input, caller, members, opts, call)
      when takes in [:calls, :program] do
    {:ok, take(takes, input, {caller, members}, opts)}
  catch
    {:failed, %Error{} = error} ->
      {:error, %{error | operation: call.operation, group: call.group}}
  end

  def read(declaration, input, caller, members, opts, call),
    do: Inputs.read(declaration, input, caller, members, opts, call)

  # --- calls that go as one ---

  defp take(:calls, [_ | _] = calls, called, _opts) do
    if List.improper?(calls), do: refuse("a list of calls is needed", "a list", shown(calls))
    {requests, sessions} = calls |> Enum.map(&coalesced(&1, called)) |> Enum.unzip()
    {for(operations <- transposed(requests), do: [operations: operations]), once(sessions)}
  end

  defp take(:calls, [], _called, _opts), do: refuse("nothing to coalesce", "a call or more", "[]")

  defp take(:calls, other, _called, _opts),
    do: refuse("a list of calls is needed", "a list", shown(other))

  # --- programs ---

  defp take(:program, %Program{steps: []}, _called, _opts),
    do: refuse("the program is empty", "one step or more", "none")

  defp take(:program, %Program{} = program, called, opts) do
    keep = Enum.map(opts.keep, &named/1)
    used = MapSet.new(Program.taken(program) ++ keep)
    {steps, {given, sessions}} = steps(program, "", called, used, {MapSet.new(), []})

    for name <- keep,
        name not in given,
        do: refuse("nothing to keep has that name", one_of(given), inspect(name))

    {for(mine <- steps, do: [steps: mine]), once(sessions)}
  end

  defp take(:program, other, _called, _opts),
    do: refuse("this is no program", "a RankBridge.Program", shown(other))

  # Each member's steps; and the names that were given, and the sessions that were used, so far.
  defp steps(program, within, called, used, known) do
    {steps, known} =
      program.steps
      |> Enum.reverse()
      |> Enum.with_index(&{"#{within}#{&2}", &1})
      |> Enum.map_reduce(known, &step(&1, called, used, &2))

    {transposed(steps), known}
  end

  defp step({number, {:loop, count, _program}}, _called, _used, _known)
       when not (is_integer(count) and count in 1..@longest),
       do: refuse("step #{number}: this is no count", "1 to #{@longest}", shown(count))

  defp step({number, {:loop, _count, %Program{steps: []}}}, _called, _used, _known),
    do: refuse("step #{number}: the loop is empty", "one step or more", "none")

  defp step({number, {:loop, count, program}}, called, used, known) do
    if number |> String.split(".") |> length() > @deepest,
      do: refuse("too many loops within loops", "at most #{@deepest}", "#{@deepest + 1} or more")

    {steps, known} = steps(program, number <> ".", called, used, known)

    {for(
       mine <- steps,
       do: %V1.ProgramStep{kind: {:loop, %V1.ProgramLoop{count: count, steps: mine}}}
     ), known}
  end

  defp step({number, {name, input, opts}}, called, used, {given, sessions}) do
    {as, own} = if Keyword.keyword?(opts), do: Keyword.pop(opts, :as), else: {nil, opts}
    as = gives(as, name)
    {operations, part_sessions} = part(name, taken(input, given), own, called)
    # What nobody asks for is dropped.
    kept = if as in used, do: as, else: ""

    steps =
      for operation <- operations,
          do: %V1.ProgramStep{
            kind: {:operation, %V1.ProgramOperation{operation: operation, name: kept}}
          }

    given = if as == "", do: given, else: MapSet.put(given, as)
    {steps, {given, [part_sessions | sessions]}}
  catch
    {:failed, error} -> failed(error, "step #{number}, #{name}")
  end

  defp gives(nil, _name), do: ""

  defp gives(as, name) do
    if Declaration.of(name).gives == :nothing,
      do: refuse("it gives nothing that could have a name", "no :as", shown(as))

    named(as)
  end

  defp taken(input, given) do
    case Program.name(input) do
      {:ok, name} ->
        if name not in given,
          do: refuse("nothing of that name was given before", one_of(given), inspect(name))

        {:given, name}

      :error ->
        input
    end
  end

  defp named(name) do
    case Program.name(name) do
      {:ok, text} -> text
      :error -> refuse("this cannot be a name", "an atom or a text, not empty", shown(name))
    end
  end

  defp one_of(names) do
    if MapSet.size(names) == 0,
      do: "a name that a step gives",
      else: "one of #{names |> Enum.sort() |> Enum.map_join(", ", &inspect/1)}"
  end

  # --- both ---

  defp coalesced({name, input}, called), do: coalesced({name, input, []}, called)

  defp coalesced({name, input, opts}, called) do
    part(name, input, opts, called)
  catch
    {:failed, %Error{operation: ""} = error} -> throw({:failed, error})
    {:failed, error} -> failed(error, error.operation)
  end

  defp coalesced(other, _called),
    do: refuse("this is no call", "{name, input} or {name, input, options}", shown(other))

  # One collective among others, for each member, and the sessions of the refs that it uses.
  defp part(name, input, opts, {caller, members} = called) do
    with {:ok, opts, fields} <- Arguments.read_coalesced(name, caller, opts),
         declaration = Declaration.of(name),
         :ok <- check(declaration, name),
         call = %Calls{rpc: declaration.rpc, operation: "#{name}", deadline: 1},
         {:ok, {brought, sessions}} <- brought(declaration, input, called, opts, call),
         {:ok, shares} <- Arguments.shares(fields, length(members), call) do
      {for {mine, share} <- Enum.zip(brought, shares) do
         %V1.Operation{kind: {name, struct!(declaration.rpc.request, mine ++ share)}}
       end, sessions}
    else
      {:error, error} -> throw({:failed, error})
    end
  end

  defp brought(_declaration, {:given, name}, {_caller, members}, _opts, _call),
    do: {:ok, {for(_rank <- members, do: [ref_id: @sign <> name]), []}}

  defp brought(declaration, input, {caller, members}, opts, call),
    do: Inputs.read(declaration, input, caller, members, opts, call)

  defp check(declaration, name) do
    if Declaration.coalesced?(declaration),
      do: :ok,
      else: refuse("#{name} cannot go with others as one", "a collective on refs", "#{name}")
  end

  defp transposed(lists), do: Enum.zip_with(lists, & &1)
  defp once(sessions), do: sessions |> Enum.concat() |> Enum.uniq()

  @spec failed(Error.t(), String.t()) :: no_return()
  defp failed(error, where),
    do: throw({:failed, %{error | message: "#{where}: #{error.message}"}})

  @spec refuse(String.t(), String.t(), String.t()) :: no_return()
  defp refuse(message, expected, got) do
    error = Error.refusal(:invalid_argument, message, expected: expected, got: got)
    throw({:failed, error})
  end

  defp shown(term), do: inspect(term, limit: 3, printable_limit: 40)
end
