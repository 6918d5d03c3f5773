defmodule RankBridge.Inspection do
  @moduledoc """
  A call that a rank holds, with what it brings, see `RankBridge.Hold.inspect_held/2`.

  * `call` - the `RankBridge.HeldCall`
  * `inputs` - the tensors that it reads, see `t:input/0`; none: it reads none, or the breakpoint was set after the operation
    had come
  * `frames` - where the thread is that made it, the innermost call of the user's code first, see `t:frame/0`; none: a controller
    has made it
  """

  alias RankBridge.{Error, HeldCall, Tensor, ThreadStack, Value}
  alias RankBridge.Proto.V1

  @typedoc "In float64; of complex elements, the magnitudes count."
  @type number_of :: float() | :nan | :infinity | :negative_infinity

  @typedoc """
  A tensor that a call reads.

  * `spec` - dtype and shape: "float32[4, 4]"
  * `elements` - how many it has
  * `norm` - the root of the sum of squares of the finite elements
  * `min`, `max`, `mean` - of the finite elements; nil: there are none
  * `nans`, `infs` - how many elements are NaN, and how many are infinite
  * `hash` - equal exactly if dtype, shape and all elements are, bit for bit; empty: there is none
  * `slice` - the elements that were asked for, in one dimension; nil: none were, or the bridge has no such dtype
  """
  @type input :: %{
          spec: String.t(),
          elements: non_neg_integer(),
          norm: number_of(),
          min: number_of() | nil,
          max: number_of() | nil,
          mean: number_of() | nil,
          nans: non_neg_integer(),
          infs: non_neg_integer(),
          hash: String.t(),
          slice: Tensor.t() | nil
        }

  @typedoc """
  A call in a stack: its `function`, the `file` of its code, and the `line` at which it is; and its `variables` by name, what each
  is, in at most 200 characters.
  """
  @type frame :: %{
          function: String.t(),
          file: String.t(),
          line: non_neg_integer(),
          variables: %{String.t() => String.t()}
        }

  @type t :: %__MODULE__{call: HeldCall.t(), inputs: [input()], frames: [frame()]}

  @enforce_keys [:call, :inputs, :frames]
  defstruct @enforce_keys

  @copied [:spec, :elements, :norm, :min, :max, :mean, :nans, :infs, :hash]

  @doc "What a rank sent. The error says what it lacks."
  @spec from_proto(V1.Inspection.t()) :: {:ok, t()} | {:error, Error.t()}
  def from_proto(%V1.Inspection{} = it) do
    with {:ok, slices} <- slices(it.inputs) do
      inputs = Enum.zip_with(it.inputs, slices, &Map.put(Map.take(&1, @copied), :slice, &2))
      frames = Enum.map(it.frames, &frame/1)
      {:ok, %__MODULE__{call: HeldCall.from_proto(it.call), inputs: inputs, frames: frames}}
    end
  end

  defp slices(inputs) do
    slices = for %{slice: slice} <- inputs, do: slice(slice)
    with nil <- Enum.find(slices, &match?({:error, _error}, &1)), do: {:ok, values(slices)}
  end

  defp values(results), do: for({:ok, value} <- results, do: value)

  defp slice(nil), do: {:ok, nil}
  defp slice(tensor), do: Value.from_proto(%V1.Value{kind: {:tensor, tensor}})

  defp frame(%V1.FrameVariables{} = it) do
    variables = Map.new(it.variables, &{&1.name, &1.value})
    it.frame |> ThreadStack.frame() |> Map.put(:variables, variables)
  end
end
