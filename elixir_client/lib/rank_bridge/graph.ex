defmodule RankBridge.Graph do
  @moduledoc """
  Collectives that the members of one group have recorded, and can run again in one call. A graph is plain data: these
  functions call no rank. See `RankBridge.Graphs`.

  * `name` - unique in its session
  * `group` - name of the group
  * `session_id` - session that has it, and whose refs it reads and fills; empty: the ranks' shared sessions
  * `ranks` - ranks of the gang that have recorded it, in group order
  * `operations` - the collectives, in order: `:all_reduce`; one that this client does not know is a text. Empty as long
    as they are being recorded
  """

  alias RankBridge.Operations.Declaration
  alias RankBridge.Proto.V1

  @type t :: %__MODULE__{
          name: String.t(),
          group: String.t(),
          session_id: String.t(),
          ranks: [non_neg_integer()],
          operations: [atom() | String.t()]
        }

  @enforce_keys [:name, :ranks]
  defstruct [:name, :ranks, group: "world", session_id: "", operations: []]

  @doc """
  The graph that the ranks of a session describe.

      iex> proto = %RankBridge.Proto.V1.Graph{name: "g", group: "world", operations: ["barrier", "all_reduce"]}
      iex> RankBridge.Graph.from_proto(proto, "", [0, 1]).operations
      [:barrier, :all_reduce]
  """
  @spec from_proto(V1.Graph.t(), String.t(), [non_neg_integer()]) :: t()
  def from_proto(%V1.Graph{} = graph, session_id, ranks) do
    %__MODULE__{
      name: graph.name,
      group: graph.group,
      session_id: session_id,
      ranks: ranks,
      operations: Enum.map(graph.operations, &operation/1)
    }
  end

  defp operation(name), do: Enum.find(Declaration.names(), name, &("#{&1}" == name))

  defimpl Inspect do
    def inspect(graph, _options) do
      place = "#{Kernel.inspect(graph.name)} of group #{Kernel.inspect(graph.group)}"
      ranks = RankBridge.Group.listed(graph.ranks)
      "#RankBridge.Graph<#{place}, #{length(graph.operations)} operations, ranks #{ranks}>"
    end
  end
end
