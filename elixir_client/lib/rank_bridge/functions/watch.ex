defmodule RankBridge.Functions.Watch do
  @moduledoc false
  # Watches the reports of a call on its ranks for one process, which takes them one by one.
  #
  # It is a process of its own, with one more for each rank, which reads a report when its last one was taken: what nobody takes
  # stays with the ranks. All of them end with the process for which they watch.

  use GenServer

  alias RankBridge.{Calls, Error, Report, Transport, Waiting}
  alias RankBridge.Gang.View
  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf
  alias RankBridge.Transport.Status

  # Milliseconds before a watch that has broken off goes on.
  @pause 50

  @enforce_keys [:taker, :readers]
  defstruct [:taker, :readers, :waiting, reports: :queue.new(), error: nil]

  @doc "Watches a call for the calling process."
  @spec start(View.t(), String.t(), [non_neg_integer()]) :: pid()
  def start(view, operation_id, ranks) do
    # Not linked: its end would be a message to a process that traps exits. It watches that process instead.
    {:ok, watch} = GenServer.start(__MODULE__, {view, operation_id, ranks, self()})
    watch
  end

  @doc """
  The next report; waits for one. `:ended`: none came in `timeout` milliseconds, or the call has ended. An error: a rank reports
  no more, and its call has not ended.
  """
  @spec take(pid(), timeout()) :: {:ok, Report.t()} | {:error, Error.t()} | :ended
  def take(watch, timeout), do: GenServer.call(watch, {:take, timeout}, :infinity)

  @doc "Ends a watch, and what it reads."
  @spec stop(pid()) :: :ok
  def stop(watch), do: GenServer.stop(watch, :shutdown)

  @impl true
  def init({view, operation_id, ranks, taker}) do
    watch = self()

    readers =
      for rank <- ranks do
        {:ok, reader} = Task.start_link(fn -> read(watch, view, rank, operation_id) end)
        reader
      end

    {:ok, %__MODULE__{taker: Process.monitor(taker), readers: MapSet.new(readers)}}
  end

  @impl true
  def handle_call({:take, timeout}, from, state) do
    case oldest(state) do
      :none -> {:noreply, %{state | waiting: Waiting.new(from, timeout)}}
      {answer, state} -> {:reply, answer, state}
    end
  end

  @impl true
  def handle_info({:report, reader, report}, state),
    do: {:noreply, give(%{state | reports: :queue.in({reader, report}, state.reports)})}

  def handle_info({:ended, reader, error}, state) do
    readers = MapSet.delete(state.readers, reader)
    {:noreply, give(%{state | readers: readers, error: state.error || error})}
  end

  def handle_info({:DOWN, taker, :process, _pid, _reason}, %{taker: taker} = state),
    do: {:stop, :shutdown, state}

  def handle_info({:timeout, timer, :late}, %{waiting: %{timer: timer}} = state),
    do: {:noreply, reply(state, :ended)}

  # The timer of an earlier call.
  def handle_info(_other, state), do: {:noreply, state}

  defp give(%{waiting: nil} = state), do: state

  defp give(state) do
    case oldest(state) do
      :none -> state
      {answer, state} -> reply(state, answer)
    end
  end

  defp oldest(state) do
    case :queue.out(state.reports) do
      {{:value, {reader, report}}, reports} ->
        send(reader, {:taken, self()})
        {{:ok, report}, %{state | reports: reports}}

      {:empty, _reports} when state.error != nil ->
        {{:error, state.error}, state}

      {:empty, _reports} ->
        if MapSet.size(state.readers) == 0, do: {:ended, state}, else: :none
    end
  end

  defp reply(state, answer), do: %{state | waiting: Waiting.answer(state.waiting, answer)}

  # --- in the process of a rank ---

  defp read(watch, view, rank, operation_id) do
    call = %Calls{
      rpc: V1.FunctionService.watch_reports(),
      operation: "reports",
      operation_id: operation_id,
      deadline: view.timeout,
      changes?: false
    }

    send(watch, {:ended, self(), read(watch, view, rank, call, 0)})
  end

  # Why it ends: nil, if the call has.
  defp read(watch, view, rank, call, last) do
    Process.put(:last, last)
    request = %V1.WatchReportsRequest{operation_id: call.operation_id, after: last}
    on_message = fn bytes, nil -> handle(bytes, watch, rank, call) end

    result =
      with {:ok, channel} <- View.channel(view, rank) do
        bytes = V1.WatchReportsRequest.encode_to_iodata(request)
        Transport.server_stream(channel, call.rpc.path, bytes, nil, on_message)
      end

    case result do
      {:ok, error} ->
        error

      :gone ->
        Calls.gone(rank, call)

      {:error, %Status{} = status} ->
        error = Error.from_status(status, Calls.context(rank, call))
        # A connection was lost, or the rank.
        if status.code == :unavailable and known?(view, rank, call),
          do: read(watch, view, rank, call, Process.get(:last)),
          else: error
    end
  end

  defp known?(view, rank, call) do
    Process.sleep(@pause)
    request = %V1.PollRequest{operation_id: call.operation_id}
    poll = %{call | rpc: V1.OperationService.poll(), wait_for_ready?: true}
    match?({:ok, _status}, Calls.one(view, rank, request, poll))
  end

  defp handle(bytes, watch, rank, call) do
    with {:ok, %V1.WatchReportsResponse{outcome: outcome}} <-
           Protobuf.decode(call.rpc.response, bytes),
         {:report, report} <- outcome,
         {:ok, report} <- Report.from_proto(report) do
      Process.put(:last, report.number)
      send(watch, {:report, self(), report})

      receive do
        {:taken, ^watch} -> {:cont, nil}
      end
    else
      {:error, %V1.Error{} = error} -> {:halt, Error.from_proto(error)}
      {:error, error} -> {:halt, Error.protocol(error.message, Calls.context(rank, call))}
      # It watches now; or it is newer, and says something else.
      _watching_or_unknown -> {:cont, nil}
    end
  end
end
