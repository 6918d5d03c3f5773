defmodule RankBridge.Group do
  @moduledoc """
  Some ranks of the gang, in order, under a name, with the place of each. These functions call no rank.

  * `name` - unique in the gang
  * `ranks` - ranks of the gang in group order: the i-th has rank_in_group i
  * `backend` - what moves its data: "gloo", "fake"
  * `generation` - in which it was formed
  * `rank_in_group` - place of the rank that was asked; nil: it is not a member, or no one rank was asked
  * `sequence` - operations that were admitted so far, by the count of the rank that was asked
  * `places` - where each member runs, in group order; nil of one that could not be asked. Empty: none was asked

  Functions that take a `rank` - always one of the gang - raise a `RankBridge.Error` if it is not a member.

      iex> group = %RankBridge.Group{name: "odd", ranks: [5, 0, 3]}
      iex> {RankBridge.Group.rank_in_group(group, 3), RankBridge.Group.next_rank(group, 3)}
      {2, 5}
      iex> {RankBridge.Group.first_rank(group), RankBridge.Group.last_rank?(group, 3)}
      {5, true}
  """

  alias RankBridge.{Error, Place}
  alias RankBridge.Proto.V1

  @type t :: %__MODULE__{
          name: String.t(),
          ranks: [non_neg_integer()],
          backend: String.t(),
          generation: non_neg_integer(),
          rank_in_group: non_neg_integer() | nil,
          sequence: non_neg_integer(),
          places: [Place.t() | nil]
        }

  @enforce_keys [:name, :ranks]
  defstruct [
    :name,
    :ranks,
    backend: "",
    generation: 0,
    rank_in_group: nil,
    sequence: 0,
    places: []
  ]

  @doc "The group that a rank described."
  @spec from_proto(V1.Group.t()) :: t()
  def from_proto(%V1.Group{} = group) do
    fields = [:name, :ranks, :backend, :generation, :rank_in_group, :sequence]
    struct!(__MODULE__, Map.take(group, fields))
  end

  @doc "A group as the gang sees it: without the place of the rank that was asked."
  @spec of_gang(t()) :: t()
  def of_gang(%__MODULE__{} = group), do: %{group | rank_in_group: nil}

  @doc "Its name, or the name itself."
  @spec name(t() | name) :: String.t() | name when name: term()
  def name(%__MODULE__{name: name}), do: name
  def name(name), do: name

  @doc "Number of members."
  @spec world_size(t()) :: pos_integer()
  def world_size(%__MODULE__{ranks: ranks}), do: length(ranks)

  @doc "Whether a rank of the gang is a member."
  @spec member?(t(), term()) :: boolean()
  def member?(%__MODULE__{ranks: ranks}, rank), do: rank in ranks

  @doc "Rank in the gang of the member whose rank_in_group is 0. It need not be the lowest."
  @spec first_rank(t()) :: non_neg_integer()
  def first_rank(%__MODULE__{ranks: [first | _others]}), do: first

  @doc "Rank in the gang of the member whose rank_in_group is the highest. It need not be the highest rank in the gang."
  @spec last_rank(t()) :: non_neg_integer()
  def last_rank(%__MODULE__{ranks: ranks}), do: List.last(ranks)

  @doc "Rank in the gang of the member at a place."
  @spec rank_at(t(), non_neg_integer()) :: non_neg_integer()
  def rank_at(%__MODULE__{} = group, rank_in_group) do
    if is_integer(rank_in_group) and rank_in_group in 0..(world_size(group) - 1) do
      Enum.at(group.ranks, rank_in_group)
    else
      raise Error.refusal(
              :rank_out_of_range,
              "group #{inspect(group.name)} has no rank_in_group #{inspect(rank_in_group)}",
              group: group.name,
              operation: "rank_at",
              expected: "0 to #{world_size(group) - 1}",
              got: inspect(rank_in_group)
            )
    end
  end

  @doc "A member's place in the group."
  @spec rank_in_group(t(), non_neg_integer()) :: non_neg_integer()
  def rank_in_group(%__MODULE__{} = group, rank) do
    Enum.find_index(group.ranks, &(&1 == rank)) ||
      raise Error.refusal(
              :invalid_argument,
              "rank #{inspect(rank)} is not a member of group #{inspect(group.name)}",
              group: group.name,
              operation: "member",
              expected: "one of ranks #{listed(group.ranks)}",
              got: inspect(rank)
            )
  end

  @doc "Whether it is the group's first member."
  @spec first_rank?(t(), non_neg_integer()) :: boolean()
  def first_rank?(group, rank), do: rank_in_group(group, rank) == 0

  @doc "Whether it is the group's last member."
  @spec last_rank?(t(), non_neg_integer()) :: boolean()
  def last_rank?(group, rank), do: rank_in_group(group, rank) == world_size(group) - 1

  @doc "Whether the rank is the group's first member, which does what only one member should do. As `is_master` of optimus-dl."
  @spec master?(t(), non_neg_integer()) :: boolean()
  def master?(group, rank), do: first_rank?(group, rank)

  @doc """
  Whether it is the first member on its host. As `is_local_master` of optimus-dl. Raises a `RankBridge.Error` if the host
  of some member is not known.
  """
  @spec local_master?(t(), non_neg_integer()) :: boolean()
  def local_master?(group, rank) do
    _place = rank_in_group(group, rank)
    Enum.any?(by_host(group), fn {_host, ranks} -> hd(ranks) == rank end)
  end

  @doc "Rank in the gang of the member after it; after the last comes the first."
  @spec next_rank(t(), non_neg_integer()) :: non_neg_integer()
  def next_rank(group, rank),
    do: Enum.at(group.ranks, rem(rank_in_group(group, rank) + 1, world_size(group)))

  @doc "Rank in the gang of the member before it; before the first comes the last."
  @spec prev_rank(t(), non_neg_integer()) :: non_neg_integer()
  def prev_rank(group, rank), do: Enum.at(group.ranks, rank_in_group(group, rank) - 1)

  @doc "Name of a member's host. nil: not known."
  @spec host(t(), non_neg_integer()) :: String.t() | nil
  def host(group, rank), do: with(%Place{host: host} <- place(group, rank), do: host)

  @doc "A member's rank on its host. nil: not known."
  @spec local_rank(t(), non_neg_integer()) :: non_neg_integer() | nil
  def local_rank(group, rank),
    do: with(%Place{local_rank: local_rank} <- place(group, rank), do: local_rank)

  defp place(group, rank), do: Enum.at(group.places, rank_in_group(group, rank))

  @doc """
  The members on each host, in group order; hosts in the order of their first members. Raises a `RankBridge.Error` if
  the host of some member is not known.
  """
  @spec by_host(t()) :: [{String.t(), [non_neg_integer()]}]
  def by_host(%__MODULE__{places: places} = group) do
    if places == [] or nil in places do
      raise Error.refusal(
              :invalid_argument,
              "the hosts of group #{inspect(group.name)} are not known",
              group: group.name,
              operation: "by_host",
              expected: "a group that was asked for by its name, all of whose members answered",
              got: "places of #{Enum.count(places, & &1)} of #{world_size(group)} members"
            )
    else
      Place.by_host(group.ranks, Enum.map(places, & &1.host))
    end
  end

  @doc """
  Ranks, written for people: of a thousand, the first eight and the number of the others.

      iex> RankBridge.Group.listed(Enum.to_list(0..9))
      "[0, 1, 2, 3, 4, 5, 6, 7 and 2 more]"
  """
  @spec listed([term()]) :: String.t()
  def listed(ranks) do
    {shown, others} = Enum.split(ranks, 8)
    more = if others == [], do: "", else: " and #{length(others)} more"
    "[#{Enum.map_join(shown, ", ", &inspect/1)}#{more}]"
  end

  defimpl Inspect do
    def inspect(group, _options) do
      ranks = RankBridge.Group.listed(group.ranks)
      "#RankBridge.Group<#{Kernel.inspect(group.name)}, ranks #{ranks}>"
    end
  end
end
