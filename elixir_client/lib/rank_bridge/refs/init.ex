defmodule RankBridge.Refs.Init do
  @moduledoc false
  # The elements of a tensor that a rank makes: see `RankBridge.create/4`.

  alias RankBridge.{Error, Protobuf}
  alias RankBridge.Proto.V1

  @type t ::
          :zeros
          | {:full, number() | boolean() | Protobuf.float_value()}
          | {:arange, number(), number()}
          | {:uniform, non_neg_integer(), number(), number()}
          | {:normal, non_neg_integer(), number(), number()}

  @specials [:nan, :infinity, :negative_infinity]
  @int64 -0x8000_0000_0000_0000..0x7FFF_FFFF_FFFF_FFFF
  @seeds 0..0xFFFF_FFFF_FFFF_FFFF

  @doc "The `init` of a `CreateTensorRequest`."
  @spec to_proto(t()) :: {:ok, V1.CreateTensorRequest.init()} | {:error, Error.t()}
  def to_proto(:zeros), do: {:ok, {:zeros, %V1.Zeros{}}}
  def to_proto({:full, value}) when is_boolean(value), do: full({:bool, value})
  def to_proto({:full, value}) when is_integer(value) and value in @int64, do: full({:int, value})

  def to_proto({:full, value}) when is_float(value) or value in @specials,
    do: full({:float, value})

  # A step of 0 means 1 on the wire; a constant is a full.
  def to_proto({:arange, start, step}) when is_number(start) and step == 0,
    do: to_proto({:full, start * 1.0})

  def to_proto({:arange, start, step}) when is_number(start) and is_number(step),
    do: {:ok, {:arange, %V1.Arange{start: start, step: step}}}

  def to_proto({:uniform, seed, low, high})
      when is_integer(seed) and seed in @seeds and is_number(low) and is_number(high) and
             not (low == 0 and high == 0),
      do: {:ok, {:uniform, %V1.Uniform{seed: seed, low: low, high: high}}}

  def to_proto({:normal, seed, mean, std})
      when is_integer(seed) and seed in @seeds and is_number(mean) and is_number(std) and std >= 0,
      do: {:ok, {:normal, %V1.Normal{seed: seed, mean: mean, std: std}}}

  def to_proto(other) do
    {:error,
     Error.refusal(
       :invalid_argument,
       "not an init: #{inspect(other, limit: 5, printable_limit: 40)}"
     )}
  end

  defp full(element), do: {:ok, {:full, %V1.Full{element: element}}}
end
