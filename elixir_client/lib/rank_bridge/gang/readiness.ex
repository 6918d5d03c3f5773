defmodule RankBridge.Gang.Readiness do
  @moduledoc false
  # Waiting for a gang that is being started, or formed again after ranks were lost.
  #
  # While it is, its view says so (`t:RankBridge.Gang.View.t/0`), and calls wait for as long as they have time, or fail at
  # once, as the option `:unready` says, theirs or the gang's: `:wait` or `:fail`.

  alias RankBridge.{Error, Gang}
  alias RankBridge.Gang.View

  @registry __MODULE__
  # Functions that say how the ranks are, are needed exactly when something is wrong.
  @always [:status, :diagnose]

  @doc "The process that knows who waits."
  @spec child_spec(term()) :: Supervisor.child_spec()
  def child_spec(_opts), do: Registry.child_spec(keys: :duplicate, name: @registry)

  @doc "The view of a gang for a call with these options; `operation` is for the error."
  @spec view(Gang.gang(), term(), atom()) :: {:ok, View.t()} | {:error, Error.t()}
  def view(gang, opts, operation) do
    with {:ok, %View{unready: %Error{} = why} = view} <- View.fetch(gang) do
      cond do
        may_pass?(view) or (operation in @always and View.size(view) > 0) ->
          {:ok, view}

        option(opts, :unready, view.when_unready) == :fail ->
          {:error, %{why | operation: "#{operation}"}}

        true ->
          await(gang, timeout(opts, view), "#{operation}", false)
      end
    end
  end

  @doc """
  Waits until the gang is ready: also for one that is not there yet, or that its supervisor starts again. `timeout` in
  milliseconds.
  """
  @spec await(Gang.gang(), timeout()) :: {:ok, View.t()} | {:error, Error.t()}
  def await(gang, timeout), do: await(gang, timeout, "await_ready", true)

  @doc "Wakes the waiting callers, because something has changed. Called by the gang's process."
  @spec changed([Gang.gang()]) :: :ok
  def changed(names) do
    for name <- names,
        {_pid, alias} <- Registry.lookup(@registry, name),
        do: send(alias, {alias, :changed})

    :ok
  end

  # What the callback of a gang that is being recovered calls, or its tasks do.
  defp may_pass?(%View{but_for: nil}), do: false

  defp may_pass?(%View{but_for: pid}),
    do: self() == pid or pid in Process.get(:"$callers", [])

  defp option(opts, name, default),
    do: if(Keyword.keyword?(opts), do: Keyword.get(opts, name, default), else: default)

  # A wrong one is refused later.
  defp timeout(opts, view) do
    timeout = option(opts, :timeout, nil)
    if is_integer(timeout) and timeout > 0, do: timeout, else: view.timeout
  end

  # The alias is registered before the gang is looked at: no change in between is missed.
  defp await(gang, timeout, operation, absent?) do
    deadline = if timeout == :infinity, do: :infinity, else: now() + timeout
    alias = :erlang.alias()
    {:ok, _owner} = Registry.register(@registry, gang, alias)

    try do
      wait(%{gang: gang, alias: alias, deadline: deadline, operation: operation, absent?: absent?})
    after
      Registry.unregister_match(@registry, gang, alias)
      :erlang.unalias(alias)
      forget(alias)
    end
  end

  defp wait(waiting) do
    case View.fetch(waiting.gang) do
      {:ok, view} ->
        if view.unready == nil or may_pass?(view), do: {:ok, view}, else: wait(view, waiting)

      {:error, error} ->
        cond do
          # A gang without a name does not come back.
          not waiting.absent? or is_pid(waiting.gang) ->
            {:error, %{error | operation: waiting.operation}}

          sleep(waiting, nil) == :late ->
            late(waiting, error)

          true ->
            wait(waiting)
        end
    end
  end

  defp wait(view, waiting) do
    monitor = Process.monitor(view.gang)
    woken = sleep(waiting, monitor)
    Process.demonitor(monitor, [:flush])
    if woken == :late, do: late(waiting, view.unready), else: wait(waiting)
  end

  defp sleep(%{alias: alias} = waiting, monitor) do
    receive do
      {^alias, :changed} -> :changed
      {:DOWN, ^monitor, :process, _pid, _reason} -> :changed
    after
      left(waiting.deadline) -> :late
    end
  end

  defp late(waiting, why) do
    {:error,
     Error.refusal(:deadline_exceeded, "the gang was not ready in time: #{why.message}",
       operation: waiting.operation,
       ranks: why.ranks
     )}
  end

  defp forget(alias) do
    receive do
      {^alias, :changed} -> forget(alias)
    after
      0 -> :ok
    end
  end

  defp left(:infinity), do: :infinity
  defp left(deadline), do: max(0, deadline - now())

  defp now, do: System.monotonic_time(:millisecond)
end
