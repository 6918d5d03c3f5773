defmodule RankBridge.CallStream.Pushed do
  @moduledoc false
  # A gang call on a stream: the result of `RankBridge.CallStream.push/4`. The process that pushed it awaits it, once.
  #
  # Other calls, such as `RankBridge.await/3`, know it by its `operation_id`.

  alias RankBridge.Gang.View
  alias RankBridge.Operations.Plan
  alias RankBridge.Rank.Server
  alias RankBridge.Telemetry

  @derive {Inspect, only: [:operation, :operation_id, :ranks]}
  @enforce_keys [:ref, :server, :pusher, :operation, :operation_id, :ranks, :rank, :plan, :view]
  defstruct @enforce_keys ++ [:span]

  @typedoc """
  * `ref` - to which the answer comes, and by which the server knows it
  * `ranks`, `rank` - the members', in group order; and the one that is asked
  * `plan`, `view` - how to read the answer, and where to fetch what that does not hold
  """
  @type t :: %__MODULE__{
          ref: reference(),
          server: Server.server(),
          pusher: pid(),
          operation: atom(),
          operation_id: String.t(),
          ranks: [non_neg_integer()],
          rank: non_neg_integer(),
          plan: Plan.t(),
          view: View.t(),
          span: Telemetry.span()
        }
end
