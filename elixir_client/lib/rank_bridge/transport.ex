defmodule RankBridge.Transport do
  @moduledoc """
  gRPC calls as bytes in and bytes out. A transport knows no protobuf.

  This module is the behaviour of transports, and calls the one that made a channel or a call.
  The default implementation, HTTP/2 by ourselves, needs nothing beyond OTP; another is chosen with
  `transport: module` in `connect/2`.

  Everything runs in the caller's process; a call belongs to the process that started it. If that process
  dies, its calls are cancelled. A call and a channel are values: functions that give a new call back
  replace the old one. Errors are `%RankBridge.Transport.Status{}`: gRPC's `code` as an atom, a `message`, the trailers that came
  along as `metadata`, and `sent?`, false if the server certainly has not processed the request, so that repeating it is safe.

  ## Options of `connect/2`

  * `:tls` - true, or options of `:ssl`, or a function that returns them (no report of a process shows them), with which the channel is encrypted: `:cacertfile` (default: those of the
    operating system), `:certfile` and `:keyfile` for a certificate of one's own, `:server_name` if the
    server's certificate names another host than the target. Verifies the server by default.
  * `:connect_timeout` - for one attempt, in milliseconds, until the server's SETTINGS; default 5,000
  * `:lazy` - true: do not wait for the first attempt; default false
  * `:owner` - process with which the channel ends; default nil, the channel lives until `close/1`
  * `:supervisor` - the gang, by its pid, whose supervisor starts the channel; default: the application's
  * `:backoff` - `{first, longest}` pause between attempts, in milliseconds, grown by 1.6 and jittered by
    20 %; default `{50, 5_000}`
  * `:keepalive` - milliseconds without a byte from the server after which it is pinged, and after as many
    more given up; default `:infinity`. The server must permit it (`grpc.http2.min_ping_interval_...`).
  * `:keepalive_without_calls` - ping also when no call is running; default false
  * `:stream_window`, `:connection_window` - bytes that the server may send ahead of what is used, per
    call and in all; default 4 MiB and 64 MiB
  * `:write_cap` - bytes of one call, and of one connection, that may wait to be written; default 2 MiB
  * `:max_receive_message_bytes` - largest message, also after decompression; default 256 MiB
  * `:max_frame_size`, `:max_header_list` - largest frame and header list that the server may send, in bytes
  * `:token` - a text, or a function that gives it: every request shows it, as `authorization: Bearer TOKEN`; default none
  * `:insecure_token` - true: show it to other hosts in plain text, too; default false
  * `:authority` - the requests' header `:authority`; default from the target

  ## Options of calls

  * `:timeout` - milliseconds for the whole call, from now; default `:infinity`. Sent to the server, and kept
    by this side whatever the server does.
  * `:metadata` - pairs of name and value; values of names that end in `-bin` may be any bytes
  * `:wait_for_ready` - true: wait for a connection as long as the timeout allows, instead of failing with
    `:unavailable` once an attempt to connect has failed; default false
  """

  alias RankBridge.Transport.{HTTP2, Status}

  @typedoc "A struct of the implementation, with its module in `:transport`."
  @type channel :: %{:transport => module(), optional(atom()) => term()}
  @type call :: %{:transport => module(), optional(atom()) => term()}
  @type result :: {:ok, binary()} | {:error, Status.t()}

  @doc """
  Connects to a gRPC target: `host:port`, `[::1]:port`, `dns:///host:port`, `ipv4:127.0.0.1:port`, `ipv6:[::1]:port`,
  `unix:path`, `unix:///absolute/path` or `unix-abstract:name`. A host without a port means port 443, as in gRPC.

  Raises `ArgumentError` on unknown options.
  """
  @callback connect(target :: String.t(), opts :: keyword()) ::
              {:ok, channel()} | {:error, Status.t()}

  @doc "Ends the channel; running calls fail with `:cancelled`. Closing twice is no error."
  @callback close(channel()) :: :ok

  @doc """
  Starts a unary call and does not wait, not even for a connection. To call many servers at once, start
  all and then await all.
  """
  @callback start_unary(channel(), path :: String.t(), request :: iodata(), opts :: keyword()) ::
              call()

  @doc "Waits for a unary call's end. Once."
  @callback await(call()) :: result()

  @doc "Sends all messages of `requests`; no further than the server listens and `:write_cap` allows."
  @callback client_stream(
              channel(),
              path :: String.t(),
              requests :: Enumerable.t(),
              opts :: keyword()
            ) :: result()

  @doc """
  Calls `fun` with each message and the accumulator. The server is held back while `fun` runs. After
  `{:halt, acc}` the call is cancelled.
  """
  @callback server_stream(
              channel(),
              path :: String.t(),
              request :: iodata(),
              acc,
              fun :: (binary(), acc -> {:cont, acc} | {:halt, acc}),
              opts :: keyword()
            ) :: {:ok, acc} | {:error, Status.t()}
            when acc: term()

  @doc "Starts a call that streams both ways. Waits for a connection."
  @callback open_stream(channel(), path :: String.t(), opts :: keyword()) ::
              {:ok, call()} | {:error, Status.t()}

  @doc """
  Sends a message; waits while `:write_cap` bytes of the call are unwritten. `:closed`: the call has ended,
  and `recv_message/1` returns how.
  """
  @callback send_message(call(), message :: iodata()) :: {:ok | :closed, call()}

  @doc "Ends the sending side: no more messages follow."
  @callback half_close(call()) :: {:ok | :closed, call()}

  @doc "Waits for the next message. `{:done, metadata}`: the call ended well, with these trailers."
  @callback recv_message(call()) ::
              {:ok, binary(), call()} | {:done, [{String.t(), binary()}]} | {:error, Status.t()}

  @doc "Whether `send_message/2` would send a message of a call that streams both ways without waiting."
  @callback room?(call()) :: boolean()

  @doc """
  Handles a message of the caller's mailbox, for a process that must not block on a call that streams both ways. `:unknown`:
  the message is not of that call.
  """
  @callback hear(call(), message :: term()) :: {:ok, call()} | :unknown

  @doc """
  The messages of a call that streams both ways that have arrived, without waiting; and its end, as of `recv_message/1`. Call
  this after each `hear/2` and each `send_message/2`, and again until there are no messages.
  """
  @callback arrived(call()) ::
              {:ok, [binary()], call()}
              | {:done, [binary()], [{String.t(), binary()}]}
              | {:error, [binary()], Status.t()}

  # Without them all operations go by unary calls.
  @optional_callbacks room?: 1, hear: 2, arrived: 1

  @doc """
  The path of the unix socket that the channel's target is, and the process with which the channel ends; `:none`: the target is
  no unix socket, or has no path. With a path, streams of operations use the socket beside it, if there is one, and not
  `c:open_stream/3`.
  """
  @callback unix_socket(channel()) :: {:ok, path :: binary(), pid()} | :none

  @optional_callbacks unix_socket: 1

  @doc "Ends a call of any kind. It must not be used afterwards."
  @callback cancel(call()) :: :ok

  @doc "See the callback `c:connect/2`."
  @spec connect(String.t(), keyword()) :: {:ok, channel()} | {:error, Status.t()}
  def connect(target, opts \\ []) do
    {transport, opts} = Keyword.pop(opts, :transport, HTTP2)
    transport.connect(target, opts)
  end

  @doc "See the callback `c:close/1`."
  @spec close(channel()) :: :ok
  def close(%{transport: transport} = channel), do: transport.close(channel)

  @doc "See the callback `c:start_unary/4`."
  @spec start_unary(channel(), String.t(), iodata(), keyword()) :: call()
  def start_unary(%{transport: transport} = channel, path, request, opts \\ []),
    do: transport.start_unary(channel, path, request, opts)

  @doc "See the callback `c:await/1`."
  @spec await(call()) :: result()
  def await(%{transport: transport} = call), do: transport.await(call)

  @doc "A unary call: `start_unary/4` and `await/1`."
  @spec unary(channel(), String.t(), iodata(), keyword()) :: result()
  def unary(channel, path, request, opts \\ []),
    do: channel |> start_unary(path, request, opts) |> await()

  @doc "See the callback `c:client_stream/4`."
  @spec client_stream(channel(), String.t(), Enumerable.t(), keyword()) :: result()
  def client_stream(%{transport: transport} = channel, path, requests, opts \\ []),
    do: transport.client_stream(channel, path, requests, opts)

  @doc "See the callback `c:server_stream/6`."
  @spec server_stream(
          channel(),
          String.t(),
          iodata(),
          acc,
          (binary(), acc -> {:cont, acc} | {:halt, acc}),
          keyword()
        ) :: {:ok, acc} | {:error, Status.t()}
        when acc: term()
  def server_stream(%{transport: transport} = channel, path, request, acc, fun, opts \\ []),
    do: transport.server_stream(channel, path, request, acc, fun, opts)

  @doc "See the callback `c:open_stream/3`."
  @spec open_stream(channel(), String.t(), keyword()) :: {:ok, call()} | {:error, Status.t()}
  def open_stream(%{transport: transport} = channel, path, opts \\ []),
    do: transport.open_stream(channel, path, opts)

  @doc "See the callback `c:send_message/2`."
  @spec send_message(call(), iodata()) :: {:ok | :closed, call()}
  def send_message(%{transport: transport} = call, message),
    do: transport.send_message(call, message)

  @doc "See the callback `c:half_close/1`."
  @spec half_close(call()) :: {:ok | :closed, call()}
  def half_close(%{transport: transport} = call), do: transport.half_close(call)

  @doc "See the callback `c:recv_message/1`."
  @spec recv_message(call()) ::
          {:ok, binary(), call()} | {:done, [{String.t(), binary()}]} | {:error, Status.t()}
  def recv_message(%{transport: transport} = call), do: transport.recv_message(call)

  @doc "Whether a process can have calls that stream both ways on a channel, and do other things."
  @spec hears?(channel()) :: boolean()
  def hears?(%{transport: transport}), do: function_exported?(transport, :hear, 2)

  @doc "See the callback `c:unix_socket/1`; `:none` of an implementation without it."
  @spec unix_socket(channel()) :: {:ok, binary(), pid()} | :none
  def unix_socket(%{transport: transport} = channel) do
    if function_exported?(transport, :unix_socket, 1),
      do: transport.unix_socket(channel),
      else: :none
  end

  @doc "See the callback `c:room?/1`."
  @spec room?(call()) :: boolean()
  def room?(%{transport: transport} = call), do: transport.room?(call)

  @doc "See the callback `c:hear/2`."
  @spec hear(call(), term()) :: {:ok, call()} | :unknown
  def hear(%{transport: transport} = call, message), do: transport.hear(call, message)

  @doc "See the callback `c:arrived/1`."
  @spec arrived(call()) ::
          {:ok, [binary()], call()}
          | {:done, [binary()], [{String.t(), binary()}]}
          | {:error, [binary()], Status.t()}
  def arrived(%{transport: transport} = call), do: transport.arrived(call)

  @doc "See the callback `c:cancel/1`."
  @spec cancel(call()) :: :ok
  def cancel(%{transport: transport} = call), do: transport.cancel(call)
end
