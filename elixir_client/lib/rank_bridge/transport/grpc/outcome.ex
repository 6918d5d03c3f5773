defmodule RankBridge.Transport.GRPC.Outcome do
  @moduledoc false
  # From the end of an HTTP/2 stream to a gRPC status (gRPC over HTTP/2, "Errors" and "HTTP status").

  alias RankBridge.Transport.GRPC.{Message, Metadata}
  alias RankBridge.Transport.HTTP2.Error
  alias RankBridge.Transport.Status

  @doc "The status in trailers, or in headers that are also trailers. A call that ended well gives its metadata."
  @spec from_trailers(Metadata.t()) :: {:ok, Metadata.t()} | {:error, Status.t()}
  def from_trailers(headers) do
    metadata = Metadata.decode(headers)

    case {find(headers, "grpc-status"), find(headers, ":status")} do
      {"0", _} ->
        {:ok, metadata}

      {nil, status} when status in [nil, "200"] ->
        {:error, status(:unknown, "the server ended the call without grpc-status", metadata)}

      {nil, status} ->
        {:error,
         status(http_code(status), "the server answered with HTTP status #{status}", metadata)}

      {number, _} ->
        message = Metadata.percent_decode(find(headers, "grpc-message") || "")
        {:error, status(code(number), message, metadata)}
    end
  end

  @doc "Whether headers begin a gRPC response, and if so, how its messages are compressed."
  @spec from_headers(Metadata.t()) :: {:ok, encoding :: String.t()} | {:error, Status.t()}
  def from_headers(headers) do
    type = find(headers, "content-type") || ""

    case find(headers, ":status") do
      "200" ->
        if grpc?(type),
          do: {:ok, find(headers, "grpc-encoding") || "identity"},
          else:
            {:error,
             status(:unknown, "the server answered with content-type #{inspect(type)}", [])}

      status ->
        {:error, status(http_code(status), "the server answered with HTTP status #{status}", [])}
    end
  end

  # With a suffix such as "+proto", or parameters; "application/grpc-web" is another protocol.
  defp grpc?("application/grpc"), do: true
  defp grpc?(<<"application/grpc", next, _::binary>>), do: next in ~c"+;"
  defp grpc?(_type), do: false

  @doc "The status of a stream that ended otherwise. `sent?` as in `Status`."
  @spec from_reason(tuple() | :deadline, boolean()) :: Status.t()
  def from_reason(:deadline, sent?),
    do: Status.new(:deadline_exceeded, "the deadline passed", sent?)

  def from_reason({:reset, code}, sent?), do: reset(code, sent?)
  def from_reason({:refused, message}, sent?), do: Status.new(:unavailable, message, sent?)
  def from_reason({:unavailable, message}, sent?), do: Status.new(:unavailable, message, sent?)

  def from_reason({:lost, message}, sent?),
    do: Status.new(:unavailable, "connection lost: #{message}", sent?)

  def from_reason({:shutdown, message}, sent?), do: Status.new(:cancelled, message, sent?)
  def from_reason({:cancelled, message}, sent?), do: Status.new(:cancelled, message, sent?)

  def from_reason({:violation, message}, sent?),
    do: Status.new(:internal, "the server broke the protocol: #{message}", sent?)

  def from_reason({:large_headers, size, limit}, sent?) do
    message = "the call's headers have #{size} bytes, and the server takes at most #{limit}"
    Status.new(:resource_exhausted, message, sent?)
  end

  def from_reason({:too_large, limit}, sent?),
    do: Status.new(:resource_exhausted, "a response of more than #{limit} bytes", sent?)

  @doc "The status of a message that cannot be read."
  @spec from_message_error(Message.error(), pos_integer() | :infinity) :: Status.t()
  def from_message_error(:too_large, limit),
    do: Status.new(:resource_exhausted, "a message of more than #{limit} bytes", true)

  def from_message_error(:unknown_compression, _limit),
    do:
      Status.new(:internal, "a compressed message, but no encoding that this client knows", true)

  def from_message_error(:bad_compression, _limit),
    do: Status.new(:internal, "a message that cannot be decompressed", true)

  def from_message_error(:bad_flag, _limit),
    do: Status.new(:internal, "a message with an unknown compression flag", true)

  defp reset(code, sent?) do
    message = "the server reset the stream: #{Error.name(code)}"

    case code do
      :cancel -> Status.new(:cancelled, message, sent?)
      :refused_stream -> Status.new(:unavailable, message, false)
      :enhance_your_calm -> Status.new(:resource_exhausted, message, sent?)
      :inadequate_security -> Status.new(:permission_denied, message, sent?)
      _ -> Status.new(:internal, message, sent?)
    end
  end

  defp code(number) do
    case Integer.parse(number) do
      {number, ""} when number != 0 -> Status.code(number)
      _ -> :unknown
    end
  end

  defp http_code("400"), do: :internal
  defp http_code("401"), do: :unauthenticated
  defp http_code("403"), do: :permission_denied
  defp http_code("404"), do: :unimplemented
  defp http_code(code) when code in ["429", "502", "503", "504"], do: :unavailable
  defp http_code(_code), do: :unknown

  defp status(code, message, metadata),
    do: %Status{code: code, message: message, metadata: metadata}

  defp find(headers, name) do
    case List.keyfind(headers, name, 0) do
      {_, value} -> value
      nil -> nil
    end
  end
end
