defmodule Transformer.Worker do
  @moduledoc """
  Calls the ranks to train, follows their reports, and calls again when the loss of a rank cut a call off.

  It keeps no state of the training: the ranks know how far they are, and the same call does what is left. It sends its observer

    * `{:transformer, {:step, step, loss}}` - a step is done on all ranks; the loss is the mean of theirs
    * `{:transformer, {:cut_off, error}}` - a call has ended before the training
    * `{:transformer, {:finished, digests, written}}` - a hash of the weights on each rank, and how the model continues "Alice "; then it
      ends
  """

  use GenServer, restart: :transient

  alias RankBridge.{Error, Functions, Gang}

  @gang Transformer.Gang
  @hour 3_600_000
  # A gang that is not whole by then has ended, and the worker with it.
  @patience 120_000
  # Milliseconds after which the ranks are called again in any case.
  @pause 1_000

  # Errors of calls that the loss of a rank cut off, or that reached ranks outside of a generation. Any other error is a bug:
  # crash.
  @of_losses [:peer_lost, :unavailable, :not_formed, :stale_generation, :unknown_session]

  @doc "Starts to train; options as of `Transformer.Run`."
  @spec start_link(keyword()) :: GenServer.on_start()
  def start_link(opts), do: GenServer.start_link(__MODULE__, opts)

  @impl true
  def init(opts) do
    :ok = Gang.subscribe(@gang)
    {:ok, Map.new(opts), {:continue, :train}}
  end

  @impl true
  def handle_continue(:train, state) do
    case train(state) do
      {:ok, digests, written} ->
        tell(state, {:finished, digests, written})
        {:stop, :normal, state}

      {:error, %Error{reason: reason} = error} when reason in @of_losses ->
        tell(state, {:cut_off, error})
        await_next(error.generation)
        {:noreply, state, {:continue, :train}}

      {:error, error} ->
        raise error
    end
  end

  @impl true
  def handle_info({:rank_bridge, @gang, _event}, state), do: {:noreply, state}

  defp train(state) do
    with :ok <- RankBridge.await_ready(@gang, @patience),
         {:ok, digests} <- followed(state),
         {:ok, [written | _]} <- RankBridge.call(@gang, :sample, ["Alice "]),
         do: {:ok, digests, written}
  end

  # The call is watched from a process of its own, which ends with it.
  defp followed(state) do
    id = RankBridge.Id.uuid()
    follower = Task.async(fn -> follow(id, state) end)
    result = RankBridge.call(@gang, :train, [to: state.steps], operation_id: id, timeout: @hour)

    if match?({:ok, _digests}, result),
      do: Task.await(follower, @patience),
      else: Task.shutdown(follower, :brutal_kill)

    result
  end

  defp follow(id, state) do
    Enum.reduce(Functions.reports(@gang, id), %{}, fn report, losses ->
      %{"step" => step, "loss" => loss} = report.value

      case Map.update(losses, step, [loss], &[loss | &1]) do
        %{^step => [_, _, _, _] = all} = losses ->
          tell(state, {:step, step, Enum.sum(all) / 4})
          Map.delete(losses, step)

        losses ->
          losses
      end
    end)
  rescue
    # A rank was lost. The call says the same.
    Error -> :ok
  end

  # The gang may not know of the loss yet: that it is ready would be no answer.
  defp await_next(generation) do
    receive do
      {:rank_bridge, @gang, %{kind: :formed, generation: formed}} when formed > generation -> :ok
    after
      @pause -> :ok
    end
  end

  defp tell(state, what), do: send(state.observer, {:transformer, what})
end
