# A stand-in for Nx, as far as containers of tensors use it. Written from the documentation of Nx 0.12.1: `Nx.Container` is
# derived with `:containers` and `:keep`, and gives each container field to the function, and resets the other fields;
# `Nx.LazyContainer.traverse/3` gives a template, a function that builds the tensor, and the accumulator, recurses by
# itself, and falls back to `Nx.Container`. Loaded by the tests that need it, and unloaded again.
defmodule Nx.Tensor do
  @moduledoc "A stand-in: a tensor of a binary."
  @enforce_keys [:data, :type, :shape]
  defstruct [:data, :type, :shape]
end

defmodule Nx do
  @moduledoc "A stand-in: tensors of binaries, and their bytes."
  def from_binary(binary, {_kind, bits} = type),
    do: %Nx.Tensor{data: binary, type: type, shape: {div(8 * byte_size(binary), bits)}}

  def reshape(%Nx.Tensor{} = tensor, shape), do: %{tensor | shape: shape}
  def to_binary(%Nx.Tensor{data: data}), do: data
end

defprotocol Nx.Container do
  @moduledoc "A stand-in: structs with tensors in some fields."
  @fallback_to_any true
  def traverse(data, acc, fun)
end

defimpl Nx.Container, for: Any do
  defmacro __deriving__(module, struct, options) do
    containers = Keyword.fetch!(options, :containers)
    kept = containers ++ Keyword.get(options, :keep, [])

    quote do
      defimpl Nx.Container, for: unquote(module) do
        def traverse(data, acc, fun) do
          reset = Map.merge(unquote(Macro.escape(struct)), Map.take(data, unquote(kept)))

          Enum.reduce(unquote(containers), {reset, acc}, fn field, {data, acc} ->
            {value, acc} = fun.(Map.fetch!(data, field), acc)
            {Map.put(data, field, value), acc}
          end)
        end
      end
    end
  end

  def traverse(data, _acc, _fun),
    do: raise(Protocol.UndefinedError, protocol: Nx.Container, value: data)
end

defprotocol Nx.LazyContainer do
  @moduledoc "A stand-in: structs whose tensors are built when they are needed."
  @fallback_to_any true
  def traverse(data, acc, fun)
end

defimpl Nx.LazyContainer, for: Any do
  def traverse(data, acc, fun),
    do: Nx.Container.traverse(data, acc, &Nx.LazyContainer.traverse(&1, &2, fun))
end
