defmodule RankBridge.Coalesced do
  @moduledoc "Several collectives of one group as one operation: admitted at once, run one after another."

  use RankBridge.Facade

  alias RankBridge.{Collectives, Gang}

  @typedoc """
  One of the calls: the name of a collective on refs, its refs (nil for `:barrier`), and its own options, without those
  that all have in common: `:group`, `:timeout`, `:operation_id`.
  """
  @type call ::
          {atom(), [RankBridge.Ref.t()] | nil} | {atom(), [RankBridge.Ref.t()] | nil, keyword()}

  @doc """
  Runs several collectives of one group as one operation, and gives a list: for each call what it gives alone.

      {:ok, [sums, gathered]} =
        RankBridge.Coalesced.coalesce(gang, [{:all_reduce, refs, op: :sum}, {:all_gather, others, dim: 0}])

  None sees what another gives, not even what it did in place: all results are there at once, or none. The refs are of
  one session.
  """
  defcall coalesce(
            gang :: Gang.gang(),
            calls :: [RankBridge.Coalesced.call()],
            opts :: keyword() \\ []
          ) :: [term()],
          do: Collectives.run(view, :coalesce, calls, opts)
end
