defmodule RankBridge.SnakeBridge.Calls do
  @moduledoc """
  What SnakeBridge asks for, as it sends it: whether it is ours, and what comes of it.

  Ours are: whatever is asked of a ref of ours; the functions and classes of `RankBridge.SnakeBridge.Names`, if the pool that
  is named stands for a rank, or if none is named and a gang is configured (functions of torch itself: only if it does);
  likewise the functions of `RankBridge.SnakeBridge.Loaded`;
  and the release of a ref of ours. The rest is Snakepit's, and so is any other pool.
  """

  alias RankBridge.{Error, Operation, Queue, Ref}
  alias RankBridge.GroupCoordinator
  alias RankBridge.GroupCoordinator.{Conventions, Signatures}
  alias RankBridge.SnakeBridge.{Functions, Loaded, Methods, Names, Objects, Wire}

  @type payload :: %{String.t() => term()}
  @type answer :: {:ok, Wire.wire()} | {:error, Error.t()} | :theirs

  # Arguments that are values for other ranks: what these have no words for travels as its map.
  @values [:obj, :obj_list, :tensor_dict]

  @doc "Answers a call; `:theirs` if it is none of ours. Ids of sessions are released for both, see `release_session/1`."
  @spec execute(String.t(), payload(), keyword()) :: answer()
  def execute("snakebridge.call", payload, opts) do
    with {:ok, target} <- target(payload, opts),
         {:ok, run} <- run(payload, opts),
         {:ok, given} <- answer(target, payload, run),
         do: {:ok, encoded(given, payload, opts, target)}
  end

  def execute("snakebridge.release_ref", %{"ref" => ref}, _opts) do
    if Objects.ours?(Wire.id(ref)) do
      with {:ok, was_there?} <- Objects.release(Wire.id(ref)), do: {:ok, was_there?}
    else
      :theirs
    end
  end

  def execute(_tool, _payload, _opts), do: :theirs

  @doc "Releases what is ours of a session, and gives how many refs that were."
  @spec release_session(term()) :: {:ok, non_neg_integer()} | {:error, Error.t()}
  def release_session(session_id) when is_binary(session_id),
    do: Objects.release_session(session_id)

  def release_session(_other), do: {:ok, 0}

  @doc """
  Answers a call item by item: what gives a list or a tuple, its items; of a queue each value until it is shut down; of a
  tensor its rows; of a loaded function that yields, each value as it comes. Anything else is an error. `callback` gets each item, undecoded.
  """
  @spec stream(payload(), (Wire.wire() -> term()), keyword()) ::
          :ok | {:error, Error.t()} | :theirs
  def stream(payload, callback, opts) do
    with {:ok, target} <- target(payload, opts),
         {:ok, run} <- run(payload, opts),
         emit = &callback.(encoded(&1, payload, opts, target)),
         :plain <- yielded(target, payload, run, emit),
         {:ok, given} <- answer(target, payload, run) do
      case given do
        items when is_list(items) ->
          Enum.each(items, emit)

        items when is_tuple(items) and elem(items, 0) != :object ->
          items |> Tuple.to_list() |> Enum.each(emit)

        {:object, {:items, items, gang, rank}} ->
          each(items, gang, rank, run, emit)

        %Queue{} = queue ->
          {gang, rank} = owner(target, opts)
          each(queue, gang, rank, run, emit)

        other ->
          refuse("what the call gives has no items", "a list, a queue or a tensor", shown(other))
      end
    end
  end

  defp yielded({:loaded, name}, payload, run, emit) do
    with {:ok, gang} <- gang(run, payload),
         {:ok, given} <- given(payload),
         do: Loaded.stream(gang, name, given, run, emit)
  end

  defp yielded(_target, _payload, _run, _emit), do: :plain

  defp each(items, _gang, _rank, _run, emit) when is_list(items), do: Enum.each(items, emit)

  defp each(queue, gang, rank, run, emit) do
    case next(queue, gang, rank, run) do
      {:ok, value} ->
        emit.(value)
        each(queue, gang, rank, run, emit)

      :end ->
        :ok

      {:error, error} ->
        {:error, error}
    end
  end

  defp next(queue, gang, rank, run) do
    case Methods.dequeue(gang, rank, queue, timeout: run.timeout) do
      {:error, %Error{reason: reason}} when reason in [:aborted, :unknown_queue] -> :end
      other -> other
    end
  end

  # --- what is meant ---

  defp target(%{"call_type" => "helper"}, _opts), do: :theirs

  defp target(%{"call_type" => "stream_next", "stream_ref" => ref}, _opts),
    do: of_ref(ref, &{:next, &1, &2})

  defp target(%{"instance" => instance} = payload, _opts) do
    of_ref(instance, fn id, object ->
      case payload["call_type"] do
        "get_attr" -> {:attribute, object, payload["attr"]}
        "set_attr" -> {:set, object, payload["attr"]}
        _method -> {:method, id, object, payload["function"]}
      end
    end)
  end

  defp target(payload, opts) do
    python_module = payload["module_path"] || payload["python_module"]
    name = payload["class"] || payload["function"] || payload["attr"]

    cond do
      payload["call_type"] == "module_attr" ->
        :theirs

      Names.class?(python_module, name) and here?(:vllm, opts) ->
        {:ok, :new}

      Loaded.module?(python_module) and is_binary(name) and payload["class"] == nil and
          here?(:loaded, opts) ->
        {:ok, {:loaded, name}}

      true ->
        with {:ok, area, signature} <- Names.function(python_module, name),
             true <- here?(area, opts) do
          {:ok, {:function, area, signature}}
        else
          _not_ours -> :theirs
        end
    end
  end

  defp of_ref(ref, fun) do
    id = Wire.id(ref)

    if Objects.ours?(id) do
      with {:ok, object} <- Objects.of_ref(ref), do: {:ok, fun.(id, object)}
    else
      :theirs
    end
  end

  # A pool that stands for no rank is Snakepit's.
  defp here?(area, opts) do
    cond do
      opts[:pool_name] != nil -> Conventions.pool(opts[:pool_name]) != nil
      area == :torch -> false
      true -> opts[:gang] != nil or Conventions.default_gang() != nil
    end
  end

  defp run(payload, opts) do
    operation = payload["function"] || payload["attr"] || "#{payload["call_type"]}"

    opts =
      if opts[:stream_timeout] && payload["call_type"] in ["dynamic_stream", "stream_next"],
        do: Keyword.put(opts, :timeout, opts[:stream_timeout]),
        else: opts

    Conventions.runtime(opts, operation)
  end

  # --- what comes of it ---

  defp answer({:attribute, object, name}, _payload, _run), do: Methods.attribute(object, name)

  defp answer({:set, _object, name}, _payload, _run),
    do: refuse("attributes cannot be set", "a call of a method", "#{name}")

  defp answer({:next, id, {:items, items, gang, rank}}, _payload, run) do
    case items do
      [] ->
        {:ok, :stop_iteration}

      [first | rest] ->
        :ok = Objects.replace(id, {:items, rest, gang, rank})
        {:ok, first}

      %Queue{} = queue ->
        with :end <- next(queue, gang, rank, run), do: {:ok, :stop_iteration}
    end
  end

  defp answer({:next, _id, _object}, _payload, _run),
    do: refuse("this is no stream", "a stream_ref", "another ref")

  defp answer({:method, id, {:coordinator, _member} = object, name}, payload, run)
       when name != "graph_capture" do
    with {:ok, signature} <- coordinator_method(name),
         {:ok, given} <- arguments(signature, payload) do
      given = Enum.map(given, fn {name, value} -> {"#{name}", value} end)
      Methods.call(id, object, name, [], given, run)
    end
  end

  defp answer({:method, id, object, name}, payload, run) do
    with {:ok, positional} <- decoded(payload["args"] || []),
         {:ok, named} <- decoded(payload["kwargs"] || %{}),
         do: Methods.call(id, object, name, positional, Enum.to_list(named), run)
  end

  defp answer(:new, payload, run) do
    with {:ok, given} <- arguments(Signatures.constructor(), payload) do
      given = Enum.map(given, fn {name, value} -> {"#{name}", value} end)

      GroupCoordinator.construct(
        [],
        given,
        Enum.reject(run, fn {_name, setting} -> setting == nil end)
      )
    end
  end

  defp answer({:function, area, signature}, payload, run) do
    with {:ok, gang} <- gang(run, payload),
         {:ok, given} <- arguments(signature, payload),
         do: Functions.call(area, signature.name, given, gang, run)
  end

  defp answer({:loaded, name}, payload, run) do
    with {:ok, gang} <- gang(run, payload),
         {:ok, given} <- given(payload),
         do: Loaded.call(gang, name, given, run)
  end

  # These have no signature; the coordinator refuses a name that it does not have.
  defp coordinator_method(name) when name in ["__repr__", "__str__"],
    do: {:ok, %Signatures{name: :repr, needed: [], optional: [], gives: ""}}

  defp coordinator_method(name) do
    with :error <- Signatures.method(name),
         do: refuse("there is no such method", "one of GroupCoordinator's", "#{name}")
  end

  defp gang(run, payload) do
    case run.gang || Conventions.default_gang() do
      nil -> refuse("no gang is given", "one that is configured", "#{payload["function"]}")
      gang -> {:ok, gang}
    end
  end

  # Arguments by their names; what is not for other ranks needs no atoms.
  defp arguments(signature, payload) do
    named = Enum.to_list(payload["kwargs"] || %{})

    with {:ok, positional} <- decoded(payload["args"] || []),
         {:ok, named} <- decoded(Map.new(named)),
         {:ok, given} <- Conventions.bind(signature, positional, Enum.to_list(named)) do
      {:ok, Map.new(given, &plain/1)}
    end
  end

  defp plain({name, value}) when name in @values, do: {name, value}
  defp plain({name, value}), do: {name, value |> Wire.plain() |> Wire.numbers()}

  defp decoded(wire), do: understood(Wire.decode(wire, keep: true, ref: &native/1))

  # Of a loaded function, which has its own names.
  defp given(payload), do: understood(Loaded.arguments(payload, &native/1))

  defp understood({:error, %Error{} = error}), do: {:error, error}

  defp understood({:error, text}), do: refuse(text, "what a rank can be given", "an argument")
  defp understood(decoded), do: decoded

  # What a ref stands for, as our own functions take it.
  defp native(ref) do
    with {:ok, object} <- Objects.of_ref(ref) do
      case object do
        {:tensor, _gang, ref} -> {:ok, ref}
        {:coordinator, coordinator} -> {:ok, coordinator}
        {:queue, _gang, _rank, queue} -> {:ok, queue}
        {:work, _gang, operation} -> {:ok, operation}
        other -> {:ok, other}
      end
    end
  end

  # --- encoding of results ---

  defp encoded(:stop_iteration, _payload, _opts, {:next, _id, _object}), do: Wire.stop_iteration()

  defp encoded(given, payload, opts, target) do
    session_id = payload["session_id"] || opts[:session_id] || ""
    {gang, rank} = owner(target, opts)

    Wire.encode(given, fn term ->
      object = object(term, gang, rank)
      tag = if match?({:items, _items, _gang, _rank}, object), do: "stream_ref", else: "ref"
      {id, session_id} = Objects.put(object, session_id)
      Wire.ref(tag, id, session_id, Methods.type(object))
    end)
  end

  defp object({:object, object}, _gang, _rank), do: object
  defp object(%Ref{} = ref, gang, _rank), do: {:tensor, gang, ref}
  defp object(%GroupCoordinator{} = coordinator, _gang, _rank), do: {:coordinator, coordinator}
  defp object(%Operation{} = operation, gang, _rank), do: {:work, gang, operation}
  defp object(%Queue{} = queue, gang, rank), do: {:queue, gang, rank, queue}

  defp owner({:method, _id, object, _name}, _opts), do: of_object(object)
  defp owner({:next, _id, object}, _opts), do: of_object(object)
  defp owner({:attribute, object, _name}, _opts), do: of_object(object)

  defp owner(_function, opts) do
    {gang, rank} = Conventions.pool(opts[:pool_name]) || {nil, nil}
    {opts[:gang] || gang || Conventions.default_gang(), opts[:rank] || rank}
  end

  defp of_object({:coordinator, coordinator}), do: {coordinator.gang, coordinator.rank}
  defp of_object({:capture, coordinator, _state}), do: {coordinator.gang, coordinator.rank}
  defp of_object({:queue, gang, rank, _queue}), do: {gang, rank}
  defp of_object({:group, gang, rank, _group}), do: {gang, rank}
  defp of_object({:items, _items, gang, rank}), do: {gang, rank}
  defp of_object({_tensor_or_work, gang, _it}), do: {gang, nil}

  defp refuse(message, expected, got),
    do: {:error, Error.refusal(:invalid_argument, message, expected: expected, got: got)}

  defp shown(term), do: inspect(term, limit: 3, printable_limit: 40)
end
