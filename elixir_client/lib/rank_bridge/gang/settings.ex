defmodule RankBridge.Gang.Settings do
  @moduledoc false
  # The options of `RankBridge.Gang`, checked.

  alias RankBridge.{Endpoints, Error, Group, Hidden, Token}
  alias RankBridge.Gang.{Lost, Restarts}

  @defaults [
    name: nil,
    size: nil,
    backend: nil,
    command: nil,
    arguments: [],
    load: [],
    start_timeout: 60_000,
    endpoints: nil,
    endpoints_file: nil,
    session: true,
    lease: 30_000,
    shared_memory: true,
    form: nil,
    groups: [],
    group: "world",
    timeout: 30_000,
    calls: :gang,
    tls: nil,
    token: nil,
    insecure_token: false,
    keepalive: 300_000,
    transport: RankBridge.Transport.HTTP2,
    on_rank_lost: nil,
    max_restarts: 3,
    max_seconds: 5,
    recovery_timeout: 60_000,
    handle_rank_lost: nil,
    unready: nil
  ]

  @longest 0xFFFF_FFFF
  @policies [:replace, :shrink, :stop, :leave]
  @started_only [:backend, :command, :arguments, :load]

  @typedoc "What is done when ranks are lost; see `RankBridge.Gang`."
  @type policy :: :replace | :shrink | :stop | :leave

  @type t :: %__MODULE__{
          name: GenServer.name() | nil,
          size: pos_integer() | nil,
          backend: atom(),
          command: String.t() | nil,
          arguments: [String.t()],
          load: [String.t()],
          start_timeout: pos_integer(),
          endpoints: [[String.t()]] | nil,
          session: boolean(),
          lease: non_neg_integer(),
          shared_memory: boolean(),
          form: boolean() | nil,
          groups: [{String.t(), [non_neg_integer()]}],
          group: String.t(),
          timeout: pos_integer(),
          calls: :ranks | :gang,
          token: Token.t() | nil,
          insecure_token: boolean(),
          tls: Hidden.t(keyword()) | nil,
          keepalive: pos_integer() | :infinity,
          transport: module(),
          on_rank_lost: policy(),
          restarts: Restarts.t(),
          recovery_timeout: pos_integer(),
          handle_rank_lost: Lost.callback() | nil,
          unready: :wait | :fail
        }

  defstruct Keyword.keys(@defaults -- [max_restarts: 3, max_seconds: 5, endpoints_file: nil]) ++
              [:restarts]

  @doc "Checks options. Raises `ArgumentError` on a name that is none of theirs."
  @spec read(keyword()) :: {:ok, t()} | {:error, Error.t()}
  def read(opts) do
    given = Keyword.keys(opts)
    opts = opts |> Keyword.validate!(@defaults) |> Map.new()

    with :ok <- one_source(opts, given),
         {:ok, opts} <- endpoints(opts),
         opts = opts |> with_defaults() |> hide(),
         :ok <- check_all(opts) do
      {limits, opts} = Map.split(opts, [:max_restarts, :max_seconds])
      restarts = Restarts.new(limits.max_restarts, limits.max_seconds)
      {:ok, struct!(__MODULE__, Map.put(opts, :restarts, restarts))}
    end
  end

  @doc "Whether the gang starts its ranks itself."
  @spec starts_ranks?(t()) :: boolean()
  def starts_ranks?(settings), do: settings.size != nil

  # What must be said once, and what says nothing without the other.
  defp one_source(opts, given) do
    sources = for name <- [:size, :endpoints, :endpoints_file], opts[name] != nil, do: name
    idle = if opts.size == nil, do: for(name <- @started_only, name in given, do: name), else: []

    cond do
      length(sources) != 1 ->
        refuse(
          "where the ranks come from must be said once",
          "one of :size, :endpoints, :endpoints_file",
          inspect(sources)
        )

      idle != [] ->
        refuse("ranks are only started where :size is given", ":size", inspect(idle))

      true ->
        :ok
    end
  end

  defp endpoints(%{size: nil, endpoints_file: nil} = opts) do
    with {:ok, endpoints} <- Endpoints.check(opts.endpoints),
         {:ok, token} <- token(opts, nil),
         do: {:ok, located(opts, endpoints, token)}
  end

  defp endpoints(%{size: nil} = opts) do
    with {:ok, endpoints, own} <- Endpoints.read_with_token(opts.endpoints_file),
         {:ok, token} <- token(opts, own),
         do: {:ok, located(opts, endpoints, token)}
  end

  defp endpoints(opts), do: {:ok, Map.delete(opts, :endpoints_file)}

  defp located(opts, endpoints, token),
    do: opts |> Map.merge(%{endpoints: endpoints, token: token}) |> Map.delete(:endpoints_file)

  # The one that was given, else the gang's own, else that of the file in the environment.
  defp token(%{token: nil}, nil), do: Token.in_environment()
  defp token(%{token: nil}, own), do: {:ok, own}
  defp token(%{token: token}, _own), do: {:ok, token}

  defp with_defaults(opts) do
    backend = opts.backend || :gloo
    policy = opts.on_rank_lost || default_policy(opts.size, backend)

    %{
      opts
      | backend: backend,
        lease: opts.lease || 0,
        load: if(is_binary(opts.load), do: [opts.load], else: opts.load),
        on_rank_lost: policy,
        token: if(is_binary(opts.token), do: Token.new(opts.token), else: opts.token),
        unready: opts.unready || :wait
    }
  end

  defp hide(opts), do: %{opts | tls: opts.tls && Hidden.hide(opts.tls)}

  # What the agent can do on that backend: the fake's ranks share a process, MPI takes in no new ones.
  defp default_policy(nil, _backend), do: :leave
  defp default_policy(_size, :fake), do: :stop
  defp default_policy(_size, :mpi), do: :shrink
  defp default_policy(_size, _backend), do: :replace

  defp check_all(opts) do
    checks = [
      {:name, name?(opts.name), "an atom, {:via, module, term} or {:global, term}"},
      {:size, opts.size == nil or positive?(opts.size), "1 or more"},
      {:backend, opts.backend in [:gloo, :nccl, :mpi, :fake], ":gloo, :nccl, :mpi or :fake"},
      {:command, opts.command == nil or is_binary(opts.command), "a text"},
      {:session, is_boolean(opts.session), "true or false"},
      {:shared_memory, is_boolean(opts.shared_memory), "true or false"},
      {:form, opts.form in [nil, true, false], "true, false or nil"},
      {:group, is_binary(opts.group), "the name of a group"},
      {:groups, is_list(opts.groups) and Enum.all?(opts.groups, &group?/1),
       "a list of {name, ranks}"},
      {:tls, tls?(opts.tls), "options of :ssl"},
      {:token, opts.token == nil or is_function(opts.token, 0),
       "a text, or a function that gives it"},
      {:insecure_token, is_boolean(opts.insecure_token), "true or false"},
      {:transport, is_atom(opts.transport) and opts.transport != nil, "a module"},
      {:keepalive, opts.keepalive == :infinity or positive?(opts.keepalive),
       "milliseconds, or :infinity"},
      {:lease, is_integer(opts.lease) and opts.lease in 0..@longest, "milliseconds, or nil"},
      {:timeout, positive?(opts.timeout), "milliseconds"},
      {:calls, opts.calls in [:ranks, :gang], ":ranks or :gang"},
      {:start_timeout, positive?(opts.start_timeout), "milliseconds"},
      {:recovery_timeout, positive?(opts.recovery_timeout), "milliseconds"},
      {:on_rank_lost, opts.on_rank_lost in @policies, inspect(@policies)},
      {:max_restarts, is_integer(opts.max_restarts) and opts.max_restarts >= 0, "0 or more"},
      {:max_seconds, positive?(opts.max_seconds), "seconds, 1 or more"},
      {:unready, opts.unready in [:wait, :fail], ":wait or :fail"},
      {:arguments, is_list(opts.arguments) and Enum.all?(opts.arguments, &is_binary/1),
       "a list of texts"},
      {:load, is_list(opts.load) and Enum.all?(opts.load, &module?/1),
       "the path of a Python file, the name of a module, or a list of those"},
      {:handle_rank_lost, Lost.callback?(opts.handle_rank_lost),
       "a function of two arguments, or {module, function, arguments}"}
    ]

    case Enum.find(checks, fn {_name, right?, _expected} -> not right? end) do
      nil -> :ok
      {:tls, _wrong, expected} -> refuse(":tls is wrong", expected, "something else")
      {name, _wrong, expected} -> refuse("#{inspect(name)} is wrong", expected, opts[name])
    end
  end

  defp name?({:via, module, _term}), do: is_atom(module)
  defp name?({:global, _term}), do: true
  defp name?(name), do: is_atom(name)

  defp tls?(hidden) when is_function(hidden, 0), do: tls?(hidden.())
  defp tls?(tls), do: tls == nil or Keyword.keyword?(tls)

  defp module?(module), do: is_binary(module) and module != ""

  defp positive?(number), do: is_integer(number) and number in 1..@longest

  defp group?(%Group{}), do: true

  defp group?({name, ranks}),
    do: is_binary(name) and is_list(ranks) and Enum.all?(ranks, &(is_integer(&1) and &1 >= 0))

  defp group?(_other), do: false

  defp refuse(message, expected, got) do
    got = if is_binary(got), do: got, else: inspect(got, limit: 3)

    {:error,
     Error.refusal(:invalid_argument, message,
       operation: "start_link",
       expected: expected,
       got: got
     )}
  end
end
