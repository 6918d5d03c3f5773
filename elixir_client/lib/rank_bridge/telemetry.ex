defmodule RankBridge.Telemetry do
  @spans [
    %{
      name: [:rankbridge, :call],
      what: "a function on a gang: `RankBridge.all_reduce/3`, and any other",
      start: [:gang, :operation, :group],
      stop: [:result, :error]
    },
    %{
      name: [:rankbridge, :rank, :call],
      what: "one RPC to one rank, streams included",
      start: [:gang, :rank, :operation, :group, :operation_id, :rpc, :call_span_context],
      stop: [:result, :error]
    },
    %{
      name: [:rankbridge, :gang, :form],
      what: "a gang forms a generation",
      start: [:gang],
      stop: [:result, :error, :generation, :world_size]
    },
    %{
      name: [:rankbridge, :gang, :recover],
      what: "a gang gets over the loss of ranks, from the loss until it can be called again",
      start: [:gang, :ranks, :policy],
      stop: [:result, :error, :generation, :world_size]
    }
  ]

  @singles [
    %{
      name: [:rankbridge, :rank, :lost],
      measurements: [],
      metadata: [:gang, :rank, :how],
      when: "a gang has found that a rank is lost"
    },
    %{
      name: [:rankbridge, :rank, :replaced],
      measurements: [],
      metadata: [:gang, :rank, :generation],
      when: "a rank that was lost is back, in a new process"
    },
    %{
      name: [:rankbridge, :gang, :mismatch],
      measurements: [],
      metadata: [:gang, :group, :operation, :operation_id, :error],
      when: "a gang has found that members of a group have called different things"
    },
    %{
      name: [:rankbridge, :gang, :straggler],
      measurements: [:waited],
      metadata: [:gang, :ranks, :group, :operation, :operation_id, :arrived?],
      when: "a gang has found that others wait, or waited, for ranks"
    }
  ]

  @times [:monotonic_time, :system_time]

  @events Enum.flat_map(@spans, fn span ->
            context = [:telemetry_span_context | span.start]

            [
              %{
                name: span.name ++ [:start],
                measurements: @times,
                metadata: Enum.sort(context),
                when: "begins: " <> span.what
              },
              %{
                name: span.name ++ [:stop],
                measurements: [:duration, :monotonic_time],
                metadata: Enum.sort(span.stop ++ context),
                when: "has given a value, or an error"
              },
              %{
                name: span.name ++ [:exception],
                measurements: [:duration, :monotonic_time],
                metadata: Enum.sort([:kind, :reason, :stacktrace] ++ context),
                when: "was ended by a raise, a throw or an exit, which goes on unchanged"
              }
            ]
          end) ++
            for(
              single <- @singles,
              do: %{
                single
                | measurements: Enum.sort(@times ++ single.measurements),
                  metadata: Enum.sort(single.metadata)
              }
            )

  listed = fn names -> Enum.map_join(names, ", ", &"`#{&1}`") end

  @table Enum.map_join(@events, "\n", fn event ->
           "| `#{inspect(event.name)}` | #{event.when} | #{listed.(event.measurements)} | #{listed.(event.metadata)} |"
         end)

  @moduledoc """
  Every event that this client emits through `:telemetry`, where a program has loaded that; elsewhere there is none, and
  nothing to be paid for it. The library writes no logs.

      :telemetry.attach(
        "slow calls",
        [:rankbridge, :call, :stop],
        fn _event, %{duration: duration}, metadata, _config ->
          milliseconds = System.convert_time_unit(duration, :native, :millisecond)
          if milliseconds > 1_000, do: IO.puts("\#{metadata.operation} took \#{milliseconds} ms")
        end,
        nil
      )

  | event | when | measurements | metadata |
  | --- | --- | --- | --- |
  #{@table}

  Every measurement is a time in native units. Handlers run in the process in which the event happens: the caller's
  (for several ranks at once also processes of the call), or the gang's. An event always has all of its metadata:

    * `gang` - of `[:rankbridge, :call, ...]`: name or pid, as the function was given it; else the gang's name, its pid if
      it has none
    * `operation` - the function's name, an atom; of an RPC, and of what a gang finds, a text, as in `RankBridge.Error`
    * `group` - of `[:rankbridge, :call, ...]`: the name in the option `:group`; nil: it was not given. Else the group's
      name, empty where none is involved
    * `operation_id` - empty where there is none
    * `rank`, `ranks` - ranks in the gang; of `[:rankbridge, :gang, :recover, ...]` those that were lost, of
      `[:rankbridge, :gang, :straggler]` those that are waited for; `arrived?` - whether they have come since
    * `rpc` - path of the RPC; of every operation `"/rankbridge.v1.GangService/Execute"`, the stream to the rank, also where
      it goes without
    * `result` - `:ok` or `:error`; `error` - the `RankBridge.Error`, nil with `:ok`
    * `generation`, `world_size` - of what was formed; nil with `:error`
    * `policy` - what the gang does about lost ranks
    * `how` - what is known of the loss, a text
    * `telemetry_span_context` - the same in a span's start and its end, and in no other
    * `call_span_context` - of an RPC: that of the function on the gang that it is a part of; nil: the gang's own
    * `kind`, `reason`, `stacktrace` - as of `:telemetry.span/3`

  A function has one span, also if it is made of others: `RankBridge.Averaging.average/3` has no span of `:coalesce`. Calls in a caller's
  own function, as in `RankBridge.Graphs.graph_capture/4`, have spans of their own. A function with
  a `!` has the span of the one without, before it raises. Arguments are checked within the span; a call that is refused there
  has no RPCs. If the caller dies during an RPC, the RPC's span has no end.

  Several ranks are called at once, and their answers are handled in the order of the calls: an RPC's `duration` lasts until
  then, and is at least as long as the durations before it in the same function.

  Every event checks whether `:telemetry` is loaded: a program that attaches a handler has loaded it.
  """

  alias RankBridge.{Error, Gang}

  @typedoc "One row of the table: every measurement and all metadata that the event has."
  @type event :: %{
          name: [atom()],
          measurements: [atom()],
          metadata: [atom()],
          when: String.t()
        }

  @typedoc "What was formed, as of `RankBridge.form/2`."
  @type formed :: %{
          :generation => pos_integer(),
          :world_size => pos_integer(),
          optional(atom()) => term()
        }

  @typedoc "Members that are late for an operation, or were; `waited_us` in microseconds."
  @type straggling :: %{
          :ranks => [non_neg_integer()],
          :group => String.t(),
          :operation => String.t(),
          :operation_id => String.t(),
          :arrived? => boolean(),
          :waited_us => non_neg_integer(),
          optional(atom()) => term()
        }

  @typedoc "A span that was begun; nil: there is no telemetry."
  @type span :: %{prefix: [atom()], began: integer(), metadata: map()} | nil

  @doc "Every event, as the module's documentation has them."
  @spec events() :: [event()]
  def events, do: @events

  @doc "Whether `:telemetry` is loaded."
  @spec loaded?() :: boolean()
  def loaded?, do: :erlang.function_exported(:telemetry, :execute, 3)

  @doc "Begins a span, which `stop/2` or `exception/4` ends: in this process or another one, now or much later."
  @spec start([atom()], map()) :: span()
  def start(prefix, metadata) do
    if loaded?() do
      metadata = Map.put_new_lazy(metadata, :telemetry_span_context, &make_ref/0)
      began = System.monotonic_time()
      execute(prefix ++ [:start], times(began), metadata)
      %{prefix: prefix, began: began, metadata: metadata}
    end
  end

  @doc "Ends a span. `metadata` is in addition to that of its beginning."
  @spec stop(span(), map()) :: :ok
  def stop(span, metadata \\ %{}), do: finish(span, :stop, metadata)

  @doc "Ends a span that was raised, thrown or exited from."
  @spec exception(span(), :error | :throw | :exit, term(), Exception.stacktrace()) :: :ok
  def exception(span, kind, reason, stacktrace),
    do: finish(span, :exception, %{kind: kind, reason: reason, stacktrace: stacktrace})

  @doc "The `telemetry_span_context` of a span."
  @spec context(span()) :: term()
  def context(nil), do: nil
  def context(span), do: span.metadata.telemetry_span_context

  @doc "Runs a function as a span. The function returns its result, and the metadata that the end has in addition."
  @spec span([atom()], map(), (() -> {result, map()})) :: result when result: term()
  def span(prefix, metadata, fun), do: prefix |> start(metadata) |> run(fun)

  @doc "Runs the function of a span that was begun, and ends the span; as `span/3`."
  @spec run(span(), (() -> {result, map()})) :: result when result: term()
  def run(span, fun) do
    fun.()
  catch
    kind, reason ->
      exception(span, kind, reason, __STACKTRACE__)
      :erlang.raise(kind, reason, __STACKTRACE__)
  else
    {result, metadata} ->
      stop(span, metadata)
      result
  end

  @doc "The metadata of a result."
  @spec outcome(:ok | {:ok, term()} | {:error, Error.t()}) :: %{
          result: :ok | :error,
          error: Error.t() | nil
        }
  def outcome({:error, error}), do: %{result: :error, error: error}
  def outcome(_fine), do: %{result: :ok, error: nil}

  @doc "A gang forms a generation while a function runs."
  @spec form(Gang.gang(), (() -> {:ok, formed} | {:error, Error.t()})) ::
          {:ok, formed} | {:error, Error.t()}
        when formed: formed()
  def form(gang, fun) do
    span([:rankbridge, :gang, :form], %{gang: gang}, fn ->
      result = fun.()
      {result, formed(result)}
    end)
  end

  @doc "A gang begins to recover from the loss of ranks. `policy` says how."
  @spec start_recovery(Gang.gang(), [non_neg_integer()], term()) :: span()
  def start_recovery(gang, ranks, policy),
    do: start([:rankbridge, :gang, :recover], %{gang: gang, ranks: ranks, policy: policy})

  @doc "A gang has recovered from the loss of ranks, or has given up."
  @spec stop_recovery(span(), {:ok, formed()} | {:error, Error.t()}) :: :ok
  def stop_recovery(span, result), do: stop(span, formed(result))

  @doc "A gang has found that a rank is lost; `how` says by what."
  @spec lost(Gang.gang(), non_neg_integer(), String.t()) :: :ok
  def lost(gang, rank, how),
    do: single([:rankbridge, :rank, :lost], %{gang: gang, rank: rank, how: how})

  @doc "A rank that was lost is back, in a generation of this number."
  @spec replaced(Gang.gang(), non_neg_integer(), pos_integer()) :: :ok
  def replaced(gang, rank, generation) do
    metadata = %{gang: gang, rank: rank, generation: generation}
    single([:rankbridge, :rank, :replaced], metadata)
  end

  @doc "A gang has found that members of a group have called different things: this is the error that says so."
  @spec mismatch(Gang.gang(), Error.t()) :: :ok
  def mismatch(gang, %Error{} = error) do
    metadata = error |> Map.take([:group, :operation, :operation_id]) |> Map.put(:error, error)
    single([:rankbridge, :gang, :mismatch], Map.put(metadata, :gang, gang))
  end

  @doc "A gang has found that others wait, or waited, for ranks."
  @spec straggler(Gang.gang(), straggling()) :: :ok
  def straggler(gang, straggling) do
    metadata = Map.take(straggling, [:ranks, :group, :operation, :operation_id, :arrived?])
    waited = System.convert_time_unit(straggling.waited_us, :microsecond, :native)
    event = [:rankbridge, :gang, :straggler]
    single(event, Map.put(metadata, :gang, gang), %{waited: waited})
  end

  defp formed({:ok, formed} = result),
    do: formed |> Map.take([:generation, :world_size]) |> Map.merge(outcome(result))

  defp formed(error), do: Map.merge(%{generation: nil, world_size: nil}, outcome(error))

  defp finish(nil, _how, _metadata), do: :ok

  defp finish(%{prefix: prefix, began: began} = span, how, metadata) do
    now = System.monotonic_time()
    measurements = %{monotonic_time: now, duration: now - began}
    execute(prefix ++ [how], measurements, Map.merge(span.metadata, metadata))
  end

  defp single(event, metadata, measurements \\ %{}) do
    if loaded?(),
      do: execute(event, Map.merge(times(System.monotonic_time()), measurements), metadata),
      else: :ok
  end

  defp times(monotonic), do: %{monotonic_time: monotonic, system_time: System.system_time()}

  defp execute(event, measurements, metadata) do
    # It is no dependency.
    library = :telemetry
    :ok = apply(library, :execute, [event, measurements, metadata])
  end
end
