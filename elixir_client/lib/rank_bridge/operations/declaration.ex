defmodule RankBridge.Operations.Declaration do
  @moduledoc false
  # The operations, each declared once: what is called, which options it has, what it takes and gives.
  #
  # What the proto says of them in options is written here; one operation more needs no line.

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
  each member, or its map of tensors; a map of tensors of one rank; what one rank expects; calls; a program; a graph; or
  arguments of a function, the same for all members or its own for each.
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
          | :arguments

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
          | :function
          | :keep
          | :reduce_op
          | :boolean

  # --- of Operation: written by scripts/methods.py from the proto

  @names [
    :barrier,
    :broadcast,
    :gather,
    :all_reduce,
    :all_gather,
    :reduce,
    :scatter,
    :reduce_scatter,
    :all_to_all,
    :scan,
    :broadcast_object,
    :scatter_object,
    :gather_object,
    :all_gather_object,
    :all_reduce_value,
    :broadcast_tensor_dict,
    :send,
    :recv,
    :send_object,
    :recv_object,
    :send_tensor_dict,
    :recv_tensor_dict,
    :coalesce,
    :replay,
    :enqueue,
    :dequeue,
    :run_program,
    :call_function
  ]

  @doc "Everything about the operation of a name."
  @spec of(atom()) :: t()

  def of(:barrier),
    do: %__MODULE__{rpc: V1.CollectiveService.barrier(), takes: :nothing, gives: :nothing}

  def of(:broadcast),
    do: %__MODULE__{
      rpc: V1.CollectiveService.broadcast(),
      takes: :refs,
      options: [src_rank_in_group: {:rank_in_group, 0}, in_place: {:boolean, false}]
    }

  def of(:gather),
    do: %__MODULE__{
      rpc: V1.CollectiveService.gather(),
      takes: :refs,
      options: [
        dst_rank_in_group: {:rank_in_group, 0},
        dim: {:own_dim, nil},
        sizes: {:sizes, nil},
        layout: {:layout, :concatenated},
        ragged: {:boolean, false}
      ]
    }

  def of(:all_reduce),
    do: %__MODULE__{
      rpc: V1.CollectiveService.all_reduce(),
      takes: :refs,
      options: [op: {:reduce_op, :sum}, in_place: {:boolean, false}]
    }

  def of(:all_gather),
    do: %__MODULE__{
      rpc: V1.CollectiveService.all_gather(),
      takes: :refs,
      options: [
        dim: {:own_dim, nil},
        sizes: {:sizes, nil},
        layout: {:layout, :concatenated},
        ragged: {:boolean, false}
      ]
    }

  def of(:reduce),
    do: %__MODULE__{
      rpc: V1.CollectiveService.reduce(),
      takes: :refs,
      options: [op: {:reduce_op, :sum}, dst_rank_in_group: {:rank_in_group, 0}]
    }

  def of(:scatter),
    do: %__MODULE__{
      rpc: V1.CollectiveService.scatter(),
      takes: :refs,
      options: [src_rank_in_group: {:rank_in_group, 0}, dim: {:dim, 0}, sizes: {:sizes, nil}]
    }

  def of(:reduce_scatter),
    do: %__MODULE__{
      rpc: V1.CollectiveService.reduce_scatter(),
      takes: :refs,
      options: [op: {:reduce_op, :sum}, dim: {:dim, -1}, sizes: {:sizes, nil}]
    }

  def of(:all_to_all),
    do: %__MODULE__{
      rpc: V1.CollectiveService.all_to_all(),
      takes: :refs,
      options: [dim: {:dim, 0}],
      of_gang: [sizes: {:rows_of_sizes, nil}],
      of_rank: [input_sizes: {:sizes, nil}, output_sizes: {:sizes, nil}]
    }

  def of(:scan),
    do: %__MODULE__{
      rpc: V1.CollectiveService.scan(),
      takes: :refs,
      options: [op: {:reduce_op, :sum}, exclusive: {:boolean, false}]
    }

  def of(:broadcast_object),
    do: %__MODULE__{
      rpc: V1.ObjectService.broadcast_object(),
      takes: :source_value,
      options: [src_rank_in_group: {:rank_in_group, 0}]
    }

  def of(:scatter_object),
    do: %__MODULE__{
      rpc: V1.ObjectService.scatter_object(),
      takes: :source_values,
      options: [src_rank_in_group: {:rank_in_group, 0}]
    }

  def of(:gather_object),
    do: %__MODULE__{
      rpc: V1.ObjectService.gather_object(),
      takes: :values,
      options: [dst_rank_in_group: {:rank_in_group, 0}]
    }

  def of(:all_gather_object),
    do: %__MODULE__{rpc: V1.ObjectService.all_gather_object(), takes: :values}

  def of(:all_reduce_value),
    do: %__MODULE__{
      rpc: V1.ObjectService.all_reduce_value(),
      takes: :numbers,
      options: [op: {:reduce_op, :sum}]
    }

  def of(:broadcast_tensor_dict),
    do: %__MODULE__{
      rpc: V1.ObjectService.broadcast_tensor_dict(),
      takes: :source_dict,
      options: [src_rank_in_group: {:rank_in_group, 0}]
    }

  def of(:send),
    do: %__MODULE__{
      rpc: V1.PointToPointService.send(),
      takes: :refs,
      called_on: :rank,
      options: [dst_rank_in_group: {:rank_in_group, nil}, tag: {:tag, 0}]
    }

  def of(:recv),
    do: %__MODULE__{
      rpc: V1.PointToPointService.recv(),
      takes: :expected,
      called_on: :rank,
      options: [src_rank_in_group: {:any_rank_in_group, nil}, tag: {:tag, 0}]
    }

  def of(:send_object),
    do: %__MODULE__{
      rpc: V1.PointToPointService.send_object(),
      takes: :values,
      called_on: :rank,
      options: [dst_rank_in_group: {:rank_in_group, nil}, tag: {:tag, 0}]
    }

  def of(:recv_object),
    do: %__MODULE__{
      rpc: V1.PointToPointService.recv_object(),
      takes: :nothing,
      called_on: :rank,
      options: [src_rank_in_group: {:any_rank_in_group, nil}, tag: {:tag, 0}]
    }

  def of(:send_tensor_dict),
    do: %__MODULE__{
      rpc: V1.PointToPointService.send_tensor_dict(),
      takes: :dict,
      called_on: :rank,
      options: [dst_rank_in_group: {:rank_in_group, nil}, tag: {:tag, 0}]
    }

  def of(:recv_tensor_dict),
    do: %__MODULE__{
      rpc: V1.PointToPointService.recv_tensor_dict(),
      takes: :nothing,
      called_on: :rank,
      options: [src_rank_in_group: {:any_rank_in_group, nil}, tag: {:tag, 0}]
    }

  def of(:coalesce),
    do: %__MODULE__{rpc: V1.OperationService.coalesce(), takes: :calls, gives: :calls}

  def of(:replay), do: %__MODULE__{rpc: V1.GraphService.replay(), takes: :graph, gives: :recorded}

  def of(:enqueue),
    do: %__MODULE__{
      rpc: V1.QueueService.enqueue(),
      takes: :values,
      called_on: :rank,
      options: [queue: {:queue, nil}]
    }

  def of(:dequeue),
    do: %__MODULE__{
      rpc: V1.QueueService.dequeue(),
      takes: :nothing,
      called_on: :rank,
      options: [queue: {:queue, nil}]
    }

  def of(:run_program),
    do: %__MODULE__{
      rpc: V1.OperationService.run_program(),
      takes: :program,
      gives: :kept,
      options: [keep: {:keep, []}]
    }

  def of(:call_function),
    do: %__MODULE__{
      rpc: V1.FunctionService.call_function(),
      takes: :arguments,
      options: [function: {:function, nil}],
      of_rank: [alone: {:boolean, false}]
    }

  # --- end of Operation

  def of(:ping) do
    # What a gang call's parts are of this kind.
    rpc = %Rpc{V1.GangService.call() | request: V1.PingRequest}
    %__MODULE__{rpc: rpc, takes: :nothing, gives: :nothing, called_on: :gang}
  end

  @doc "Every operation's name, but for `:ping`, for which the ranks have no call."
  @spec names() :: [atom()]
  def names, do: @names

  @doc "Whether there is an operation of that name."
  @spec known?(term()) :: boolean()
  def known?(name), do: name == :ping or name in @names

  @doc "Whether an operation can go with others, see `RankBridge.Coalesced.coalesce/3` and `RankBridge.Program`."
  @spec coalesced?(t()) :: boolean()
  def coalesced?(%__MODULE__{rpc: rpc}),
    do: service(rpc) == service(V1.CollectiveService.barrier())

  defp service(%Rpc{path: path}), do: Path.dirname(path)
end
