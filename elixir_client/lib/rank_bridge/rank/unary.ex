defmodule RankBridge.Rank.Unary do
  @moduledoc false
  # A request without the stream of its rank, in a process of its own, which answers as the stream would: a gang call as
  # `GangService.Call`, a part as `OperationService.Submit` and `Await`. A part without an operation id cannot.

  alias RankBridge.Gang.Children
  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf
  alias RankBridge.Protobuf.Encode
  alias RankBridge.Rank.Requests
  alias RankBridge.Transport
  alias RankBridge.Transport.Status

  # Milliseconds for the withdrawal of a part from a rank.
  @withdrawing 5_000

  # `AwaitResponse` is written as `OperationResult` is.
  [result] =
    for {number, :result, _type, _presence} <- V1.ExecuteResponse.__fields__(), do: number

  @result result * 8 + 2

  @doc "Starts the request's process, a task of the gang, and monitors it."
  @spec start(pid(), Transport.channel(), map()) :: {pid(), reference()}
  def start(gang, channel, %{ref: ref} = request) do
    answer = fn ->
      send(ref, {ref, answer(channel, request)})
      :answered
    end

    task = Task.Supervisor.async_nolink(Children.name(gang, :tasks), answer)
    {task.pid, task.ref}
  end

  @doc "Ends the request: parts that were not admitted are withdrawn."
  @spec withdraw(pid(), Transport.channel(), map()) :: :ok
  def withdraw(gang, channel, %{unary: process, kind: kind, id: id}) do
    Process.exit(process, :shutdown)

    _task =
      kind == :part and
        Task.Supervisor.start_child(Children.name(gang, :tasks), fn ->
          bytes = V1.CancelRequest.encode_to_iodata(%V1.CancelRequest{operation_id: id})
          ask(channel, V1.OperationService.cancel(), bytes, now() + @withdrawing)
        end)

    :ok
  end

  @spec answer(Transport.channel(), map()) :: Requests.answer()
  defp answer(channel, %{kind: :call} = request),
    do: ask(channel, V1.GangService.call(), request.bytes, request.until)

  defp answer(_channel, %{id: ""}) do
    text = "there is no stream, and without one a part needs an operation id"
    {:error, Status.new(:resource_exhausted, text, false)}
  end

  defp answer(channel, request) do
    # The only field of `SubmitRequest`.
    submit = Encode.always(1 * 8 + 2, :bytes, request.bytes)

    with {:ok, bytes} <- ask(channel, V1.OperationService.submit(), submit, request.until) do
      case Protobuf.decode(V1.SubmitResponse, bytes) do
        {:ok, %{outcome: {:operation_id, _id}}} ->
          outcome(channel, request)

        {:ok, %{outcome: {:error, error}}} ->
          {:ok, result(%V1.AwaitResponse{outcome: {:error, error}})}

        _other ->
          {:error, Status.new(:internal, "an answer to Submit that is none", true)}
      end
    end
  end

  defp outcome(channel, %{id: id, until: until}) do
    await = %V1.AwaitRequest{operation_id: id, timeout_ms: left(until)}
    bytes = V1.AwaitRequest.encode_to_iodata(await)

    case ask(channel, V1.OperationService.await(), bytes, until) do
      {:ok, bytes} -> {:ok, IO.iodata_to_binary(Encode.always(@result, :bytes, bytes))}
      {:error, status} -> {:error, %{status | sent?: true}}
    end
  end

  defp result(await),
    do: IO.iodata_to_binary(Encode.always(@result, :bytes, V1.AwaitResponse.encode(await)))

  defp ask(channel, rpc, bytes, until),
    do: Transport.unary(channel, rpc.path, bytes, timeout: left(until))

  defp left(until), do: max(until - now(), 1)
  defp now, do: System.monotonic_time(:millisecond)
end
