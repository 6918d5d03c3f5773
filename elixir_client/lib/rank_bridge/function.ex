defmodule RankBridge.Function do
  @moduledoc """
  A function that ranks offer, as Python describes it: see `RankBridge.Functions`.

  * `name` - by which it is called
  * `doc` - its docstring; empty: it has none
  * `parameters` - in order: the `name`, the `kind`, the `type` and the `default` of each as Python writes them (empty: it has
    none), and whether it is `optional?`. The kind is `:plain` (by place or by name), `:positional` (by place alone),
    `:named` (by name alone), `:rest` (all further values without a name) or `:named_rest` (all further values with one)
  * `returns` - the type that it returns, as Python writes it; empty: not annotated
  * `yields?` - whether it yields: each value is a report, and what it returns in the end is the result
  * `signature` - as Python writes it: `"(batch: int, lr: float = 0.1)"`
  """

  alias RankBridge.Function.Parameter
  alias RankBridge.Proto.V1

  @type t :: %__MODULE__{
          name: String.t(),
          doc: String.t(),
          parameters: [Parameter.t()],
          returns: String.t(),
          yields?: boolean(),
          signature: String.t()
        }

  @enforce_keys [:name]
  defstruct [:name, doc: "", parameters: [], returns: "", yields?: false, signature: "()"]

  @doc "The function that a rank described."
  @spec from_proto(V1.Function.t()) :: t()
  def from_proto(%V1.Function{} = function) do
    %__MODULE__{
      name: function.name,
      doc: function.doc,
      parameters: Enum.map(function.parameters, &Parameter.from_proto/1),
      returns: function.returns,
      yields?: function.yields,
      signature: function.signature
    }
  end

  defimpl Inspect do
    def inspect(function, _options),
      do: "#RankBridge.Function<#{function.name}#{function.signature}>"
  end
end
