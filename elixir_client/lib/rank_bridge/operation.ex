defmodule RankBridge.Operation do
  @moduledoc """
  One operation on the members of its group, by its id: what `RankBridge.submit/4` and `RankBridge.PointToPoint.isend/5` give. Plain
  data: it can be kept and sent, and outlives the gang that it came from.

  * `id` - the same on every member
  * `name` - of the operation, as in `:all_reduce`; nil: it was asked for by its id
  * `group` - name of its group
  * `ranks` - the ranks on which it was begun: its members in group order, or one
  * `timeout` - the longest that it may wait for its members, in milliseconds
  * `gives` - how the operation's result is made of the ranks' results; nil: not known
  """

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
