defmodule RankBridge.Error.Codes do
  @moduledoc false
  # The atoms of codes and phases on the wire. Those of a newer protocol are `:unspecified`.

  alias RankBridge.Error
  alias RankBridge.Proto.V1

  @reasons Map.new(V1.ErrorCode.mapping(), fn {name, _number} ->
             "ERROR_CODE_" <> reason = Atom.to_string(name)
             {name, reason |> String.downcase() |> String.to_atom()}
           end)

  @phases Map.new(V1.Phase.mapping(), fn {name, _number} ->
            "PHASE_" <> phase = Atom.to_string(name)
            {name, phase |> String.downcase() |> String.to_atom()}
          end)

  @doc "The reason of a code."
  @spec reason(V1.ErrorCode.t()) :: Error.reason()
  def reason(code), do: Map.get(@reasons, code, :unspecified)

  @doc "The name of a phase."
  @spec phase(V1.Phase.t()) :: Error.phase()
  def phase(phase), do: Map.get(@phases, phase, :unspecified)
end
