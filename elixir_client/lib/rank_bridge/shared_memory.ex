defmodule RankBridge.SharedMemory do
  @moduledoc false
  # Moves large tensors through shared memory, to and from ranks on this host whose endpoint is a unix socket.
  #
  # The rank makes files in memory; the client reads and writes them. If a rank shares no memory, has no room, or has another
  # file system, tensors are streamed over gRPC, and `transfers/2` says why.

  alias RankBridge.{Calls, Error, Tensor}
  alias RankBridge.Gang.View
  alias RankBridge.Proto.V1
  alias RankBridge.SharedMemory.{File, Segments}

  # From so many bytes on; with fewer, a stream takes as long.
  @least 1_048_576
  # Of the tensor, or of the memory. Whether the tensor's own is open, the stream finds out.
  @session [:wrong_session, :unknown_session]
  @never [:unsupported_operation, :protocol]

  @type failure :: {:stream, String.t()} | {:error, Error.t()}

  @doc "`RankBridge.Tensors.transfers/3`, on the view of a gang."
  @spec transfers(View.t(), non_neg_integer()) :: {:ok, Segments.counts()} | {:error, Error.t()}
  def transfers(view, rank) do
    with :ok <- View.check_rank(view, rank, "transfers") do
      if view.memory,
        do: {:ok, Segments.counts(view.memory, View.target(view, rank))},
        else: {:ok, %{shared: 0, streamed: 0, reason: ""}}
    end
  end

  @doc "A tensor's way to a rank; `streamed` is the other one, and is given the milliseconds that are left."
  @spec put(
          View.t(),
          non_neg_integer(),
          Tensor.t(),
          V1.PutTensorHeader.t(),
          pos_integer(),
          (pos_integer() -> result)
        ) ::
          {:ok, V1.Ref.t()} | result
        when result: term()
  def put(view, rank, tensor, header, timeout, streamed) do
    bytes = IO.iodata_length(tensor.data)

    by_memory(view, rank, bytes, timeout, streamed, fn segment, id, call ->
      request = %V1.PutSharedTensorRequest{
        session_id: header.session_id,
        tensor: header.tensor,
        memory_session_id: view.session_id,
        memory_id: id
      }

      call = %{call | rpc: V1.RefService.put_shared_tensor(), operation: "put"}

      with :ok <- written(segment, tensor.data),
           {:ok, %V1.SharedPut{} = put} <- Calls.one(view, rank, request, call),
           do: {:ok, put.ref, if(put.adopted, do: :lend, else: :give_back)}
    end)
  end

  @doc "A tensor's way from a rank, as `put/6`; `bytes` as its ref says."
  @spec get(
          View.t(),
          RankBridge.Ref.t(),
          non_neg_integer(),
          pos_integer(),
          (pos_integer() -> result)
        ) ::
          {:ok, {V1.TensorSpec.t(), binary()}} | result
        when result: term()
  def get(view, ref, bytes, timeout, streamed) do
    by_memory(view, ref.rank, bytes, timeout, streamed, fn {_id, path, _room}, id, call ->
      request = %V1.GetSharedTensorRequest{
        session_id: ref.session_id,
        ref_id: ref.id,
        memory_session_id: view.session_id,
        memory_id: id
      }

      call = %{
        call
        | rpc: V1.RefService.get_shared_tensor(),
          operation: "get",
          changes?: false
      }

      with {:ok, %V1.TensorSpec{} = spec} <- Calls.one(view, ref.rank, request, call),
           {:ok, data} <- readable(File.read(path, bytes)),
           do: {:ok, {spec, data}, :give_back}
    end)
  end

  defp by_memory(view, rank, bytes, timeout, streamed, transfer) do
    target = if view.memory != nil and bytes >= @least, do: View.target(view, rank), else: ""

    if unix?(target) do
      until = now() + timeout

      with {:ok, segment} <- segment(view, rank, bytes, until),
           {:ok, value} <- transferred(view, target, segment, until, transfer) do
        Segments.count(view.memory, target, nil)
        {:ok, value}
      else
        {:stream, reason} ->
          Segments.count(view.memory, target, reason)
          streamed.(left(until))

        {:error, error} ->
          {:error, error}
      end
    else
      streamed.(timeout)
    end
  end

  defp transferred(view, target, {id, _path, _room} = segment, until, transfer) do
    table = view.memory
    call = %Calls{rpc: nil, operation: "", deadline: left(until)}

    case transfer.(segment, id, call) do
      {:ok, value, :lend} ->
        Segments.lend(table, target, segment)
        {:ok, value}

      {:ok, value, :give_back} ->
        Segments.give_back(table, target, segment)
        {:ok, value}

      {:error, %Error{reason: :unknown_shared_memory} = error} ->
        # The rank was replaced, or the session was closed and opened again.
        Segments.give_up(table, target, segment)
        Segments.forget(table, target)
        {:stream, error.message}

      {:error, %Error{reason: reason} = error} when reason in @session ->
        Segments.give_up(table, target, segment)
        {:stream, error.message}

      failure ->
        # Whether the rank is done with the memory is not known.
        Segments.give_up(table, target, segment)
        failure
    end
  end

  defp segment(view, rank, bytes, until) do
    table = view.memory
    target = View.target(view, rank)

    with nil <- Segments.off(table, target),
         :none <- Segments.take(table, target, bytes) do
      _ = close(view, rank, false, until)

      view
      |> open(rank, bytes, until)
      |> again(view, rank, bytes, until)
      |> opened(view, rank, until)
    else
      {:ok, segment} -> {:ok, segment}
      reason -> {:stream, reason}
    end
  end

  defp open(view, rank, bytes, until) do
    request = %V1.OpenSharedMemoryRequest{
      session_id: view.session_id,
      bytes: Segments.fitting(bytes)
    }

    call = call(V1.RefService.open_shared_memory(), "open_shared_memory", until)
    Calls.one(view, rank, request, call)
  end

  # There is room again if other sizes are not kept.
  defp again({:error, %Error{reason: :resource_exhausted}} = error, view, rank, bytes, until) do
    if close(view, rank, true, until), do: open(view, rank, bytes, until), else: error
  end

  defp again(result, _view, _rank, _bytes, _until), do: result

  defp opened({:ok, %V1.SharedMemory{} = memory}, view, rank, until) do
    target = View.target(view, rank)
    segment = Segments.keep(view.memory, target, memory)

    with {:error, message} <- File.verify(memory.path, memory.bytes, memory.nonce) do
      Segments.turn_off(view.memory, target, message)
      Segments.give_up(view.memory, target, segment)
      _ = close(view, rank, false, until)
      {:stream, message}
    else
      :ok -> {:ok, segment}
    end
  end

  defp opened({:error, %Error{reason: reason} = error}, view, rank, _until)
       when reason in @never do
    Segments.turn_off(view.memory, View.target(view, rank), error.message)
    {:stream, error.message}
  end

  defp opened({:error, error}, _view, _rank, _until), do: {:stream, error.message}

  defp close(view, rank, all_free?, until) do
    target = View.target(view, rank)

    case Segments.unwanted(view.memory, target, all_free?) do
      [] ->
        false

      ids ->
        request = %V1.CloseSharedMemoryRequest{session_id: view.session_id, memory_ids: ids}
        call = call(V1.RefService.close_shared_memory(), "close_shared_memory", until)

        gone? =
          case Calls.one(view, rank, request, call) do
            {:ok, _closed} -> true
            # They went with their session.
            {:error, error} -> error.reason == :unknown_session
          end

        Segments.closed(view.memory, target, ids, gone?)
        gone?
    end
  end

  defp written({_id, path, _room}, data) do
    with {:error, message} <- File.write(path, data), do: {:stream, message}
  end

  defp readable({:error, message}), do: {:stream, message}
  defp readable(fine), do: fine

  defp call(rpc, operation, until),
    do: %Calls{rpc: rpc, operation: operation, deadline: left(until)}

  defp unix?("unix:" <> _path), do: true
  defp unix?(_other), do: false

  defp left(until), do: max(1, until - now())
  defp now, do: System.monotonic_time(:millisecond)
end
