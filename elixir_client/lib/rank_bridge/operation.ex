defmodule RankBridge.Operation do
  @moduledoc false
  # One operation on the members of its group, by its id: see `RankBridge.Operations`. `gives` says how its result is made of the
  # ranks' results; nil: not known.

  alias RankBridge.{Error, Value}
  alias RankBridge.Operations.Given

  @type t :: %__MODULE__{
          id: String.t(),
          name: atom() | nil,
          group: String.t(),
          ranks: [non_neg_integer()],
          timeout: pos_integer(),
          gives: Given.t() | nil
        }

  @typedoc "`:queued` behind others of its group, in `:admission` waiting for the others, in the backend, or done."
  @type state :: :queued | :admission | :data | :done | :unspecified

  @typedoc "How far it is on one rank; `result` is nil until it is done."
  @type status :: %{
          rank: non_neg_integer(),
          state: state(),
          result: {:ok, Value.t()} | {:error, Error.t()} | nil
        }

  @enforce_keys [:id, :ranks, :timeout]
  defstruct [:id, :ranks, :timeout, name: nil, group: "world", gives: nil]

  defimpl Inspect do
    def inspect(operation, _options) do
      name = if operation.name, do: "#{operation.name} ", else: ""
      place = "#{operation.id} of group #{Kernel.inspect(operation.group)}"
      "#RankBridge.Operation<#{name}#{place}, ranks #{RankBridge.Group.listed(operation.ranks)}>"
    end
  end
end
