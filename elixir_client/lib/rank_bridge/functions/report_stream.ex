defmodule RankBridge.Functions.ReportStream do
  @moduledoc false
  # The reports of a call as a lazy enumerable: see `RankBridge.Functions.reports/3`.

  alias RankBridge.{Entry, Gang, Operation, Operations, Options}
  alias RankBridge.Functions.Watch

  @doc "The reports of a call. Nothing is watched before it is enumerated."
  @spec new(Gang.gang(), Operation.t() | String.t(), keyword()) :: Enumerable.t()
  def new(gang, call, opts),
    do: Stream.resource(fn -> watch(gang, call, opts) end, &next/1, &stop/1)

  defp watch(gang, call, opts) do
    found =
      Entry.call(gang, :reports, opts, fn view ->
        with {:ok, call, opts} <- Operations.find(view, call, without_limit(opts), "reports"),
             do: {:ok, {Watch.start(view, call.id, call.ranks), opts.timeout || :infinity}}
      end)

    case found do
      {:ok, watching} -> watching
      {:error, error} -> raise error
    end
  end

  defp without_limit(opts) do
    case Options.pop(opts, :timeout) do
      {:infinity, others} -> others
      _other -> opts
    end
  end

  defp next({watch, timeout} = watching) do
    case Watch.take(watch, timeout) do
      {:ok, report} -> {[report], watching}
      {:error, error} -> raise error
      :ended -> {:halt, watching}
    end
  end

  defp stop({watch, _timeout}), do: Watch.stop(watch)
end
