defmodule RankBridge.Rank.Stream do
  @moduledoc false
  # The stream to one rank, which carries requests by number, and their answers in any order.
  #
  # It is a unix socket without gRPC (`RankBridge.Transport.Local`) where the rank has one and the channel leads to it, else
  # `GangService.Execute`. After a stream that has answered nothing, because the rank has too many, there is none for a second.

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.{DecodeError, Encode, Wire}
  alias RankBridge.Rank.Requests
  alias RankBridge.Transport
  alias RankBridge.Transport.{Local, Status}

  # Milliseconds from a stream that has answered nothing to the next.
  @pause 1_000

  # Of these the wire types are 2, a length and so many bytes, and 0, a number.
  numbers =
    for {number, name, _, _} <- V1.ExecuteRequest.__fields__(), into: %{}, do: {name, number}

  @tags %{call: numbers.call * 8 + 2, part: numbers.part * 8 + 2}
  @number numbers.number
  @number_tag @number * 8
  @path V1.GangService.execute().path

  @enforce_keys [:channel]
  defstruct [:channel, :call, :not_before, answered?: false]

  @typedoc "`call` - nil: the stream is not open."
  @type t :: %__MODULE__{
          channel: Transport.channel(),
          call: Transport.call() | nil,
          not_before: integer() | nil,
          answered?: boolean()
        }

  @typedoc "The end of a stream: what happened, and what the rank has said to all requests at once, if it has."
  @type ending :: {:over, Status.t(), binary() | nil}

  @doc "Whether the stream is open, as far as is known."
  @spec open?(t()) :: boolean()
  def open?(stream), do: stream.call != nil

  @doc "Opens the stream, if it is not open."
  @spec open(t()) :: {:ok, t()} | {:error, Status.t(), t()}
  def open(%{call: nil, channel: channel, not_before: at} = stream) do
    cond do
      at != nil and at > now() ->
        {:error, Status.new(:unavailable, "the rank has no stream to give", false), stream}

      not Transport.hears?(channel) ->
        {:error, Status.new(:unimplemented, "it has no streams", false), stream}

      true ->
        case with(:none <- Local.open(channel), do: Transport.open_stream(channel, @path)) do
          {:ok, call} -> {:ok, %{stream | call: call, answered?: false}}
          {:error, status} -> {:error, status, %{stream | not_before: now() + @pause}}
        end
    end
  end

  def open(stream), do: {:ok, stream}

  @doc "Whether the stream has ended without a message that says so."
  @spec ended_unused?(t()) :: boolean()
  def ended_unused?(%{call: %Local{} = call}), do: Local.ended_unused?(call)
  def ended_unused?(_stream), do: false

  @doc "What is said of requests when the rank has ended the stream."
  @spec ended_by_rank() :: Status.t()
  def ended_by_rank, do: Status.new(:unavailable, "the rank has ended the stream", false)

  @doc "Ends the stream."
  @spec cancel(t()) :: t()
  def cancel(%{call: nil} = stream), do: stream

  def cancel(stream) do
    Transport.cancel(stream.call)
    ended(stream)
  end

  defp ended(stream),
    do: %{stream | call: nil, not_before: if(stream.answered?, do: nil, else: now() + @pause)}

  @doc "Whether a request can be sent without waiting."
  @spec room?(t()) :: boolean()
  def room?(stream), do: stream.call != nil and Transport.room?(stream.call)

  @doc "Sends a request with a number, or the withdrawal of one. `:closed`: it was not sent; `arrived/1` says why."
  @spec send(t(), Requests.request() | Requests.withdrawal(), pos_integer()) ::
          {:ok | :closed, t()}
  def send(stream, request, number) do
    {sent, call} = Transport.send_message(stream.call, encoded(request, number))
    {sent, %{stream | call: call}}
  end

  defp encoded(%{kind: :withdraw, number: withdrawn}, _number) do
    request = %V1.ExecuteRequest{kind: {:withdraw, ""}, number: withdrawn}
    V1.ExecuteRequest.encode_to_iodata(request)
  end

  defp encoded(request, number) do
    tag = Map.fetch!(@tags, request.kind)
    [Encode.always(tag, :bytes, request.bytes), Encode.always(@number_tag, :uint64, number)]
  end

  @doc "Handles a message of the process's mailbox."
  @spec hear(t(), term()) :: {:ok, t()} | :unknown
  def hear(%{call: nil}, _message), do: :unknown

  def hear(stream, message) do
    with {:ok, call} <- Transport.hear(stream.call, message), do: {:ok, %{stream | call: call}}
  end

  @doc "The answers that have arrived, each with its number, and the stream's end."
  @spec arrived(t()) :: {[{pos_integer(), binary()}], :open | ending(), t()}
  def arrived(stream) do
    {messages, ended, stream} =
      case Transport.arrived(stream.call) do
        {:ok, messages, call} -> {messages, nil, %{stream | call: call}}
        {:done, messages, _metadata} -> {messages, ended_by_rank(), stream}
        {:error, messages, status} -> {messages, status, stream}
      end

    # An answer without a number is the rank's refusal of the stream.
    {refusals, answers} =
      messages
      |> Enum.map(&{number(&1), &1})
      |> Enum.split_with(&(elem(&1, 0) in [0, :unreadable]))

    stream = %{stream | answered?: stream.answered? or answers != []}
    finish(answers, List.last(refusals), ended, stream)
  end

  defp finish(answers, nil, nil, stream), do: {answers, :open, stream}
  defp finish(answers, nil, status, stream), do: {answers, {:over, status, nil}, ended(stream)}

  defp finish(answers, {number, message}, status, stream) do
    stream = if status, do: ended(stream), else: cancel(stream)

    if number == 0 do
      {answers, {:over, Status.new(:internal, "the rank refuses the stream", false), message},
       stream}
    else
      {answers, {:over, Status.new(:internal, "an answer that is none", true), nil}, stream}
    end
  end

  defp number(message, found \\ 0)
  defp number("", found), do: found

  defp number(bytes, found) do
    case Wire.take_field(bytes, 0) do
      {@number, 0, number, rest} -> number(rest, number)
      {_number, _wire_type, _raw, rest} -> number(rest, found)
    end
  rescue
    DecodeError -> :unreadable
  end

  defp now, do: System.monotonic_time(:millisecond)
end
