defmodule RankBridge.Transport.HTTP2.Call do
  @moduledoc false
  # A running call, in the process of its caller: the conversation with the connection, the deadline, the
  # response. `ref` is an alias of the caller, so that nothing arrives once the call is over.

  alias RankBridge.Transport.GRPC.{Message, Response}
  alias RankBridge.Transport.HTTP2.Request
  alias RankBridge.Transport.Status

  # The longest wait that `receive` allows, in milliseconds.
  @longest 4_294_967_295

  @enforce_keys [:ref, :channel, :request, :owner, :deadline, :response]
  defstruct [
    :ref,
    :channel,
    :request,
    :owner,
    :server,
    :monitor,
    :deadline,
    :response,
    :acknowledge_at,
    :write_cap,
    :transport,
    inbox: [],
    unwritten: 0,
    unacknowledged: 0
  ]

  @typedoc """
  `server` is the connection, or the channel while it looks for one. `unwritten` bytes were sent to the
  connection and not on; of `unacknowledged` bytes of the response the connection is told once they are
  `acknowledge_at` (never, if nil).
  """
  @type t :: %__MODULE__{
          ref: reference(),
          channel: pid(),
          request: Request.t(),
          owner: pid(),
          server: pid() | nil,
          monitor: reference() | nil,
          deadline: integer() | :infinity,
          response: Response.t(),
          acknowledge_at: pos_integer() | nil,
          write_cap: pos_integer(),
          transport: module(),
          inbox: [tuple()],
          unwritten: non_neg_integer(),
          unacknowledged: non_neg_integer()
        }

  @doc """
  Starts a call at `server`, which is a connection or a channel. `:closed` is a channel that is gone.
  `limit` is that of messages, in bytes.
  """
  @spec start(pid() | :closed, Request.t(), keyword()) :: t()
  def start(server, request, opts) do
    call = %__MODULE__{
      ref: :erlang.alias(),
      channel: opts[:channel],
      request: request,
      owner: request.caller,
      deadline: request.deadline,
      response: Response.new(opts[:limit]),
      acknowledge_at: if(request.replenish == :consumption, do: div(opts[:stream_window], 4)),
      write_cap: opts[:write_cap],
      transport: opts[:transport],
      unwritten: request.bytes
    }

    cond do
      server == :closed ->
        feed(call, {:closed, {:shutdown, "the channel is closed"}, false})

      request.deadline != :infinity and remaining(request.deadline) == 0 ->
        feed(call, {:closed, :deadline, false})

      true ->
        submit(call, server)
    end
  end

  @doc "Waits until the call is with a connection, or over."
  @spec await_connection(t()) :: t()
  def await_connection(%{server: channel, channel: channel} = call) do
    if over?(call), do: call, else: call |> wait() |> await_connection()
  end

  def await_connection(call), do: call

  @doc "The next message, or the end, after which the call must not be used."
  @spec recv(t()) ::
          {:ok, binary(), t()} | {:done, [{String.t(), binary()}]} | {:error, Status.t()}
  def recv(%{owner: owner} = call) when owner == self() do
    case Response.pull(call.response) do
      {:ok, message, response} ->
        {:ok, message, %{call | response: response}}

      {:more, response} ->
        %{call | response: response} |> acknowledge() |> wait() |> recv()

      {:done, metadata} ->
        finish(call)
        {:done, metadata}

      {:error, status, response} ->
        finish(%{call | response: response})
        {:error, status}
    end
  end

  def recv(_call), do: raise(ArgumentError, "a call belongs to the process that started it")

  @doc "Sends a message, as soon as there is room for it."
  @spec send_message(t(), iodata()) :: {:ok | :closed, t()}
  def send_message(call, message) do
    call = poll(call)

    cond do
      over?(call) ->
        {:closed, call}

      call.unwritten >= call.write_cap ->
        call |> wait() |> send_message(message)

      true ->
        {data, bytes} = Message.encode(message)
        send(call.server, {:send, call.ref, data, bytes, false})
        {:ok, %{call | unwritten: call.unwritten + bytes}}
    end
  end

  @doc "Whether a message would be sent at once."
  @spec room?(t()) :: boolean()
  def room?(call), do: call.unwritten < call.write_cap

  @doc "Takes a message of the mailbox, if it is this call's."
  @spec hear(t(), term()) :: {:ok, t()} | :unknown
  def hear(%{ref: ref} = call, {ref, events}) when is_list(events),
    do: {:ok, %{call | inbox: call.inbox ++ events}}

  def hear(%{monitor: monitor} = call, {:DOWN, monitor, :process, _pid, why}),
    do: {:ok, server_down(call, why)}

  def hear(_call, _message), do: :unknown

  @doc "The messages that are there, without waiting; and the end, after which the call must not be used."
  @spec arrived(t()) ::
          {:ok, [binary()], t()}
          | {:done, [binary()], [{String.t(), binary()}]}
          | {:error, [binary()], Status.t()}
  def arrived(call), do: arrived(call, [])

  defp arrived(call, messages) do
    case Response.pull(call.response) do
      {:ok, message, response} ->
        arrived(%{call | response: response}, [message | messages])

      {:more, response} ->
        more(acknowledge(%{call | response: response}), messages)

      {:done, metadata} ->
        finish(call)
        {:done, Enum.reverse(messages), metadata}

      {:error, status, response} ->
        finish(%{call | response: response})
        {:error, Enum.reverse(messages), status}
    end
  end

  defp more(%{inbox: []} = call, messages), do: {:ok, Enum.reverse(messages), call}

  defp more(%{inbox: [event | inbox]} = call, messages),
    do: %{call | inbox: inbox} |> handle(event) |> arrived(messages)

  @doc "Ends our side of the stream."
  @spec half_close(t()) :: {:ok | :closed, t()}
  def half_close(call) do
    call = poll(call)

    if over?(call) do
      {:closed, call}
    else
      send(call.server, {:send, call.ref, [], 0, true})
      {:ok, call}
    end
  end

  @doc "Ends the call, and cancels it on the server if it runs there."
  @spec finish(t()) :: :ok
  def finish(%{ref: ref} = call) do
    if call.server && not call.response.stream_over?,
      do: send(call.server, {:cancel, ref, :cancel})

    if call.monitor, do: Process.demonitor(call.monitor, [:flush])
    :erlang.unalias(ref)
    flush(ref)
  end

  @doc "Whether it is known how the call ended."
  @spec over?(t()) :: boolean()
  def over?(call), do: call.response.outcome != nil

  defp flush(ref) do
    receive do
      {^ref, _events} -> flush(ref)
    after
      0 -> :ok
    end
  end

  # Takes in what has arrived.
  defp poll(%{ref: ref, inbox: []} = call) do
    receive do
      {^ref, events} when is_list(events) -> poll(%{call | inbox: events})
    after
      0 -> call
    end
  end

  defp poll(%{inbox: [event | inbox]} = call), do: poll(handle(%{call | inbox: inbox}, event))

  # Takes in one event, and waits for it if it must.
  defp wait(%{inbox: [event | inbox]} = call), do: handle(%{call | inbox: inbox}, event)

  defp wait(%{ref: ref, monitor: monitor} = call) do
    receive do
      {^ref, events} when is_list(events) -> wait(%{call | inbox: events})
    after
      0 ->
        receive do
          {^ref, events} when is_list(events) -> wait(%{call | inbox: events})
          {:DOWN, ^monitor, :process, _pid, why} -> server_down(call, why)
        after
          patience(call) -> timed_out(call)
        end
    end
  end

  # A call that is over has no alias any more, and nothing would ever come: it is not waited for.
  defp patience(%{ref: ref} = call) do
    send(ref, {ref, :running})

    receive do
      {^ref, :running} -> remaining(call.deadline)
    after
      0 -> 0
    end
  end

  defp timed_out(%{deadline: deadline} = call) do
    if deadline != :infinity and remaining(deadline) == 0,
      do: feed(call, {:closed, :deadline, call.server != nil}, :tell_server),
      else: feed(call, {:closed, {:cancelled, "the call is over"}, true})
  end

  # A process that ends in order has answered every call that it received. It did not receive this one.
  defp server_down(call, why) do
    received? = not (why in [:noproc, :normal] or match?({:shutdown, _}, why))

    if received? or not call.request.fin? or call.server == call.channel,
      do: feed(call, {:closed, {:unavailable, "the connection was lost"}, received?}),
      else: submit(call, call.channel)
  end

  defp submit(call, server) do
    monitor = Process.monitor(server)
    send(server, {:open, call.ref, call.request})
    %{call | server: server, monitor: monitor}
  end

  defp handle(call, {:sent, bytes}), do: %{call | unwritten: call.unwritten - bytes}

  defp handle(call, {:at, server}) do
    Process.demonitor(call.monitor, [:flush])
    %{call | server: server, monitor: Process.monitor(server)}
  end

  defp handle(call, {:data, data, _end?} = event),
    do: feed(%{call | unacknowledged: call.unacknowledged + byte_size(data)}, event)

  defp handle(call, event), do: feed(call, event)

  defp feed(call, event), do: %{call | response: Response.feed(call.response, event)}

  # The stream is over for us, and only for us.
  defp feed(call, event, :tell_server) do
    send(call.server, {:cancel, call.ref, :cancel})
    feed(call, event)
  end

  defp acknowledge(%{acknowledge_at: at, unacknowledged: bytes} = call)
       when at != nil and bytes >= at do
    send(call.server, {:consume, call.ref, bytes})
    %{call | unacknowledged: 0}
  end

  defp acknowledge(call), do: call

  defp remaining(:infinity), do: :infinity

  defp remaining(deadline),
    do: (deadline - System.monotonic_time(:millisecond)) |> max(0) |> min(@longest)
end
