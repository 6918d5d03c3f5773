defmodule RankBridge.Doctor do
  @moduledoc "Says what is wrong with a gang: which rank keeps which others waiting, in which call, and what it does instead."

  use RankBridge.Bangs

  alias RankBridge.{Calls, Entry, Error, Gang, Options, Telemetry, Verdict}
  alias RankBridge.Gang.View
  alias RankBridge.Proto.V1

  # Milliseconds that a rank has to give its evidence. One that does not answer must not hold up the verdict.
  @evidence_timeout 2_000

  @doc """
  Asks every rank what it does, and one of them for the verdict. It changes nothing, and waits for no gang that is not ready.

  Every rank is looked at twice, 0.2 s apart; one that does not answer within 2 s is judged by what the others and its host know
  of it. If nobody waits, the verdict is on what has failed last in a group, until one of its members has gone on. It is an error
  only if no rank can be reached: its `outcomes` say why of each.

  Option `:patience`: seconds that ranks may wait for each other without being called stuck, 0.001 or more; 2. `:timeout` can only
  shorten the time that a rank has to answer.

      {:ok, verdict} = RankBridge.Doctor.diagnose(MyGang)
      if not RankBridge.Verdict.healthy?(verdict), do: IO.puts(verdict)
  """
  spec_with_bang diagnose(Gang.gang(), keyword()) :: Verdict.t()

  def diagnose(gang, opts \\ []) do
    Entry.call(gang, :diagnose, opts, fn view ->
      began = System.monotonic_time()

      with {:ok, opts} <- Options.read(opts, [patience: 2], "diagnose"),
           {:ok, patience_ms} <- milliseconds(opts.patience),
           timeout = opts.timeout || view.timeout,
           {:ok, evidence} <- evidence(view, timeout),
           {:ok, verdict} <- judge(view, evidence, patience_ms, timeout) do
        :ok = Telemetry.verdict(view.known_as, verdict, System.monotonic_time() - began)
        {:ok, verdict}
      end
    end)
  end

  # What ranks have answered, the lowest rank first; an error if none has.
  defp evidence(view, timeout) do
    call = question(V1.DebugService.get_evidence(), min(timeout, @evidence_timeout))
    requests = for rank <- View.all_ranks(view), do: {rank, %V1.GetEvidenceRequest{}}
    results = Calls.each(view, requests, call)

    case for({rank, {:ok, evidence}} <- results, do: {rank, evidence}) do
      [] -> Calls.gathered(results, false)
      answered -> {:ok, answered}
    end
  end

  defp judge(view, [{lowest, _evidence} | _others] = answered, patience_ms, timeout) do
    evidence = for {_rank, evidence} <- answered, do: evidence
    request = %V1.DiagnoseRequest{evidence: evidence, patience_ms: patience_ms}
    call = question(V1.DebugService.diagnose(), timeout)

    with {:ok, verdict} <- Calls.one(view, lowest, request, call),
         do: {:ok, Verdict.from_proto(verdict)}
  end

  defp question(rpc, timeout),
    do: %Calls{rpc: rpc, operation: "diagnose", deadline: timeout, changes?: false}

  # As much as a request can hold.
  defp milliseconds(patience)
       when is_number(patience) and patience >= 0.001 and patience < 4_294_967.295,
       do: {:ok, round(patience * 1_000)}

  defp milliseconds(other) do
    {:error,
     Error.refusal(:invalid_argument, ":patience is wrong",
       operation: "diagnose",
       expected: "a number of seconds, 0.001 or more",
       got: inspect(other, limit: 3)
     )}
  end
end
