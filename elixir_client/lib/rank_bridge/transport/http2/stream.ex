defmodule RankBridge.Transport.HTTP2.Stream do
  @moduledoc false
  # One stream as the client sees it: what is still to be sent, its windows, and how far the response is.
  #
  # A stream without an `id` is queued: nothing of it has been sent. `fin` is the state of our side:
  # `:open`, `:pending` (END_STREAM follows the data) or `:sent`. A stream that the peer has ended or that
  # was reset is forgotten, so there is no state for it.

  alias RankBridge.Transport.HTTP2.{FlowControl, Request}

  @enforce_keys [:ref, :request]
  defstruct [
    :ref,
    :request,
    :id,
    :receive_window,
    send_window: 0,
    pending: :queue.new(),
    pending_bytes: 0,
    fin: :open,
    scheduled?: false,
    received: 0,
    phase: :headers
  ]

  @type t :: %__MODULE__{
          ref: reference(),
          request: Request.t(),
          id: pos_integer() | nil,
          receive_window: FlowControl.t() | nil,
          send_window: integer(),
          pending: :queue.queue(binary()),
          pending_bytes: non_neg_integer(),
          fin: :open | :pending | :sent,
          scheduled?: boolean(),
          received: non_neg_integer(),
          phase: :headers | :body
        }

  @doc "A queued stream."
  @spec new(reference(), Request.t()) :: t()
  def new(ref, request) do
    append(%__MODULE__{ref: ref, request: request}, request.data, request.bytes, request.fin?)
  end

  @doc "Gives a queued stream its id and windows."
  @spec admit(t(), pos_integer(), integer(), pos_integer()) :: t()
  def admit(stream, id, send_window, receive_window) do
    %{
      stream
      | id: id,
        send_window: send_window,
        receive_window: FlowControl.new(receive_window),
        # A complete request may have to be sent again.
        request: if(stream.request.fin?, do: stream.request, else: %{stream.request | data: []})
    }
  end

  @doc "The response has begun, so the request will not be sent again."
  @spec begin_body(t()) :: t()
  def begin_body(stream), do: %{stream | phase: :body, request: %{stream.request | data: []}}

  @doc "Adds `bytes` of data, and the end if `fin?`."
  @spec append(t(), [binary()], non_neg_integer(), boolean()) :: t()
  def append(stream, data, bytes, fin?) do
    %{
      stream
      | pending: Enum.reduce(data, stream.pending, &:queue.in/2),
        pending_bytes: stream.pending_bytes + bytes,
        fin: if(fin?, do: :pending, else: stream.fin)
    }
  end

  @doc "Takes `bytes` from what is pending; there are that many."
  @spec take(t(), non_neg_integer()) :: {iodata(), t()}
  def take(stream, bytes) do
    {data, pending} = take(stream.pending, bytes, [])
    {data, %{stream | pending: pending, pending_bytes: stream.pending_bytes - bytes}}
  end

  defp take(pending, 0, taken), do: {Enum.reverse(taken), pending}

  defp take(pending, bytes, taken) do
    {{:value, binary}, pending} = :queue.out(pending)

    if byte_size(binary) <= bytes do
      take(pending, bytes - byte_size(binary), [binary | taken])
    else
      <<head::binary-size(bytes), rest::binary>> = binary
      {Enum.reverse([head | taken]), :queue.in_r(rest, pending)}
    end
  end
end
