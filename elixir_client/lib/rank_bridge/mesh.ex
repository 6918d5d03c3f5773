defmodule RankBridge.Mesh do
  @moduledoc """
  Ranks in row-major order along named axes, and one group for each line of each axis. Nothing here asks a rank;
  `RankBridge.Meshes.new_mesh/3` makes the groups.

      iex> mesh = RankBridge.Mesh.plan!([dp: 2, tp: 2], 4)
      iex> RankBridge.Mesh.coordinates(mesh, 2)
      [dp: 1, tp: 0]
      iex> group = RankBridge.Mesh.group(mesh, :dp, 2)
      iex> {group.name, group.ranks}
      {"mesh/dp/0", [0, 2]}

  A dimension of a mesh is called an axis; `dim` is of tensors. The line of a rank along an axis are the ranks that
  differ from it in that axis's coordinate alone. A flattened axis stands for several: its lines are of the ranks that
  differ in any of them. `:local` is the axis of those on one host. Wherever an axis is asked for, its name may be any
  of these, as an atom or a text. The i-th line of axis `:tp`, counted in the order of their first ranks in the mesh,
  is the group "mesh/tp/i".

  Every axis has groups of its own, one of size 1 too (each of its lines is one rank), so that a program need not know
  the sizes, and operations along one axis are not in the order of another.

  * `name` - what the names of its groups begin with
  * `axes` - names of the axes, outermost first; `sizes` - size of each
  * `ranks` - ranks of the gang in row-major order: the last axis changes fastest
  * `flattened` - names of flattened axes, each with the axes that it stands for
  * `local` - whether it has the axis `:local`
  * `places` - where each rank runs, in the order of `ranks`; empty: not asked for
  * `backend` - what moves its groups' data; empty: they have not been made
  * `generation` - in which its groups were seen last; 0: they have not been made

  Functions raise a `RankBridge.Error` if there is no such axis, or the rank is not in the mesh.
  """

  alias RankBridge.{Error, Group, Place}

  @type axis :: atom() | String.t()

  @type t :: %__MODULE__{
          name: String.t(),
          axes: [axis()],
          sizes: [pos_integer()],
          ranks: [non_neg_integer()],
          flattened: [{axis(), [axis()]}],
          local: boolean(),
          places: [Place.t()],
          backend: String.t(),
          generation: non_neg_integer()
        }

  @enforce_keys [:name, :axes, :sizes, :ranks]
  defstruct [
    :name,
    :axes,
    :sizes,
    :ranks,
    flattened: [],
    local: false,
    places: [],
    backend: "",
    generation: 0
  ]

  @local "local"
  @options [name: "mesh", flattened: [], local: false, places: []]

  @doc """
  Lays ranks out; makes no groups.

  `axes` are `{name, size}`, outermost first; the size of one of them may be -1: what the others leave. `ranks` are the
  ranks in row-major order, none twice, or their number: all from 0.

  Options:

    * `:name` - what the names of the groups shall begin with; "mesh"
    * `:flattened` - the axes that each flattened axis stands for, as `[dp: [:dp_replicate, :dp_shard]]`
    * `:local` - true: the mesh has the axis `:local`, which needs `:places`
    * `:places` - a `%RankBridge.Place{host: host, local_rank: local_rank}` for each of `ranks`; default: not known
  """
  @spec plan([{axis(), integer()}], pos_integer() | [non_neg_integer()], keyword()) ::
          {:ok, t()} | {:error, Error.t()}
  def plan(axes, ranks, opts \\ []) do
    with {:ok, opts} <- options(opts),
         {:ok, axes} <- check_pairs(axes, opts.name),
         {:ok, ranks} <- check_ranks(ranks, opts.name),
         {:ok, sizes} <- sizes(axes, ranks, opts.name),
         names = Enum.map(axes, &elem(&1, 0)),
         :ok <- check_names(names, opts),
         :ok <- check_places(ranks, opts) do
      {:ok, struct!(__MODULE__, Map.merge(opts, %{axes: names, sizes: sizes, ranks: ranks}))}
    end
  end

  @doc "As `plan/3`; raises the error."
  @spec plan!([{axis(), integer()}], pos_integer() | [non_neg_integer()], keyword()) :: t()
  def plan!(axes, ranks, opts \\ []) do
    case plan(axes, ranks, opts) do
      {:ok, mesh} -> mesh
      {:error, error} -> raise error
    end
  end

  @doc "Number of ranks."
  @spec world_size(t()) :: pos_integer()
  def world_size(mesh), do: length(mesh.ranks)

  @doc "Whether a rank is in the mesh."
  @spec member?(t(), term()) :: boolean()
  def member?(mesh, rank), do: rank in mesh.ranks

  @doc "Size of each axis, outermost first."
  @spec shape(t()) :: [{axis(), pos_integer()}]
  def shape(mesh), do: Enum.zip(mesh.axes, mesh.sizes)

  @doc """
  The size of an axis; of a flattened one, the product of those that it stands for. The lines of `:local` may differ
  in size: it has none.
  """
  @spec size(t(), axis()) :: pos_integer()
  def size(mesh, axis) do
    over = over(mesh, axis)
    for({one, size} <- shape(mesh), text(one) in over, do: size) |> Enum.product()
  end

  @doc "Where a rank is: its coordinate on each axis, outermost first."
  @spec coordinates(t(), non_neg_integer()) :: [{axis(), non_neg_integer()}]
  def coordinates(mesh, rank), do: Enum.zip(mesh.axes, coordinates_at(mesh, place(mesh, rank)))

  @doc "The rank with these coordinates, one for each axis."
  @spec rank_at(t(), [{axis(), non_neg_integer()}]) :: non_neg_integer()
  def rank_at(mesh, coordinates) do
    given = Map.new(coordinates, fn {axis, coordinate} -> {text(axis), coordinate} end)
    axes = Enum.map(mesh.axes, &text/1)

    if Enum.sort(Map.keys(given)) != Enum.sort(axes) or map_size(given) != length(coordinates) do
      got = Enum.map_join(coordinates, ", ", &text(elem(&1, 0)))
      raise refusal(mesh.name, "one coordinate for each axis", Enum.join(axes, ", "), got)
    end

    place =
      for {axis, size} <- Enum.zip(axes, mesh.sizes), reduce: 0 do
        place -> place * size + check_coordinate(mesh, axis, size, given[axis])
      end

    Enum.at(mesh.ranks, place)
  end

  defp check_coordinate(_mesh, _axis, size, coordinate)
       when is_integer(coordinate) and coordinate in 0..(size - 1)//1,
       do: coordinate

  defp check_coordinate(mesh, axis, size, coordinate) do
    message = "#{title(mesh.name)}no coordinate #{inspect(coordinate)} on axis #{inspect(axis)}"

    raise Error.refusal(:rank_out_of_range, message,
            operation: "mesh",
            expected: "0 to #{size - 1}",
            got: inspect(coordinate)
          )
  end

  @doc "The ranks of every line along an axis, in the order in which their groups are numbered."
  @spec lines(t(), axis()) :: [[non_neg_integer()]]
  def lines(mesh, axis) do
    if mesh.local and text(axis) == @local do
      hosts = Enum.map(mesh.places, & &1.host)
      for {_host, ranks} <- Place.by_host(mesh.ranks, hosts), do: ranks
    else
      over = over(mesh, axis)
      parted(mesh.ranks, &others(mesh, &1, over))
    end
  end

  defp others(mesh, place, over) do
    for {one, coordinate} <- Enum.zip(mesh.axes, coordinates_at(mesh, place)),
        text(one) not in over,
        do: coordinate
  end

  defp parted(ranks, key) do
    keyed = for {rank, place} <- Enum.with_index(ranks), do: {key.(place), rank}
    lines = Enum.group_by(keyed, &elem(&1, 0), &elem(&1, 1))
    keyed |> Enum.map(&elem(&1, 0)) |> Enum.uniq() |> Enum.map(&lines[&1])
  end

  @doc """
  The ranks of the line along an axis on which a rank is, in mesh order.

  Option: `:within` - another axis: only those that are on its line along that one too.
  """
  @spec line(t(), axis(), non_neg_integer(), within: axis()) :: [non_neg_integer()]
  def line(mesh, axis, rank, opts \\ []) do
    {line, _number} = numbered_line(mesh, axis, rank)

    case opts do
      [] -> line
      [within: other] -> Enum.filter(line, &(&1 in line(mesh, other, rank)))
    end
  end

  @doc "The groups of all lines of one axis, or of all."
  @spec groups(t(), axis() | nil) :: [Group.t()]
  def groups(mesh, axis \\ nil) do
    for axis <- if(axis == nil, do: all_axes(mesh), else: [axis]),
        {line, number} <- Enum.with_index(lines(mesh, axis)),
        do: make_group(mesh, axis, line, number)
  end

  @doc "The group to which a rank belongs along an axis."
  @spec group(t(), axis(), non_neg_integer()) :: Group.t()
  def group(mesh, axis, rank) do
    {line, number} = numbered_line(mesh, axis, rank)
    make_group(mesh, axis, line, number)
  end

  @doc "A rank's place in its group along an axis."
  @spec rank_in_group(t(), axis(), non_neg_integer()) :: non_neg_integer()
  def rank_in_group(mesh, axis, rank), do: mesh |> group(axis, rank) |> Group.rank_in_group(rank)

  defp make_group(mesh, axis, line, number) do
    places = Map.new(Enum.zip(mesh.ranks, mesh.places))

    %Group{
      name: "#{mesh.name}/#{axis}/#{number}",
      ranks: line,
      backend: mesh.backend,
      generation: mesh.generation,
      places: if(mesh.places == [], do: [], else: Enum.map(line, &places[&1]))
    }
  end

  defp numbered_line(mesh, axis, rank) do
    lines = Enum.with_index(lines(mesh, axis))
    _place = place(mesh, rank)
    Enum.find(lines, fn {line, _number} -> rank in line end)
  end

  defp coordinates_at(mesh, place) do
    {coordinates, 0} =
      mesh.sizes
      |> Enum.reverse()
      |> Enum.map_reduce(place, fn size, place -> {rem(place, size), div(place, size)} end)

    Enum.reverse(coordinates)
  end

  defp place(mesh, rank) do
    Enum.find_index(mesh.ranks, &(&1 == rank)) ||
      raise refusal(
              mesh.name,
              "rank #{inspect(rank)} is not in it",
              "one of #{Group.listed(mesh.ranks)}",
              inspect(rank)
            )
  end

  defp over(mesh, axis) do
    flattened = for {flat, over} <- mesh.flattened, do: {text(flat), Enum.map(over, &text/1)}
    known = Map.new(Enum.map(mesh.axes, &{text(&1), [text(&1)]}) ++ flattened)

    Map.get(known, text(axis)) ||
      raise refusal(
              mesh.name,
              "there is no such axis",
              "one of #{Enum.map_join(all_axes(mesh), ", ", &text/1)}",
              inspect(axis)
            )
  end

  defp all_axes(mesh),
    do:
      mesh.axes ++
        Enum.map(mesh.flattened, &elem(&1, 0)) ++ if(mesh.local, do: [@local], else: [])

  # --- checks of a plan ---

  defp options(opts) do
    with true <- Keyword.keyword?(opts),
         {:ok, opts} <- Keyword.validate(opts, @options),
         opts = Map.new(opts),
         true <- is_binary(opts.name) and is_boolean(opts.local) and is_list(opts.places),
         {:ok, flattened} <- flattened(opts.flattened) do
      {:ok, %{opts | flattened: flattened}}
    else
      _wrong -> {:error, refusal("", "not options of a mesh", inspect(@options), inspect(opts))}
    end
  end

  defp flattened(flattened) when is_list(flattened) or is_map(flattened) do
    pairs = Enum.to_list(flattened)

    if Enum.all?(pairs, fn pair -> named?(pair) and is_list(elem(pair, 1)) end),
      do: {:ok, pairs},
      else: :error
  end

  defp flattened(_other), do: :error

  defp check_pairs(axes, name) do
    if is_list(axes) and Enum.all?(axes, &(named?(&1) and is_integer(elem(&1, 1)))) do
      {:ok, axes}
    else
      {:error, refusal(name, "not axes", "a list of names and sizes", inspect(axes, limit: 10))}
    end
  end

  defp named?(pair),
    do: match?({axis, _value} when is_atom(axis) or is_binary(axis), pair)

  defp check_ranks(number, _name) when is_integer(number) and number > 0,
    do: {:ok, Enum.to_list(0..(number - 1))}

  defp check_ranks(ranks, name) do
    if is_list(ranks) and Enum.all?(ranks, &(is_integer(&1) and &1 >= 0)) and
         Enum.uniq(ranks) == ranks do
      {:ok, ranks}
    else
      got = if is_list(ranks), do: Group.listed(ranks), else: inspect(ranks)
      {:error, refusal(name, "each rank once", "ranks of the gang, none twice", got)}
    end
  end

  defp sizes(axes, ranks, name) do
    given = Enum.map(axes, &elem(&1, 1))
    known = given |> Enum.reject(&(&1 == -1)) |> Enum.product()
    open = Enum.count(given, &(&1 == -1))
    count = length(ranks)

    cond do
      given == [] or ranks == [] or Enum.any?(given, &(&1 < -1 or &1 == 0)) or open > 1 ->
        expected = "one axis at least, at most one of size -1"
        {:error, refusal(name, "axes of size 1 or more", expected, inspect(axes))}

      if(open == 1, do: rem(count, known) == 0, else: count == known) ->
        {:ok, Enum.map(given, &if(&1 == -1, do: div(count, known), else: &1))}

      true ->
        message = "the axes do not fit the number of ranks: #{written(axes)}"
        multiple = if open == 1, do: "a multiple of ", else: ""
        plural = if known > 1, do: "s", else: ""
        {:error, refusal(name, message, "#{multiple}#{known} rank#{plural}", "#{count}")}
    end
  end

  defp written(axes) do
    Enum.map_join(axes, " x ", fn {axis, size} ->
      "#{axis} #{if size == -1, do: "?", else: size}"
    end)
  end

  defp check_names(axes, opts) do
    flat = Enum.map(opts.flattened, &elem(&1, 0))
    every = Enum.map(axes ++ flat ++ if(opts.local, do: [@local], else: []), &text/1)
    known = Enum.map(axes, &text/1)

    wrong =
      Enum.find(opts.flattened, fn {_axis, over} ->
        over = Enum.map(over, &text/1)
        over == [] or Enum.uniq(over) != over or over -- known != []
      end)

    cond do
      opts.name == "" or Enum.uniq(every) != every or
          Enum.any?(every, &(&1 == "" or String.contains?(&1, "/"))) ->
        expected = "each of its own, not empty, without '/'"
        {:error, refusal(opts.name, "bad names", expected, Enum.join(every, ", "))}

      wrong ->
        {axis, over} = wrong
        message = "#{inspect(text(axis))} does not flatten axes"
        expected = "some of #{Enum.join(known, ", ")}"
        {:error, refusal(opts.name, message, expected, Enum.map_join(over, ", ", &text/1))}

      true ->
        :ok
    end
  end

  defp check_places(ranks, opts) do
    if (opts.local or opts.places != []) and length(opts.places) != length(ranks) do
      got = "#{length(opts.places)}"
      {:error, refusal(opts.name, "one place for each rank", "#{length(ranks)}", got)}
    else
      :ok
    end
  end

  defp text(axis), do: to_string(axis)

  defp title(name), do: "mesh #{inspect(name)}: "

  defp refusal(name, message, expected, got) do
    Error.refusal(:invalid_argument, title(name) <> message,
      operation: "mesh",
      expected: expected,
      got: got
    )
  end

  defimpl Inspect do
    def inspect(mesh, _options) do
      axes = Enum.zip_with(mesh.axes, mesh.sizes, fn axis, size -> "#{axis} #{size}" end)
      ranks = RankBridge.Group.listed(mesh.ranks)
      "#RankBridge.Mesh<#{Kernel.inspect(mesh.name)}, #{Enum.join(axes, " x ")}, ranks #{ranks}>"
    end
  end
end
