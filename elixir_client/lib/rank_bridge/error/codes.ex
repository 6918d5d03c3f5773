defmodule RankBridge.Error.Codes do
  @moduledoc false
  # The atoms of codes and phases on the wire. Those of a newer protocol are `:unspecified`.

  alias RankBridge.{Error, ShortNames}
  alias RankBridge.Proto.V1

  @reasons ShortNames.of(V1.ErrorCode, "ERROR_CODE_")
  @phases ShortNames.of(V1.Phase, "PHASE_")

  @doc "The reason of a code."
  @spec reason(V1.ErrorCode.t()) :: Error.reason()
  def reason(code), do: Map.get(@reasons, code, :unspecified)

  @doc "The name of a phase."
  @spec phase(V1.Phase.t()) :: Error.phase()
  def phase(phase), do: Map.get(@phases, phase, :unspecified)
end
