defmodule RankBridge.Test.Telemetry do
  @moduledoc """
  Events of `:telemetry` for tests, by a stand-in that can be loaded and unloaded: it is loaded when the tests begin, and
  those that do without run alone.
  """

  @source Path.expand("../stand_ins/telemetry.ex", __DIR__)

  @type seen :: {[atom()], %{atom() => integer()}, %{atom() => term()}}

  @doc "Makes its table, which lives as long as the calling process, and loads the stand-in."
  @spec load_first() :: :ok
  def load_first do
    :telemetry = :ets.new(:telemetry, [:named_table, :public, read_concurrency: true])
    load()
  end

  @doc "Loads the stand-in, if it is not loaded."
  @spec load() :: :ok
  def load do
    if not :erlang.module_loaded(:telemetry),
      do: [{:telemetry, _code}] = Code.compile_file(@source)

    :ok
  end

  @doc "Lets there be no `:telemetry`."
  @spec unload() :: :ok
  def unload do
    true = :code.delete(:telemetry)
    _ = :code.purge(:telemetry)
    :ok
  end

  @doc """
  Sends every event of these names, of this gang if one is given, to the calling process, until it stops watching:
  `{:seen, event, measurements, metadata, pid}`, with the process of the handler.
  """
  @spec watch([[atom()]], term()) :: reference()
  def watch(events, gang \\ nil) do
    id = make_ref()
    config = %{to: self(), gang: gang}
    :ok = apply(:telemetry, :attach_many, [id, events, &__MODULE__.handle/4, config])
    id
  end

  @doc "Stops watching, and gives the events that came, in order."
  @spec seen(reference()) :: [seen()]
  def seen(id) do
    :ok = apply(:telemetry, :detach, [id])
    take()
  end

  defp take do
    receive do
      {:seen, event, measurements, metadata, _pid} -> [{event, measurements, metadata} | take()]
    after
      0 -> []
    end
  end

  @doc false
  @spec handle([atom()], map(), map(), map()) :: :ok
  def handle(event, measurements, metadata, %{to: to, gang: gang}) do
    if gang == nil or metadata.gang == gang,
      do: send(to, {:seen, event, measurements, metadata, self()})

    :ok
  end
end
