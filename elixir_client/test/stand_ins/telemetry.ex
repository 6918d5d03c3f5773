defmodule :telemetry do
  @moduledoc """
  A stand-in for the library of this name, as far as this client and its tests use it, and true to what that says: see
  `RankBridge.Test.Telemetry`, which loads it. Not compiled with the tests, so that they can do without.
  """

  @table __MODULE__

  @doc "Handles an event from now on. An id is attached once."
  def attach(id, event, function, config), do: attach_many(id, [event], function, config)

  @doc "Handles several events from now on."
  def attach_many(id, events, function, config) when is_function(function, 4) do
    if :ets.insert_new(@table, {{:id, id}, events}) do
      for event <- events, do: :ets.insert(@table, {{:event, event, id}, function, config})
      :ok
    else
      {:error, :already_exists}
    end
  end

  @doc "Handles them no more."
  def detach(id) do
    case :ets.take(@table, {:id, id}) do
      [{_key, events}] ->
        for event <- events, do: :ets.delete(@table, {:event, event, id})
        :ok

      [] ->
        {:error, :not_found}
    end
  end

  @doc "Calls every handler of the event, here and now. One that fails is detached."
  def execute(event, measurements, metadata) when is_map(measurements) and is_map(metadata) do
    for [id, function, config] <- :ets.match(@table, {{:event, event, :"$1"}, :"$2", :"$3"}) do
      try do
        function.(event, measurements, metadata, config)
      catch
        _kind, _reason -> detach(id)
      end
    end

    :ok
  end

  @doc "Runs a function between events: it gives its result and the metadata of the end."
  def span(prefix, metadata, fun) do
    began = :erlang.monotonic_time()
    context = Map.get_lazy(metadata, :telemetry_span_context, &make_ref/0)
    with_context = fn metadata -> Map.put_new(metadata, :telemetry_span_context, context) end
    start = %{monotonic_time: began, system_time: :erlang.system_time()}
    execute(prefix ++ [:start], start, with_context.(metadata))

    try do
      fun.()
    catch
      kind, reason ->
        failure = %{kind: kind, reason: reason, stacktrace: __STACKTRACE__}

        execute(
          prefix ++ [:exception],
          since(began),
          metadata |> Map.merge(failure) |> with_context.()
        )

        :erlang.raise(kind, reason, __STACKTRACE__)
    else
      {result, metadata} ->
        execute(prefix ++ [:stop], since(began), with_context.(metadata))
        result
    end
  end

  defp since(began) do
    now = :erlang.monotonic_time()
    %{duration: now - began, monotonic_time: now}
  end
end
