defmodule RankBridge.Program do
  @moduledoc """
  Collectives of one group that are described first, and that the ranks then run as one operation: one call and one
  admission for all of them, and no message to this client in between.

      alias RankBridge.Program

      program =
        Program.new()
        |> Program.loop(1000, fn step ->
          step |> Program.all_reduce(gradients, in_place: true) |> Program.barrier()
        end)
        |> Program.all_reduce(counts, as: :total)
        |> Program.all_gather(:total, as: :rows, dim: 0)

      {:ok, [rows]} = RankBridge.Programs.run_program(gang, program, keep: [:rows])

  Describing asks no rank. A program is plain data: it can be run as often as one likes, on any gang that has its refs. What
  is wrong in it, `RankBridge.Programs.run_program/3` says, by the number of the step: 0 and up, and "2.1" in the loop that is step 2.

  ## Inputs and results of a step

  A step takes refs, one for each member of the group, in group order; or the name of what an earlier step has given. All
  refs are of one session. Its options are those of the collective, and `:as`, the name of what it gives: an atom or a text.
  A name that is given again, as in a loop, stands for what it was given last, in later turns of the loop too; dtype and
  shape stay as they were. What a step changes in place, the steps after it see.

  A name stands for one tensor on each member. What only one member is given, as by `reduce/3`, or what is a list, as by
  `all_gather/3` with `layout: :list`, no step can take; it can be kept.

  Results and what is changed in place are there when all of it is done, or not at all. What is not kept is freed.

  ## Programs, pipelines, and other ways

    * `RankBridge.Program` - the ranks go from step to step by themselves; it is collectives on tensors only
    * `RankBridge.Pipeline` - this client makes each step's call when the one before has ended; it also brings tensors and
      fetches them, and calls functions in between
    * `RankBridge.Coalesced.coalesce/3` - one operation too, of collectives of which none sees what another gives
    * `RankBridge.Graphs.graph_capture/4` - collectives that have run once, to run again on the same refs
    * `RankBridge.run/3` - a function of this client for each rank
  """

  alias RankBridge.{Collectives, Ref}
  alias RankBridge.Operations.Declaration

  defstruct steps: []

  @typedoc "`steps` - the last one first."
  @type t :: %__MODULE__{steps: [step()]}

  @type step :: {atom(), input() | nil, keyword()} | {:loop, pos_integer(), t()}

  @typedoc "What a step gives is named so."
  @type name :: atom() | String.t()

  @typedoc "Refs, one for each member in group order; in one rank's part, one; or what an earlier step has given."
  @type input :: [Ref.t()] | Ref.t() | name()

  @doc """
  A program without steps.

      iex> alias RankBridge.Program
      iex> Program.new() |> Program.loop(3, &Program.barrier/1) |> Program.all_reduce([], as: :sum)
      #RankBridge.Program<3 * [barrier], sum = all_reduce>
  """
  @spec new() :: t()
  def new, do: %__MODULE__{}

  texts = for function <- Collectives.__with_bang__(), do: {function.name, function.doc}

  for name <- Declaration.names(),
      declaration = Declaration.of(name),
      Declaration.coalesced?(declaration) do
    [what | _details] = texts |> Keyword.fetch!(name) |> String.split("\n\n")

    case declaration.takes do
      :refs ->
        @doc "#{String.trim(what)}\n\nOptions: `:as`, and those of `RankBridge.#{name}/3` that are not of the whole call."
        @spec unquote(name)(t(), input(), keyword()) :: t()
        def unquote(name)(program, input, opts \\ []),
          do: step(program, {unquote(name), input, opts})

      :nothing ->
        @doc "#{String.trim(what)}"
        @spec unquote(name)(t()) :: t()
        def unquote(name)(program), do: step(program, {unquote(name), nil, []})
    end
  end

  @doc """
  Steps that are repeated `count` times: those that a function puts after those of the empty program that it gets, or those
  of another program. What is named in them stands, after the loop, for what it was given in the last turn.
  """
  @spec loop(t(), pos_integer(), (t() -> t()) | t()) :: t()
  def loop(program, count, %__MODULE__{} = repeated), do: step(program, {:loop, count, repeated})

  def loop(program, count, fun) when is_function(fun, 1) do
    %__MODULE__{} = repeated = fun.(new())
    step(program, {:loop, count, repeated})
  end

  defp step(%__MODULE__{} = program, step), do: %{program | steps: [step | program.steps]}

  @doc "A name as a text, if it is one."
  @spec name(term()) :: {:ok, String.t()} | :error
  def name(name) when name in [nil, true, false, ""], do: :error
  def name(name) when is_atom(name), do: {:ok, Atom.to_string(name)}
  def name(name) when is_binary(name), do: if(String.valid?(name), do: {:ok, name}, else: :error)
  def name(_other), do: :error

  @doc "The names that its steps take."
  @spec taken(t()) :: [String.t()]
  def taken(%__MODULE__{steps: steps}) do
    Enum.flat_map(steps, fn
      {:loop, _count, repeated} -> taken(repeated)
      {_name, input, _opts} -> with {:ok, text} <- name(input), do: [text], else: (:error -> [])
    end)
  end

  defimpl Inspect do
    @most 8

    def inspect(program, _options), do: "#RankBridge.Program<#{shown(program)}>"

    defp shown(%{steps: []}), do: "nothing"

    defp shown(%{steps: steps}) do
      {first, others} = steps |> Enum.reverse() |> Enum.split(@most)
      shown = Enum.map_join(first, ", ", &step/1)
      if others == [], do: shown, else: "#{shown}, and #{length(others)} more"
    end

    defp step({:loop, count, repeated}), do: "#{Kernel.inspect(count)} * [#{shown(repeated)}]"

    defp step({name, _input, opts}) do
      as = if Keyword.keyword?(opts), do: opts[:as]
      if as, do: "#{name(as)} = #{name}", else: "#{name}"
    end

    defp name(name) when is_atom(name) or is_binary(name), do: "#{name}"
    defp name(other), do: Kernel.inspect(other, limit: 3)
  end
end
