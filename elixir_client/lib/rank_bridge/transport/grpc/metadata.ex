defmodule RankBridge.Transport.GRPC.Metadata do
  @moduledoc false
  # Headers of gRPC over HTTP/2: custom metadata in both directions, timeouts, and messages of statuses.
  #
  # Metadata is a list of pairs with lower-case names. Values of names that end in `-bin` are any bytes,
  # other values are printable ASCII.

  @type t :: [{String.t(), binary()}]

  @reserved [
    "te",
    "content-type",
    "user-agent",
    "connection",
    "host",
    "keep-alive",
    "transfer-encoding",
    "upgrade"
  ]

  @doc "Custom metadata as headers. Raises `ArgumentError` on what gRPC does not allow."
  @spec encode(Enumerable.t()) :: t()
  def encode(metadata), do: Enum.map(metadata, &encode_pair/1)

  defp encode_pair({name, value}) do
    name = name |> to_string() |> String.downcase()
    value = to_string(value)

    cond do
      not (name =~ ~r/\A[0-9a-z_.-]+\z/) ->
        raise ArgumentError, "not a metadata name: #{inspect(name)}"

      String.starts_with?(name, "grpc-") or name in @reserved ->
        raise ArgumentError, "reserved metadata name: #{name}"

      String.ends_with?(name, "-bin") ->
        {name, Base.encode64(value, padding: false)}

      value =~ ~r/\A[\x20-\x7e]*\z/ ->
        {name, value}

      true ->
        raise ArgumentError,
              "the value of #{name} is not printable ASCII; names of binary values end in -bin"
    end
  end

  @doc "The custom metadata among headers or trailers. A `-bin` value that is not base64 is left out."
  @spec decode(t()) :: t()
  def decode(headers), do: Enum.flat_map(headers, &decode_pair/1)

  defp decode_pair({":" <> _, _value}), do: []
  defp decode_pair({"content-type", _value}), do: []

  defp decode_pair({"grpc-" <> rest = name, value}) do
    # The one reserved name that is meant for callers: google.rpc.Status.
    if rest == "status-details-bin", do: decode_binary(name, value), else: []
  end

  defp decode_pair({name, value}) do
    if String.ends_with?(name, "-bin"), do: decode_binary(name, value), else: [{name, value}]
  end

  # Several values of one name may have been joined with commas on the way.
  defp decode_binary(name, value) do
    for part <- String.split(value, ","),
        {:ok, bytes} <- [decode64(String.trim(part))],
        do: {name, bytes}
  end

  defp decode64(text), do: text |> String.trim_trailing("=") |> Base.decode64(padding: false)

  @doc "`grpc-timeout` for milliseconds: at most 8 digits and a unit, never less than asked for."
  @spec timeout(pos_integer()) :: String.t()
  def timeout(milliseconds) when milliseconds < 100_000_000, do: "#{milliseconds}m"

  def timeout(milliseconds) when milliseconds < 100_000_000_000,
    do: "#{div(milliseconds + 999, 1000)}S"

  def timeout(milliseconds), do: "#{min(div(milliseconds + 3_599_999, 3_600_000), 99_999_999)}H"

  @doc """
  The text of a percent-encoded `grpc-message`. What is not valid encoding is taken as it stands, and bytes that are no text as
  U+FFFD.
  """
  @spec percent_decode(binary()) :: String.t()
  def percent_decode(text) do
    decoded = percent_decode(text, [])

    cond do
      String.valid?(decoded) ->
        decoded

      String.valid?(text) ->
        text

      true ->
        text
        |> String.codepoints()
        |> Enum.map_join(&if(String.valid?(&1), do: &1, else: "\uFFFD"))
    end
  end

  defp percent_decode(<<"%", high, low, rest::binary>>, done) do
    case Integer.parse(<<high, low>>, 16) do
      {byte, ""} when high not in ~c"+-" -> percent_decode(rest, [byte | done])
      _ -> percent_decode(<<high, low, rest::binary>>, [?% | done])
    end
  end

  defp percent_decode(<<byte, rest::binary>>, done), do: percent_decode(rest, [byte | done])
  defp percent_decode("", done), do: done |> Enum.reverse() |> IO.iodata_to_binary()
end
