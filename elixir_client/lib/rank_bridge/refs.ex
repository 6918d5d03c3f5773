defmodule RankBridge.Refs do
  @moduledoc false
  # Tensors to the ranks and back, and what happens to refs: behind the functions of `RankBridge`.

  alias RankBridge.{
    AtOnce,
    Calls,
    Dtype,
    Error,
    Groups,
    Options,
    Ref,
    Tensor,
    Transport
  }

  alias RankBridge.Gang.View
  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf
  alias RankBridge.Rank.Transfers
  alias RankBridge.Refs.Init
  alias RankBridge.Tensor.Chunks

  @type result(value) :: {:ok, value} | {:error, Error.t()}

  # Milliseconds for taking back what was made on some ranks only.
  @undoing 2_000

  @doc "One tensor to each member of a group."
  @spec put_all(View.t(), [Tensor.like()], keyword()) :: result([Ref.t()])
  def put_all(view, tensors, opts) do
    with {:ok, opts} <- Options.read(opts, [group: view.group, device: ""], "put"),
         timeout = opts.timeout || view.timeout,
         {:ok, members} <- Groups.members(view, opts.group, timeout, "put"),
         :ok <- check_count(tensors, members, "put"),
         {:ok, tensors} <- coerce_all(tensors) do
      members
      |> Enum.zip(tensors)
      |> AtOnce.map(fn {rank, tensor} -> {rank, send_tensor(view, rank, tensor, opts)} end)
      |> all_or_none(view)
    end
  end

  # A value on only some of the ranks is of no use to the caller, who gets no ref on it. Whatever comes of the releasing: it
  # ends with the session.
  defp all_or_none(results, view) do
    with {:error, error} <- Calls.gathered(results, true) do
      made = for {_rank, {:ok, ref}} <- results, do: ref
      _ = made == [] || release(view, made, timeout: @undoing)
      {:error, error}
    end
  end

  @doc "One tensor to one rank."
  @spec put(View.t(), non_neg_integer(), Tensor.like(), keyword()) :: result(Ref.t())
  def put(view, rank, tensor, opts) do
    with {:ok, opts} <- Options.read(opts, [device: ""], "put"),
         :ok <- View.check_rank(view, rank, "put"),
         {:ok, tensor} <- tensor |> Tensor.coerce() |> named("put") do
      send_tensor(view, rank, tensor, opts)
    end
  end

  defp send_tensor(view, rank, tensor, opts) do
    call = call(view, V1.RefService.put_tensor(), "put", opts)
    spec = spec(tensor.dtype, tensor.shape, opts.device)
    header = %V1.PutTensorHeader{session_id: view.session_id, tensor: spec}

    view
    |> Transfers.put(rank, tensor, header, call.deadline, fn left ->
      stream_tensor(view, rank, tensor, header, %{call | deadline: left})
    end)
    |> ref()
  end

  defp stream_tensor(view, rank, tensor, header, call) do
    chunks = Stream.map(Chunks.split(tensor.data), &{:chunk, &1})

    messages =
      [{:header, header}]
      |> Stream.concat(chunks)
      |> Stream.map(&V1.PutTensorRequest.encode_to_iodata(%V1.PutTensorRequest{part: &1}))

    Calls.streamed(view, rank, call, fn ->
      with {:ok, channel} <- View.channel(view, rank),
           {:ok, bytes} <-
             Transport.client_stream(channel, call.rpc.path, messages, timeout: call.deadline) do
        Calls.understand(bytes, rank, call)
      else
        :gone -> {:error, Calls.gone(rank, call)}
        {:error, status} -> {:error, Error.from_status(status, Calls.context(rank, call))}
      end
    end)
  end

  @doc "The tensors of refs, in their order."
  @spec get_all(View.t(), [Ref.t()], keyword()) :: result([Tensor.t()])
  def get_all(view, refs, opts) do
    with {:ok, opts} <- Options.read(opts, [], "get"),
         :ok <- check_refs(view, refs, "get") do
      refs
      |> AtOnce.map(fn ref -> {ref.rank, fetch(view, ref, opts)} end)
      |> Calls.gathered(false)
    end
  end

  @doc "The tensor of one ref."
  @spec get(View.t(), Ref.t(), keyword()) :: result(Tensor.t())
  def get(view, ref, opts) do
    with {:ok, opts} <- Options.read(opts, [], "get"),
         :ok <- check_refs(view, [ref], "get"),
         do: fetch(view, ref, opts)
  end

  defp fetch(view, ref, opts) do
    call = call(view, V1.RefService.get_tensor(), "get", opts, false)
    bytes = Tensor.byte_size(ref.dtype, ref.shape)

    fetched =
      Transfers.get(view, ref, bytes, call.deadline, fn left ->
        call = %{call | deadline: left}
        Calls.streamed(view, ref.rank, call, fn -> receive_tensor(view, ref, call) end)
      end)

    with {:ok, {%V1.TensorSpec{} = spec, data}} <- fetched, do: tensor(spec, data, ref, call)
  end

  defp receive_tensor(view, ref, call) do
    request = %V1.GetTensorRequest{session_id: ref.session_id, ref_id: ref.id}
    iodata = V1.GetTensorRequest.encode_to_iodata(request)
    opts = [timeout: call.deadline]

    with {:ok, channel} <- View.channel(view, ref.rank),
         {:ok, received} <-
           Transport.server_stream(
             channel,
             call.rpc.path,
             iodata,
             {:ok, nil, []},
             &take_part/2,
             opts
           ) do
      case received do
        {:ok, %V1.TensorSpec{} = spec, parts} -> joined(spec, parts, ref, call)
        {:ok, nil, _no_parts} -> protocol("the answer is empty", ref, call)
        {:failed, error} -> {:error, Error.from_proto(error)}
        {:malformed, message} -> protocol(message, ref, call)
      end
    else
      :gone -> {:error, Calls.gone(ref.rank, call)}
      {:error, status} -> {:error, Error.from_status(status, Calls.context(ref.rank, call))}
    end
  end

  defp take_part(bytes, {:ok, spec, parts}) do
    case Protobuf.decode(V1.GetTensorResponse, bytes) do
      {:ok, %{part: {:tensor, first}}} when spec == nil -> {:cont, {:ok, first, parts}}
      {:ok, %{part: {:chunk, chunk}}} when spec != nil -> {:cont, {:ok, spec, [chunk | parts]}}
      {:ok, %{part: {:error, error}}} -> {:halt, {:failed, error}}
      {:ok, _other} -> {:halt, {:malformed, "the parts of the tensor come in the wrong order"}}
      {:error, error} -> {:halt, {:malformed, error.message}}
    end
  end

  defp joined(spec, parts, ref, call),
    do: tensor(spec, parts |> Enum.reverse() |> IO.iodata_to_binary(), ref, call)

  defp tensor(spec, data, ref, call) do
    with {:ok, dtype} <- Dtype.from_proto(spec.dtype),
         {:ok, tensor} <- Tensor.new(dtype, spec.shape, data) do
      {:ok, tensor}
    else
      :error -> protocol("a tensor of no known dtype: #{inspect(spec.dtype)}", ref, call)
      {:error, error} -> protocol(Exception.message(error), ref, call)
    end
  end

  defp protocol(message, ref, call),
    do: {:error, Error.protocol(message, Calls.context(ref.rank, call))}

  @doc "Makes a tensor on one rank (option `:rank`), or on every member of a group."
  @spec create(View.t(), Dtype.t(), Tensor.shape(), keyword()) :: result(Ref.t() | [Ref.t()])
  def create(view, dtype, shape, opts) do
    defaults = [init: :zeros, rank: nil, group: view.group, device: ""]

    with {:ok, opts} <- Options.read(opts, defaults, "create"),
         :ok <- dtype |> Tensor.check(shape) |> named("create"),
         {:ok, init} <- opts.init |> Init.to_proto() |> named("create"),
         {:ok, ranks} <- ranks(view, opts, "create") do
      call = call(view, V1.RefService.create_tensor(), "create", opts)

      request = %V1.CreateTensorRequest{
        session_id: view.session_id,
        tensor: spec(dtype, shape, opts.device),
        init: init
      }

      if opts.rank,
        do: view |> Calls.one(opts.rank, request, call) |> ref(),
        else: create_all(view, for(rank <- ranks, do: {rank, request}), call)
    end
  end

  defp create_all(view, requests, call) do
    results = for {rank, result} <- Calls.each(view, requests, call), do: {rank, ref(result)}
    all_or_none(results, view)
  end

  defp ranks(view, %{rank: nil} = opts, operation),
    do: Groups.members(view, opts.group, opts.timeout || view.timeout, operation)

  defp ranks(view, %{rank: rank}, operation) do
    with :ok <- View.check_rank(view, rank, operation), do: {:ok, [rank]}
  end

  @doc "The ref as its rank knows it."
  @spec describe(View.t(), Ref.t(), keyword()) :: result(Ref.t())
  def describe(view, ref, opts) do
    with {:ok, opts} <- Options.read(opts, [], "describe"),
         :ok <- check_refs(view, [ref], "describe") do
      call = call(view, V1.RefService.describe_ref(), "describe", opts, false)
      request = %V1.DescribeRefRequest{session_id: ref.session_id, ref_id: ref.id}
      view |> Calls.one(ref.rank, request, call) |> ref()
    end
  end

  @doc "Every ref of the gang's session, by rank, in the order in which they were made."
  @spec list(View.t(), keyword()) :: result([Ref.t()])
  def list(view, opts) do
    with {:ok, opts} <- Options.read(opts, [rank: nil, group: view.group], "list"),
         {:ok, ranks} <- ranks(view, opts, "list") do
      call = call(view, V1.RefService.list_refs(), "list", opts, false)

      ranks
      |> AtOnce.map(fn rank -> {rank, list_from(view, rank, "", call)} end)
      |> Calls.gathered(false)
      |> case do
        {:ok, lists} -> {:ok, Enum.concat(lists)}
        error -> error
      end
    end
  end

  defp list_from(view, rank, token, call) do
    request = %V1.ListRefsRequest{session_id: view.session_id, page_token: token}

    with {:ok, %V1.RefPage{} = page} <- Calls.one(view, rank, request, call) do
      refs = Enum.map(page.refs, &Ref.from_proto/1)

      with true <- page.next_page_token != "",
           {:ok, more} <- list_from(view, rank, page.next_page_token, call) do
        {:ok, refs ++ more}
      else
        false -> {:ok, refs}
        error -> error
      end
    end
  end

  @doc "Frees refs; gives how many were freed."
  @spec release(View.t(), [Ref.t()], keyword()) :: result(non_neg_integer())
  def release(view, refs, opts) do
    with {:ok, opts} <- Options.read(opts, [], "release"),
         :ok <- check_refs(view, refs, "release") do
      call = call(view, V1.RefService.release_refs(), "release", opts)

      requests =
        for {{rank, session_id}, refs} <- Enum.group_by(refs, &{&1.rank, &1.session_id}) do
          ids = Enum.map(refs, & &1.id)
          {rank, %V1.ReleaseRefsRequest{session_id: session_id, ref_ids: ids}}
        end

      with {:ok, counts} <- Calls.all(view, requests, call), do: {:ok, Enum.sum(counts)}
    end
  end

  defp call(view, rpc, operation, opts, changes? \\ true) do
    %Calls{
      rpc: rpc,
      operation: operation,
      deadline: opts.timeout || view.timeout,
      changes?: changes?
    }
  end

  defp spec(dtype, shape, device),
    do: %V1.TensorSpec{dtype: Dtype.to_proto(dtype), shape: shape, device: device}

  defp ref({:ok, ref}), do: {:ok, Ref.from_proto(ref)}
  defp ref(error), do: error

  defp check_count(tensors, members, operation) do
    if is_list(tensors) and length(tensors) == length(members) do
      :ok
    else
      {:error,
       Error.refusal(:invalid_argument, "one tensor for each member of the group is needed",
         operation: operation,
         expected: "#{length(members)}",
         got: if(is_list(tensors), do: "#{length(tensors)}", else: inspect(tensors, limit: 3))
       )}
    end
  end

  defp coerce_all(tensors) do
    Enum.reduce_while(tensors, {:ok, []}, fn tensor, {:ok, done} ->
      case tensor |> Tensor.coerce() |> named("put") do
        {:ok, tensor} -> {:cont, {:ok, [tensor | done]}}
        error -> {:halt, error}
      end
    end)
    |> case do
      {:ok, reversed} -> {:ok, Enum.reverse(reversed)}
      error -> error
    end
  end

  defp check_refs(view, refs, operation) when is_list(refs) do
    Enum.find_value(refs, :ok, fn
      %Ref{} = ref -> with :ok <- View.check_rank(view, ref.rank, operation), do: nil
      other -> no_ref(other, operation)
    end)
  end

  defp check_refs(_view, other, operation), do: no_ref(other, operation)

  defp no_ref(other, operation) do
    message = "not a ref: #{inspect(other, limit: 3, printable_limit: 40)}"
    {:error, Error.refusal(:invalid_argument, message, operation: operation)}
  end

  defp named({:error, %Error{} = error}, operation), do: {:error, %{error | operation: operation}}
  defp named(fine, _operation), do: fine
end
