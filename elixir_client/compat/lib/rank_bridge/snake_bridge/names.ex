defmodule RankBridge.SnakeBridge.Names do
  @moduledoc """
  The functions and classes of Python that run on a gang. What is not here goes on to Snakepit.

  One more is one entry of a table, and a clause of `RankBridge.SnakeBridge.Functions`.
  """

  alias RankBridge.GroupCoordinator.Signatures

  @typedoc "Where a name is of: vLLM, torch.distributed, torch itself, or this project."
  @type area :: :vllm | :distributed | :torch | :own

  @areas %{
    "vllm.distributed" => :vllm,
    "vllm.distributed.parallel_state" => :vllm,
    "vllm.distributed.communication_op" => :vllm,
    "torch.distributed" => :distributed,
    "torch.distributed.distributed_c10d" => :distributed,
    "torch" => :torch,
    "rankbridge" => :own
  }

  # Name, what it needs, what it may be given.
  @vllm [
    {:get_world_group, [], []},
    {:get_tp_group, [], []},
    {:get_pp_group, [], []},
    {:get_dp_group, [], []},
    {:get_ep_group, [], []},
    {:get_tensor_model_parallel_rank, [], []},
    {:get_tensor_model_parallel_world_size, [], []},
    {:tensor_model_parallel_all_reduce, [:input_], []},
    {:tensor_model_parallel_all_gather, [:input_], [dim: -1]},
    {:tensor_model_parallel_reduce_scatter, [:input_], [dim: -1]},
    {:tensor_model_parallel_gather, [:input_], [dst: 0, dim: -1]},
    {:broadcast_tensor_dict, [], [tensor_dict: nil, src: 0]},
    {:init_distributed_environment, [],
     [
       world_size: -1,
       rank: -1,
       distributed_init_method: nil,
       local_rank: -1,
       backend: nil,
       timeout: nil
     ]},
    {:initialize_model_parallel, [],
     [
       tensor_model_parallel_size: 1,
       pipeline_model_parallel_size: 1,
       prefill_context_model_parallel_size: 1,
       decode_context_model_parallel_size: 1,
       backend: nil
     ]},
    {:model_parallel_is_initialized, [], []},
    {:destroy_model_parallel, [], []},
    {:destroy_distributed_environment, [], []}
  ]

  @distributed [
    {:is_available, [], []},
    {:is_initialized, [], []},
    {:get_rank, [], [group: nil]},
    {:get_world_size, [], [group: nil]},
    {:get_backend, [], [group: nil]},
    {:get_process_group_ranks, [], [group: nil]},
    {:new_group, [],
     [ranks: nil, timeout: nil, backend: nil, pg_options: nil, use_local_synchronization: false]},
    {:destroy_process_group, [], [group: nil]},
    {:barrier, [], [group: nil, async_op: false, device_ids: nil]},
    {:all_reduce, [:tensor], [op: "sum", group: nil, async_op: false]},
    {:broadcast, [:tensor], [src: nil, group: nil, async_op: false, group_src: nil]},
    {:send, [:tensor], [dst: nil, group: nil, tag: 0, group_dst: nil]},
    {:recv, [:tensor], [src: nil, group: nil, tag: 0, group_src: nil]},
    {:isend, [:tensor], [dst: nil, group: nil, tag: 0, group_dst: nil]},
    {:irecv, [:tensor], [src: nil, group: nil, tag: 0, group_src: nil]}
  ]

  @torch [
    {:tensor, [:data], [dtype: nil, device: nil]},
    {:zeros, [:size], [dtype: nil, device: nil]},
    {:ones, [:size], [dtype: nil, device: nil]},
    {:full, [:size, :fill_value], [dtype: nil, device: nil]}
  ]

  @own [{:items, [:of], []}]

  @table %{vllm: @vllm, distributed: @distributed, torch: @torch, own: @own}

  @doc "The area of a module, or `:error`."
  @spec area(term()) :: {:ok, area()} | :error
  def area(python_module), do: Map.fetch(@areas, python_module)

  @doc """
  What a function of a module takes, or `:error`: it is not ours.

      iex> {:ok, :distributed, signature} = RankBridge.SnakeBridge.Names.function("torch.distributed", "all_reduce")
      iex> {signature.needed, signature.optional[:op]}
      {[:tensor], "sum"}
      iex> RankBridge.SnakeBridge.Names.function("numpy", "mean")
      :error
  """
  @spec function(term(), term()) :: {:ok, area(), Signatures.t()} | :error
  def function(python_module, name) do
    with {:ok, area} <- area(python_module),
         {name, needed, optional} <- Enum.find(@table[area], :error, &named?(&1, name)) do
      {:ok, area, signature(name, needed, optional)}
    end
  end

  defp named?({own, _needed, _optional}, name), do: is_binary(name) and "#{own}" == name

  defp signature(name, needed, optional),
    do: %Signatures{name: name, needed: needed, optional: optional, gives: ""}

  @doc "Whether a class is ours."
  @spec class?(term(), term()) :: boolean()
  def class?(python_module, name),
    do: area(python_module) == {:ok, :vllm} and name == "GroupCoordinator"

  @doc "Every function that is ours, as Python names it."
  @spec all() :: [{String.t(), atom()}]
  def all do
    for {python_module, area} <- Enum.sort(@areas), {name, _needed, _optional} <- @table[area] do
      {python_module, name}
    end
  end
end
