if Code.ensure_loaded?(Kino) do
  defmodule RankBridge.Kino.Widget do
    @moduledoc false
    # The process behind `RankBridge.Kino.gang/2`: it hears a gang's events, and renders them into a frame.

    use GenServer, restart: :temporary

    alias RankBridge.Gang
    alias RankBridge.Gang.Overview

    @doc "Starts it, for a gang, a frame, and the milliseconds between two questions to the ranks."
    @spec start_link({Gang.gang(), struct(), pos_integer()}) :: GenServer.on_start()
    def start_link({gang, frame, every}),
      do: GenServer.start_link(__MODULE__, {gang, frame, every})

    @impl true
    def init({gang, frame, every}) do
      :ok = Gang.subscribe(gang)
      {:ok, %{overview: Overview.new(gang), frame: frame, every: every}, {:continue, :refresh}}
    end

    @impl true
    def handle_continue(:refresh, state), do: {:noreply, refresh(state)}

    @impl true
    def handle_info(:refresh, state), do: {:noreply, refresh(state)}

    def handle_info({:rank_bridge, _gang, event}, state),
      do: {:noreply, show(%{state | overview: Overview.add(state.overview, event)})}

    defp refresh(state) do
      # After the answer: a slow gang is not asked twice at a time.
      state = show(%{state | overview: Overview.refresh(state.overview)})
      _ = Process.send_after(self(), :refresh, state.every)
      state
    end

    defp show(state) do
      :ok = Kino.Frame.render(state.frame, Kino.Markdown.new(markdown(state.overview)))
      state
    end

    defp markdown(overview) do
      """
      **Gang `#{inspect(overview.gang)}`**, generation #{overview.generation}, \
      #{Overview.pending(overview)} pending operations

      #{overview.error && overview.error.message}

      | rank | host | pid | backend | generation | state | pending | |
      | --- | --- | --- | --- | --- | --- | --- | --- |
      #{Enum.map(Overview.rows(overview), &row/1)}
      #{for straggler <- overview.stragglers, do: "- **#{line(straggler)}**\n"}
      #{for {time, event} <- overview.events, do: "- #{Calendar.strftime(time, "%H:%M:%S")} #{line(event)}\n"}
      """
    end

    defp row(row) do
      cells =
        [row.rank, row.host, row.pid, row.backend] ++ [row.generation, row.state, row.pending]

      "| " <> Enum.join(cells ++ [cell(row.note)], " | ") <> " |\n"
    end

    defp line(event), do: event |> Overview.describe() |> String.replace("\n", " ")
    defp cell(text), do: text |> String.replace("\n", " ") |> String.replace("|", "\\|")
  end
end
