defmodule RankBridge.Test.Chaos.Controller do
  @moduledoc """
  The Elixir client as one of the controllers of `make chaos`: a program that does what its standard input asks for.

      mix run --no-compile -e "RankBridge.Test.Chaos.Controller.main()"

  It says "ready", then reads requests, one JSON object on a line, and answers each on a line, in whatever order they
  end. Each request (see `RankBridge.Test.Chaos.Requests`) is done by a process of its own, so that none waits for
  another.

      {"id": 7, "do": "put", ...}
      {"id": 7, "ok": ...}           what it gave
      {"id": 7, "error": {...}}      the error that the client gave
      {"id": 7, "crash": "..."}      what the client raised, or whom it took with it
      {"id": 7, "gone": true}        its caller was killed, as was asked for:

      {"do": "kill", "of": 7}        kills the process that does request 7; has no answer of its own

  It ends with its standard input. Whatever is logged goes to standard error.
  """

  alias RankBridge.Test.Chaos.Requests
  alias RankBridge.Test.{JSON, Logs}

  @typep state :: %{
           requests: %{reference() => {pid(), id :: integer()}},
           killed: MapSet.t(pid())
         }

  @doc "Runs until standard input is closed, then ends the whole program."
  @spec main() :: no_return()
  def main do
    # Standard output is for answers.
    :ok = Logs.to_stderr()
    # Nothing is to be loaded later, when somebody may be compiling the client again.
    :ok = :rank_bridge |> Application.spec(:modules) |> :code.ensure_modules_loaded()
    {:ok, _supervisor} = Requests.start_gangs()
    controller = self()
    _reader = spawn_link(fn -> read(controller) end)
    IO.write(:stdio, "ready\n")
    loop(%{requests: %{}, killed: MapSet.new()})
  end

  defp read(controller) do
    case IO.binread(:stdio, :line) do
      line when is_binary(line) ->
        send(controller, {:line, line})
        read(controller)

      _eof_or_error ->
        send(controller, :closed)
    end
  end

  @spec loop(state()) :: no_return()
  defp loop(state) do
    receive do
      {:line, line} ->
        line |> JSON.decode!() |> take(state) |> loop()

      {:done, monitor, answer} ->
        loop(finish(state, monitor, answer))

      # Who has answered is forgotten by then.
      {:DOWN, monitor, :process, pid, reason} ->
        answer =
          if MapSet.member?(state.killed, pid),
            do: %{"gone" => true},
            else: %{"crash" => inspect(reason)}

        state = finish(state, monitor, answer)
        loop(%{state | killed: MapSet.delete(state.killed, pid)})

      :closed ->
        System.halt(0)
    end
  end

  defp take(%{"do" => "kill", "of" => id}, state) do
    case Enum.find(state.requests, &match?({_monitor, {_pid, ^id}}, &1)) do
      {_monitor, {pid, ^id}} ->
        true = Process.exit(pid, :kill)
        %{state | killed: MapSet.put(state.killed, pid)}

      nil ->
        state
    end
  end

  defp take(%{"id" => id} = request, state) do
    controller = self()

    {pid, monitor} =
      spawn_monitor(fn ->
        # Its own monitor is what it answers under.
        receive do
          {:begin, monitor} -> send(controller, {:done, monitor, answer(request)})
        end
      end)

    send(pid, {:begin, monitor})
    %{state | requests: Map.put(state.requests, monitor, {pid, id})}
  end

  defp answer(request) do
    case Requests.perform(request) do
      {:ok, value} -> %{"ok" => value}
      {:error, error} -> %{"error" => error}
    end
  rescue
    raised -> %{"crash" => Exception.format(:error, raised, __STACKTRACE__)}
  end

  defp finish(state, monitor, answer) do
    case Map.pop(state.requests, monitor) do
      {nil, _requests} ->
        state

      {{_pid, id}, requests} ->
        line = answer |> Map.put("id", id) |> JSON.encode()
        IO.write(:stdio, [line, ?\n])
        %{state | requests: requests}
    end
  end
end
