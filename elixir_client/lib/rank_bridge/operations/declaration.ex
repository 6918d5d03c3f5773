defmodule RankBridge.Operations.Declaration do
  @moduledoc """
  The operations, each declared once: what is called, which options it has, what it takes and gives.

  One operation more is one name, one clause of `of/1` and one function on a gang.
  """

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.Rpc

  @enforce_keys [:rpc, :takes]
  defstruct [:rpc, :takes, called_on: :group, options: [], of_gang: [], of_rank: [], gives: :each]

  @typedoc """
  * `called_on` - `:group`: a call of the gang drives all members; `:gang`: the same, always as one gang call; `:rank`: each
    rank is called for itself
  * `takes` - what the members bring, see `t:takes/0`
  * `options` - name, kind and default of what the request says beside `call` and what is brought
  * `of_gang`, `of_rank` - options that only a call of the gang has, and only a call of one rank: of the gang's, each
    member's request gets its own share
  * `gives` - `:each`: what each member gets, in group order; `:nothing`: nil; `:calls`: for each of several calls what it
    gives; `:recorded`: the same of collectives that the members have recorded; `:kept`: the same of what is kept
  """
  @type t :: %__MODULE__{
          rpc: Rpc.t(),
          called_on: :group | :gang | :rank,
          takes: takes(),
          options: [option()],
          of_gang: [option()],
          of_rank: [option()],
          gives: :each | :nothing | :calls | :recorded | :kept
        }

  @typedoc """
  What is brought: nothing; refs, values or numbers, one for each member; the source's value, its list with a value for
  each member, or its map of tensors; a map of tensors of one rank; what one rank expects; calls; a program; or a graph.
  """
  @type takes ::
          :nothing
          | :refs
          | :values
          | :numbers
          | :source_value
          | :source_values
          | :source_dict
          | :dict
          | :expected
          | :calls
          | :program
          | :graph

  @type option :: {atom(), {kind(), term()}}
  @type kind ::
          :rank_in_group
          | :any_rank_in_group
          | :tag
          | :dim
          | :own_dim
          | :sizes
          | :rows_of_sizes
          | :layout
          | :queue
          | :keep
          | :reduce_op
          | :boolean

  # Each is that of a field in the message `Operation`.
  @names [:barrier, :broadcast, :gather, :all_reduce, :all_gather, :reduce, :scatter] ++
           [:reduce_scatter, :all_to_all, :scan, :broadcast_object, :scatter_object] ++
           [:gather_object, :all_gather_object, :all_reduce_value, :broadcast_tensor_dict] ++
           [:send, :recv, :send_object, :recv_object, :send_tensor_dict, :recv_tensor_dict] ++
           [:coalesce, :replay, :enqueue, :dequeue, :run_program]

  @source {:src_rank_in_group, {:rank_in_group, 0}}
  @destination {:dst_rank_in_group, {:rank_in_group, 0}}
  @op {:op, {:reduce_op, :sum}}
  @in_place {:in_place, {:boolean, false}}
  @sizes {:sizes, {:sizes, nil}}
  @layout [
    dim: {:own_dim, nil},
    sizes: {:sizes, nil},
    layout: {:layout, :concatenated},
    ragged: {:boolean, false}
  ]
  @sends [dst_rank_in_group: {:rank_in_group, nil}, tag: {:tag, 0}]
  @receives [src_rank_in_group: {:any_rank_in_group, nil}, tag: {:tag, 0}]
  @queue [queue: {:queue, nil}]

  @doc "Every operation's name, but for `:ping`, for which the ranks have no call."
  @spec names() :: [atom()]
  def names, do: @names

  @doc "Whether there is an operation of that name."
  @spec known?(term()) :: boolean()
  def known?(name), do: name == :ping or name in @names

  @doc "Whether an operation can go with others, see `RankBridge.coalesce/3` and `RankBridge.Program`."
  @spec coalesced?(t()) :: boolean()
  def coalesced?(%__MODULE__{rpc: rpc}),
    do: service(rpc) == service(V1.CollectiveService.barrier())

  defp service(%Rpc{path: path}), do: Path.dirname(path)

  @doc "Everything about the operation of a name."
  @spec of(atom()) :: t()
  def of(:barrier),
    do: %__MODULE__{rpc: V1.CollectiveService.barrier(), takes: :nothing, gives: :nothing}

  def of(:broadcast), do: on_refs(V1.CollectiveService.broadcast(), [@source, @in_place])
  def of(:scatter), do: on_refs(V1.CollectiveService.scatter(), [@source, {:dim, {:dim, 0}}])
  def of(:gather), do: on_refs(V1.CollectiveService.gather(), [@destination | @layout])
  def of(:all_gather), do: on_refs(V1.CollectiveService.all_gather(), @layout)
  def of(:reduce), do: on_refs(V1.CollectiveService.reduce(), [@op, @destination])
  def of(:all_reduce), do: on_refs(V1.CollectiveService.all_reduce(), [@op, @in_place])

  def of(:reduce_scatter),
    do: on_refs(V1.CollectiveService.reduce_scatter(), [@op, {:dim, {:dim, -1}}, @sizes])

  def of(:all_to_all) do
    %__MODULE__{
      rpc: V1.CollectiveService.all_to_all(),
      takes: :refs,
      options: [dim: {:dim, 0}],
      of_gang: [sizes: {:rows_of_sizes, nil}],
      of_rank: [input_sizes: {:sizes, nil}, output_sizes: {:sizes, nil}]
    }
  end

  def of(:scan),
    do: on_refs(V1.CollectiveService.scan(), [@op, {:exclusive, {:boolean, false}}])

  def of(:broadcast_object), do: on(V1.ObjectService.broadcast_object(), :source_value, [@source])
  def of(:scatter_object), do: on(V1.ObjectService.scatter_object(), :source_values, [@source])
  def of(:gather_object), do: on(V1.ObjectService.gather_object(), :values, [@destination])
  def of(:all_gather_object), do: on(V1.ObjectService.all_gather_object(), :values, [])
  def of(:all_reduce_value), do: on(V1.ObjectService.all_reduce_value(), :numbers, [@op])

  def of(:broadcast_tensor_dict),
    do: on(V1.ObjectService.broadcast_tensor_dict(), :source_dict, [@source])

  def of(:send), do: of_one(V1.PointToPointService.send(), :refs, @sends)
  def of(:send_object), do: of_one(V1.PointToPointService.send_object(), :values, @sends)
  def of(:send_tensor_dict), do: of_one(V1.PointToPointService.send_tensor_dict(), :dict, @sends)
  def of(:recv), do: of_one(V1.PointToPointService.recv(), :expected, @receives)
  def of(:recv_object), do: of_one(V1.PointToPointService.recv_object(), :nothing, @receives)

  def of(:recv_tensor_dict),
    do: of_one(V1.PointToPointService.recv_tensor_dict(), :nothing, @receives)

  def of(:coalesce),
    do: %__MODULE__{rpc: V1.OperationService.coalesce(), takes: :calls, gives: :calls}

  def of(:replay),
    do: %__MODULE__{rpc: V1.GraphService.replay(), takes: :graph, gives: :recorded}

  def of(:enqueue), do: of_one(V1.QueueService.enqueue(), :values, @queue)
  def of(:dequeue), do: of_one(V1.QueueService.dequeue(), :nothing, @queue)

  def of(:run_program) do
    rpc = V1.OperationService.run_program()
    %__MODULE__{rpc: rpc, takes: :program, gives: :kept, options: [keep: {:keep, []}]}
  end

  def of(:ping) do
    # What a gang call's parts are of this kind.
    rpc = %Rpc{V1.GangService.call() | request: V1.PingRequest}
    %__MODULE__{rpc: rpc, takes: :nothing, gives: :nothing, called_on: :gang}
  end

  defp on_refs(rpc, options), do: on(rpc, :refs, options)
  defp on(rpc, takes, options), do: %__MODULE__{rpc: rpc, takes: takes, options: options}
  defp of_one(rpc, takes, options), do: %{on(rpc, takes, options) | called_on: :rank}
end
