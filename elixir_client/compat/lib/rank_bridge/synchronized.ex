defmodule RankBridge.Synchronized do
  @moduledoc """
  One member's value for all, as OLMo-core's `synchronize_value` and `synchronize_flag`. Integers stay integers, and floats
  are not rounded to float32 as there. For tensors there is `RankBridge.broadcast/3` with `in_place: true`.
  """

  use RankBridge.Bangs

  alias RankBridge.{Collectives, Entry, Error, Gang, Value}

  @doc """
  Gives every member the source's value: a list with it for each member.

  Option `:src_rank_in_group`: whose `value` is (default 0).
  """
  spec_with_bang synchronize_value(Gang.gang(), Value.t(), keyword()) :: [Value.t()]

  def synchronize_value(gang, value, opts \\ []) do
    Entry.call(gang, :synchronize_value, opts, fn view ->
      Collectives.run(view, :broadcast_object, value, opts)
    end)
  end

  @doc "As `synchronize_value/3` of a boolean."
  spec_with_bang synchronize_flag(Gang.gang(), boolean(), keyword()) :: [boolean()]

  def synchronize_flag(gang, flag, opts \\ []) do
    Entry.call(gang, :synchronize_flag, opts, fn view ->
      if is_boolean(flag) do
        Collectives.run(view, :broadcast_object, flag, opts)
      else
        {:error,
         Error.refusal(:invalid_argument, "this is no flag",
           operation: "synchronize_flag",
           expected: "true or false",
           got: inspect(flag, limit: 3)
         )}
      end
    end)
  end
end
