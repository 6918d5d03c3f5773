defmodule RankBridge.Transport.HTTP2 do
  @moduledoc false
  # The transport that needs nothing beyond OTP: gRPC over HTTP/2, on TCP or unix sockets, with or without TLS.
  #
  #     caller --------- Call: deadline, framing, status
  #       |  \\___________ Channel: connects again, holds calls meanwhile
  #       |               |
  #       Connection: Protocol (a value: frames, HPACK, windows, streams)
  #       |
  #       Writer -> Socket
  #
  # A call goes straight to the current connection; the response comes straight back.

  @behaviour RankBridge.Transport

  alias RankBridge.{Hidden, Token}
  alias RankBridge.Transport.GRPC.{Message, Metadata}
  alias RankBridge.Transport.HTTP2.{Call, Channel, HPACK, Request}
  alias RankBridge.Transport.{Nearness, Status, Target}

  @enforce_keys [:pid, :table, :head, :tail, :header_list, :limit, :stream_window, :write_cap]
  defstruct [
    :pid,
    :table,
    :head,
    :tail,
    :header_list,
    :limit,
    :stream_window,
    :write_cap,
    :path,
    transport: __MODULE__
  ]

  @typedoc """
  A channel. `head` and `tail` are the header block of every request, before and after its path, and `header_list` is their size
  as RFC 9113 counts it. `tail` is a function, as it may have a token, which nothing is to print. `path` is that of the target,
  if it is a unix socket.
  """
  @type t :: %__MODULE__{
          pid: pid(),
          table: :ets.table(),
          head: binary(),
          tail: (() -> binary()),
          header_list: pos_integer(),
          limit: pos_integer() | :infinity,
          stream_window: pos_integer(),
          write_cap: pos_integer(),
          path: binary() | nil,
          transport: module()
        }

  @connect_options [
    tls: nil,
    token: nil,
    insecure_token: false,
    connect_timeout: 5_000,
    lazy: false,
    owner: nil,
    supervisor: RankBridge.Transport.Supervisor,
    backoff: {50, 5_000},
    keepalive: :infinity,
    keepalive_without_calls: false,
    stream_window: 4_194_304,
    connection_window: 67_108_864,
    write_cap: 2_097_152,
    max_receive_message_bytes: 268_435_456,
    max_frame_size: 16_384,
    max_header_list: 262_144,
    first_stream_id: 1,
    authority: nil
  ]

  @call_options [timeout: :infinity, metadata: [], wait_for_ready: false]

  @impl true
  def connect(target, opts \\ []) do
    {token, opts} = opts |> Keyword.validate!(@connect_options) |> Keyword.pop!(:token)

    unless is_integer(opts[:connect_timeout]) and opts[:connect_timeout] > 0,
      do: raise(ArgumentError, "not a :connect_timeout: #{inspect(opts[:connect_timeout])}")

    # As `:ssl` and others take it: TLS with the defaults, or none.
    opts = Keyword.update!(opts, :tls, &Map.get(%{true => [], false => nil}, &1, &1))
    opts = Keyword.update!(opts, :tls, &(&1 && Hidden.hide(&1)))

    {insecure, opts} = Keyword.pop!(opts, :insecure_token)

    with {:ok, target} <- parse(target),
         :ok <- heard_by_nobody(target, token, insecure or opts[:tls] != nil),
         {:ok, pid, table} <- Channel.start(target, opts),
         :ok <- ready(pid, opts) do
      # A unix socket knows its caller by itself.
      token = if match?({:tcp, _host, _port}, target.address), do: Token.new(token)
      {head, tail} = fixed_headers(opts[:authority] || target.authority, opts[:tls], token)
      encoded = HPACK.encode(tail, huffman: true)

      {:ok,
       %__MODULE__{
         pid: pid,
         table: table,
         head: HPACK.encode(head, huffman: true),
         tail: fn -> encoded end,
         header_list: header_list(head ++ tail),
         limit: opts[:max_receive_message_bytes],
         stream_window: opts[:stream_window],
         write_cap: opts[:write_cap],
         path: Target.path(target)
       }}
    end
  end

  defp heard_by_nobody(%{address: {:tcp, host, _port}}, token, false) when token != nil do
    with {:error, why} <- Nearness.check_hearers(host),
         do: {:error, Status.new(:invalid_argument, why, false)}
  end

  defp heard_by_nobody(_target, _token, _either), do: :ok

  defp parse(target) do
    with {:error, why} <- Target.parse(target),
         do: {:error, Status.new(:invalid_argument, why, false)}
  end

  defp ready(pid, opts) do
    with false <- opts[:lazy], {:error, why} <- Channel.await_ready(pid) do
      Channel.stop(pid)
      {:error, Status.new(:unavailable, why, false)}
    else
      _ -> :ok
    end
  end

  defp fixed_headers(authority, tls, token) do
    scheme = if tls, do: "https", else: "http"

    head = [{":method", "POST"}, {":scheme", scheme}, {":authority", authority}]

    tail = [
      {"te", "trailers"},
      {"content-type", "application/grpc"},
      {"user-agent", "grpc-elixir-rankbridge/0.1.0"},
      {"grpc-accept-encoding", "identity,gzip"}
      | if(token, do: [{"authorization", "Bearer " <> token.()}], else: [])
    ]

    {head, tail}
  end

  defp header_list(headers),
    do: Enum.sum(for {name, value} <- headers, do: byte_size(name) + byte_size(value) + 32)

  @impl true
  def close(channel), do: Channel.stop(channel.pid)

  @impl true
  def start_unary(channel, path, message, opts \\ []) do
    {data, bytes} = Message.encode(message)
    limit = if channel.limit == :infinity, do: :infinity, else: channel.limit + 5
    start(channel, path, opts, data: data, bytes: bytes, limit: limit)
  end

  @impl true
  def await(call) do
    with {:ok, message, call} <- Call.recv(call) do
      case Call.recv(call) do
        {:done, _metadata} ->
          {:ok, message}

        {:ok, _second, call} ->
          Call.finish(call)
          {:error, Status.new(:internal, "more than one message in answer to a unary call", true)}

        error ->
          error
      end
    else
      {:done, _metadata} ->
        {:error, Status.new(:internal, "no message in answer to a unary call", true)}

      error ->
        error
    end
  end

  @doc "A unary call: `start_unary/4` and `await/1`."
  @spec unary(t(), String.t(), iodata(), keyword()) :: RankBridge.Transport.result()
  def unary(channel, path, message, opts \\ []),
    do: channel |> start_unary(path, message, opts) |> await()

  @impl true
  def client_stream(channel, path, messages, opts \\ []) do
    limit = if channel.limit == :infinity, do: :infinity, else: channel.limit + 5
    call = open(channel, path, opts, limit: limit)

    cancelling(call, fn ->
      call =
        Enum.reduce_while(messages, call, fn message, call ->
          case Call.send_message(call, message) do
            {:ok, call} -> {:cont, call}
            {:closed, call} -> {:halt, call}
          end
        end)

      {_ok_or_closed, call} = Call.half_close(call)
      await(call)
    end)
  end

  @impl true
  def server_stream(channel, path, message, acc, fun, opts \\ []) do
    {data, bytes} = Message.encode(message)
    call = start(channel, path, opts, data: data, bytes: bytes, replenish: :consumption)
    cancelling(call, fn -> reduce(call, acc, fun) end)
  end

  defp reduce(call, acc, fun) do
    case Call.recv(call) do
      {:ok, message, call} ->
        case fun.(message, acc) do
          {:cont, acc} ->
            reduce(call, acc, fun)

          {:halt, acc} ->
            Call.finish(call)
            {:ok, acc}
        end

      {:done, _metadata} ->
        {:ok, acc}

      {:error, status} ->
        {:error, status}
    end
  end

  @impl true
  def open_stream(channel, path, opts \\ []) do
    call = open(channel, path, opts, replenish: :consumption)

    # Over already, and of no use to anyone: most likely there is no connection.
    if Call.over?(call), do: Call.recv(call), else: {:ok, call}
  end

  @impl true
  def unix_socket(%{path: nil}), do: :none
  def unix_socket(channel), do: {:ok, channel.path, channel.pid}

  @impl true
  defdelegate send_message(call, message), to: Call

  @impl true
  defdelegate half_close(call), to: Call

  @impl true
  defdelegate recv_message(call), to: Call, as: :recv

  @impl true
  defdelegate room?(call), to: Call

  @impl true
  defdelegate hear(call, message), to: Call

  @impl true
  defdelegate arrived(call), to: Call

  @impl true
  defdelegate cancel(call), to: Call, as: :finish

  # Data of an open-ended call must not take another way than its beginning.
  defp open(channel, path, opts, fields) do
    channel
    |> start(path, opts, [{:fin?, false}, {:report_sent?, true} | fields])
    |> Call.await_connection()
  end

  defp start(channel, path, opts, fields) do
    opts = Keyword.validate!(opts, @call_options)
    custom = timeout(opts[:timeout]) ++ Metadata.encode(opts[:metadata])
    path = [{":path", path}]
    block = channel.head <> HPACK.encode(path) <> channel.tail.() <> HPACK.encode(custom)

    request =
      struct!(
        Request,
        [
          block: Hidden.hide(block),
          header_list: channel.header_list + header_list(path) + header_list(custom),
          caller: self(),
          deadline: deadline(opts[:timeout]),
          wait_for_ready?: opts[:wait_for_ready]
        ] ++ fields
      )

    Call.start(Channel.server(channel.pid, channel.table), request,
      transport: __MODULE__,
      channel: channel.pid,
      limit: channel.limit,
      stream_window: channel.stream_window,
      write_cap: channel.write_cap
    )
  end

  defp timeout(milliseconds) when is_integer(milliseconds) and milliseconds > 0,
    do: [{"grpc-timeout", Metadata.timeout(milliseconds)}]

  defp timeout(_none_or_over), do: []

  defp deadline(:infinity), do: :infinity

  defp deadline(milliseconds) when is_integer(milliseconds),
    do: System.monotonic_time(:millisecond) + milliseconds

  # The connection is everybody's, and starts a timer with it.
  defp deadline(other), do: raise(ArgumentError, "not a :timeout: #{inspect(other)}")

  # What the caller's code raises ends the call, too.
  defp cancelling(call, fun) do
    fun.()
  catch
    kind, reason ->
      Call.finish(call)
      :erlang.raise(kind, reason, __STACKTRACE__)
  end
end
