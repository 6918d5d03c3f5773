defmodule RankBridge.Case.Left do
  @moduledoc "A test has left something behind on the ranks: `left`, in words."

  @type t :: %__MODULE__{left: [String.t()]}

  defexception [:left]

  @impl true
  def message(%__MODULE__{left: left}),
    do: "the test has left behind: #{Enum.join(left, ", ")}"
end
