defmodule RankBridge.Pipeline do
  @moduledoc """
  Collectives one after the other, each on the result of the one before.

      alias RankBridge.Pipeline

      gang
      |> Pipeline.new()
      |> Pipeline.put([[1.0], [2.0], [3.0]])
      |> Pipeline.all_reduce(op: :max)
      |> Pipeline.broadcast(src_rank_in_group: 2)
      |> Pipeline.get()
      #=> {:ok, [tensor, tensor, tensor]}

  The steps are collected, and run by the ending: `get/1`, `refs/1` or `run/1`, in the process that calls it. Until then no
  rank is asked, and there is nothing to clean up if the pipeline is forgotten; a wrong option of any collective in it is
  refused before the first step runs; and in any case, the ending releases the refs of the steps. A pipeline is plain
  data: run twice, it does everything twice.

  The first error ends the pipeline, and the ending returns it; with a `!`, the ending raises it. If a function in the pipeline
  raises, so does the ending.

  ## Ownership of refs

  The ending releases the refs that the steps have made, in success and failure, except the result of `refs/1`. Refs that
  existed before, as the refs given to `of/3`, or that a function has made (`then/3`), are never released. Releasing is tried
  once: on a rank that cannot be reached then, refs stay until their session is closed, as do the refs of a step that has
  failed on some ranks only.

  ## One rank's part

  With `rank: 2`, a pipeline is that rank's part: it has one ref or tensor where others have a list, and its steps are
  `RankBridge.Operations.call_rank/5`. Use it within `RankBridge.run/3`, where the other ranks do their parts:

      RankBridge.run(gang, fn rank ->
        gang |> Pipeline.new(rank: rank) |> Pipeline.put([1.0 * rank]) |> Pipeline.all_reduce() |> Pipeline.get()
      end)
  """

  import Kernel, except: [then: 2, tap: 2]

  alias RankBridge.{Collectives, Dtype, Error, Gang, Options, Ref, Tensor}
  alias RankBridge.Operations.Declaration
  alias RankBridge.Pipeline.Running

  @enforce_keys [:gang]
  defstruct [:gang, :rank, :refused, common: [], steps: []]

  @typedoc """
  * `rank` - whose part it is; nil: that of all members of the group
  * `common` - options of every step
  * `steps` - the last one first
  * `refused` - why it cannot be run
  """
  @type t :: %__MODULE__{
          gang: Gang.gang(),
          rank: non_neg_integer() | nil,
          refused: Error.t() | nil,
          common: keyword(),
          steps: [step()]
        }

  @typedoc "A step's name, and what it was given."
  @type step :: tuple()

  @typedoc "What `get/1` gives: what the last step gave, with a tensor for each ref."
  @type fetched :: Tensor.t() | [fetched()] | nil | term()

  @doc """
  A pipeline without steps.

  Options: `:rank` - one rank's part (default: that of all members); and of every step that does not say something else:
  `:group` (default "world"), `:timeout`.

      iex> alias RankBridge.Pipeline
      iex> Pipeline.new(MyGang) |> Pipeline.create(:float32, [2]) |> Pipeline.all_reduce(op: :max)
      #RankBridge.Pipeline<MyGang: create, all_reduce>
      iex> Pipeline.new(MyGang, rank: 2, group: "tp")
      #RankBridge.Pipeline<MyGang, rank 2 in "tp": nothing>
  """
  @spec new(Gang.gang(), keyword()) :: t()
  def new(gang, opts \\ []) do
    case Options.read(opts, [rank: nil, group: nil], "pipeline") do
      {:ok, %{rank: rank}} ->
        common = for {name, value} <- opts, name != :rank and value != nil, do: {name, value}
        %__MODULE__{gang: gang, rank: rank, common: common}

      {:error, error} ->
        %__MODULE__{gang: gang, refused: error}
    end
  end

  @doc """
  A pipeline that begins with refs that are there: one for each member, in group order; or with one ref, of whose rank it
  is the part. They are not released. Options: as of `new/2`.

      iex> RankBridge.Pipeline.of(MyGang, %RankBridge.Ref{id: "r", rank: 3})
      #RankBridge.Pipeline<MyGang, rank 3: of>
  """
  @spec of(Gang.gang(), [Ref.t()] | Ref.t(), keyword()) :: t()
  def of(gang, ref_or_refs, opts \\ [])

  def of(gang, %Ref{} = ref, opts),
    do: gang |> new(Options.put_new(opts, :rank, ref.rank)) |> step({:of, ref})

  def of(gang, refs, opts), do: gang |> new(opts) |> step({:of, refs})

  @doc "Brings a tensor to each member, as `RankBridge.put/3`; in one rank's part, one tensor to that rank."
  @spec put(t(), [Tensor.like()] | Tensor.like(), keyword()) :: t()
  def put(pipeline, tensors, opts \\ []), do: step(pipeline, {:put, tensors, opts})

  @doc "Makes a tensor on each member, as `RankBridge.create/4`; in one rank's part, one on that rank."
  @spec create(t(), Dtype.t(), Tensor.shape(), keyword()) :: t()
  def create(pipeline, dtype, shape, opts \\ []),
    do: step(pipeline, {:create, dtype, shape, opts})

  # A collective that takes refs is a step; so is one that takes and gives nothing.
  texts = for function <- Collectives.__with_bang__(), do: {function.name, function.doc}

  for name <- Declaration.names(),
      declaration = Declaration.of(name),
      declaration.called_on == :group,
      declaration.takes == :refs or {declaration.takes, declaration.gives} == {:nothing, :nothing} do
    [what | _details] = texts |> Keyword.fetch!(name) |> String.split("\n\n")

    input =
      if declaration.takes == :refs,
        do: "`RankBridge.#{name}/3` of what the last step gave, with its options.",
        else: "`RankBridge.#{name}/2`, with its options. What the last step gave stays."

    @doc "#{String.trim(what)}\n\nAs a step: #{input}"
    @spec unquote(name)(t(), keyword()) :: t()
    def unquote(name)(pipeline, opts \\ []), do: step(pipeline, {unquote(name), opts})
  end

  @doc """
  Calls a function with the result of the last step (refs, or one ref), and goes on with the function's result.

      Pipeline.then(pipeline, fn refs -> RankBridge.reduce_scatter(gang, refs, sizes: [1, 2, 3]) end, release: true)

  As with `RankBridge.run/3`, the function gives `{:ok, value}`, any other value, or `{:error, error}`, which ends the pipeline.
  Option `:release`: true if the pipeline owns the refs in that value from now on, and releases them at its end, except
  refs that the pipeline had before (default false).
  """
  @spec then(t(), (term() -> term()), keyword()) :: t()
  def then(pipeline, fun, opts \\ []) when is_function(fun, 1),
    do: step(pipeline, {:then, fun, Keyword.validate!(opts, release: false)})

  @doc "Calls a function with the result of the last step, and goes on with that same result."
  @spec tap(t(), (term() -> term())) :: t()
  def tap(pipeline, fun) when is_function(fun, 1), do: step(pipeline, {:tap, fun})

  defp step(%__MODULE__{} = pipeline, step), do: %{pipeline | steps: [step | pipeline.steps]}

  @doc """
  Runs the pipeline, and gives what its last step gave, with a tensor for each ref: a list of them, nil for members that got
  nothing; in one rank's part, one tensor. Releases all that it made.
  """
  @spec get(t()) :: {:ok, fetched()} | {:error, Error.t()}
  def get(pipeline), do: Running.run(pipeline, :get)

  @doc "As `get/1`; raises the error."
  @spec get!(t()) :: fetched()
  def get!(pipeline), do: bang(get(pipeline))

  @doc """
  Runs the pipeline, and gives what its last step gave: a list of refs, or one ref. They are the caller's; what else it made
  is released.
  """
  @spec refs(t()) :: {:ok, term()} | {:error, Error.t()}
  def refs(pipeline), do: Running.run(pipeline, :refs)

  @doc "As `refs/1`; raises the error."
  @spec refs!(t()) :: term()
  def refs!(pipeline), do: bang(refs(pipeline))

  @doc "Runs the pipeline for what it does, as to refs that were there before. Releases all that it made."
  @spec run(t()) :: :ok | {:error, Error.t()}
  def run(pipeline) do
    with {:ok, _value} <- Running.run(pipeline, :run), do: :ok
  end

  @doc "As `run/1`; raises the error."
  @spec run!(t()) :: :ok
  def run!(pipeline) do
    with {:error, error} <- run(pipeline), do: raise(error)
  end

  defp bang({:ok, value}), do: value
  defp bang({:error, error}), do: raise(error)

  defimpl Inspect do
    @most 8

    def inspect(pipeline, _options) do
      names = pipeline.steps |> Enum.reverse() |> Enum.map(&elem(&1, 0))
      rank = if pipeline.rank, do: ", rank #{Kernel.inspect(pipeline.rank)}", else: ""

      "#RankBridge.Pipeline<#{Kernel.inspect(pipeline.gang)}#{rank}#{group(pipeline)}: #{steps(names)}>"
    end

    defp group(%{common: common}) do
      case common[:group] do
        nil -> ""
        group -> " in #{Kernel.inspect(RankBridge.Group.name(group))}"
      end
    end

    defp steps([]), do: "nothing"

    defp steps(names) do
      {first, others} = Enum.split(names, @most)
      shown = Enum.join(first, ", ")
      if others == [], do: shown, else: "#{shown}, and #{length(others)} more"
    end
  end
end
