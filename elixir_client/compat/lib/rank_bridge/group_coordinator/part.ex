defmodule RankBridge.GroupCoordinator.Part do
  @moduledoc "One rank's part of what a coordinator does."

  alias RankBridge.{Error, Group, GroupCoordinator}
  alias RankBridge.GroupCoordinator.{Agreed, Conventions, Making, Tensors}

  @type result :: {:ok, term()} | {:error, Error.t()}

  @doc "A property of the coordinator's rank."
  @spec property(GroupCoordinator.t(), atom()) :: term()
  def property(%{rank: rank}, :rank), do: rank
  def property(member, :ranks), do: group(member).ranks
  def property(member, :rank_in_group), do: Group.rank_in_group(group(member), member.rank)
  def property(member, :local_rank), do: Group.local_rank(group(member), member.rank)
  def property(member, :world_size), do: Group.world_size(group(member))
  def property(member, :first_rank), do: Group.first_rank(group(member))
  def property(member, :last_rank), do: Group.last_rank(group(member))
  def property(member, :is_first_rank), do: Group.first_rank?(group(member), member.rank)
  def property(member, :is_last_rank), do: Group.last_rank?(group(member), member.rank)
  def property(member, :next_rank), do: Group.next_rank(group(member), member.rank)
  def property(member, :prev_rank), do: Group.prev_rank(group(member), member.rank)

  @doc "A method, of the arguments that the rank gives."
  @spec call(GroupCoordinator.t(), atom(), map(), Conventions.runtime()) :: result()
  def call(member, name, given, run) when name in [:all_reduce, :_all_reduce_out_place],
    do: on_tensor(member, :all_reduce, given.input_, [], run)

  def call(member, name, given, run) when name in [:all_gather, :_all_gather_out_place],
    do: on_tensor(member, :all_gather, given.input_, [dim: given.dim], run)

  def call(member, :all_gatherv, given, run) do
    if several?(given.input_),
      do: gather_each(member, given.input_, [dim: given.dim, sizes: given.sizes], run),
      else:
        on_tensor(member, :all_gather, given.input_, [dim: given.dim, sizes: given.sizes], run)
  end

  def call(member, name, given, run) when name in [:reduce_scatter, :_reduce_scatter_out_place],
    do: on_tensor(member, :reduce_scatter, given.input_, [dim: given.dim], run)

  def call(member, :reduce_scatterv, given, run),
    do:
      on_tensor(member, :reduce_scatter, given.input_, [dim: given.dim, sizes: given.sizes], run)

  def call(member, :gather, given, run) do
    opts = [dst_rank_in_group: given.dst, dim: given.dim]
    on_tensor(member, :gather, given.input_, opts, run)
  end

  def call(member, :broadcast, given, run) do
    with :ok <- check_alone(member, :src, given.src, "broadcast"),
         do:
           on_tensor(
             member,
             :broadcast,
             given.input_,
             [src_rank_in_group: given.src, in_place: true],
             run
           )
  end

  def call(member, :combine, given, run),
    do: on_tensor(member, :reduce_scatter, given.hidden_states, [dim: 0, sizes: given.sizes], run)

  def call(member, :dispatch, given, run) do
    extra = List.wrap(given.extra_tensors)
    tensors = [given.hidden_states, given.router_logits | extra]

    with {:ok, [hidden, logits | extra]} <-
           gather_each(member, tensors, [dim: 0, sizes: given.sizes], run),
         do: {:ok, if(extra == [], do: {hidden, logits}, else: {hidden, logits, extra})}
  end

  def call(member, :barrier, _given, run),
    do: if(alone?(member), do: {:ok, nil}, else: collective(member, :barrier, nil, [], run))

  def call(member, :broadcast_object, given, run),
    do: from_source(member, :broadcast_object, given.obj, given.src, run)

  def call(member, :broadcast_object_list, given, run) do
    with :ok <- check_own(given, [:group], "broadcast_object_list"),
         :ok <- check_list(member, given),
         do: from_source(member, :broadcast_object, given.obj_list, given.src, run)
  end

  def call(member, :broadcast_tensor_dict, given, run) do
    with :ok <- check_own(given, [:group, :metadata_group], "broadcast_tensor_dict"),
         do: from_source(member, :broadcast_tensor_dict, given.tensor_dict, given.src, run)
  end

  def call(member, :send, given, run), do: send(member, &RankBridge.send/5, :send, given, run)

  def call(member, :isend, given, run),
    do: send(member, &RankBridge.PointToPoint.isend/5, :isend, given, run)

  def call(member, :send_object, given, run),
    do: send(member, &RankBridge.send_object/5, :send_object, given, run)

  def call(member, :isend_object, given, run),
    do: send(member, &RankBridge.PointToPoint.isend_object/5, :isend_object, given, run)

  def call(member, :send_tensor_dict, given, run),
    do: send(member, &RankBridge.PointToPoint.send_tensor_dict/5, :send_tensor_dict, given, run)

  def call(member, :isend_tensor_dict, given, run),
    do: send(member, &RankBridge.PointToPoint.isend_tensor_dict/5, :isend_tensor_dict, given, run)

  def call(member, :recv, given, run),
    do: received(recv(member, &RankBridge.recv/3, :recv, given, run))

  def call(member, :irecv, given, run),
    do: recv(member, &RankBridge.PointToPoint.irecv/3, :irecv, given, run)

  def call(member, :recv_object, given, run),
    do: received(recv(member, &RankBridge.recv_object/3, :recv_object, given, run))

  def call(member, :irecv_object, given, run),
    do: recv(member, &RankBridge.PointToPoint.irecv_object/3, :irecv_object, given, run)

  def call(member, :recv_tensor_dict, given, run),
    do:
      received(
        recv(member, &RankBridge.PointToPoint.recv_tensor_dict/3, :recv_tensor_dict, given, run)
      )

  def call(member, :irecv_tensor_dict, given, run),
    do: recv(member, &RankBridge.PointToPoint.irecv_tensor_dict/3, :irecv_tensor_dict, given, run)

  def call(member, :create_mq_broadcaster, given, run) do
    with :ok <- check_own(given, [:external_writer_handle], "create_mq_broadcaster"),
         do: Agreed.queue(member, given.writer_rank, chunks(given), run)
  end

  def call(member, :create_single_reader_mq_broadcasters, given, run),
    do: Agreed.queues_to_one(member, given.reader_rank_in_group, chunks(given), run)

  def call(member, :graph_capture, given, run),
    do: Agreed.graph(member, given.graph_capture_context, run)

  def call(member, :prepare_communication_buffer_for_model, given, run),
    do: buffers(member, given.model, run)

  def call(member, :destroy, _given, run), do: Making.destroy(member.gang, member.groups, run)

  @doc "Options that say how large a queue is, as far as they are given."
  @spec chunks(map()) :: keyword()
  def chunks(given),
    do: [max_chunk_bytes: given.max_chunk_bytes, max_chunks: given.max_chunks]

  # --- tensors ---

  defp on_tensor(member, operation, input, opts, run) do
    with {:ok, {ref, made?}} <- bring(member, input, operation, run) do
      if alone?(member) do
        {:ok, ref}
      else
        member
        |> collective(operation, ref, opts, run)
        |> freed(member, if(made?, do: [ref], else: []))
      end
    end
  end

  defp gather_each(member, inputs, opts, run) do
    with {:ok, brought} <- bring_each(member, inputs, run) do
      refs = Enum.map(brought, &elem(&1, 0))
      made = for {ref, true} <- brought, do: ref
      calls = for ref <- refs, do: {:all_gather, ref, opts}

      if alone?(member),
        do: {:ok, refs},
        else: member |> collective(:coalesce, calls, [], run) |> freed(member, made)
    end
  end

  defp bring_each(member, inputs, run) do
    Enum.reduce_while(inputs, {:ok, []}, fn input, {:ok, done} ->
      case bring(member, input, :all_gatherv, run) do
        {:ok, brought} ->
          {:cont, {:ok, [brought | done]}}

        error ->
          {:halt, freed(error, member, for({ref, true} <- done, do: ref))}
      end
    end)
    |> case do
      {:ok, reversed} -> {:ok, Enum.reverse(reversed)}
      error -> error
    end
  end

  defp bring(member, input, operation, run),
    do: Tensors.bring(member.gang, member.rank, input, [timeout: run.timeout], "#{operation}")

  # What was brought for this call alone, unless it is what the call gives.
  defp freed(result, member, made) do
    given = with {:ok, value} <- result, do: List.wrap(value), else: (_error -> [])
    left = made -- Enum.filter(made, fn ref -> Enum.any?(given, &same?(&1, ref)) end)
    _ = if left != [], do: RankBridge.release(member.gang, left)
    result
  end

  defp same?(%RankBridge.Ref{id: id}, %RankBridge.Ref{id: id}), do: true
  defp same?(_other, _ref), do: false

  # A list of tensors, and not one tensor as lists of numbers.
  defp several?([first | _others]),
    do: not (is_number(first) or is_boolean(first) or nested?(first))

  defp several?(_other), do: false

  defp nested?(list) when is_list(list), do: not several?(list)
  defp nested?(_other), do: false

  # --- values ---

  defp from_source(member, operation, value, src, run) do
    with :ok <- check_alone(member, :src, src, "#{operation}") do
      mine = if src == place(member), do: value
      opts = [src_rank_in_group: src]
      if alone?(member), do: {:ok, value}, else: collective(member, operation, mine, opts, run)
    end
  end

  # All members give no id: those that come for the same meet in the order of their calls.
  defp collective(member, operation, input, opts, run) do
    opts = [group: group(member).name, operation_id: ""] ++ opts ++ [timeout: run.timeout]
    RankBridge.Operations.call_rank(member.gang, member.rank, operation, input, opts)
  end

  # --- point to point ---

  defp send(member, fun, name, given, run) do
    what = given[:tensor] || given[:tensor_dict] || given[:obj]
    objects? = is_map_key(given, :obj)

    cond do
      alone?(member) and not objects? ->
        # As vLLM: nobody is there to send to, and a map comes back.
        {:ok, if(name == :send_tensor_dict, do: what)}

      given.dst == place(member) ->
        to_itself(member, name, :dst, given.dst)

      true ->
        dst = given.dst || rem(place(member) + 1, Group.world_size(group(member)))

        with {:ok, what} <- sent(member, what, is_map_key(given, :tensor), name, run),
             do: valued(fun.(member.gang, member.rank, what, dst, in_group(member, run)))
    end
  end

  # Where vLLM gives None.
  defp valued(:ok), do: {:ok, nil}
  defp valued(result), do: result

  # What is brought for a send has to stay until it has gone.
  defp sent(member, tensor, true, name, run) do
    with {:ok, {ref, _made?}} <- bring(member, tensor, name, run), do: {:ok, ref}
  end

  defp sent(_member, value, false, _name, _run), do: {:ok, value}

  defp recv(member, fun, name, given, run) do
    objects? = name in [:recv_object, :irecv_object]

    cond do
      alone?(member) and not objects? ->
        {:ok, nil}

      given.src == place(member) ->
        to_itself(member, name, :src, given.src)

      true ->
        size = Group.world_size(group(member))
        src = given.src || rem(place(member) + size - 1, size)

        with {:ok, expected} <- expected(given, name),
             do:
               fun.(
                 member.gang,
                 member.rank,
                 [src_rank_in_group: src] ++ expected ++ in_group(member, run)
               )
    end
  end

  defp expected(%{dtype: dtype, size: size}, name) do
    with {:ok, dtype} <- Tensors.dtype(dtype, "#{name}"),
         do: {:ok, [expected: {dtype, Tensors.shape(size)}]}
  end

  defp expected(_given, _name), do: {:ok, []}

  defp received({:ok, {value, _src}}), do: {:ok, value}
  defp received(other), do: other

  defp in_group(member, run), do: [group: group(member).name, timeout: run.timeout]

  # --- buffers ---

  defp buffers(member, model, run) do
    with {:ok, sizes} <- sizes(model) do
      Enum.reduce_while(sizes, {:ok, %{}}, fn {dtype, elements}, {:ok, made} ->
        case RankBridge.create(member.gang, dtype, [elements],
               rank: member.rank,
               timeout: run.timeout
             ) do
          {:ok, ref} -> {:cont, {:ok, Map.put(made, dtype, ref)}}
          error -> {:halt, freed(error, member, Map.values(made))}
        end
      end)
    end
  end

  # Elements of the largest parameter of each dtype.
  defp sizes([_ | _] = model) do
    Enum.reduce_while(model, {:ok, %{}}, fn parameter, {:ok, sizes} ->
      with {:ok, shape, dtype} <- parameter(parameter),
           {:ok, dtype} <- Tensors.dtype(dtype, "prepare_communication_buffer_for_model") do
        elements = Enum.product(shape)
        {:cont, {:ok, Map.update(sizes, dtype, elements, &max(&1, elements))}}
      else
        {:error, error} -> {:halt, {:error, error}}
        :error -> {:halt, no_model(parameter)}
      end
    end)
  end

  defp sizes(other), do: no_model(other)

  defp parameter(%{shape: shape, dtype: dtype}), do: parameter(Tensors.shape(shape), dtype)

  defp parameter(%{"shape" => shape, "dtype" => dtype}),
    do: parameter(Tensors.shape(shape), dtype)

  defp parameter(_other), do: :error

  defp parameter(shape, dtype) do
    if is_list(shape) and Enum.all?(shape, &(is_integer(&1) and &1 >= 0)),
      do: {:ok, shape, dtype},
      else: :error
  end

  defp no_model(got) do
    operation = "prepare_communication_buffer_for_model"

    refuse(
      operation,
      "this is no model's parameter",
      "a shape and a dtype",
      inspect(got, limit: 5)
    )
  end

  # --- who it is ---

  defp group(member), do: GroupCoordinator.group(member)
  defp place(member), do: Group.rank_in_group(group(member), member.rank)
  defp alone?(member), do: Group.world_size(group(member)) == 1

  defp check_alone(member, name, place, operation) do
    if alone?(member) and place != 0 do
      fields = [
        operation: operation,
        rank: member.rank,
        expected: "0",
        got: inspect(place, limit: 3)
      ]

      {:error, Error.refusal(:rank_out_of_range, "#{name} is not in the group", fields)}
    else
      :ok
    end
  end

  defp check_own(given, names, operation) do
    case Enum.reject(names, &(given[&1] == nil)) do
      [] ->
        :ok

      [name | _] ->
        refuse(operation, "#{name} is the coordinator's own", "nil", shown(given[name]))
    end
  end

  defp check_list(member, given) do
    if given.src != place(member) or is_list(given.obj_list),
      do: :ok,
      else: refuse("broadcast_object_list", "this is no list", "a list", shown(given.obj_list))
  end

  defp to_itself(member, name, side, place) do
    refuse(
      "#{name}",
      "#{side} is the rank itself",
      "another rank in the group",
      "#{place}",
      member
    )
  end

  defp refuse(operation, message, expected, got, member \\ nil) do
    fields = [operation: operation, expected: expected, got: got, rank: member && member.rank]
    {:error, Error.refusal(:invalid_argument, message, fields)}
  end

  defp shown(term), do: inspect(term, limit: 3, printable_limit: 40)
end
