defmodule RankBridge.Operations.ReduceOp do
  @moduledoc false
  # How a reduction combines elements: `:sum`, `:max`, `:bxor`, ...

  alias RankBridge.Proto.V1

  @type t :: :sum | :product | :min | :max | :avg | :band | :bor | :bxor

  @names [:sum, :product, :min, :max, :avg, :band, :bor, :bxor]

  @doc "Every reduce op."
  @spec all() :: [t()]
  def all, do: @names

  @doc "Name on the wire, or `:error` for what is no reduce op."
  @spec to_proto(term()) :: {:ok, V1.ReduceOp.t()} | :error
  for name <- @names do
    proto = :"REDUCE_OP_#{name |> Atom.to_string() |> String.upcase()}"
    def to_proto(unquote(name)), do: {:ok, unquote(proto)}
  end

  def to_proto(_other), do: :error

  @doc "The reduce op of a name on the wire, or `:error`."
  @spec from_proto(V1.ReduceOp.t()) :: {:ok, t()} | :error
  for name <- @names do
    proto = :"REDUCE_OP_#{name |> Atom.to_string() |> String.upcase()}"
    def from_proto(unquote(proto)), do: {:ok, unquote(name)}
  end

  def from_proto(_other), do: :error
end
