defmodule RankBridge.Layout do
  @moduledoc """
  Who does what among the ranks of a gang: which train, which keep buffers, which coordinate. Nothing here asks a rank;
  `RankBridge.Meshes.new_layout/3` makes the groups.

      iex> layout = RankBridge.Layout.by_host!(["a", "a", "a", "b", "b", "b"], buffers: 2)
      iex> {layout.trainers, layout.buffers}
      {[0, 1, 3, 4], [2, 5]}
      iex> RankBridge.Layout.buffer_of(layout, 3)
      5

  Its groups are "layout/train" of all trainers, "layout/buffer" of all buffers (if there are any), and
  "layout/agent/i" of the i-th agent group: trainers that average their models together.

  * `name` - what the names of its groups begin with
  * `size` - ranks in the gang
  * `trainers` - ranks that train; `buffers` - ranks that keep a buffer; both in the order of the teams
  * `coordinators` - ranks that coordinate: the last ones
  * `teams` - the trainers of each buffer; without buffers: those of each host, or all
  * `agent_groups` - the trainers of each agent group, equally many in each
  * `hosts` - host of each rank; empty: the layout does not depend on them
  * `backend` - what moves its groups' data; empty: they have not been made
  * `generation` - in which its groups were made; 0: they have not been made

  Functions that take a rank raise a `RankBridge.Error` if there is no such rank.
  """

  alias RankBridge.{Error, Group, Place}

  @type role :: :trainer | :buffer | :coordinator

  @type t :: %__MODULE__{
          name: String.t(),
          size: pos_integer(),
          trainers: [non_neg_integer()],
          buffers: [non_neg_integer()],
          coordinators: [non_neg_integer()],
          teams: [[non_neg_integer()]],
          agent_groups: [[non_neg_integer()]],
          hosts: [String.t()],
          backend: String.t(),
          generation: non_neg_integer()
        }

  @enforce_keys [:name, :size, :trainers, :buffers, :coordinators, :teams, :agent_groups]
  defstruct [
    :name,
    :size,
    :trainers,
    :buffers,
    :coordinators,
    :teams,
    :agent_groups,
    hosts: [],
    backend: "",
    generation: 0
  ]

  @options [buffers: 0, agent_groups: 1, coordinators: 0, name: "layout"]

  @doc """
  Trainers first, then buffers, then coordinators; the i-th trainer uses buffer i modulo their number.

  `size` is the number of ranks in the gang. Options:

    * `:buffers` - how many ranks keep a buffer, at most as many as train; 0
    * `:agent_groups` - how many groups of trainers; divides the number of trainers; 1
    * `:coordinators` - how many ranks coordinate; 0
    * `:name` - what the names of the groups shall begin with; "layout"
  """
  @spec in_blocks(pos_integer(), keyword()) :: {:ok, t()} | {:error, Error.t()}
  def in_blocks(size, opts \\ []) do
    with {:ok, opts} <- options(size, opts) do
      training = size - opts.buffers - opts.coordinators
      trainers = Enum.to_list(0..(training - 1)//1)

      turns =
        for first <- 0..(opts.buffers - 1)//1,
            do: trainers |> Enum.drop(first) |> Enum.take_every(opts.buffers)

      if training < max(1, opts.buffers) do
        {:error,
         refusal(
           opts.name,
           "too few ranks are left to train",
           "#{max(1, opts.buffers)} or more of #{size}",
           "#{training}, with #{opts.buffers} buffers and #{opts.coordinators} coordinators"
         )}
      else
        finish(opts, %{
          size: size,
          trainers: trainers,
          buffers: Enum.to_list(training..(training + opts.buffers - 1)//1),
          coordinators: Enum.to_list((training + opts.buffers)..(size - 1)//1),
          teams: if(turns == [], do: [trainers], else: turns)
        })
      end
    end
  end

  @doc "As `in_blocks/2`; raises the error."
  @spec in_blocks!(pos_integer(), keyword()) :: t()
  def in_blocks!(size, opts \\ []), do: bang(in_blocks(size, opts))

  @doc """
  Splits each host's ranks evenly into teams: some trainers, and last the buffer that is theirs.

  If the hosts cannot have equally many buffers, all ranks, host by host, are split evenly instead; then teams may span
  hosts, which `warnings/1` reports. Coordinators are the last ranks of the gang.

  `hosts` is the host of each rank, by rank: `RankBridge.Generations.hosts/2`. Options as of `in_blocks/2`.
  """
  @spec by_host([String.t()], keyword()) :: {:ok, t()} | {:error, Error.t()}
  def by_host(hosts, opts \\ []) do
    size = if is_list(hosts), do: length(hosts), else: 0

    with {:ok, opts} <- options(size, opts),
         {:ok, working} <- working(size, opts),
         there = Place.by_host(working, Enum.take(hosts, length(working))),
         {:ok, teams} <- teams(there, opts) do
      {trainers, buffers} = Enum.unzip(teams)

      finish(opts, %{
        size: size,
        trainers: Enum.concat(trainers),
        buffers: Enum.concat(buffers),
        coordinators: Enum.to_list(length(working)..(size - 1)//1),
        teams: trainers,
        hosts: hosts
      })
    end
  end

  @doc "As `by_host/2`; raises the error."
  @spec by_host!([String.t()], keyword()) :: t()
  def by_host!(hosts, opts \\ []), do: bang(by_host(hosts, opts))

  defp working(size, %{coordinators: coordinators}) when size > coordinators,
    do: {:ok, Enum.to_list(0..(size - coordinators - 1))}

  defp working(size, opts) do
    expected = "#{opts.coordinators + 1} ranks or more"
    {:error, refusal(opts.name, "no rank is left to train", expected, "#{size}")}
  end

  # Each team is its trainers, and its buffer in a list, if it has one.
  defp teams(there, %{buffers: 0}), do: {:ok, for({_host, ranks} <- there, do: {ranks, []})}

  defp teams(there, opts) do
    together? = rem(opts.buffers, length(there)) == 0
    pools = if together?, do: there, else: [{nil, Enum.flat_map(there, &elem(&1, 1))}]
    count = div(opts.buffers, length(pools))

    case Enum.find(pools, fn {_host, ranks} -> length(ranks) < 2 * count end) do
      nil ->
        {:ok,
         for {_host, ranks} <- pools, team <- split_evenly(ranks, count) do
           Enum.split(team, -1)
         end}

      {host, ranks} ->
        where = if together?, do: "host #{inspect(host)} has", else: "there are"
        message = "#{where} too few ranks for #{count} #{if count > 1, do: "teams", else: "team"}"
        expected = "#{2 * count} or more: a buffer and a trainer at least for each"
        {:error, refusal(opts.name, message, expected, "#{length(ranks)}")}
    end
  end

  defp finish(opts, parts) do
    number = opts.agent_groups
    count = length(parts.trainers)

    if rem(count, number) == 0 do
      groups = split_evenly(parts.trainers, number)
      {:ok, struct!(__MODULE__, Map.merge(parts, %{name: opts.name, agent_groups: groups}))}
    else
      message = "the trainers cannot be split into equal agent groups"
      {:error, refusal(opts.name, message, "a multiple of #{number} trainers", "#{count}")}
    end
  end

  @doc """
  Cuts ranks into parts whose sizes differ by one at most, the larger ones first.

      iex> RankBridge.Layout.split_evenly([0, 1, 2, 3, 4], 2)
      [[0, 1, 2], [3, 4]]
  """
  @spec split_evenly([rank], pos_integer()) :: [[rank]] when rank: term()
  def split_evenly(ranks, parts) do
    {least, longer} = {div(length(ranks), parts), rem(length(ranks), parts)}
    sizes = for part <- 0..(parts - 1), do: least + if(part < longer, do: 1, else: 0)
    {split, []} = Enum.map_reduce(sizes, ranks, &Enum.split(&2, &1))
    split
  end

  @doc "What a rank does."
  @spec role(t(), non_neg_integer()) :: role()
  def role(layout, rank) do
    cond do
      rank in layout.buffers ->
        :buffer

      rank in layout.coordinators ->
        :coordinator

      rank in layout.trainers ->
        :trainer

      true ->
        message = "rank #{inspect(rank)} is not in it"
        raise refusal(layout.name, message, "0 to #{layout.size - 1}", inspect(rank))
    end
  end

  @doc "The buffer that a trainer uses. nil: there are none, or the rank is no trainer."
  @spec buffer_of(t(), non_neg_integer()) :: non_neg_integer() | nil
  def buffer_of(layout, rank) do
    if role(layout, rank) == :trainer do
      Enum.find_value(Enum.zip(layout.buffers, layout.teams), fn {buffer, team} ->
        if rank in team, do: buffer
      end)
    end
  end

  @doc "The trainers that use a buffer. Empty: the rank is no buffer."
  @spec trainers_of(t(), non_neg_integer()) :: [non_neg_integer()]
  def trainers_of(layout, rank) do
    if role(layout, rank) == :buffer,
      do: Enum.at(layout.teams, Enum.find_index(layout.buffers, &(&1 == rank))),
      else: []
  end

  @doc "The number of a trainer's agent group. nil: the rank is no trainer."
  @spec agent_group_of(t(), non_neg_integer()) :: non_neg_integer() | nil
  def agent_group_of(layout, rank) do
    if role(layout, rank) == :trainer,
      do: Enum.find_index(layout.agent_groups, &(rank in &1))
  end

  @doc "Warnings of traffic between hosts that another layout could avoid: of buffers and their trainers, then of agent groups."
  @spec warnings(t()) :: [String.t()]
  def warnings(%__MODULE__{hosts: []}), do: []

  def warnings(layout) do
    host = &Enum.at(layout.hosts, &1)

    buffers =
      for buffer <- layout.buffers,
          far = Enum.filter(trainers_of(layout, buffer), &(host.(&1) != host.(buffer))),
          far != [] do
        "buffer #{buffer} on host #{inspect(host.(buffer))} serves ranks #{Group.listed(far)} of other hosts; " <>
          "none would, with equally many buffers on each host"
      end

    agent_groups =
      for {group, number} <- Enum.with_index(layout.agent_groups),
          spanned = group |> Enum.map(host) |> Enum.uniq(),
          length(spanned) > 1,
          do: "agent group #{number} spans hosts #{Enum.map_join(spanned, ", ", &inspect/1)}"

    buffers ++ agent_groups
  end

  @doc "The group of all trainers."
  @spec train_group(t()) :: Group.t()
  def train_group(layout), do: group(layout, "train", layout.trainers)

  @doc "The group of all buffers. nil: there are none."
  @spec buffer_group(t()) :: Group.t() | nil
  def buffer_group(%__MODULE__{buffers: []}), do: nil
  def buffer_group(layout), do: group(layout, "buffer", layout.buffers)

  @doc "The group of one agent group, by its number."
  @spec agent_group(t(), non_neg_integer()) :: Group.t()
  def agent_group(layout, number) do
    last = length(layout.agent_groups) - 1

    if is_integer(number) and number in 0..last do
      group(layout, "agent/#{number}", Enum.at(layout.agent_groups, number))
    else
      message = "there is no such agent group"
      raise refusal(layout.name, message, "0 to #{last}", inspect(number))
    end
  end

  @doc "Every group of the layout."
  @spec groups(t()) :: [Group.t()]
  def groups(layout) do
    agents = for number <- 0..(length(layout.agent_groups) - 1), do: agent_group(layout, number)
    Enum.reject([train_group(layout), buffer_group(layout) | agents], &is_nil/1)
  end

  defp group(layout, part, ranks) do
    %Group{
      name: "#{layout.name}/#{part}",
      ranks: ranks,
      backend: layout.backend,
      generation: layout.generation
    }
  end

  defp options(size, opts) do
    with true <- Keyword.keyword?(opts),
         {:ok, opts} <- Keyword.validate(opts, @options),
         opts = Map.new(opts),
         true <- is_binary(opts.name) and opts.name != "",
         true <- count?(size, 1) and count?(opts.buffers, 0),
         true <- count?(opts.agent_groups, 1) and count?(opts.coordinators, 0) do
      {:ok, opts}
    else
      _wrong ->
        expected =
          "a name, 1 rank or more, 0 buffers or more, 1 agent group or more, 0 coordinators or more"

        {:error, refusal("", "bad numbers", expected, "#{inspect(size)} ranks, #{inspect(opts)}")}
    end
  end

  defp count?(number, least), do: is_integer(number) and number >= least

  defp bang({:ok, layout}), do: layout
  defp bang({:error, error}), do: raise(error)

  defp refusal(name, message, expected, got) do
    Error.refusal(:invalid_argument, "layout #{inspect(name)}: #{message}",
      operation: "layout",
      expected: expected,
      got: got
    )
  end

  defimpl Inspect do
    def inspect(layout, _options) do
      roles =
        for role <- [:trainers, :buffers, :coordinators],
            do: "#{length(Map.fetch!(layout, role))} #{role}"

      "#RankBridge.Layout<#{Kernel.inspect(layout.name)}, #{Enum.join(roles, ", ")}>"
    end
  end
end
