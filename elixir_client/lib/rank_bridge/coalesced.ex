defmodule RankBridge.Coalesced do
  @moduledoc "Several collectives of one group as one operation: admitted at once, run one after another."

  use RankBridge.Facade

  alias RankBridge.{Collectives, Gang}

  @typedoc """
  One of the calls: the name of a collective on refs, its refs (nil for `:barrier`), and its own options. All calls share
  `:group`, `:timeout` and `:operation_id`, which are options of `coalesce/3`.
  """
  @type call ::
          {atom(), [RankBridge.Ref.t()] | nil} | {atom(), [RankBridge.Ref.t()] | nil, keyword()}

  @doc """
  Runs several collectives of one group as one operation. Gives a list of their results.

      {:ok, [sums, gathered]} =
        RankBridge.Coalesced.coalesce(gang, [{:all_reduce, refs, op: :sum}, {:all_gather, others, dim: 0}])

  No collective reads the result of another one, not even a result in place. Either all collectives succeed, or none does.
  All refs belong to one session.
  """
  defcall coalesce(
            gang :: Gang.gang(),
            calls :: [RankBridge.Coalesced.call()],
            opts :: keyword() \\ []
          ) :: [term()],
          do: Collectives.run(view, :coalesce, calls, opts)
end
