defmodule RankBridge.Coalesced do
  @moduledoc "Several collectives of one group as one operation: admitted at once, run one after another."

  use RankBridge.Bangs

  alias RankBridge.{Collectives, Entry, Gang}

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
  spec_with_bang coalesce(Gang.gang(), [RankBridge.Coalesced.call()], keyword()) :: [term()]

  def coalesce(gang, calls, opts \\ []) do
    Entry.call(gang, :coalesce, opts, fn view -> Collectives.run(view, :coalesce, calls, opts) end)
  end
end
