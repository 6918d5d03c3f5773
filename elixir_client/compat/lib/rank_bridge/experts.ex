defmodule RankBridge.Experts do
  @moduledoc """
  Tokens to the members that hold the experts of a mixture, and back: vLLM's `dispatch` and `combine`, as its all-gather
  and reduce-scatter manager does them.

  `:sizes` are the tokens of each member, in group order: the sizes of its tensors along the first dimension. By default
  all have equally many.
  """

  use RankBridge.Bangs

  alias RankBridge.{Collectives, Entry, Gang, Options, Ref}

  @doc """
  Gives every member the hidden states and the router logits of all members' tokens, concatenated along the first
  dimension in group order: `{hidden_states, router_logits}`, each with a ref for each member.

  Options: `:sizes`; `:extra_tensors`: a list of lists of refs, which go along, and come third: `{hidden_states,
  router_logits, extra_tensors}` if there are any; and those of collectives. All go as one operation.
  """
  spec_with_bang dispatch(Gang.gang(), [Ref.t()], [Ref.t()], keyword()) ::
                   {[Ref.t()], [Ref.t()]} | {[Ref.t()], [Ref.t()], [[Ref.t()]]}

  def dispatch(gang, hidden_states, router_logits, opts \\ []) do
    Entry.call(gang, :dispatch, opts, fn view ->
      {extra, opts} = Options.pop(opts, :extra_tensors, [])
      {own, common} = opts |> Options.put(:dim, 0) |> Options.split([:dim, :sizes])
      calls = for refs <- [hidden_states, router_logits | extra], do: {:all_gather, refs, own}

      case Collectives.run(view, :coalesce, calls, common) do
        {:ok, [hidden_states, router_logits]} ->
          {:ok, {hidden_states, router_logits}}

        {:ok, [hidden_states, router_logits | extra]} ->
          {:ok, {hidden_states, router_logits, extra}}

        error ->
          error
      end
    end)
  end

  @doc """
  Gives every member the sum of all members' hidden states for its own tokens: those of its part along the first
  dimension. Options: `:sizes`, and those of collectives.
  """
  spec_with_bang combine(Gang.gang(), [Ref.t()], keyword()) :: [Ref.t()]

  def combine(gang, hidden_states, opts \\ []) do
    Entry.call(gang, :combine, opts, fn view ->
      Collectives.run(view, :reduce_scatter, hidden_states, Options.put(opts, :dim, 0))
    end)
  end
end
