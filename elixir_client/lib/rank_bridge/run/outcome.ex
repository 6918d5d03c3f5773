defmodule RankBridge.Run.Outcome do
  @moduledoc false
  # How a caller's function ended: with a value, an error, or a raise, a throw or an exit.

  alias RankBridge.{Calls, Error}

  @type raised ::
          {:raised, :error | :exit | :throw, term(), Exception.stacktrace()}
  @type t :: {:ok, term()} | {:error, Error.t()} | raised()

  @doc """
  Calls the function.

      iex> for given <- [{:ok, 1}, 1, nil], do: RankBridge.Run.Outcome.of(fn -> given end)
      [{:ok, 1}, {:ok, 1}, {:ok, nil}]
      iex> {:raised, :throw, :ball, _stacktrace} = RankBridge.Run.Outcome.of(fn -> throw(:ball) end)
      iex> {:raised, :error, %ArgumentError{}, _} = RankBridge.Run.Outcome.of(fn -> {:error, :enoent} end)
  """
  @spec of((() -> term())) :: t()
  def of(fun) do
    read(fun.())
  catch
    kind, reason -> {:raised, kind, reason, __STACKTRACE__}
  end

  defp read({:ok, value}), do: {:ok, value}
  defp read({:error, %Error{} = error}), do: {:error, error}

  # As a value it would be taken for a success.
  defp read({:error, other}) do
    raise ArgumentError,
          "neither a value nor a RankBridge.Error: {:error, #{inspect(other, limit: 5)}}"
  end

  defp read(value), do: {:ok, value}

  @doc "Returns the outcome's result, or raises its error."
  @spec tell(t()) :: {:ok, term()} | {:error, Error.t()}
  def tell({:raised, kind, reason, stacktrace}), do: :erlang.raise(kind, reason, stacktrace)
  def tell(result), do: result

  @doc """
  All values in the order of the ranks, or one error of all ranks; raises again if a function raised. A `RankBridge.Error` that
  was raised mostly follows from another rank's raise, so the other one is raised again.
  """
  @spec gathered([{non_neg_integer(), t()}]) :: {:ok, list()} | {:error, Error.t()}
  def gathered(outcomes) do
    raised = for {_rank, {:raised, _, _, _} = raised} <- outcomes, do: raised

    case Enum.find(raised, &(not error?(&1))) do
      nil -> outcomes |> Enum.map(&result/1) |> Calls.gathered(true) |> again(raised)
      cause -> tell(cause)
    end
  end

  defp error?({:raised, kind, reason, _stacktrace}),
    do: kind == :error and is_struct(reason, Error)

  defp result({rank, {:raised, :error, error, _stacktrace}}), do: {rank, {:error, error}}
  defp result(other), do: other

  defp again({:error, error}, [first | _others] = raised) do
    {:raised, kind, _reason, stacktrace} =
      Enum.find(raised, first, fn {:raised, _, own, _} -> own.reason == error.reason end)

    :erlang.raise(kind, error, stacktrace)
  end

  defp again(result, []), do: result
end
