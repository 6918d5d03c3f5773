defmodule RankBridge.Telemetry.OldNames do
  @moduledoc false
  # Emits events again under the names that they had: `[:rankbridge, ...]`. The next release removes it.

  @doc "Emits the event that it handles under its old name."
  @spec handle([atom()], map(), map(), term()) :: :ok
  def handle([:rank_bridge | rest], measurements, metadata, _config) do
    # It is no dependency.
    library = :telemetry
    :ok = apply(library, :execute, [[:rankbridge | rest], measurements, metadata])
  end
end
