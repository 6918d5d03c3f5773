defmodule RankBridge.GroupCoordinator.Tensors do
  @moduledoc "Tensors as callers of a coordinator give them: refs, wire refs, or what is brought to the rank first."

  alias RankBridge.{Dtype, Error, Gang, Ref}
  alias RankBridge.SnakeBridge.{Objects, Wire}

  @type result(value) :: {:ok, value} | {:error, Error.t()}

  @doc "A ref of the rank, and whether it was made for this call."
  @spec bring(Gang.gang(), non_neg_integer(), term(), keyword(), String.t()) ::
          result({Ref.t(), boolean()})
  def bring(_gang, _rank, %Ref{} = ref, _opts, _operation), do: {:ok, {ref, false}}

  def bring(gang, rank, given, opts, operation) do
    if Wire.ref?(given) do
      case Objects.of_ref(given) do
        {:ok, {:tensor, _gang, ref}} -> {:ok, {ref, false}}
        {:ok, _other} -> refuse(operation, "this ref stands for no tensor", "a tensor's", given)
        {:error, error} -> {:error, %{error | operation: operation}}
      end
    else
      with {:ok, ref} <- RankBridge.put_rank(gang, rank, given, opts), do: {:ok, {ref, true}}
    end
  end

  @doc "The dtype of a name: `:float32`, \"torch.float32\", `{:f, 32}`."
  @spec dtype(term(), String.t()) :: result(Dtype.t())
  def dtype({_kind, _bits} = type, operation) do
    with :error <- Dtype.from_nx(type), do: no_dtype(type, operation)
  end

  def dtype(name, operation) when is_atom(name) or is_binary(name) do
    text = String.replace_prefix("#{name}", "torch.", "")

    case Enum.find(Dtype.all(), &("#{&1}" == text)) do
      nil -> no_dtype(name, operation)
      dtype -> {:ok, dtype}
    end
  end

  def dtype(other, operation), do: no_dtype(other, operation)

  @doc "The shape of a size: `[2, 3]`, `{2, 3}`, `2`. What is none stays, for the call to refuse."
  @spec shape(term()) :: term()
  def shape(size) when is_integer(size), do: [size]
  def shape(size) when is_tuple(size), do: Tuple.to_list(size)
  def shape(size), do: size

  defp no_dtype(given, operation) do
    fields = [operation: operation, expected: "float32", got: inspect(given, limit: 3)]
    {:error, Error.refusal(:unsupported_dtype, "there is no such dtype", fields)}
  end

  defp refuse(operation, message, expected, given) do
    fields = [operation: operation, expected: expected, got: inspect(given, limit: 3)]
    {:error, Error.refusal(:invalid_argument, message, fields)}
  end
end
