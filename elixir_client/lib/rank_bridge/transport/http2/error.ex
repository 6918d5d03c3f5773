defmodule RankBridge.Transport.HTTP2.Error do
  @moduledoc false
  # The error codes of HTTP/2 (RFC 9113, section 7): numbers on the wire, atoms here.

  @codes [
    :no_error,
    :protocol_error,
    :internal_error,
    :flow_control_error,
    :settings_timeout,
    :stream_closed,
    :frame_size_error,
    :refused_stream,
    :cancel,
    :compression_error,
    :connect_error,
    :enhance_your_calm,
    :inadequate_security,
    :http_1_1_required
  ]

  @type code :: atom() | non_neg_integer()

  @doc "The atom of a number; a number that RFC 9113 does not name stays a number."
  @spec code(non_neg_integer()) :: code()
  for {code, number} <- Enum.with_index(@codes) do
    def code(unquote(number)), do: unquote(code)
  end

  def code(number), do: number

  @doc "The number of a code."
  @spec number(code()) :: non_neg_integer()
  for {code, number} <- Enum.with_index(@codes) do
    def number(unquote(code)), do: unquote(number)
  end

  def number(number) when is_integer(number), do: number

  @doc "The name as RFC 9113 writes it, for messages."
  @spec name(code()) :: String.t()
  def name(code) when is_atom(code), do: code |> Atom.to_string() |> String.upcase()
  def name(code), do: "error code #{code}"
end
