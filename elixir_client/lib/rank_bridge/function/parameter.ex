defmodule RankBridge.Function.Parameter do
  @moduledoc false
  # A parameter of a function: see `RankBridge.Function`.

  alias RankBridge.Proto.V1

  @type kind :: :plain | :positional | :named | :rest | :named_rest | :unspecified

  @type t :: %__MODULE__{
          name: String.t(),
          kind: kind(),
          type: String.t(),
          optional?: boolean(),
          default: String.t()
        }

  @enforce_keys [:name]
  defstruct [:name, kind: :plain, type: "", optional?: false, default: ""]

  @kinds %{
    PARAMETER_KIND_PLAIN: :plain,
    PARAMETER_KIND_POSITIONAL: :positional,
    PARAMETER_KIND_NAMED: :named,
    PARAMETER_KIND_REST: :rest,
    PARAMETER_KIND_NAMED_REST: :named_rest
  }

  @doc "The parameter that a rank described."
  @spec from_proto(V1.Parameter.t()) :: t()
  def from_proto(%V1.Parameter{} = parameter) do
    %__MODULE__{
      name: parameter.name,
      kind: Map.get(@kinds, parameter.kind, :unspecified),
      type: parameter.type,
      optional?: parameter.optional,
      default: parameter.default
    }
  end
end
