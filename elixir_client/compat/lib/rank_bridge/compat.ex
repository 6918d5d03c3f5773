defmodule RankBridge.Compat do
  @moduledoc """
  Functions on a gang by the names that they have in other systems, with the arguments and results of those.

    * vLLM - `RankBridge.CoordinatorNames`, `RankBridge.Experts`, `RankBridge.Buffers`
    * optimus-dl - `RankBridge.MeshCollectiveNames`, `RankBridge.Devices`
    * OLMo-core - `RankBridge.Synchronized`, `RankBridge.Rounds`, `RankBridge.Devices`, `RankBridge.AveragingNames`
    * torchgfn - `RankBridge.AveragingNames`, `RankBridge.Reports`

  Each of these modules declares functions of this module, and documents them.

  `RankBridge.GroupCoordinator` is vLLM's `GroupCoordinator` as a value. For code that SnakeBridge has generated there is
  `RankBridge.SnakeBridge.RuntimeClient`.
  """

  use RankBridge.Facade,
    of: [
      RankBridge.CoordinatorNames,
      RankBridge.MeshCollectiveNames,
      RankBridge.AveragingNames,
      RankBridge.Synchronized,
      RankBridge.Experts,
      RankBridge.Buffers,
      RankBridge.Devices,
      RankBridge.Rounds
    ]

  alias RankBridge.{AveragingNames, Error, Reports}

  @doc "See `RankBridge.AveragingNames.get_reduce_divide_factor/1`."
  @spec get_reduce_divide_factor(pos_integer()) :: float()
  defdelegate get_reduce_divide_factor(world_size), to: AveragingNames

  @doc "See `RankBridge.Reports.report_time_info/1`."
  @spec report_time_info(Reports.Timings.like()) ::
          {:ok, Reports.TimeInfo.t()} | {:error, Error.t()}
  defdelegate report_time_info(timings), to: Reports

  @doc "See `RankBridge.Reports.report_load_imbalance/1`."
  @spec report_load_imbalance(Reports.Timings.like()) ::
          {:ok, Reports.LoadImbalance.t()} | {:error, Error.t()}
  defdelegate report_load_imbalance(timings), to: Reports
end
