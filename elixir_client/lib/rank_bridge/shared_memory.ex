defmodule RankBridge.SharedMemory do
  @moduledoc false
  # The home of `RankBridge.Tensors.transfers/3` in earlier releases. The release after the one that says so removes it.

  @doc false
  @deprecated "use RankBridge.Tensors.transfers/2"
  def transfers(gang, rank), do: RankBridge.Tensors.transfers(gang, rank)
end
