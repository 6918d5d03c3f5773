defmodule SnakeBridge.Runtime do
  @moduledoc "Stands in for what generated modules call: makes payloads, and hands them to the runtime client."

  alias SnakeBridge.{Ref, StreamRef, Types}

  @reserved [:__args__, :__runtime__, :idempotent]
  @version %{"protocol_version" => 1, "min_supported_version" => 1}

  @doc "A keyword list in place of arguments counts as options."
  @spec normalize_args_opts(term(), keyword()) :: {term(), keyword()}
  def normalize_args_opts(args, []),
    do: if(Keyword.keyword?(args), do: {[], args}, else: {args, []})

  def normalize_args_opts(args, opts), do: {args, opts}

  @doc "Calls a function of a generated module, or of a Python module by its path."
  @spec call(module() | String.t(), atom(), [term()], keyword()) ::
          {:ok, term()} | {:error, term()}
  def call(module, function, args, opts) when is_binary(module) do
    {payload, runtime} = payload(function, args, opts, nil)

    payload
    |> Map.merge(%{"call_type" => "dynamic", "module_path" => module, "library" => root(module)})
    |> execute(runtime)
  end

  def call(module, function, args, opts) do
    {payload, runtime} = payload(function, args, opts, nil)
    payload |> Map.merge(of(module)) |> execute(runtime)
  end

  @doc "Makes an object of a generated class."
  @spec call_class(module(), [term()], keyword()) :: {:ok, term()} | {:error, term()}
  def call_class(module, args, opts) do
    {payload, runtime} = payload(:__init__, args, opts, nil)

    payload
    |> Map.merge(of(module))
    |> Map.merge(%{"call_type" => "class", "class" => module.__snakebridge_python_class__()})
    |> execute(runtime)
  end

  @doc "Calls a method of an object."
  @spec call_method(Ref.t(), atom(), [term()], keyword()) :: {:ok, term()} | {:error, term()}
  def call_method(ref, method, args, opts \\ []) do
    {payload, runtime} = payload(method, args, opts, ref)
    payload |> Map.merge(of(ref)) |> Map.put("call_type", "method") |> execute(runtime)
  end

  @doc "Reads an attribute of an object."
  @spec get_attr(Ref.t(), atom(), keyword()) :: {:ok, term()} | {:error, term()}
  def get_attr(ref, attr, opts \\ []) do
    {payload, runtime} = payload(attr, [], opts, ref)

    payload
    |> Map.merge(of(ref))
    |> Map.merge(%{"call_type" => "get_attr", "attr" => "#{attr}"})
    |> execute(runtime)
  end

  @doc "Writes an attribute of an object."
  @spec set_attr(Ref.t(), atom(), term(), keyword()) :: {:ok, term()} | {:error, term()}
  def set_attr(ref, attr, value, opts \\ []) do
    {payload, runtime} = payload(attr, [value], opts, ref)

    payload
    |> Map.merge(of(ref))
    |> Map.merge(%{"call_type" => "set_attr", "attr" => "#{attr}"})
    |> execute(runtime)
  end

  @doc "The next item of an iterator."
  @spec stream_next(StreamRef.t(), keyword()) :: {:ok, term()} | {:error, term()}
  def stream_next(%StreamRef{} = stream, opts \\ []) do
    wire = %{"__type__" => "stream_ref", "__schema__" => 1, "id" => stream.id}
    payload = Map.merge(@version, %{"call_type" => "stream_next", "stream_ref" => wire})
    payload = Map.put(payload, "session_id", stream.session_id)

    case client().execute("snakebridge.call", payload, runtime(opts)) do
      {:ok, %{"__type__" => "stop_iteration"}} -> {:error, :stop_iteration}
      {:ok, wire} -> {:ok, Types.decode(wire)}
      error -> error
    end
  end

  @doc "Goes through what a function of a Python module gives."
  @spec stream(String.t(), atom(), [term()], keyword(), (term() -> any())) ::
          :ok | {:error, term()}
  def stream(module, function, args, opts, callback) do
    {payload, runtime} = payload(function, args, opts, nil)

    payload =
      Map.merge(payload, %{
        "call_type" => "dynamic_stream",
        "module_path" => module,
        "library" => root(module)
      })

    runtime = Keyword.put_new(runtime, :stream_timeout, 1_800_000)
    client().execute_stream("snakebridge.stream", payload, &callback.(Types.decode(&1)), runtime)
  end

  @doc "Lets go of an object."
  @spec release_ref(Ref.t()) :: :ok | {:error, term()}
  def release_ref(ref) do
    payload = Map.put(@version, "ref", Ref.wire(ref))
    released(client().execute("snakebridge.release_ref", payload, []))
  end

  @doc "Lets go of all objects of a session."
  @spec release_session(String.t()) :: :ok | {:error, term()}
  def release_session(id) do
    payload = Map.put(@version, "session_id", id)
    released(client().execute("snakebridge.release_session", payload, session_id: id))
  end

  defp released({:ok, _count}), do: :ok
  defp released(error), do: error

  defp execute(payload, runtime) do
    with {:ok, wire} <- client().execute("snakebridge.call", payload, runtime),
         do: {:ok, Types.decode(wire)}
  end

  @doc "Who answers: of this process, or of the application."
  @spec client() :: module()
  def client do
    Process.get(:snakebridge_runtime_client) ||
      Application.get_env(:snakebridge, :runtime_client, Snakepit)
  end

  defp payload(function, args, opts, ref) do
    {own, kwargs} = Keyword.split(opts, @reserved)
    session_id = own[:__runtime__][:session_id] || (ref && ref.session_id) || automatic()

    payload =
      Map.merge(@version, %{
        "function" => "#{function}",
        "args" => Types.encode(args ++ List.wrap(own[:__args__])),
        "kwargs" => Map.new(kwargs, fn {name, it} -> {"#{name}", Types.encode(it)} end),
        "idempotent" => Keyword.get(own, :idempotent, false),
        "session_id" => session_id
      })

    payload = if ref, do: Map.put(payload, "instance", Ref.wire(ref)), else: payload
    {payload, opts |> runtime() |> Keyword.put_new(:session_id, session_id)}
  end

  defp runtime(opts), do: Keyword.put_new(Keyword.get(opts, :__runtime__, []), :timeout, 120_000)

  defp automatic do
    with nil <- Process.get(:snakebridge_auto_session) do
      id = "auto_#{:erlang.pid_to_list(self())}_#{System.system_time(:millisecond)}"
      Process.put(:snakebridge_auto_session, id)
      id
    end
  end

  defp of(%Ref{} = ref), do: %{"library" => ref.library, "python_module" => ref.python_module}

  defp of(module) do
    %{
      "library" => module.__snakebridge_library__(),
      "python_module" => module.__snakebridge_python_name__()
    }
  end

  defp root(module), do: module |> String.split(".") |> hd()
end
