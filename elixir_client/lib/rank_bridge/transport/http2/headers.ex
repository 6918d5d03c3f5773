defmodule RankBridge.Transport.HTTP2.Headers do
  @moduledoc false
  # What RFC 9113, section 8.2 and 8.3, demands of the headers and trailers of a response.

  alias RankBridge.Transport.HTTP2.HPACK

  # Of a connection, and so of no message in HTTP/2.
  @of_connection ["connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade"]

  @doc "The status of a response: the only pseudo-header, before all others."
  @spec check_response([HPACK.header()]) :: {:ok, String.t()} | {:error, String.t()}
  def check_response([{":status", <<first, second, third>> = status} | headers])
      when first in ?1..?9 and second in ?0..?9 and third in ?0..?9 do
    with :ok <- check_trailers(headers), do: {:ok, status}
  end

  def check_response([{":status", status} | _headers]),
    do: {:error, "no status of HTTP: #{inspect(status)}"}

  def check_response(_headers), do: {:error, "a response that does not begin with :status"}

  @doc "Whether trailers, or headers after the status, are such as a peer may send."
  @spec check_trailers([HPACK.header()]) :: :ok | {:error, String.t()}
  def check_trailers(headers) do
    case Enum.find(headers, &(not valid?(&1))) do
      nil -> :ok
      {name, _value} -> {:error, "a header that HTTP/2 does not allow: #{inspect(name)}"}
    end
  end

  defp valid?({name, value}),
    do: name not in @of_connection and name != "" and name?(name) and value?(value)

  # Lower case, and not a pseudo-header. By hand, as a regular expression takes twenty times as long.
  defp name?(<<byte, rest::binary>>)
       when byte in ?a..?z or byte in ?0..?9 or byte in ~c"-_.!#$%&'*+^`|~",
       do: name?(rest)

  defp name?(rest), do: rest == ""

  defp value?(""), do: true
  defp value?(<<first, _rest::binary>>) when first in ~c" \t", do: false
  defp value?(value), do: :binary.last(value) not in ~c" \t" and no_break?(value)

  defp no_break?(<<byte, rest::binary>>) when byte not in [0, ?\r, ?\n], do: no_break?(rest)
  defp no_break?(rest), do: rest == ""
end
