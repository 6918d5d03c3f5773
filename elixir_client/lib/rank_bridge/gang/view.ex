defmodule RankBridge.Gang.View do
  @moduledoc """
  What a caller needs of a gang to call its ranks from its own process.

  * `ranks` - a channel for each rank, by rank
  * `targets` - the targets that the channels were opened with, by rank
  * `session_id` - session of the gang's refs; empty: each rank's shared session
  * `lease` - of that session, in milliseconds; 0: it has none
  * `timeout` - default for calls, in milliseconds
  * `groups` - public table of the members of groups, by name
  """

  alias RankBridge.{Error, Gang, Transport}

  @type t :: %__MODULE__{
          ranks: %{non_neg_integer() => Transport.channel()},
          targets: %{non_neg_integer() => String.t()},
          session_id: String.t(),
          lease: non_neg_integer(),
          timeout: pos_integer(),
          groups: :ets.table()
        }

  @enforce_keys [:ranks, :targets, :timeout, :groups]
  defstruct [:ranks, :targets, :timeout, :groups, session_id: "", lease: 0]

  @doc "Makes the view known under these names, for as long as the calling process lives."
  @spec publish(t(), [term()]) :: :ok
  def publish(%__MODULE__{} = view, names) do
    for name <- names, do: {:ok, _owner} = Registry.register(RankBridge.Registry, name, view)
    :ok
  end

  @doc "The view of a gang."
  @spec fetch(Gang.gang()) :: {:ok, t()} | {:error, Error.t()}
  def fetch(gang) do
    # The registry may know a gang for a moment after it has ended.
    case for {pid, view} <- Registry.lookup(RankBridge.Registry, gang),
             Process.alive?(pid),
             do: view do
      [view] -> {:ok, view}
      [] -> {:error, Error.refusal(:unavailable, "there is no gang #{inspect(gang)}")}
    end
  end

  @doc "What a function gives for the view of a gang, or why there is none."
  @spec with_view(Gang.gang(), (t() -> result)) :: result | {:error, Error.t()}
        when result: :ok | {:ok, term()} | {:error, Error.t()}
  def with_view(gang, fun), do: with({:ok, view} <- fetch(gang), do: fun.(view))

  @doc "Number of ranks."
  @spec size(t()) :: pos_integer()
  def size(view), do: map_size(view.ranks)

  @doc "Every rank, ascending."
  @spec all_ranks(t()) :: [non_neg_integer()]
  def all_ranks(view), do: Enum.to_list(0..(size(view) - 1))

  @doc "Checks that a rank is one of the gang's."
  @spec check_rank(t(), term(), String.t()) :: :ok | {:error, Error.t()}
  def check_rank(view, rank, operation) do
    if is_map_key(view.ranks, rank) do
      :ok
    else
      {:error,
       Error.refusal(:rank_out_of_range, "the gang has no rank #{inspect(rank)}",
         operation: operation,
         expected: "0 to #{size(view) - 1}",
         got: inspect(rank)
       )}
    end
  end
end
