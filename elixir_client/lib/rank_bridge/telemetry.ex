defmodule RankBridge.Telemetry do
  @spans [
    %{
      name: [:rank_bridge, :call],
      what: "a function on a gang: `RankBridge.all_reduce/3`, and any other",
      start: [:gang, :operation, :group],
      stop: [:result, :error]
    },
    %{
      name: [:rank_bridge, :rank, :call],
      what: "one RPC to one rank, streams included",
      start: [:gang, :rank, :operation, :group, :operation_id, :rpc, :call_span_context],
      stop: [:result, :error]
    },
    %{
      name: [:rank_bridge, :gang, :form],
      what: "a gang forms a generation",
      start: [:gang],
      stop: [:result, :error, :generation, :world_size]
    },
    %{
      name: [:rank_bridge, :gang, :recover],
      what: "a gang gets over the loss of ranks, from the loss until it can be called again",
      start: [:gang, :ranks, :policy],
      stop: [:result, :error, :generation, :world_size]
    }
  ]

  @singles [
    %{
      name: [:rank_bridge, :rank, :lost],
      measurements: [],
      metadata: [:gang, :rank, :how],
      when: "a gang has found that a rank is lost"
    },
    %{
      name: [:rank_bridge, :rank, :replaced],
      measurements: [],
      metadata: [:gang, :rank, :generation],
      when: "a rank that was lost is back, in a new process"
    },
    %{
      name: [:rank_bridge, :gang, :mismatch],
      measurements: [],
      metadata: [:gang, :group, :operation, :operation_id, :error],
      when: "a gang has found that members of a group have called different things"
    },
    %{
      name: [:rank_bridge, :gang, :straggler],
      measurements: [:waited],
      metadata: [:gang, :ranks, :group, :operation, :operation_id, :arrived?],
      when: "a gang has found that others wait, or waited, for ranks"
    },
    %{
      name: [:rank_bridge, :gang, :verdict],
      measurements: [:duration],
      metadata: [:gang, :kind, :ranks, :verdict],
      when: "`RankBridge.Doctor.diagnose/2` has given a verdict"
    },
    %{
      name: [:rank_bridge, :rank, :held],
      measurements: [],
      metadata: [:gang, :rank, :group, :operation, :operation_id, :held_call],
      when: "a breakpoint of this program holds a rank (`RankBridge.Hold`)"
    },
    %{
      name: [:rank_bridge, :rank, :let_go],
      measurements: [:duration],
      metadata: [:gang, :rank, :group, :operation, :operation_id, :held_call, :action],
      when: "a rank that was held was let go"
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
  The events that this client emits through `:telemetry`, if the program has loaded that library. Without it, the client emits
  nothing, and spends nothing on events.

  The client writes no logs by itself: `attach_default_logger/1` attaches a handler that writes a line for each failure.
  `metrics/0` lists metrics for the reporters of `Telemetry.Metrics`. Other handlers are attached as usual:

      :telemetry.attach(
        "slow calls",
        [:rank_bridge, :call, :stop],
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
  (for several ranks at once also processes of the call), the gang's, or a breakpoint's. An event always has all of its metadata:

    * `gang` - of `[:rank_bridge, :call, ...]`: name or pid, as the function was given it; else the gang's name, its pid if
      it has none
    * `operation` - the function's name, an atom; of an RPC, and of what a gang finds, a text, as in `RankBridge.Error`
    * `group` - of `[:rank_bridge, :call, ...]`: the name in the option `:group`; nil: it was not given. Else the group's
      name, empty where none is involved
    * `operation_id` - empty where there is none
    * `rank`, `ranks` - ranks in the gang; of `[:rank_bridge, :gang, :recover, ...]` those that were lost, of
      `[:rank_bridge, :gang, :straggler]` those that are waited for, of `[:rank_bridge, :gang, :verdict]` those that are to blame;
      `arrived?` - whether they have come since
    * `rpc` - path of the RPC; of every operation `"/rankbridge.v1.GangService/Execute"`, the stream to the rank, also if
      the request does not use the stream
    * `result` - `:ok` or `:error`; `error` - the `RankBridge.Error`, nil with `:ok`
    * `generation`, `world_size` - of what was formed; nil with `:error`
    * `policy` - what the gang does about lost ranks
    * `how` - a text that describes the loss
    * `telemetry_span_context` - the same in a span's start and its end, and in no other
    * `call_span_context` - of an RPC: that of the function on the gang that it is a part of; nil: the gang's own
    * `kind`, `reason`, `stacktrace` - as of `:telemetry.span/3`; of `[:rank_bridge, :gang, :verdict]`, `kind` is what is wrong,
      a `t:RankBridge.Verdict.kind/0`
    * `verdict` - the `RankBridge.Verdict`
    * `held_call` - the `RankBridge.HeldCall`; `action` - how it was let go: `:continue`, `:step`, `:skip` or `:fail`; `:continue`
      also if its caller has given it up, or its breakpoint or its rank has gone

  A function has one span, also if it is made of others: `RankBridge.Averaging.average/3` has no span of `:coalesce`. Calls in a caller's
  own function, as in `RankBridge.Graphs.graph_capture/4`, have spans of their own. A function with
  a `!` has the span of the one without, before it raises. Arguments are checked within the span; a call that is refused there
  has no RPCs. If the caller dies during an RPC, the RPC's span has no end.

  Several ranks are called at once, and their answers are handled in the order of the calls: an RPC's `duration` lasts until
  then, and is at least as long as the durations before it in the same function.

  Every event checks whether `:telemetry` is loaded: a program that attaches a handler has loaded it.
  """

  alias RankBridge.{Error, Gang, HeldCall, Verdict}
  alias RankBridge.Telemetry.{Log, Metrics, OldNames}

  # `Logger.levels/0` is newer than the oldest Elixir that this works with.
  @levels [:debug, :info, :notice, :warning, :error, :critical, :alert, :emergency]
  @logger "rank_bridge-default-logger"
  @old_names "rank_bridge-old-names"

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

  @doc """
  Writes events to `Logger` from now on, one line each:

  | event | level |
  | --- | --- |
  | a call has failed | `:warning` |
  | a call has raised, as a function that the caller gave it | `:error` |
  | a call has succeeded | `:debug` |
  | a rank is lost | `:warning` |
  | the gang has recovered from the loss | `:info` |
  | the gang has not recovered | `:error` |
  | ranks keep others waiting | `:warning`; `:info` once they have come |
  | a verdict on the gang | `:warning`; `:debug` if it is healthy |
  | a breakpoint holds a rank, or lets it go | `:info` |

  The argument is a level, or options:

    * `:level` - lines of lower levels are not written; `:info`
    * `:encode` - true: a line is a JSON object; false (the default): a sentence

  Raises ArgumentError for another option, and where there is no `:telemetry`.

      :ok = RankBridge.Telemetry.attach_default_logger(level: :warning, encode: true)
  """
  @spec attach_default_logger(Logger.level() | [level: Logger.level(), encode: boolean()]) ::
          :ok | {:error, :already_exists}
  def attach_default_logger(level_or_opts \\ [])

  def attach_default_logger(level) when is_atom(level), do: attach_default_logger(level: level)

  def attach_default_logger(opts) do
    config = opts |> Keyword.validate!(level: :info, encode: false) |> Map.new()

    if config.level not in @levels,
      do: raise(ArgumentError, "no such level: #{inspect(config.level)}")

    if not is_boolean(config.encode),
      do: raise(ArgumentError, "encode: is true or false, not #{inspect(config.encode)}")

    attach(@logger, Log.events(), &Log.handle/4, config)
  end

  @doc "Writes no events to `Logger` any more."
  @spec detach_default_logger() :: :ok | {:error, :not_found}
  def detach_default_logger, do: detach(@logger)

  @doc """
  Metrics of calls, losses, recoveries, stragglers and verdicts, for a reporter of `Telemetry.Metrics`:

      def metrics, do: RankBridge.Telemetry.metrics() ++ [...]

  Times are in milliseconds. Raises ArgumentError where the library `:telemetry_metrics` is missing.
  """
  @spec metrics() :: [struct()]
  def metrics do
    # It is no dependency.
    library = Telemetry.Metrics

    if not Code.ensure_loaded?(library),
      do: raise(ArgumentError, "there is no Telemetry.Metrics: add :telemetry_metrics to deps")

    for {kind, name, opts} <- Metrics.all(), do: apply(library, kind, [name, opts])
  end

  @doc "Emits every event also under the name that it had before, `[:rankbridge, ...]`, from now on."
  @deprecated "Attach handlers to [:rank_bridge, ...]; the next release has no other names"
  @spec attach_old_names() :: :ok | {:error, :already_exists}
  def attach_old_names do
    names = for event <- @events, do: event.name
    attach(@old_names, names, &OldNames.handle/4, nil)
  end

  @doc "Emits events under their own names alone."
  @deprecated "Attach handlers to [:rank_bridge, ...]; the next release has no other names"
  @spec detach_old_names() :: :ok | {:error, :not_found}
  def detach_old_names, do: detach(@old_names)

  defp attach(id, events, handler, config) do
    library = available!()
    apply(library, :attach_many, [id, events, handler, config])
  end

  defp detach(id) do
    library = available!()
    apply(library, :detach, [id])
  end

  defp available! do
    library = :telemetry

    if not Code.ensure_loaded?(library),
      do: raise(ArgumentError, "there is no :telemetry: add it to deps")

    library
  end

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
    span([:rank_bridge, :gang, :form], %{gang: gang}, fn ->
      result = fun.()
      {result, formed(result)}
    end)
  end

  @doc "A gang begins to recover from the loss of ranks. `policy` says how."
  @spec start_recovery(Gang.gang(), [non_neg_integer()], term()) :: span()
  def start_recovery(gang, ranks, policy),
    do: start([:rank_bridge, :gang, :recover], %{gang: gang, ranks: ranks, policy: policy})

  @doc "A gang has recovered from the loss of ranks, or has given up."
  @spec stop_recovery(span(), {:ok, formed()} | {:error, Error.t()}) :: :ok
  def stop_recovery(span, result), do: stop(span, formed(result))

  @doc "A gang has found that a rank is lost; `how` says by what."
  @spec lost(Gang.gang(), non_neg_integer(), String.t()) :: :ok
  def lost(gang, rank, how),
    do: single([:rank_bridge, :rank, :lost], %{gang: gang, rank: rank, how: how})

  @doc "A rank that was lost is back, in a generation of this number."
  @spec replaced(Gang.gang(), non_neg_integer(), pos_integer()) :: :ok
  def replaced(gang, rank, generation) do
    metadata = %{gang: gang, rank: rank, generation: generation}
    single([:rank_bridge, :rank, :replaced], metadata)
  end

  @doc "A gang has found that members of a group have called different things: this is the error that says so."
  @spec mismatch(Gang.gang(), Error.t()) :: :ok
  def mismatch(gang, %Error{} = error) do
    metadata = error |> Map.take([:group, :operation, :operation_id]) |> Map.put(:error, error)
    single([:rank_bridge, :gang, :mismatch], Map.put(metadata, :gang, gang))
  end

  @doc "A gang has found that others wait, or waited, for ranks."
  @spec straggler(Gang.gang(), straggling()) :: :ok
  def straggler(gang, straggling) do
    metadata = Map.take(straggling, [:ranks, :group, :operation, :operation_id, :arrived?])
    waited = System.convert_time_unit(straggling.waited_us, :microsecond, :native)
    event = [:rank_bridge, :gang, :straggler]
    single(event, Map.put(metadata, :gang, gang), %{waited: waited})
  end

  @doc "A verdict was given on a gang. `duration`: how long that took, in native units."
  @spec verdict(Gang.gang(), Verdict.t(), integer()) :: :ok
  def verdict(gang, %Verdict{} = verdict, duration) do
    ranks = for culprit <- verdict.culprits, do: culprit.rank
    metadata = %{gang: gang, kind: verdict.kind, ranks: ranks, verdict: verdict}
    single([:rank_bridge, :gang, :verdict], metadata, %{duration: duration})
  end

  @doc "A breakpoint holds a rank."
  @spec held(Gang.gang(), HeldCall.t()) :: :ok
  def held(gang, %HeldCall{} = call),
    do: single([:rank_bridge, :rank, :held], at_breakpoint(gang, call))

  @doc "A rank that was held was let go. `duration`: how long it was held, in native units."
  @spec let_go(Gang.gang(), HeldCall.t(), atom(), integer()) :: :ok
  def let_go(gang, %HeldCall{} = call, action, duration) do
    metadata = gang |> at_breakpoint(call) |> Map.put(:action, action)
    single([:rank_bridge, :rank, :let_go], metadata, %{duration: duration})
  end

  defp at_breakpoint(gang, call) do
    call
    |> Map.take([:rank, :group, :operation, :operation_id])
    |> Map.merge(%{gang: gang, held_call: call})
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
