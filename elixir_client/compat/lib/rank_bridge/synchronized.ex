defmodule RankBridge.Synchronized do
  @moduledoc """
  One member's value for all, as OLMo-core's `synchronize_value` and `synchronize_flag`. Integers stay integers, and floats
  are not rounded to float32 as there. For tensors there is `RankBridge.broadcast/3` with `in_place: true`.
  """

  use RankBridge.Facade

  alias RankBridge.{Collectives, Error, Gang, Value}

  @doc """
  Gives every member the source's value: a list with it for each member.

  Option `:src_rank_in_group`: whose `value` is (default 0).
  """
  defcall synchronize_value(gang :: Gang.gang(), value :: Value.t(), opts :: keyword() \\ []) ::
            [Value.t()],
          do: Collectives.run(view, :broadcast_object, value, opts)

  @doc "As `synchronize_value/3` of a boolean."
  defcall synchronize_flag(gang :: Gang.gang(), flag :: boolean(), opts :: keyword() \\ []) ::
            [boolean()] do
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
  end
end
