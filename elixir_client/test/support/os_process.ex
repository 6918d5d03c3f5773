defmodule RankBridge.Test.OsProcess do
  @moduledoc "Processes of the operating system, as tests look at them and end them."

  @repository Path.expand("../../..", __DIR__)

  @doc "The program `rankbridge`: `RANKBRIDGE_COMMAND`, or the one in the repository's `.venv`."
  @spec rankbridge() :: Path.t()
  def rankbridge,
    do: System.get_env("RANKBRIDGE_COMMAND") || Path.join(@repository, ".venv/bin/rankbridge")

  @doc "The Python that has the program `rankbridge`, and torch."
  @spec python() :: Path.t()
  def python, do: rankbridge() |> Path.dirname() |> Path.join("python")

  @doc "Kills it. It may be there for a moment yet."
  @spec kill(pos_integer()) :: :ok
  def kill(pid), do: signal(pid, "KILL")

  @doc "Sends it a signal: \"STOP\"."
  @spec signal(pos_integer(), String.t()) :: :ok
  def signal(pid, name) do
    {_output, 0} = System.cmd("kill", ["-#{name}", "#{pid}"])
    :ok
  end

  @doc "Stops it, as a signal does, and waits until each of its threads has. Raises after 30 seconds."
  @spec stop(pos_integer()) :: :ok
  def stop(pid) do
    signal(pid, "STOP")
    await_stopped(pid, now())
  end

  # The signal is one thread's, which lets the others stop.
  defp await_stopped(pid, began) do
    running =
      for path <- Path.wildcard("/proc/#{pid}/task/*/stat"),
          state(path) not in ["T", nil],
          do: path

    cond do
      running == [] -> :ok
      now() - began > 30_000 -> raise "#{inspect(running)} still run"
      true -> pause() && await_stopped(pid, began)
    end
  end

  # The name in parentheses may hold anything; the state comes after it. nil: there is none any more.
  defp state(path) do
    case File.read(path) do
      {:ok, stat} -> stat |> String.split(") ") |> List.last() |> String.first()
      {:error, _gone} -> nil
    end
  end

  @doc "Whether it runs. One that has ended and is only not reaped yet does not."
  @spec alive?(pos_integer()) :: boolean()
  def alive?(pid), do: state("/proc/#{pid}/stat") not in ["Z", nil]

  @doc "The process that has started it."
  @spec parent(pos_integer()) :: pos_integer()
  def parent(pid) do
    stat = File.read!("/proc/#{pid}/stat")
    [_state, parent | _rest] = stat |> String.split(") ") |> List.last() |> String.split()
    String.to_integer(parent)
  end

  @doc "Waits until none of them runs; gives the milliseconds that it took. Raises after `limit` milliseconds."
  @spec await_gone([pos_integer()], pos_integer()) :: non_neg_integer()
  def await_gone(pids, limit \\ 30_000), do: await_gone(pids, limit, now())

  defp await_gone(pids, limit, began) do
    left = Enum.filter(pids, &alive?/1)

    cond do
      left == [] -> now() - began
      now() - began > limit -> raise "#{inspect(left)} still run after #{limit} ms"
      # The system tells nobody but a parent of an end.
      true -> pause() && await_gone(left, limit, began)
    end
  end

  defp pause do
    receive do
    after
      5 -> true
    end
  end

  defp now, do: System.monotonic_time(:millisecond)
end
