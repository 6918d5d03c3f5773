defmodule Trainer.Progress do
  @moduledoc """
  How far the training is, and where its weights are: a ref for each rank, and the last checkpoint by value.

  Two processes change it: the worker, which commits each step that is done, and `Trainer.Reload`, which replaces refs
  when ranks were lost. Whoever changes it second must not undo the first: with each reload begins a new epoch, and a step
  that was begun in an older one is not committed. While a reload is under way, everybody else waits.
  """

  use GenServer

  alias RankBridge.{Ref, Tensor}

  @typedoc "`step` is the number of steps that are in the weights; without `weights`, none are on the ranks."
  @type t :: %{
          epoch: non_neg_integer(),
          step: non_neg_integer(),
          weights: [Ref.t()],
          checkpoint: {step :: non_neg_integer(), Tensor.t()}
        }

  # A gang that is not whole by then has ended, and the worker with it.
  @patience 120_000

  @doc "Starts at step 0, with weights by value."
  @spec start_link(Tensor.t()) :: GenServer.on_start()
  def start_link(weights), do: GenServer.start_link(__MODULE__, weights, name: __MODULE__)

  @doc "How far it is, once no reload is under way."
  @spec current() :: t()
  def current, do: after_epoch(-1)

  @doc "How far it is, once there was a reload after that epoch."
  @spec after_epoch(integer()) :: t()
  def after_epoch(epoch), do: GenServer.call(__MODULE__, {:after, epoch}, @patience)

  @doc "A step is done: the weights are these. `:moved`: there was a reload since that epoch, and nothing has changed."
  @spec commit(non_neg_integer(), non_neg_integer(), [Ref.t()]) :: :ok | :moved
  def commit(epoch, step, weights),
    do: GenServer.call(__MODULE__, {:commit, epoch, step, weights}, @patience)

  @doc "Keeps the weights after so many steps."
  @spec keep(non_neg_integer(), Tensor.t()) :: :ok
  def keep(step, weights), do: GenServer.call(__MODULE__, {:keep, step, weights}, @patience)

  @doc "Begins a reload by the calling process, which ends it by `reloaded/2`, or by ending itself: then nothing has changed."
  @spec reload() :: t()
  def reload, do: GenServer.call(__MODULE__, :reload)

  @doc "Ends a reload."
  @spec reloaded(non_neg_integer(), [Ref.t()]) :: :ok
  def reloaded(step, weights), do: GenServer.call(__MODULE__, {:reloaded, step, weights})

  @impl true
  def init(weights) do
    progress = %{epoch: 0, step: 0, weights: [], checkpoint: {0, weights}}
    {:ok, %{progress: progress, reloading: nil, waiting: []}}
  end

  @impl true
  def handle_call(:reload, {pid, _tag}, state) do
    if state.reloading, do: Process.demonitor(state.reloading, [:flush])
    progress = %{state.progress | epoch: state.progress.epoch + 1}
    {:reply, progress, %{state | progress: progress, reloading: Process.monitor(pid)}}
  end

  def handle_call({:reloaded, step, weights}, _from, %{reloading: reloading} = state) do
    Process.demonitor(reloading, [:flush])
    progress = %{state.progress | step: step, weights: weights}
    {:reply, :ok, answer(%{state | progress: progress, reloading: nil})}
  end

  def handle_call({:commit, epoch, step, weights}, _from, %{progress: progress} = state) do
    if epoch == progress.epoch,
      do: {:reply, :ok, put_in(state.progress, %{progress | step: step, weights: weights})},
      else: {:reply, :moved, state}
  end

  def handle_call({:keep, step, weights}, _from, state),
    do: {:reply, :ok, put_in(state.progress.checkpoint, {step, weights})}

  def handle_call({:after, epoch}, from, state),
    do: {:noreply, answer(%{state | waiting: [{from, epoch} | state.waiting]})}

  @impl true
  def handle_info({:DOWN, monitor, :process, _pid, _reason}, %{reloading: monitor} = state),
    do: {:noreply, answer(%{state | reloading: nil})}

  def handle_info(_other, state), do: {:noreply, state}

  defp answer(%{reloading: nil, progress: progress} = state) do
    {ready, waiting} =
      Enum.split_with(state.waiting, fn {_from, after_epoch} -> progress.epoch > after_epoch end)

    for {from, _epoch} <- ready, do: GenServer.reply(from, progress)
    %{state | waiting: waiting}
  end

  defp answer(state), do: state
end
