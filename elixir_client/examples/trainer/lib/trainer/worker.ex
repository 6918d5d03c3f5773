defmodule Trainer.Worker do
  @moduledoc """
  Does one step after the other, and again those that were cut off.

  It keeps nothing itself: where it is, `Trainer.Progress` knows, and a worker that was started again goes on there. It
  tells its observer

    * `{:trainer, {:cut_off, step, error}}` - a step is done again
    * `{:trainer, {:resumed, step}}` - it has begun, or begun again, with so many steps done
    * `{:trainer, {:finished, tensors}}` - the weights on each rank; then it ends
  """

  use GenServer, restart: :transient

  alias Trainer.{Progress, Reload, Step}

  @gang Trainer.Gang
  # A checkpoint is made after each so many steps.
  @keep_every 20

  # Errors of calls that the loss of a rank cut off, or that reached ranks outside of a generation; an unknown ref is one of a
  # rank that has been replaced since. Any other error is a bug: crash.
  @of_losses [:peer_lost, :unavailable, :cancelled, :not_formed, :stale_generation] ++
               [:backend_failed] ++
               [:aborted, :unknown_ref, :unknown_session]

  @doc "Starts to train; options as of `Trainer.Run`."
  @spec start_link(keyword()) :: GenServer.on_start()
  def start_link(opts), do: GenServer.start_link(__MODULE__, opts)

  @impl true
  def init(opts), do: {:ok, Map.new(opts), {:continue, :begin}}

  @impl true
  def handle_continue(:begin, state) do
    :ok = RankBridge.await_ready(@gang, 60_000)
    progress = Progress.current()

    case on_ranks(progress) do
      {:ok, step} ->
        tell(state, {:resumed, step})
        {:noreply, state, {:continue, :step}}

      {:error, error} ->
        again(progress, error, state)
    end
  end

  def handle_continue(:step, state) do
    state[:before_step] && state.before_step.(Progress.current().step)
    progress = Progress.current()

    if progress.step == state.steps,
      do: finish(progress, state),
      else: step(progress, state)
  end

  # What a worker before this one has left behind is freed; a gang that is new gets the last checkpoint.
  defp on_ranks(progress) do
    with {:ok, weights} <- Reload.here(@gang, progress.weights),
         {:ok, {step, weights}} <- weights(weights, progress),
         {:ok, _freed} <- Step.tidy(@gang, weights) do
      _moved_or_ok = Progress.commit(progress.epoch, step, weights)
      {:ok, step}
    end
  end

  defp weights([], %{checkpoint: {step, tensor}}) do
    with {:ok, weights} <- Step.load(@gang, tensor), do: {:ok, {step, weights}}
  end

  defp weights(weights, progress), do: {:ok, {progress.step, weights}}

  defp step(progress, state) do
    with {:ok, {weights, garbage}} <-
           Step.run(@gang, progress.weights, progress.step, state.seed),
         :ok <- Progress.commit(progress.epoch, progress.step + 1, weights),
         :ok <- keep(progress.step + 1, weights),
         {:ok, _freed} <- RankBridge.release(@gang, garbage) do
      {:noreply, state, {:continue, :step}}
    else
      :moved -> {:noreply, state, {:continue, :begin}}
      {:error, error} -> again(progress, error, state)
    end
  end

  defp keep(step, [weights | _others]) when rem(step, @keep_every) == 0,
    do: with({:ok, tensor} <- RankBridge.get(@gang, weights), do: Progress.keep(step, tensor))

  defp keep(_step, _weights), do: :ok

  # The loss may not be known to the gang yet: its reload is what is waited for, not that it is ready.
  defp again(progress, %{reason: reason} = error, state) when reason in @of_losses do
    tell(state, {:cut_off, progress.step, error})
    _since = Progress.after_epoch(progress.epoch)
    {:noreply, state, {:continue, :begin}}
  end

  defp again(_progress, error, _state), do: raise(error)

  defp finish(progress, state) do
    case RankBridge.get(@gang, progress.weights) do
      {:ok, tensors} ->
        tell(state, {:finished, tensors})
        {:stop, :normal, state}

      {:error, error} ->
        again(progress, error, state)
    end
  end

  defp tell(state, what), do: send(state.observer, {:trainer, what})
end
