defmodule RankBridge.Test.Hostile.Cases do
  @moduledoc "The table: everything that a server does wrong, and what must come of it."

  alias RankBridge.Test.Hostile.{Case, Cases}

  @doc "All cases; their names differ."
  @spec all() :: [Case.t()]
  def all do
    Enum.flat_map(
      [
        Cases.Framing,
        Cases.Streams,
        Cases.Flow,
        Cases.HPACK,
        Cases.Headers,
        Cases.GRPC,
        Cases.Closing
      ],
      & &1.all()
    )
  end
end
