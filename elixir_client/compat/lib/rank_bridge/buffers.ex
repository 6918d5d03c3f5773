defmodule RankBridge.Buffers do
  @moduledoc "Buffers that are made before they are needed."

  use RankBridge.Bangs

  alias RankBridge.{Dtype, Entry, Error, Gang, Ref, Refs, Tensor}

  @typedoc "One parameter of a model."
  @type parameter :: %{name: term(), shape: Tensor.shape(), dtype: Dtype.t()}

  @doc """
  Makes on every member, for each dtype among a model's parameters, a buffer as large as the largest of them: a map from
  dtype to ref for each member, in group order. The name is that of vLLM's `GroupCoordinator`.

      parameters = [%{name: "w", shape: [4, 2], dtype: :float32}, %{name: "b", shape: [2], dtype: :float32}]
      {:ok, [%{float32: buffer} | _others]} =
        RankBridge.Compat.prepare_communication_buffer_for_model(gang, parameters)

  Each buffer has one dimension, and is zero. Either all are made, or none is left. Options: `:group`, `:device`,
  `:timeout`.
  """
  spec_with_bang prepare_communication_buffer_for_model(
                   Gang.gang(),
                   [RankBridge.Buffers.parameter()],
                   keyword()
                 ) :: [%{Dtype.t() => Ref.t()}]

  def prepare_communication_buffer_for_model(gang, parameters, opts \\ []) do
    Entry.call(gang, :prepare_communication_buffer_for_model, opts, fn view ->
      with {:ok, sizes} <- sizes(parameters), do: make(view, sizes, opts)
    end)
  end

  # Elements of the largest parameter of each dtype, in the order in which the dtypes come.
  defp sizes([_ | _] = parameters) do
    Enum.reduce_while(parameters, {:ok, []}, fn parameter, {:ok, sizes} ->
      with %{name: _name, shape: shape, dtype: dtype} <- parameter,
           :ok <- Tensor.check(dtype, shape) do
        elements = Enum.product(shape)
        {:cont, {:ok, Keyword.update(sizes, dtype, elements, &max(&1, elements))}}
      else
        {:error, error} -> {:halt, {:error, %{error | operation: operation()}}}
        other -> {:halt, refuse("a name, a shape and a dtype", other)}
      end
    end)
  end

  defp sizes(other), do: refuse("a parameter or more", other)

  defp make(view, sizes, opts) do
    Enum.reduce_while(sizes, {:ok, []}, fn {dtype, elements}, {:ok, made} ->
      case Refs.create(view, dtype, [elements], opts) do
        {:ok, refs} ->
          {:cont, {:ok, [{dtype, refs} | made]}}

        {:error, error} ->
          _ = Refs.release(view, Enum.flat_map(made, &elem(&1, 1)), [])
          {:halt, {:error, error}}
      end
    end)
    |> case do
      {:ok, made} -> {:ok, by_member(made)}
      error -> error
    end
  end

  defp by_member(made) do
    for refs <- Enum.zip_with(Keyword.values(made), & &1),
        do: made |> Keyword.keys() |> Enum.zip(refs) |> Map.new()
  end

  defp refuse(expected, got) do
    {:error,
     Error.refusal(:invalid_argument, "not the parameters of a model",
       operation: operation(),
       expected: expected,
       got: inspect(got, limit: 5)
     )}
  end

  defp operation, do: "prepare_communication_buffer_for_model"
end
