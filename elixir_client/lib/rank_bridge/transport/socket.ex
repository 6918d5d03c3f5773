defmodule RankBridge.Transport.Socket do
  @moduledoc false
  # A connected byte stream: TCP or a unix socket, with or without TLS. The process that connects owns it;
  # any process may send. Data arrives at the owner as messages, which `message/2` reads.
  #
  # Without TLS it is a `:socket`, not a `:gen_tcp`: where a send fails, the driver of that forgets what has come and was not
  # read. A server that answers and ends would seem not to have answered.

  alias RankBridge.Transport.{Nearness, Target}

  # Bytes of a read. OTP's default of 1,460 bytes is ten times slower for large messages.
  @buffer 262_144
  # Reads of TLS between two wake-ups of the owner's `activate/1`.
  @reads 64

  defstruct [:module, :socket]

  @type t :: %__MODULE__{module: :socket | :ssl, socket: term()}

  @typedoc "`:tls` options, see `RankBridge.Transport`; nil is plain text."
  @type tls :: keyword() | nil

  @doc "Connects within `timeout` milliseconds, and shakes hands if `tls` is given. The error is for people."
  @spec connect(Target.t(), tls(), timeout()) :: {:ok, t()} | {:error, String.t()}
  def connect(target, nil, timeout) do
    with {:ok, socket} <- connect_any(:socket, target.address, deadline(timeout)),
         do: {:ok, %__MODULE__{module: :socket, socket: socket}}
  end

  def connect(target, tls, timeout) do
    deadline = deadline(timeout)

    with {:ok, socket} <- connect_any(:gen_tcp, target.address, deadline),
         do: shake_hands(socket, target, tls, deadline)
  end

  defp connect_any(module, {:unix, path}, deadline) do
    with :ok <- Nearness.check_owner(path),
         do: explain(dial(module, {:local, path}, 0, remaining(deadline)), "unix:#{path}")
  end

  defp connect_any(module, {:tcp, host, port}, deadline) do
    case Nearness.addresses(host) do
      [] -> {:error, "no address for #{host}"}
      addresses -> connect_any(module, addresses, host, port, deadline)
    end
  end

  # Each address has its share of the time that is left, so that one that swallows all packets does not use up that of others.
  defp connect_any(module, [address | rest], host, port, deadline) do
    case dial(module, address, port, share(remaining(deadline), length(rest) + 1)) do
      {:error, reason} when rest == [] -> explain({:error, reason}, "#{host}:#{port}")
      {:error, _reason} -> connect_any(module, rest, host, port, deadline)
      ok -> ok
    end
  end

  defp share(:infinity, 1), do: :infinity
  # What an operating system takes for itself may be minutes.
  defp share(:infinity, _addresses), do: 10_000
  defp share(milliseconds, addresses), do: div(milliseconds, addresses)

  defp dial(:socket, address, port, timeout) do
    {options, place} = place(address, port)
    open(place, [{{:otp, :rcvbuf}, @buffer} | options], timeout)
  end

  defp dial(:gen_tcp, address, port, timeout) do
    {options, place} = place(address, port)
    nodelay = for {{:tcp, :nodelay}, true} <- options, do: {:nodelay, true}
    options = [place.family, :binary, active: false, packet: :raw, buffer: @buffer] ++ nodelay
    :gen_tcp.connect(address, port, options, timeout)
  end

  defp place({:local, path}, 0), do: {[], %{family: :local, path: path}}

  defp place(address, port) do
    family = if tuple_size(address) == 8, do: :inet6, else: :inet
    {[{{:tcp, :nodelay}, true}], %{family: family, addr: address, port: port}}
  end

  @doc "A `:socket` with these options that is connected to a place; where that does not succeed, it is closed again."
  @spec open(map(), [{term(), term()}], timeout() | :nowait) :: {:ok, :socket.socket()} | term()
  def open(place, options, timeout) do
    with {:ok, socket} <- :socket.open(place.family, :stream, :default) do
      with :ok <- set(socket, options),
           :ok <- :socket.connect(socket, place, timeout) do
        {:ok, socket}
      else
        error ->
          _ = :socket.close(socket)
          error
      end
    end
  end

  defp set(socket, options) do
    Enum.reduce_while(options, :ok, fn {option, value}, :ok ->
      case :socket.setopt(socket, option, value) do
        :ok -> {:cont, :ok}
        error -> {:halt, error}
      end
    end)
  end

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
  def send(%{module: :socket, socket: socket}, data) do
    case :socket.send(socket, data) do
      {:error, {reason, _unsent}} -> {:error, reason}
      sent -> sent
    end
  end

  def send(%{module: :ssl, socket: socket}, data), do: :ssl.send(socket, data)

  @doc "Asks for messages. A `:passive` among them is to be answered with this again."
  @spec activate(t()) :: :ok | {:error, term()}
  def activate(%{module: :socket, socket: socket}), do: read_soon(socket)
  def activate(%{module: :ssl, socket: socket}), do: :ssl.setopts(socket, active: @reads)

  # Behind what is in the mailbox.
  defp read_soon(socket) do
    Kernel.send(self(), {:"$socket", socket, :select, :soon})
    :ok
  end

  @doc "What a message of the owner's mailbox says about this socket; nil if nothing."
  @spec message(t(), term()) :: {:data, binary()} | :passive | {:closed, String.t()} | nil
  def message(%{module: :socket, socket: socket}, {:"$socket", socket, :select, _handle}) do
    case :socket.recv(socket, 0, [], :nowait) do
      {:ok, data} ->
        :ok = read_soon(socket)
        {:data, data}

      {:select, _info} ->
        nil

      {:error, reason} when reason in [:closed, :econnreset] ->
        {:closed, "the server closed the connection"}

      {:error, reason} ->
        {:closed, describe(reason)}
    end
  end

  def message(%{module: :ssl, socket: socket}, {:ssl, socket, data}), do: {:data, data}
  def message(%{module: :ssl, socket: socket}, {:ssl_passive, socket}), do: :passive

  def message(%{module: :ssl, socket: socket}, {:ssl_closed, socket}),
    do: {:closed, "the server closed the connection"}

  def message(%{module: :ssl, socket: socket}, {:ssl_error, socket, reason}),
    do: {:closed, describe(reason)}

  def message(_socket, _message), do: nil

  @doc """
  Closes, by the owner, which is about to end. With `discard?`, bytes that the peer has not taken are thrown
  away instead of waited for.
  """
  @spec close(t(), boolean()) :: :ok
  def close(%{module: :socket, socket: socket}, discard?) do
    _ = discard? && :socket.setopt(socket, {:socket, :linger}, %{onoff: true, linger: 0})
    _ = :socket.close(socket)
    :ok
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
