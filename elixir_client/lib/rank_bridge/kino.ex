if Code.ensure_loaded?(Kino) do
  defmodule RankBridge.Kino do
    @moduledoc """
    A gang in a Livebook notebook. It is there where Kino is.

        RankBridge.Kino.gang(MyGang)

    as the last expression of a cell shows the gang's ranks, its generation, whom others wait for, and its last events, and
    goes on with what happens until the cell is evaluated again.
    """

    alias RankBridge.Gang
    alias RankBridge.Kino.Widget

    @doc """
    A frame with a gang, which may start later. Events show at once; option `:every`: milliseconds after which the ranks are
    asked again, 1,000.
    """
    @spec gang(Gang.gang(), every: pos_integer()) :: struct()
    def gang(gang, opts \\ []) do
      opts = Keyword.validate!(opts, every: 1_000)
      frame = Kino.Frame.new()
      {:ok, _pid} = Kino.start_child({Widget, {gang, frame, opts[:every]}})
      frame
    end
  end
end
