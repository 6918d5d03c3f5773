defmodule TensorParallel do
  @moduledoc """
  Serves a model whose weights are spread over four ranks, by functions that the ranks have loaded: many requests at once, and
  again those that a lost rank has cut off. An example of `RankBridge.Functions`.
  """

  alias RankBridge.{Error, Gang}

  @app Path.expand("../priv/app.py", __DIR__)
  # A gang that is not whole by then has ended.
  @patience 120_000
  # Milliseconds after which it is asked again in any case.
  @pause 1_000

  # Errors of calls that the loss of a rank cut off. Completing a text changes nothing, so the call is safe to repeat.
  @of_losses [:peer_lost, :unavailable, :not_formed, :stale_generation, :unknown_session]

  @typedoc """
  `answers` - by text, what each rank has answered; `lost` - the texts that were cut off, with why, once for each time.
  """
  @type served :: %{answers: %{String.t() => [map()]}, lost: [{String.t(), Error.t()}]}

  @doc "The child of a supervisor: the ranks, with their functions. `opts` replace those that are here."
  @spec gang(keyword()) :: {module(), keyword()}
  def gang(opts),
    do: {Gang, Keyword.merge([name: __MODULE__.Gang, size: 4, backend: :gloo, load: @app], opts)}

  @doc """
  Completes texts, all at once, each by so many characters. Those that a loss has cut off are asked again once the gang is whole,
  until all have an answer. Other errors are raised. `on_answer` is called with each text that was answered, in the caller's
  process.
  """
  @spec serve(Gang.gang(), [String.t()], pos_integer(), (String.t() -> term())) :: served()
  def serve(gang, texts, length, on_answer \\ fn _text -> :ok end) do
    :ok = Gang.subscribe(gang)

    try do
      rounds(gang, texts, length, on_answer)
    after
      Gang.unsubscribe(gang)
    end
  end

  defp rounds(gang, texts, length, on_answer) do
    outcomes =
      for {text, outcome} <- ask(gang, texts, length) do
        if match?({:ok, _answers}, outcome), do: on_answer.(text)
        {text, outcome}
      end

    answers = for {text, {:ok, each}} <- outcomes, into: %{}, do: {text, each}
    lost = for {text, {:error, error}} <- outcomes, do: {text, error}
    again(gang, lost, length, on_answer, %{answers: answers, lost: lost})
  end

  defp again(_gang, [], _length, _on_answer, served), do: served

  defp again(gang, lost, length, on_answer, served) do
    {texts, errors} = Enum.unzip(lost)
    errors |> Enum.map(& &1.generation) |> Enum.max() |> await_next()
    :ok = RankBridge.await_ready(gang, @patience)
    later = rounds(gang, texts, length, on_answer)
    %{answers: Map.merge(served.answers, later.answers), lost: served.lost ++ later.lost}
  end

  # Each text with its outcome, as they come. A process for each: all are in flight at once.
  defp ask(gang, texts, length) do
    opts = [max_concurrency: max(1, length(texts)), ordered: false, timeout: :infinity]

    texts
    |> Task.async_stream(&{&1, complete(gang, &1, length)}, opts)
    |> Stream.map(fn {:ok, outcome} -> outcome end)
  end

  defp complete(gang, text, length) do
    case RankBridge.call(gang, :complete, [text, length: length]) do
      {:error, %Error{reason: reason} = error} when reason not in @of_losses -> raise error
      outcome -> outcome
    end
  end

  # The gang may not know of the loss yet: that it is ready would be no answer.
  defp await_next(generation) do
    receive do
      {:rank_bridge, _gang, %{kind: :formed, generation: formed}} when formed > generation -> :ok
    after
      @pause -> :ok
    end
  end

  @doc """
  Whether an answer is right: all ranks have given it, and one rank with all weights gives the same text, and scores that differ by
  no more than float32 sums in another order do.
  """
  @spec right?(Gang.gang(), String.t(), pos_integer(), [map()]) :: boolean()
  def right?(gang, text, length, [answer | others]) do
    alone = RankBridge.call_alone!(gang, 0, :complete_alone, [text, length: length])
    pairs = Enum.zip(answer["scores"], alone["scores"])

    Enum.all?(others, &(&1 == answer)) and answer["text"] == alone["text"] and
      Enum.all?(pairs, fn {one, other} -> abs(one - other) < 1.0e-3 end)
  end

  @doc "So many different texts."
  @spec texts(pos_integer()) :: [String.t()]
  def texts(count), do: for(number <- 1..count, do: "request #{number}: ")

  @doc "Kills a rank by SIGKILL: the world, no part of the gang. Gives its process."
  @spec kill(Gang.gang(), non_neg_integer()) :: pos_integer()
  def kill(gang, rank) do
    pid = Enum.at(RankBridge.status!(gang), rank).pid
    {_output, 0} = System.cmd("kill", ["-KILL", "#{pid}"])
    pid
  end
end
