defmodule RankBridge.Gang.Recovery do
  @moduledoc false
  # Recovers a gang after ranks were lost: with a new rank in the place of each, or without them.
  #
  # Runs in a task of the gang; tries again until its timeout, because more ranks can be lost meanwhile, and because
  # another controller may form the gang at the same time: its generation is as good.

  alias RankBridge.{Error, Ranks, RankStatus, Sessions}
  alias RankBridge.Gang.{Channels, Children, View}

  @typedoc "`moved`: as of `RankBridge.Gang.Lost`."
  @type whole :: %{
          view: View.t(),
          statuses: [RankStatus.t()],
          moved: %{non_neg_integer() => non_neg_integer()}
        }

  # Milliseconds: at least between two tries; for one forming; between two checks of it; for a rank to report its status.
  @pause 50
  @forming 15_000
  @looking 1_000
  @answering 2_000

  @doc """
  The gang in a generation after `generation`, within `timeout` milliseconds. A gang that shrinks leaves out
  the ranks in `lost`, and ranks that do not answer.
  """
  @spec recover(View.t(), :replace | :shrink, pos_integer(), [non_neg_integer()], pos_integer()) ::
          {:ok, whole()} | {:error, Error.t()}
  def recover(view, policy, generation, lost, timeout) do
    attempt(%{
      view: view,
      policy: policy,
      generation: generation,
      lost: lost,
      deadline: now() + timeout
    })
  end

  defp attempt(task) do
    left = task.deadline - now()

    with {:error, error} <- once(task, left) do
      if left <= @pause or Error.permanent?(error) do
        {:error, error}
      else
        # A random pause separates two controllers that try at the same time.
        Process.sleep(@pause + :rand.uniform(@pause))
        attempt(task)
      end
    end
  end

  defp once(%{policy: :replace} = task, left) do
    # Another controller may have formed it.
    with {:error, _not_yet} <- whole(task.view, task, %{}) do
      form = fn -> Ranks.form(task.view, timeout: limit(left)) end
      forming = Task.Supervisor.async(Children.name(task.view.gang, :tasks), form)
      formed(Task.yield(forming, @looking), forming, task)
    end
  end

  defp once(%{policy: :shrink} = task, left) do
    with {:ok, statuses} <- Ranks.status(task.view, timeout: min(@answering, limit(left))),
         {:ok, kept} <- kept(statuses, task),
         do: shrunk(View.only(task.view, kept), kept, task, left)
  end

  defp shrunk(view, kept, task, left) do
    with {:ok, _formed} <- Ranks.form(view, timeout: limit(left)),
         {:ok, whole} <- whole(view, task, kept |> Enum.with_index() |> Map.new()) do
      {:ok, whole}
    else
      {:error, error} ->
        :ok = Channels.drop(view.channels)
        {:error, error}
    end
  end

  # While this forming waits for what another one has left behind, that may have come to an end.
  defp formed(nil, forming, task) do
    case whole(task.view, task, %{}) do
      {:ok, whole} ->
        _ = Task.shutdown(forming)
        {:ok, whole}

      {:error, _not_yet} ->
        formed(Task.yield(forming, @looking), forming, task)
    end
  end

  defp formed({:ok, {:ok, _formed}}, _forming, task), do: whole(task.view, task, %{})
  defp formed({:ok, {:error, error}}, _forming, _task), do: {:error, error}

  # What was formed may be over again.
  defp whole(view, task, moved) do
    {:ok, statuses} = Ranks.status(view, timeout: @answering)
    generations = statuses |> Enum.map(& &1.generation) |> Enum.uniq()

    case {generations, Enum.find(statuses, &(&1.generation_state != :formed))} do
      {[generation], nil} when generation > task.generation ->
        with :ok <- Sessions.open(view),
             do: {:ok, %{view: view, statuses: statuses, moved: moved}}

      {_generations, status} ->
        {:error,
         Error.refusal(:forming_failed, "the gang is not whole yet",
           rank: status && status.rank,
           expected: "one generation after #{task.generation}, formed",
           got: inspect(Enum.map(statuses, &{&1.generation, &1.generation_state}))
         )}
    end
  end

  defp kept(statuses, task) do
    # A rank says of itself the number that it had last; here it is where the gang has it.
    answering = for {%{error: nil}, rank} <- Enum.with_index(statuses), do: rank

    case answering -- task.lost do
      [] ->
        {:error, Error.refusal(:peer_lost, "no rank is left", expected: "1 or more", got: "none")}

      kept ->
        {:ok, kept}
    end
  end

  defp limit(left), do: left |> min(@forming) |> max(1)

  defp now, do: System.monotonic_time(:millisecond)
end
