defmodule RankBridge.Gang.Lost do
  @moduledoc """
  The ranks that a gang has lost: the argument of its `handle_rank_lost` callback.

  * `ranks` - their numbers before the loss, ascending
  * `how` - for each, what is known: "was killed by SIGKILL", "its links were closed"
  * `policy` - what was done about it: `:replace` or `:shrink`
  * `generation` - the one formed since
  * `moved` - with `:shrink`, the new number of each rank that is left, by its old one; with `:replace`, none has moved

  ## The callback

      def reload(gang, %RankBridge.Gang.Lost{ranks: ranks}) do
        for rank <- ranks, do: RankBridge.put_rank!(gang, rank, MyApp.weights())
        :ok
      end

      {RankBridge.Gang, name: MyGang, size: 4, handle_rank_lost: &MyApp.reload/2}

  It runs once the new generation is formed, in a process of its own; calls that it, or a task that it starts, makes on
  the gang go through, and calls of other processes wait until the callback has returned `:ok`. If it returns anything else, or
  raises, the gang ends, and its supervisor decides. If more ranks are lost meanwhile, it is called again for all of them.
  """

  alias RankBridge.{Gang, Ranks, RankStatus, Ref}
  alias RankBridge.Gang.View

  @type t :: %__MODULE__{
          ranks: [non_neg_integer()],
          how: %{non_neg_integer() => String.t()},
          policy: :replace | :shrink,
          generation: pos_integer(),
          moved: %{non_neg_integer() => non_neg_integer()}
        }

  @enforce_keys [:ranks, :how, :policy, :generation]
  defstruct [:ranks, :how, :policy, :generation, moved: %{}]

  @typedoc "Called with the gang and the lost ranks, and then the arguments, if there are any."
  @type callback :: (Gang.gang(), t() -> :ok | term()) | {module(), atom(), [term()]}

  @doc false
  @spec callback?(term()) :: boolean()
  def callback?(nil), do: true

  def callback?({module, function, arguments}),
    do: is_atom(module) and is_atom(function) and is_list(arguments)

  def callback?(other), do: is_function(other, 2)

  @doc false
  # A failure includes the ranks' statuses: the callback may have failed because more ranks were lost.
  @spec tell(callback() | nil, Gang.gang(), t(), View.t()) ::
          :ok | {:failed, reason :: term(), [RankStatus.t()]}
  def tell(callback, gang, lost, view) do
    with {:failed, reason} <- called(callback, gang, lost), do: failed(reason, view)
  end

  @doc false
  @spec failed(term(), View.t()) :: {:failed, reason :: term(), [RankStatus.t()]}
  def failed(reason, view) do
    {:ok, statuses} = Ranks.status(view, [])
    {:failed, reason, statuses}
  end

  defp called(callback, gang, lost) do
    case call(callback, gang, lost) do
      :ok -> :ok
      other -> {:failed, {:shutdown, {:handle_rank_lost, other}}}
    end
  catch
    :error, reason -> {:failed, {reason, __STACKTRACE__}}
    :throw, value -> {:failed, {{:nocatch, value}, __STACKTRACE__}}
    :exit, reason -> {:failed, reason}
  end

  defp call(nil, _gang, _lost), do: :ok

  defp call({module, function, arguments}, gang, lost),
    do: apply(module, function, [gang, lost | arguments])

  defp call(function, gang, lost), do: function.(gang, lost)

  @doc """
  Refs after the loss: without the refs of lost ranks, and with the new numbers of ranks that have moved.

      iex> lost = %RankBridge.Gang.Lost{ranks: [0], how: %{}, policy: :shrink, generation: 2, moved: %{1 => 0}}
      iex> RankBridge.Gang.Lost.kept(lost, [%RankBridge.Ref{id: "a", rank: 0}, %RankBridge.Ref{id: "b", rank: 1}])
      [%RankBridge.Ref{id: "b", rank: 0}]
  """
  @spec kept(t(), [Ref.t()]) :: [Ref.t()]
  def kept(lost, refs) do
    for ref <- refs,
        ref.rank not in lost.ranks,
        do: %{ref | rank: Map.get(lost.moved, ref.rank, ref.rank)}
  end
end
