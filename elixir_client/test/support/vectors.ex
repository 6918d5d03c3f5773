defmodule RankBridge.Test.Vectors do
  @moduledoc "The vectors that all languages' tests share, in `tests/vectors`."

  alias RankBridge.Test.JSON

  @folder Path.expand("../../../tests/vectors", __DIR__)

  @doc "The lines of one file."
  @spec lines(String.t()) :: [map()]
  def lines(name) do
    @folder
    |> Path.join(name)
    |> File.read!()
    |> String.split("\n", trim: true)
    |> Enum.map(&JSON.decode!/1)
  end
end
