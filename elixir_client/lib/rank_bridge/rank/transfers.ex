defmodule RankBridge.Rank.Transfers do
  @moduledoc false
  # Large tensors to and from one rank, in the process of the caller: through memory that a rank on this host shares, where its
  # endpoint is a unix socket, else over gRPC. The rank makes files in memory; the client reads and writes them. Which
  # of them are free, a table of the rank's process says (`RankBridge.Rank.Memory`).

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
    with :ok <- View.check_rank(view, rank, "transfers"),
         {:ok, memory} <- memory(view, rank),
         do: {:ok, Memory.counts(memory)}
  end

  defp memory(view, rank) do
    with :gone <- Server.memory(view, rank),
         do: {:error, Error.refusal(:unavailable, "the gang has ended", rank: rank)}
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
           {:ok, data} <- readable(MemoryFile.read(path, bytes)),
           do: {:ok, {spec, data}, :give_back}
    end)
  end

  defp by_memory(view, rank, bytes, timeout, streamed, transfer) do
    if view.shared_memory? and bytes >= @least and unix?(View.target(view, rank)) do
      until = now() + timeout

      with {:ok, memory} <- memory(view, rank),
           {:ok, value} <- by_segment(view, rank, memory, bytes, until, transfer) do
        Memory.count(memory, nil)
        {:ok, value}
      else
        {:stream, memory, reason} ->
          Memory.count(memory, reason)
          streamed.(left(until))

        {:error, error} ->
          {:error, error}
      end
    else
      streamed.(timeout)
    end
  end

  defp by_segment(view, rank, memory, bytes, until, transfer) do
    with {:ok, segment} <- segment(view, rank, memory, bytes, until),
         {:ok, value} <- transferred(memory, segment, until, transfer) do
      {:ok, value}
    else
      {:stream, reason} -> {:stream, memory, reason}
      {:error, error} -> {:error, error}
    end
  end

  defp transferred(memory, {id, _path, _room} = segment, until, transfer) do
    case transfer.(segment, id, %Calls{rpc: nil, operation: "", deadline: left(until)}) do
      {:ok, value, :lend} ->
        Memory.lend(memory, segment)
        {:ok, value}

      {:ok, value, :give_back} ->
        Memory.give_back(memory, segment)
        {:ok, value}

      {:error, %Error{reason: :unknown_shared_memory} = error} ->
        # The rank was replaced, or the session was closed and opened again.
        Memory.give_up(memory, segment)
        Memory.forget(memory)
        {:stream, error.message}

      {:error, %Error{reason: reason} = error} when reason in @session ->
        Memory.give_up(memory, segment)
        {:stream, error.message}

      failure ->
        # Whether the rank is done with the memory is not known.
        Memory.give_up(memory, segment)
        failure
    end
  end

  defp segment(view, rank, memory, bytes, until) do
    with nil <- Memory.off(memory),
         :none <- Memory.take(memory, bytes) do
      _ = close(view, rank, memory, false, until)

      view
      |> open(rank, bytes, until)
      |> again(view, rank, memory, bytes, until)
      |> opened(view, rank, memory, until)
    else
      {:ok, segment} -> {:ok, segment}
      reason -> {:stream, reason}
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
         rank,
         memory,
         bytes,
         until
       ) do
    if close(view, rank, memory, true, until), do: open(view, rank, bytes, until), else: error
  end

  defp again(result, _view, _rank, _memory, _bytes, _until), do: result

  defp opened({:ok, %V1.SharedMemory{} = shared}, view, rank, memory, until) do
    segment = Memory.keep(memory, shared)

    with {:error, message} <- MemoryFile.verify(shared.path, shared.bytes, shared.nonce) do
      Memory.turn_off(memory, message)
      Memory.give_up(memory, segment)
      _ = close(view, rank, memory, false, until)
      {:stream, message}
    else
      :ok -> {:ok, segment}
    end
  end

  defp opened({:error, %Error{reason: reason} = error}, _view, _rank, memory, _until)
       when reason in @never do
    Memory.turn_off(memory, error.message)
    {:stream, error.message}
  end

  defp opened({:error, error}, _view, _rank, _memory, _until), do: {:stream, error.message}

  # Whether there is more room on the rank now. `all_free?`: closes also what is kept for later.
  defp close(view, rank, memory, all_free?, until) do
    case Memory.unwanted(memory, all_free?) do
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

        Memory.closed(memory, ids, gone?)
        gone?
    end
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
