defmodule RankBridge.Gang.Restarts do
  @moduledoc false
  # Limits how many ranks may be lost in a period, as a supervisor limits the restarts of its children.

  @enforce_keys [:max, :period]
  defstruct [:max, :period, times: []]

  @typedoc "`period` and `times` in milliseconds."
  @type t :: %__MODULE__{max: non_neg_integer(), period: pos_integer(), times: [integer()]}

  @doc "At most `max` within `seconds`."
  @spec new(non_neg_integer(), pos_integer()) :: t()
  def new(max, seconds), do: %__MODULE__{max: max, period: seconds * 1_000}

  @doc """
  Counts restarts at a time, in milliseconds. The error is their number, if it is above the limit.

      iex> restarts = RankBridge.Gang.Restarts.new(2, 5)
      iex> {:ok, restarts} = RankBridge.Gang.Restarts.add(restarts, 2, 1_000)
      iex> RankBridge.Gang.Restarts.add(restarts, 1, 6_000)
      {:error, 3}
      iex> {:ok, _restarts} = RankBridge.Gang.Restarts.add(restarts, 1, 6_001)
  """
  @spec add(t(), pos_integer(), integer()) :: {:ok, t()} | {:error, pos_integer()}
  def add(restarts, count, now) do
    recent = Enum.filter(restarts.times, &(now - &1 <= restarts.period))
    times = List.duplicate(now, count) ++ recent

    if length(times) > restarts.max,
      do: {:error, length(times)},
      else: {:ok, %{restarts | times: times}}
  end
end
