defmodule RankBridge.Each do
  @moduledoc false
  # Values of which each member of a group gets its own, in group order: what `RankBridge.each/1` gives.

  @enforce_keys [:values]
  defstruct [:values]

  @type t :: %__MODULE__{values: [RankBridge.Value.t()]}
end
