defmodule RankBridge.Telemetry.Log do
  @moduledoc false
  # The default logger: one line for each event that matters. See `RankBridge.Telemetry.attach_default_logger/1`.

  require Logger

  alias RankBridge.{HeldCall, JSON}

  @events [
    [:rank_bridge, :call, :stop],
    [:rank_bridge, :call, :exception],
    [:rank_bridge, :rank, :lost],
    [:rank_bridge, :gang, :recover, :stop],
    [:rank_bridge, :gang, :recover, :exception],
    [:rank_bridge, :gang, :straggler],
    [:rank_bridge, :gang, :verdict],
    [:rank_bridge, :rank, :held],
    [:rank_bridge, :rank, :let_go]
  ]

  @type config :: %{level: Logger.level(), encode: boolean()}

  @doc "The events that it handles."
  @spec events() :: [[atom()]]
  def events, do: @events

  @doc "Writes the line of an event, if its level is not below that of the configuration."
  @spec handle([atom()], map(), map(), config()) :: :ok
  def handle(event, measurements, metadata, config) do
    level = level(event, metadata)

    if Logger.compare_levels(level, config.level) != :lt do
      fields = fields(event, measurements, metadata)
      text = if config.encode, do: JSON.encode(fields), else: sentence(fields)
      Logger.log(level, text)
    end

    :ok
  end

  defp level([_, :call, :stop], %{result: :ok}), do: :debug
  defp level([_, :call, :stop], _failed), do: :warning
  defp level([_, :rank, :lost], _metadata), do: :warning
  defp level([_, :gang, :recover, :stop], %{result: :ok}), do: :info
  defp level([_, :gang, :straggler], %{arrived?: true}), do: :info
  defp level([_, :gang, :straggler], _waiting), do: :warning
  defp level([_, :gang, :verdict], %{kind: :healthy}), do: :debug
  defp level([_, :gang, :verdict], _ill), do: :warning
  defp level([_, :rank, event], _metadata) when event in [:held, :let_go], do: :info
  defp level(_failed_or_raised, _metadata), do: :error

  defp fields([_, :call, :stop], %{duration: duration}, metadata) do
    metadata
    |> Map.take([:operation, :group, :result])
    |> Map.merge(%{event: :call, gang: name(metadata.gang), duration_ms: milliseconds(duration)})
    |> Map.merge(error(metadata.error))
  end

  defp fields([_, :call, :exception], %{duration: duration}, metadata) do
    metadata
    |> Map.take([:operation, :group])
    |> Map.merge(%{event: :call, gang: name(metadata.gang), duration_ms: milliseconds(duration)})
    |> Map.merge(raised(metadata))
  end

  defp fields([_, :rank, :lost], _measurements, metadata),
    do: %{event: :rank_lost, gang: name(metadata.gang), rank: metadata.rank, how: metadata.how}

  defp fields([_, :gang, :recover, :stop], %{duration: duration}, metadata) do
    metadata
    |> Map.take([:ranks, :result, :generation, :world_size])
    |> Map.merge(%{event: :recovery, gang: name(metadata.gang)})
    |> Map.put(:duration_ms, milliseconds(duration))
    |> Map.merge(error(metadata.error))
  end

  defp fields([_, :gang, :recover, :exception], %{duration: duration}, metadata) do
    %{event: :recovery, gang: name(metadata.gang), ranks: metadata.ranks}
    |> Map.put(:duration_ms, milliseconds(duration))
    |> Map.merge(raised(metadata))
  end

  defp fields([_, :gang, :straggler], %{waited: waited}, metadata) do
    %{event: :straggler, gang: name(metadata.gang), ranks: metadata.ranks}
    |> Map.merge(Map.take(metadata, [:group, :operation, :operation_id]))
    |> Map.merge(%{arrived: metadata.arrived?, waited_ms: milliseconds(waited)})
  end

  defp fields([_, :gang, :verdict], %{duration: duration}, metadata) do
    metadata
    |> Map.take([:kind, :ranks])
    |> Map.merge(%{event: :verdict, gang: name(metadata.gang)})
    |> Map.merge(%{summary: metadata.verdict.summary, duration_ms: milliseconds(duration)})
  end

  defp fields([_, :rank, :held], _measurements, metadata),
    do: metadata |> held() |> Map.merge(%{event: :held, what: HeldCall.what(metadata.held_call)})

  defp fields([_, :rank, :let_go], %{duration: duration}, metadata) do
    metadata
    |> held()
    |> Map.merge(%{event: :let_go, action: metadata.action, duration_ms: milliseconds(duration)})
  end

  defp held(metadata) do
    metadata
    |> Map.take([:rank, :group, :operation, :operation_id])
    |> Map.put(:gang, name(metadata.gang))
  end

  defp error(nil), do: %{}

  defp error(error) do
    message = error |> Exception.message() |> one_line()
    error |> Map.take([:reason, :rank, :operation_id, :indefinite]) |> Map.put(:message, message)
  end

  defp raised(%{kind: kind, reason: reason}) do
    message = kind |> Exception.format_banner(reason) |> one_line()
    %{result: :exception, message: message}
  end

  defp one_line(text),
    do: text |> String.split("\n", trim: true) |> Enum.map_join("; ", &String.trim/1)

  defp name(gang), do: inspect(gang)

  defp milliseconds(native),
    do: Float.round(System.convert_time_unit(native, :native, :microsecond) / 1_000, 1)

  defp sentence(%{event: :call, result: :ok} = fields),
    do: "#{fields.operation} on #{fields.gang} took #{fields.duration_ms} ms"

  defp sentence(%{event: :call, result: :error} = fields),
    do:
      "#{fields.operation} on #{fields.gang} failed after #{fields.duration_ms} ms: #{fields.message}"

  defp sentence(%{event: :call} = fields),
    do:
      "#{fields.operation} on #{fields.gang} raised after #{fields.duration_ms} ms: #{fields.message}"

  defp sentence(%{event: :rank_lost} = fields),
    do: "rank #{fields.rank} of #{fields.gang} is lost: #{fields.how}"

  defp sentence(%{event: :recovery, result: :ok} = fields) do
    "#{fields.gang} recovered from the loss of #{ranks(fields)} in #{fields.duration_ms} ms: " <>
      "generation #{fields.generation}, #{fields.world_size} ranks"
  end

  defp sentence(%{event: :recovery} = fields) do
    "#{fields.gang} did not recover from the loss of #{ranks(fields)} in #{fields.duration_ms} ms: " <>
      fields.message
  end

  defp sentence(%{event: :straggler, arrived: true} = fields) do
    "#{ranks(fields)} of #{fields.gang} came to #{fields.operation} on #{fields.group}, for which others " <>
      "have waited #{fields.waited_ms} ms"
  end

  defp sentence(%{event: :straggler} = fields) do
    "#{fields.operation} on #{fields.group} of #{fields.gang} has waited #{fields.waited_ms} ms for " <>
      ranks(fields)
  end

  defp sentence(%{event: :verdict} = fields),
    do: "verdict on #{fields.gang}: #{fields.kind}: #{fields.summary}"

  defp sentence(%{event: :held} = fields),
    do: "rank #{fields.rank} of #{fields.gang} is #{fields.what}"

  defp sentence(%{event: :let_go} = fields) do
    "rank #{fields.rank} of #{fields.gang} was held at #{fields.operation} on #{fields.group} for " <>
      "#{fields.duration_ms} ms, and was let go: #{fields.action}"
  end

  defp ranks(%{ranks: [rank]}), do: "rank #{rank}"
  defp ranks(%{ranks: ranks}), do: "ranks #{Enum.join(ranks, ", ")}"
end
