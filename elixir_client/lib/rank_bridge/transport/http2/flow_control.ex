defmodule RankBridge.Transport.HTTP2.FlowControl do
  @moduledoc false
  # Window accounting of HTTP/2 (RFC 9113, section 5.2), for one stream or for the connection. Units: bytes.
  #
  # A *receive window* is what the peer may still send. It shrinks on receipt and grows when the bytes are
  # `replenish/2`ed; small replenishments are gathered, so that one WINDOW_UPDATE stands for a quarter of
  # the window. A *send window* is a plain integer and may be negative, after the peer made its
  # INITIAL_WINDOW_SIZE smaller.

  @max_window 2_147_483_647

  defstruct [:size, :available, owed: 0]

  @type t :: %__MODULE__{
          size: pos_integer(),
          available: integer(),
          owed: non_neg_integer()
        }

  @doc "The largest window that HTTP/2 allows."
  @spec max_window() :: pos_integer()
  def max_window, do: @max_window

  @doc "A receive window of `size` bytes."
  @spec new(pos_integer()) :: t()
  def new(size) when size in 1..@max_window, do: %__MODULE__{size: size, available: size}

  @doc "Charges `bytes` that arrived. `:error` if the peer sent more than it was allowed to."
  @spec charge(t(), non_neg_integer()) :: {:ok, t()} | :error
  def charge(%{available: available}, bytes) when bytes > available, do: :error
  def charge(window, bytes), do: {:ok, %{window | available: window.available - bytes}}

  @doc "Gives `bytes` back. Returns the increment to announce now, 0 while it is not yet worth a frame."
  @spec replenish(t(), non_neg_integer()) :: {non_neg_integer(), t()}
  def replenish(%{owed: owed, size: size} = window, bytes) when (owed + bytes) * 4 < size,
    do: {0, %{window | owed: owed + bytes}}

  def replenish(window, bytes) do
    increment = window.owed + bytes
    {increment, %{window | available: window.available + increment, owed: 0}}
  end

  @doc "A send window after the peer's WINDOW_UPDATE. `:error` if it would pass the largest window."
  @spec grow(integer(), integer()) :: {:ok, integer()} | :error
  def grow(window, increment) when window + increment > @max_window, do: :error
  def grow(window, increment), do: {:ok, window + increment}
end
