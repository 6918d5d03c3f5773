defmodule RankBridge.GroupCoordinator.Signatures do
  @moduledoc """
  What vLLM's `GroupCoordinator` has: its methods with their parameters in order, and its properties. Each is declared once.

  One method more is one entry of the table, and what it does in `RankBridge.GroupCoordinator.Part`.
  """

  @typedoc """
  * `needed` - parameters without a default, in order
  * `optional` - those after them, with their defaults
  * `named` - what vLLM has from elsewhere, or has not: by keyword alone
  * `gives` - for people
  """
  @type t :: %__MODULE__{
          name: atom(),
          needed: [atom()],
          optional: keyword(),
          named: keyword(),
          gives: String.t()
        }

  @enforce_keys [:name, :needed, :optional, :gives]
  defstruct [:name, :needed, :optional, :gives, named: []]

  @gathering [all_gather_group: nil, all_gather_tensors: nil]
  @chunks [max_chunk_bytes: nil, max_chunks: nil]

  # Name, needed, optional, by keyword alone, what it gives.
  @table [
    {:all_reduce, [:input_], [], [], "the sum of the members' tensors, in a new ref"},
    {:_all_reduce_out_place, [:input_], [], [], "what `all_reduce/3` gives"},
    {:all_gather, [:input_], [dim: -1], [], "the members' tensors, concatenated along `dim`"},
    {:_all_gather_out_place, [:input_, :dim], [], [], "what `all_gather/4` gives"},
    {:all_gatherv, [:input_], [dim: 0, sizes: nil], [],
     "the members' tensors, of `sizes` along `dim`, concatenated; of a list of tensors a list, by one operation"},
    {:reduce_scatter, [:input_], [dim: -1], [],
     "the rank's part along `dim` of the sum of the members' tensors"},
    {:_reduce_scatter_out_place, [:input_, :dim], [], [], "what `reduce_scatter/4` gives"},
    {:reduce_scatterv, [:input_], [dim: -1, sizes: nil], [],
     "the rank's part, of `sizes` along `dim`, of the sum of the members' tensors"},
    {:gather, [:input_], [dst: 0, dim: -1], [],
     "at `dst` the members' tensors, concatenated along `dim`; nil elsewhere"},
    {:broadcast, [:input_], [src: 0], [],
     "the ref that was given, overwritten with the source's tensor"},
    {:broadcast_object, [], [obj: nil, src: 0], [], "the source's value"},
    {:broadcast_object_list, [:obj_list], [src: 0, group: nil], [], "the source's list"},
    {:broadcast_tensor_dict, [], [tensor_dict: nil, src: 0, group: nil, metadata_group: nil], [],
     "the source's map, with refs on tensors of the rank's own"},
    {:barrier, [], [], [], "nil, once all members have called"},
    {:send, [:tensor], [dst: nil], [], "nil, once it was received; to the next rank by default"},
    {:recv, [:size, :dtype], [src: nil], [],
     "a ref on what came; from the rank before by default"},
    {:isend, [:tensor], [dst: nil], [], "the begun `send/4`, for `RankBridge.Operations.wait/3`"},
    {:irecv, [:size, :dtype], [src: nil], [],
     "the begun `recv/5`: `RankBridge.Operations.wait/3` gives a ref and the rank in group that it came from"},
    {:send_object, [:obj, :dst], [], [], "nil, once it was received"},
    {:recv_object, [:src], [], [], "the value that came"},
    {:isend_object, [:obj, :dst], [], [], "the begun `send_object/4`"},
    {:irecv_object, [:src], [], [],
     "the begun `recv_object/3`: waited for, a value and where it came from"},
    {:send_tensor_dict, [:tensor_dict], [{:dst, nil} | @gathering], [],
     "nil, once it was received"},
    {:recv_tensor_dict, [], [{:src, nil} | @gathering], [],
     "the map that came, with refs on new tensors"},
    {:isend_tensor_dict, [:tensor_dict], [{:dst, nil} | @gathering], [],
     "the begun `send_tensor_dict/4`"},
    {:irecv_tensor_dict, [], [{:src, nil} | @gathering], [],
     "the begun `recv_tensor_dict/3`: waited for, a map and where it came from"},
    {:dispatch, [:hidden_states, :router_logits],
     [is_sequence_parallel: false, extra_tensors: nil], [sizes: nil],
     "`{hidden_states, router_logits}` of all members' tokens, and a list of the extra tensors if there are any"},
    {:combine, [:hidden_states], [is_sequence_parallel: false], [sizes: nil],
     "the sum of all members' results for the rank's own tokens"},
    {:create_mq_broadcaster, [], [writer_rank: 0, external_writer_handle: nil, blocking: true],
     @chunks,
     "the `RankBridge.Queue` from `writer_rank` to all others, the same on each; all members call it"},
    {:create_single_reader_mq_broadcasters, [], [reader_rank_in_group: 0, blocking: false],
     @chunks,
     "`{queue, queues}`: the queue that the rank writes, nil at the reader, and those that it reads by rank in " <>
       "group; all members call it"},
    {:graph_capture, [], [graph_capture_context: nil], [],
     "`{graph, value}`: what was recorded while the context, a function of no arguments, ran, and what it gave; " <>
       "all members call it"},
    {:prepare_communication_buffer_for_model, [:model], [], [],
     "a map from dtype to a ref on a buffer, of a list of parameters `%{name: _, shape: _, dtype: _}`"},
    {:destroy, [], [], [], "nil; the first call ends the groups on all members"}
  ]

  @properties [
    first_rank: "Rank in the gang of the group's first member.",
    last_rank: "Rank in the gang of the group's last member.",
    next_rank: "Rank in the gang of the member after this one; after the last comes the first.",
    prev_rank: "Rank in the gang of the member before this one; before the first comes the last.",
    is_first_rank: "Whether this is the group's first member.",
    is_last_rank: "Whether this is the group's last member.",
    rank: "Rank in the gang.",
    ranks: "Ranks in the gang of the group's members, in group order.",
    rank_in_group: "Place in the group.",
    local_rank: "Rank on its host.",
    world_size: "Number of the group's members."
  ]

  @doc "Every method, in the order of the table."
  @spec methods() :: [t()]
  def methods do
    for {name, needed, optional, named, gives} <- @table do
      %__MODULE__{name: name, needed: needed, optional: optional, named: named, gives: gives}
    end
  end

  @doc "The constructor, whose name is `new`."
  @spec constructor() :: t()
  def constructor do
    %__MODULE__{
      name: :new,
      needed: [:group_ranks, :local_rank, :torch_distributed_backend, :use_device_communicator],
      optional: [use_message_queue_broadcaster: false, group_name: nil],
      gives: "a coordinator"
    }
  end

  @doc "The method of a name, also as text, or `:error`."
  @spec method(atom() | String.t()) :: {:ok, t()} | :error
  def method(name), do: found(Enum.find(methods(), &("#{&1.name}" == "#{name}")))

  @doc "Every property, and what it is."
  @spec properties() :: keyword(String.t())
  def properties, do: @properties

  @doc "The property of a name, also as text, or `:error`."
  @spec property(atom() | String.t()) :: {:ok, atom()} | :error
  def property(name),
    do: found(Enum.find(Keyword.keys(@properties), &("#{&1}" == "#{name}")))

  @doc "Parameters of which each rank has its own: in a view of all ranks they are lists by rank of the gang."
  @spec of_each_rank() :: [atom()]
  def of_each_rank,
    do:
      [:input_, :obj, :obj_list, :tensor_dict, :tensor, :hidden_states, :router_logits] ++
        [:extra_tensors, :sizes]

  defp found(nil), do: :error
  defp found(it), do: {:ok, it}
end
