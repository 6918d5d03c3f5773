defmodule RankBridge.Gang.View do
  @moduledoc false
  # The state of a gang that a caller needs to call its ranks from its own process.
  #
  # * `channels` - the channels to its ranks, and their targets
  # * `session_id` - session of the gang's refs; empty: each rank's shared session
  # * `lease` - of that session, in milliseconds; 0: it has none
  # * `timeout` - default for calls, in milliseconds
  # * `group` - name of the group of calls that say none
  # * `calls` - default for collectives: one call to each rank, or one gang call to all of them
  # * `shared_memory?` - whether ranks on this host share memory with the gang's session
  # * `groups` - public table of the members of groups, by name
  # * `gang` - the gang's process
  # * `unready` - why the gang cannot be called now: it starts, or is being formed again; nil: it can
  # * `but_for` - a process that may call it all the same: the process of `handle_rank_lost`
  # * `when_unready` - whether calls wait then, or fail
  # * `known_as` - the gang's name, its pid if it has none; nil: it is not published yet
  # * `call_span_context` - of the public function that uses this view, see `RankBridge.Telemetry`; nil: none

  alias RankBridge.{Error, Gang, Transport}
  alias RankBridge.Gang.Channels

  @type t :: %__MODULE__{
          channels: Channels.t(),
          session_id: String.t(),
          lease: non_neg_integer(),
          timeout: pos_integer(),
          group: String.t(),
          calls: :ranks | :gang,
          groups: :ets.table(),
          shared_memory?: boolean(),
          gang: pid(),
          unready: Error.t() | nil,
          but_for: pid() | nil,
          when_unready: :wait | :fail,
          known_as: Gang.gang() | nil,
          call_span_context: term()
        }

  @enforce_keys [:channels, :timeout, :groups, :gang]
  defstruct [
    :channels,
    :timeout,
    :groups,
    :gang,
    group: "world",
    calls: :gang,
    unready: nil,
    but_for: nil,
    when_unready: :wait,
    session_id: "",
    lease: 0,
    shared_memory?: false,
    known_as: nil,
    call_span_context: nil
  ]

  @doc """
  Makes the view known under these names, the best last, for as long as the calling process lives; again if it has
  changed.
  """
  @spec publish(t(), [term()]) :: :ok
  def publish(%__MODULE__{} = view, names) do
    view = %{view | known_as: List.last(names)}

    for name <- names do
      with {:error, {:already_registered, _self}} <-
             Registry.register(RankBridge.Registry, name, view),
           do:
             {^view, _old} = Registry.update_value(RankBridge.Registry, name, fn _old -> view end)
    end

    :ok
  end

  @doc "The view of a gang. Functions on a gang have it from `RankBridge.Entry`."
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

  @doc "The view of some of its ranks, ascending, which become 0, 1, ..."
  @spec only(t(), [non_neg_integer()]) :: t()
  def only(view, ranks), do: %{view | channels: Channels.only(view.channels, ranks)}

  @doc "Number of ranks."
  @spec size(t()) :: non_neg_integer()
  def size(view), do: view.channels.size

  @doc "The channel to a rank. `:gone`: the gang has ended."
  @spec channel(t(), non_neg_integer()) :: {:ok, Transport.channel()} | :gone
  def channel(view, rank), do: Channels.fetch(view.channels, rank)

  @doc "The target that leads to a rank; empty: the gang has ended."
  @spec target(t(), non_neg_integer()) :: String.t()
  def target(view, rank), do: Channels.target(view.channels, rank)

  @doc "Every rank, ascending."
  @spec all_ranks(t()) :: [non_neg_integer()]
  def all_ranks(view), do: Enum.to_list(0..(size(view) - 1)//1)

  @doc "Checks that a rank is one of the gang's."
  @spec check_rank(t(), term(), String.t()) :: :ok | {:error, Error.t()}
  def check_rank(view, rank, operation) do
    if is_integer(rank) and rank in 0..(size(view) - 1)//1 do
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

  defimpl Inspect do
    def inspect(view, _options) do
      session =
        if view.session_id == "", do: "shared sessions", else: "session #{view.session_id}"

      "#RankBridge.Gang.View<#{Kernel.inspect(view.known_as)}, #{view.channels.size} ranks, #{session}>"
    end
  end
end
