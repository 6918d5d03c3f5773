defmodule RankBridge.Transport.GRPC.Response do
  @moduledoc false
  # What has arrived of a response, as a value: events of the stream go in, messages and in the end a status
  # come out.

  alias RankBridge.Transport.GRPC.{Message, Metadata, Outcome}
  alias RankBridge.Transport.Status

  @enforce_keys [:decoder]
  defstruct [:decoder, :outcome, begun?: false, stream_over?: false]

  @typedoc "`outcome` is known when the call is; `stream_over?` says whether the stream still has to be ended."
  @type t :: %__MODULE__{
          decoder: Message.t(),
          outcome: {:ok, Metadata.t()} | {:error, Status.t()} | nil,
          begun?: boolean(),
          stream_over?: boolean()
        }

  @doc "A response with messages of at most `limit` bytes."
  @spec new(pos_integer() | :infinity) :: t()
  def new(limit), do: %__MODULE__{decoder: Message.decoder(limit)}

  @doc "Takes in an event of the stream, see `RankBridge.Transport.HTTP2.Protocol`."
  @spec feed(t(), tuple()) :: t()
  def feed(%{stream_over?: true} = response, _event), do: response

  def feed(response, {:headers, headers, true}),
    do: %{
      response
      | outcome: response.outcome || Outcome.from_trailers(headers),
        stream_over?: true
    }

  def feed(%{begun?: false} = response, {:headers, headers, false}) do
    response = %{response | begun?: true}

    case Outcome.from_headers(headers) do
      {:ok, "gzip"} -> %{response | decoder: Message.allow_gzip(response.decoder)}
      {:ok, _encoding} -> response
      {:error, status} -> %{response | outcome: {:error, status}}
    end
  end

  def feed(response, {:data, data, end?}) do
    response = %{response | decoder: Message.push(response.decoder, data)}
    if end?, do: feed(response, {:headers, [], true}), else: response
  end

  def feed(response, {:closed, reason, sent?}),
    do: %{
      response
      | outcome: response.outcome || {:error, Outcome.from_reason(reason, sent?)},
        stream_over?: true
    }

  @doc """
  The next message, `{:more, response}` if another event is needed, or how the call ended. Feed an event
  only after `:more`, and an error does not overtake the messages before it.
  """
  @spec pull(t()) ::
          {:ok, binary(), t()} | {:more, t()} | {:done, Metadata.t()} | {:error, Status.t(), t()}
  def pull(%{outcome: {:error, status}} = response), do: {:error, status, response}

  def pull(%{decoder: decoder, outcome: outcome} = response) do
    case Message.pull(decoder) do
      {:ok, message, decoder} ->
        {:ok, message, %{response | decoder: decoder}}

      {:error, error} ->
        status = Outcome.from_message_error(error, decoder.limit)
        {:error, status, %{response | outcome: {:error, status}}}

      {:more, decoder} when outcome == nil ->
        {:more, %{response | decoder: decoder}}

      {:more, decoder} ->
        {:ok, metadata} = outcome
        if Message.partial?(decoder), do: truncated(response), else: {:done, metadata}
    end
  end

  defp truncated(response) do
    status = Status.new(:internal, "the server ended the call within a message", true)
    {:error, status, %{response | outcome: {:error, status}}}
  end
end
