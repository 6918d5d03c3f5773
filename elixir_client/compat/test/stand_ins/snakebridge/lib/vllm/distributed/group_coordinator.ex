defmodule Vllm.Distributed.GroupCoordinator do
  @moduledoc "Stands in for the module that SnakeBridge generates for vLLM's class: the same functions and arities."

  alias SnakeBridge.Runtime

  @doc false
  def __snakebridge_python_name__, do: "vllm.distributed"
  @doc false
  def __snakebridge_python_class__, do: "GroupCoordinator"
  @doc false
  def __snakebridge_library__, do: "vllm"

  def new(group_ranks, local_rank, backend, use_device_communicator, args, opts \\ []) do
    {args, opts} = Runtime.normalize_args_opts(args, opts)
    needed = [group_ranks, local_rank, backend, use_device_communicator]
    Runtime.call_class(__MODULE__, needed ++ List.wrap(args), opts)
  end

  # Methods by what they need; in the second list those that may be given more.
  @needs [
    all_reduce: 1,
    _all_reduce_out_place: 1,
    _all_gather_out_place: 2,
    _reduce_scatter_out_place: 2,
    barrier: 0,
    recv_object: 1,
    send_object: 2,
    prepare_communication_buffer_for_model: 1,
    destroy: 0
  ]

  @may [
    all_gather: 1,
    all_gatherv: 1,
    reduce_scatter: 1,
    reduce_scatterv: 1,
    gather: 1,
    broadcast: 1,
    broadcast_object: 0,
    broadcast_object_list: 1,
    broadcast_tensor_dict: 0,
    send: 1,
    recv: 2,
    send_tensor_dict: 1,
    recv_tensor_dict: 0,
    dispatch: 2,
    combine: 1,
    create_mq_broadcaster: 0,
    create_single_reader_mq_broadcasters: 0,
    graph_capture: 0
  ]

  for {name, count} <- @needs do
    needed = Macro.generate_arguments(count, __MODULE__)

    def unquote(name)(ref, unquote_splicing(needed), opts \\ []),
      do: Runtime.call_method(ref, unquote(name), unquote(needed), opts)
  end

  for {name, count} <- @may do
    needed = Macro.generate_arguments(count, __MODULE__)

    def unquote(name)(ref, unquote_splicing(needed), args, opts \\ []) do
      {args, opts} = Runtime.normalize_args_opts(args, opts)
      Runtime.call_method(ref, unquote(name), unquote(needed) ++ List.wrap(args), opts)
    end
  end

  for name <- [:first_rank, :is_first_rank, :is_last_rank, :last_rank, :next_rank, :prev_rank] do
    def unquote(name)(ref), do: Runtime.get_attr(ref, unquote(name))
  end
end
