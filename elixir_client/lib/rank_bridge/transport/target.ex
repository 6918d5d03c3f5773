defmodule RankBridge.Transport.Target do
  @moduledoc false
  # Targets as gRPC writes them: `host:port`, `[::1]:port`, `dns:///host:port`, `ipv4:127.0.0.1:port`,
  # `ipv6:[::1]:port`, `unix:path`, `unix:///absolute/path`, `unix-abstract:name`.
  #
  # A host without a port means port 443, as in gRPC.

  @default_port 443
  # Bytes of a unix socket's path or name that operating systems take.
  @longest 107

  @enforce_keys [:address, :authority]
  defstruct [:address, :authority]

  @typedoc "`authority` is what requests name as `:authority`, and what a certificate is checked against."
  @type t :: %__MODULE__{
          address: {:tcp, host :: String.t(), :inet.port_number()} | {:unix, path :: binary()},
          authority: String.t()
        }

  @doc "Reads a target. The error says what is wrong with it."
  @spec parse(String.t()) :: {:ok, t()} | {:error, String.t()}
  def parse("unix-abstract:" <> name) when name != "", do: unix(name, <<0, name::binary>>)

  def parse("unix://" <> path),
    do: if(match?("/" <> _, path), do: unix(path, path), else: invalid("unix://" <> path))

  def parse("unix:" <> path) when path != "", do: unix(path, path)

  def parse("dns://" <> rest = target) do
    case String.split(rest, "/", parts: 2) do
      [_resolver, endpoint] -> endpoint(endpoint, target)
      _ -> invalid(target)
    end
  end

  def parse("dns:" <> endpoint = target), do: endpoint(endpoint, target)
  def parse("ipv4:" <> endpoint = target), do: endpoint(endpoint, target)
  def parse("ipv6:" <> endpoint = target), do: endpoint(endpoint, target)
  def parse(target) when is_binary(target), do: endpoint(target, target)

  @doc "The host that a certificate must name."
  @spec host(t()) :: String.t()
  def host(%{address: {:tcp, host, _port}}), do: host
  def host(%{address: {:unix, _path}}), do: "localhost"

  @doc "The path of a unix socket; nil if it has none, or the target is none."
  @spec path(t()) :: binary() | nil
  def path(%{address: {:unix, <<0, _abstract::binary>>}}), do: nil
  def path(%{address: {:unix, path}}), do: path
  def path(%{address: {:tcp, _host, _port}}), do: nil

  defp unix(name, address) when byte_size(name) <= @longest,
    do: {:ok, %__MODULE__{address: {:unix, address}, authority: "localhost"}}

  defp unix(name, _address) do
    limit = "the path of a unix socket has at most #{@longest} bytes"
    {:error, "#{limit}, and this has #{byte_size(name)}: #{name}"}
  end

  defp endpoint("[" <> rest, target) do
    case String.split(rest, "]", parts: 2) do
      [host, ""] -> tcp(host, "[#{host}]", @default_port)
      [host, ":" <> port] -> with_port(host, "[#{host}]", port, target)
      _ -> invalid(target)
    end
  end

  defp endpoint(endpoint, target) do
    case String.split(endpoint, ":") do
      [host] ->
        valid_host(host, target, fn -> tcp(host, host, @default_port) end)

      [host, port] ->
        valid_host(host, target, fn -> with_port(host, host, port, target) end)

      # An IPv6 address without brackets can have no port.
      _ ->
        if ipv6?(endpoint),
          do: tcp(endpoint, "[#{endpoint}]", @default_port),
          else: invalid(target)
    end
  end

  defp valid_host(host, target, then) do
    if host != "" and not String.contains?(host, ["/", " ", "@"]),
      do: then.(),
      else: invalid(target)
  end

  defp with_port(host, written, port, target) do
    case Integer.parse(port) do
      {number, ""} when number in 1..65_535 -> tcp(host, written, number)
      _ -> invalid(target)
    end
  end

  defp tcp(host, written, port),
    do: {:ok, %__MODULE__{address: {:tcp, host, port}, authority: "#{written}:#{port}"}}

  defp ipv6?(text), do: match?({:ok, _}, :inet.parse_ipv6strict_address(String.to_charlist(text)))

  defp invalid(target), do: {:error, "not a gRPC target: #{inspect(target)}"}
end
