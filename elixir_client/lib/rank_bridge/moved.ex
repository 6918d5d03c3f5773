defmodule RankBridge.Moved do
  @moduledoc false
  # Deprecated functions of `RankBridge`, which are elsewhere now. The release after the one that says so removes them.

  @to_compat [
    all_gatherv: 2..3,
    reduce_scatterv: 2..3,
    _all_reduce_out_place: 2..3,
    _all_gather_out_place: 3..4,
    _reduce_scatter_out_place: 3..4,
    create_mq_broadcaster: 1..2,
    create_single_reader_mq_broadcasters: 1..2,
    destroy: 2..3,
    all_gather_to_list: 2..3,
    all_gather_objects: 2..3,
    broadcast_objects: 3..4,
    average_gradients: 2..3,
    average_models: 2..3,
    synchronize_value: 2..3,
    synchronize_flag: 2..3,
    dispatch: 3..4,
    combine: 2..3,
    prepare_communication_buffer_for_model: 2..3,
    default_device: 2..3,
    backend_supports_cpu: 1..2,
    backend_supports_cuda: 1..2,
    do_n_at_a_time: 3..4
  ]
  @without_bang [
    get_reduce_divide_factor: 1..1,
    report_time_info: 1..1,
    report_load_imbalance: 1..1
  ]

  @doc "Defines the functions in the using module."
  defmacro __using__(_opts) do
    with_bang = for {name, arities} <- @to_compat, do: {:"#{name}!", arities}

    for {name, arities} <- @to_compat ++ with_bang ++ @without_bang, arity <- arities do
      arguments = Macro.generate_arguments(arity, __MODULE__)
      why = "use RankBridge.Compat.#{name}/#{arity}, of the package :rank_bridge_compat"

      quote do
        @doc false
        @deprecated unquote(why)
        def unquote(name)(unquote_splicing(arguments)),
          do: RankBridge.Moved.call(RankBridge.Compat, unquote(name), unquote(arguments))
      end
    end
  end

  @doc "Names of the functions of `RankBridge` that are elsewhere now."
  @spec names() :: [atom()]
  def names do
    Keyword.keys(@without_bang) ++
      Enum.flat_map(Keyword.keys(@to_compat), &[&1, :"#{&1}!"])
  end

  @doc "Calls a function where it is now. Raises `UndefinedFunctionError` where its package is not."
  @spec call(module(), atom(), [term()]) :: term()
  def call(module, name, arguments) do
    if Code.ensure_loaded?(module) do
      apply(module, name, arguments)
    else
      arity = length(arguments)

      raise UndefinedFunctionError,
        module: module,
        function: name,
        arity: arity,
        message:
          "RankBridge.#{name}/#{arity} is #{inspect(module)}.#{name}/#{arity} now, of the package :rank_bridge_compat, " <>
            "which is not among the dependencies"
    end
  end
end
