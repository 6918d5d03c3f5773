defmodule RankBridge.Run.Ids do
  @moduledoc false
  # Ids of operations that the members of a run agree on without asking each other: of the run, the group, and how many
  # collectives the rank has called there.

  alias RankBridge.{Group, Id}
  alias RankBridge.Gang.View
  alias RankBridge.Operations.Declaration

  @names Declaration.names()

  @doc "The id of a new run."
  @spec new() :: String.t()
  def new, do: Id.uuid()

  @doc "Makes the calling process that of one of its members."
  @spec begin(String.t()) :: :ok
  def begin(run) do
    _previous = Process.put(__MODULE__, {run, %{}})
    :ok
  end

  @doc """
  The options of one rank's part of an operation, with the id that the other members give it, too: in the process of a run's
  member, for a collective of which nothing else is said.
  """
  @spec shared(term(), View.t(), term(), term()) :: term()
  def shared(opts, view, rank, name) do
    with {run, counts} <- Process.get(__MODULE__),
         true <- Keyword.keyword?(opts) and opts[:operation_id] == nil and together?(name, opts) do
      group = group(opts[:group])
      place = {view.gang, rank, group}
      number = Map.get(counts, place, 0)
      _before = Process.put(__MODULE__, {run, Map.put(counts, place, number + 1)})
      Keyword.put(opts, :operation_id, id(run, group, number))
    else
      _other -> opts
    end
  end

  # Whether the other members call it, too.
  defp together?(name, opts),
    do: name in @names and Declaration.of(name).called_on == :group and opts[:alone] != true

  defp group(none) when none in [nil, ""], do: "world"
  defp group(group), do: Group.name(group)

  # A group's name can be as long as an id may be.
  defp id(run, group, number) do
    <<digest::binary-size(16), _rest::binary>> =
      :crypto.hash(:sha256, :erlang.term_to_binary({run, group}))

    "#{Base.encode16(digest, case: :lower)}-#{number}"
  end
end
