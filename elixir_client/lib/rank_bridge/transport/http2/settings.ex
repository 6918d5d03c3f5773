defmodule RankBridge.Transport.HTTP2.Settings do
  @moduledoc false
  # The peer's SETTINGS (RFC 9113, section 6.5): defaults, and what its frames make of them.

  alias RankBridge.Transport.HTTP2.FlowControl

  @header_table_size 1
  @enable_push 2
  @max_concurrent_streams 3
  @initial_window_size 4
  @max_frame_size 5
  @max_header_list_size 6

  defstruct max_concurrent_streams: :infinity,
            initial_window_size: 65_535,
            max_frame_size: 16_384,
            max_header_list_size: :infinity

  @type t :: %__MODULE__{
          max_concurrent_streams: non_neg_integer() | :infinity,
          initial_window_size: non_neg_integer(),
          max_frame_size: pos_integer(),
          max_header_list_size: non_neg_integer() | :infinity
        }

  @doc "Pairs for a client's own SETTINGS frame. `window` and `header_list` in bytes."
  @spec local(pos_integer(), pos_integer(), pos_integer()) :: [{pos_integer(), non_neg_integer()}]
  def local(window, max_frame_size, header_list) do
    [
      {@enable_push, 0},
      {@initial_window_size, window},
      {@max_frame_size, max_frame_size},
      {@max_header_list_size, header_list}
    ]
  end

  @doc "Applies the peer's pairs in order. Unknown identifiers are ignored, as RFC 9113 asks."
  @spec apply_pairs(t(), [{non_neg_integer(), non_neg_integer()}]) ::
          {:ok, t()} | {:error, atom(), String.t()}
  def apply_pairs(settings, []), do: {:ok, settings}

  def apply_pairs(settings, [{key, value} | rest]) do
    with {:ok, settings} <- put(settings, key, value), do: apply_pairs(settings, rest)
  end

  # The encoder keeps no dynamic table, so any size that the peer allows is enough.
  defp put(settings, @header_table_size, _value), do: {:ok, settings}
  defp put(settings, @enable_push, 0), do: {:ok, settings}

  defp put(_settings, @enable_push, value),
    do: {:error, :protocol_error, "a server's ENABLE_PUSH of #{value}"}

  defp put(settings, @max_concurrent_streams, value),
    do: {:ok, %{settings | max_concurrent_streams: value}}

  defp put(settings, @initial_window_size, value) do
    if value > FlowControl.max_window(),
      do: {:error, :flow_control_error, "INITIAL_WINDOW_SIZE of #{value}"},
      else: {:ok, %{settings | initial_window_size: value}}
  end

  defp put(settings, @max_frame_size, value) when value in 16_384..16_777_215,
    do: {:ok, %{settings | max_frame_size: value}}

  defp put(_settings, @max_frame_size, value),
    do: {:error, :protocol_error, "MAX_FRAME_SIZE of #{value}"}

  defp put(settings, @max_header_list_size, value),
    do: {:ok, %{settings | max_header_list_size: value}}

  defp put(settings, _unknown, _value), do: {:ok, settings}
end
