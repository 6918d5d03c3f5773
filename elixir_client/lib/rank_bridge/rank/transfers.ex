defmodule RankBridge.Rank.Transfers do
  @moduledoc false
  # Large tensors to and from one rank, in the process of the caller: through memory that a rank on this host shares, where its
  # endpoint is a unix socket, else over gRPC. The rank makes files in memory; the client reads and writes them. Whose turn
  # it is with which of them, the rank's process knows (`RankBridge.Rank.Server`, `RankBridge.Rank.Memory`).

  alias RankBridge.{Calls, Error, Tensor}
  alias RankBridge.Gang.View
  alias RankBridge.Proto.V1
  alias RankBridge.Rank.{Memory, MemoryFile, Server}

  # From so many bytes on; with fewer, a stream takes as long.
  @least 1_048_576
  # Of the tensor, or of the memory. Whether the tensor's own is open, the stream finds out.
  @session [:wrong_session, :unknown_session]
  @never [:unsupported_operation, :protocol]

  @type failure :: {:stream, String.t()} | {:error, Error.t()}

  @doc "`RankBridge.Tensors.transfers/3`, on the view of a gang."
  @spec counts(View.t(), non_neg_integer()) :: {:ok, Memory.counts()} | {:error, Error.t()}
  def counts(view, rank) do
    with :ok <- View.check_rank(view, rank, "transfers") do
      with :gone <- Server.counts(Server.of(view, rank)),
           do: {:error, Error.refusal(:unavailable, "the gang has ended", rank: rank)}
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
           do: {:ok, put.ref, if(put.adopted, do: :lent, else: :free)}
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
           {:ok, data} <- readable(MemoryFile.read(path, bytes)),
           do: {:ok, {spec, data}, :free}
    end)
  end

  defp by_memory(view, rank, bytes, timeout, streamed, transfer) do
    if view.shared_memory? and bytes >= @least and unix?(View.target(view, rank)) do
      until = now() + timeout
      server = Server.of(view, rank)

      with {:ok, segment} <- segment(view, server, rank, bytes, until),
           {:ok, value} <- transferred(server, segment, until, transfer) do
        {:ok, value}
      else
        {:stream, reason} ->
          Server.count(server, reason)
          streamed.(left(until))

        {:error, error} ->
          {:error, error}
      end
    else
      streamed.(timeout)
    end
  end

  defp transferred(server, {id, _path, _room} = segment, until, transfer) do
    done = &Server.done(server, [id], &1)

    case transfer.(segment, id, %Calls{rpc: nil, operation: "", deadline: left(until)}) do
      {:ok, value, left_as} ->
        done.(left_as)
        Server.count(server, nil)
        {:ok, value}

      {:error, %Error{reason: :unknown_shared_memory} = error} ->
        # The rank was replaced, or the session was closed and opened again.
        done.(:unknown)
        {:stream, error.message}

      {:error, %Error{reason: reason} = error} when reason in @session ->
        done.(:unwanted)
        {:stream, error.message}

      failure ->
        # Whether the rank is done with the memory is not known.
        done.(:unwanted)
        failure
    end
  end

  defp segment(view, server, rank, bytes, until) do
    case Server.take(server, bytes, left(until)) do
      {:ok, segment} ->
        {:ok, segment}

      {:none, unwanted} ->
        _ = close(view, server, rank, unwanted, until)

        view
        |> open(rank, bytes, until)
        |> again(view, server, rank, bytes, until)
        |> opened(view, server, rank, until)

      {:off, reason} ->
        {:stream, reason}

      :gone ->
        {:stream, "the rank's process does not answer"}
    end
  end

  defp open(view, rank, bytes, until) do
    request = %V1.OpenSharedMemoryRequest{
      session_id: view.session_id,
      bytes: Memory.fitting(bytes)
    }

    call = call(V1.RefService.open_shared_memory(), "open_shared_memory", until)
    Calls.one(view, rank, request, call)
  end

  # There is room again if other sizes are not kept.
  defp again(
         {:error, %Error{reason: :resource_exhausted}} = error,
         view,
         server,
         rank,
         bytes,
         until
       ) do
    if close(view, server, rank, Server.take_unused(server), until),
      do: open(view, rank, bytes, until),
      else: error
  end

  defp again(result, _view, _server, _rank, _bytes, _until), do: result

  defp opened({:ok, %V1.SharedMemory{} = memory}, view, server, rank, until) do
    Server.keep(server, memory)

    with {:error, message} <- MemoryFile.verify(memory.path, memory.bytes, memory.nonce) do
      Server.turn_off(server, message)
      _ = close(view, server, rank, [memory.id], until)
      {:stream, message}
    else
      :ok -> {:ok, {memory.id, memory.path, memory.bytes}}
    end
  end

  defp opened({:error, %Error{reason: reason} = error}, _view, server, _rank, _until)
       when reason in @never do
    Server.turn_off(server, error.message)
    {:stream, error.message}
  end

  defp opened({:error, error}, _view, _server, _rank, _until), do: {:stream, error.message}

  # Whether there is more room on the rank now.
  defp close(_view, _server, _rank, [], _until), do: false

  defp close(view, server, rank, ids, until) do
    request = %V1.CloseSharedMemoryRequest{session_id: view.session_id, memory_ids: ids}
    call = call(V1.RefService.close_shared_memory(), "close_shared_memory", until)

    gone? =
      case Calls.one(view, rank, request, call) do
        {:ok, _closed} -> true
        # They went with their session.
        {:error, error} -> error.reason == :unknown_session
      end

    Server.done(server, ids, if(gone?, do: :closed, else: :unwanted))
    gone?
  end

  defp written({_id, path, _room}, data) do
    with {:error, message} <- MemoryFile.write(path, data), do: {:stream, message}
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
