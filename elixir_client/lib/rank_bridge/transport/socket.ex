defmodule RankBridge.Transport.Socket do
  @moduledoc false
  # A connected byte stream: TCP or a unix socket, with or without TLS. The process that connects owns it;
  # any process may send. Data arrives at the owner as messages, which `message/2` reads.

  alias RankBridge.Transport.{Nearness, Target}

  # OTP's default of 1,460 bytes per read is ten times slower for large messages.
  @buffer 262_144
  # Reads between two wake-ups of the owner's `activate/1`.
  @reads 64

  defstruct [:module, :socket]

  @type t :: %__MODULE__{module: :gen_tcp | :ssl, socket: term()}

  @typedoc "`:tls` options, see `RankBridge.Transport`; nil is plain text."
  @type tls :: keyword() | nil

  @doc "Connects within `timeout` milliseconds, and shakes hands if `tls` is given. The error is for people."
  @spec connect(Target.t(), tls(), timeout()) :: {:ok, t()} | {:error, String.t()}
  def connect(target, tls, timeout) do
    deadline = deadline(timeout)

    with {:ok, socket} <- connect_plain(target.address, deadline) do
      if tls == nil,
        do: {:ok, %__MODULE__{module: :gen_tcp, socket: socket}},
        else: shake_hands(socket, target, tls, deadline)
    end
  end

  defp connect_plain({:unix, path}, deadline) do
    with :ok <- Nearness.check_owner(path),
         do:
           explain(
             :gen_tcp.connect({:local, path}, 0, options(), remaining(deadline)),
             "unix:#{path}"
           )
  end

  defp connect_plain({:tcp, host, port}, deadline) do
    options = [{:nodelay, true} | options()]

    case Nearness.addresses(host) do
      [] -> {:error, "no address for #{host}"}
      addresses -> connect_any(addresses, host, port, options, deadline)
    end
  end

  # Each address has its share of the time that is left, so that one that swallows all packets does not use up that of others.
  defp connect_any([address | rest], host, port, options, deadline) do
    family = if tuple_size(address) == 8, do: :inet6, else: :inet
    timeout = share(remaining(deadline), length(rest) + 1)

    case :gen_tcp.connect(address, port, [family | options], timeout) do
      {:error, reason} when rest == [] -> explain({:error, reason}, "#{host}:#{port}")
      {:error, _reason} -> connect_any(rest, host, port, options, deadline)
      ok -> ok
    end
  end

  defp share(:infinity, 1), do: :infinity
  # What an operating system takes for itself may be minutes.
  defp share(:infinity, _addresses), do: 10_000
  defp share(milliseconds, addresses), do: div(milliseconds, addresses)

  defp options, do: [:binary, active: false, packet: :raw, buffer: @buffer]

  defp shake_hands(socket, target, tls, deadline) do
    with {:ok, _} <- explain(Application.ensure_all_started(:ssl), "starting ssl"),
         {:ok, options} <- tls_options(target, tls),
         {:ok, secure} <- explain(:ssl.connect(socket, options, remaining(deadline)), "TLS"),
         :ok <- check_protocol(secure) do
      {:ok, %__MODULE__{module: :ssl, socket: secure}}
    else
      error ->
        _ = :gen_tcp.close(socket)
        error
    end
  end

  defp check_protocol(secure) do
    case :ssl.negotiated_protocol(secure) do
      {:ok, "h2"} ->
        :ok

      other ->
        _ = :ssl.close(secure)
        {:error, "TLS: the server does not speak HTTP/2 (ALPN #{inspect(other)})"}
    end
  end

  # OTP 25 verifies no certificate by default.
  defp tls_options(target, tls) do
    {name, tls} = Keyword.pop(tls, :server_name, Target.host(target))

    defaults =
      server_name(name) ++
        [
          verify: :verify_peer,
          customize_hostname_check: [
            match_fun: :public_key.pkix_verify_hostname_match_fun(:https)
          ],
          depth: 10,
          versions: [:"tlsv1.3", :"tlsv1.2"],
          ciphers: ciphers(),
          log_level: :none
        ]

    options = Keyword.merge(defaults, tls)

    with {:ok, options} <- with_authorities(options),
         do: {:ok, [{:alpn_advertised_protocols, ["h2"]}, {:buffer, @buffer} | options]}
  end

  defp with_authorities(options) do
    known? = Enum.any?([:cacerts, :cacertfile], &Keyword.has_key?(options, &1))

    if known? or options[:verify] == :verify_none,
      do: {:ok, options},
      else: {:ok, [{:cacerts, :public_key.cacerts_get()} | options]}
  rescue
    # The machine has no store of them.
    _no_cacerts ->
      {:error, "TLS: this machine has no certificates of authorities; name some as :cacertfile"}
  end

  # RFC 9113, section 9.2.2, forbids all suites of TLS 1.2 without ephemeral keys and authenticated encryption.
  defp ciphers do
    modern = :ssl.cipher_suites(:exclusive, :"tlsv1.3")

    ephemeral =
      :ssl.filter_cipher_suites(:ssl.cipher_suites(:default, :"tlsv1.2"),
        key_exchange: &(&1 in [:ecdhe_ecdsa, :ecdhe_rsa, :dhe_rsa]),
        mac: &(&1 == :aead)
      )

    modern ++ ephemeral
  end

  # Without a name, the certificate is checked against the address that was connected to.
  defp server_name(name) do
    case :inet.parse_address(to_charlist(name)) do
      {:ok, _address} -> []
      {:error, _} -> [server_name_indication: to_charlist(name)]
    end
  end

  @doc "Sends all of `data`; blocks while the peer takes nothing."
  @spec send(t(), iodata()) :: :ok | {:error, term()}
  def send(%{module: :gen_tcp, socket: socket}, data), do: :gen_tcp.send(socket, data)
  def send(%{module: :ssl, socket: socket}, data), do: :ssl.send(socket, data)

  @doc "Asks for a bounded number of messages; the last is followed by `:passive`, to be answered with this again."
  @spec activate(t()) :: :ok | {:error, term()}
  def activate(%{module: :gen_tcp, socket: socket}), do: :inet.setopts(socket, active: @reads)
  def activate(%{module: :ssl, socket: socket}), do: :ssl.setopts(socket, active: @reads)

  @doc "What a message of the owner's mailbox says about this socket; nil if nothing."
  @spec message(t(), term()) :: {:data, binary()} | :passive | {:closed, String.t()} | nil
  def message(%{socket: socket}, {tag, socket, data}) when tag in [:tcp, :ssl], do: {:data, data}

  def message(%{socket: socket}, {tag, socket}) when tag in [:tcp_passive, :ssl_passive],
    do: :passive

  def message(%{socket: socket}, {tag, socket}) when tag in [:tcp_closed, :ssl_closed],
    do: {:closed, "the server closed the connection"}

  def message(%{socket: socket}, {tag, socket, reason}) when tag in [:tcp_error, :ssl_error],
    do: {:closed, describe(reason)}

  def message(_socket, _message), do: nil

  @doc """
  Closes, by the owner, which is about to end. With `discard?`, bytes that the peer has not taken are thrown
  away instead of waited for.
  """
  @spec close(t(), boolean()) :: :ok
  def close(%{module: :gen_tcp, socket: socket}, discard?) do
    _ = discard? && :inet.setopts(socket, linger: {true, 0})
    :gen_tcp.close(socket)
  end

  # `:ssl.close/1` would wait for a peer that takes nothing. TLS sees its owner end, too.
  def close(%{module: :ssl, socket: socket}, true) do
    _ = :ssl.setopts(socket, linger: {true, 0})
    :ok
  end

  def close(%{module: :ssl, socket: socket}, false) do
    _ = :ssl.close(socket)
    :ok
  end

  defp explain({:error, reason}, what), do: {:error, "#{what}: #{describe(reason)}"}
  defp explain(ok, _what), do: ok

  defp describe(reason) when is_atom(reason) do
    case :inet.format_error(reason) do
      ~c"unknown POSIX error" ++ _ -> inspect(reason)
      text -> List.to_string(text)
    end
  end

  defp describe({:tls_alert, {_kind, text}}), do: text |> to_string() |> String.trim()
  defp describe(reason), do: inspect(reason)

  defp deadline(:infinity), do: :infinity
  defp deadline(timeout), do: System.monotonic_time(:millisecond) + timeout

  defp remaining(:infinity), do: :infinity
  defp remaining(deadline), do: max(deadline - System.monotonic_time(:millisecond), 0)
end
