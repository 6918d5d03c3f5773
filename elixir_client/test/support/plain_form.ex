defmodule RankBridge.Test.PlainForm do
  @moduledoc "Messages as plain JSON terms, as `tests/vectors/plain.py` describes them."

  @type plain :: nil | boolean() | integer() | String.t() | [plain()] | %{String.t() => plain()}

  @nan "7ff8000000000000"
  @infinity "7ff0000000000000"
  @negative_infinity "fff0000000000000"

  @doc "The module of a message, from its name in the proto files."
  @spec module(String.t()) :: module()
  def module(name), do: Module.safe_concat(RankBridge.Proto.V1, name)

  @doc "The fields that are set, as plain terms. Unknown fields are left out."
  @spec to_plain(struct()) :: plain()
  def to_plain(%module{} = message) do
    for {_number, name, type, presence} <- module.__fields__(),
        value = field(message, name, presence, type),
        value != :absent,
        into: %{} do
      {Atom.to_string(name), value_to_plain(type, value)}
    end
  end

  defp field(message, name, {:oneof, oneof}, _type) do
    case Map.fetch!(message, oneof) do
      {^name, value} -> {:set, value}
      _other -> :absent
    end
  end

  defp field(message, name, presence, type) do
    value = Map.fetch!(message, name)
    if default?(presence, type, value), do: :absent, else: {:set, value}
  end

  defp default?(:optional, _type, value), do: value == nil
  defp default?(:repeated, _type, value), do: value == []
  defp default?(:implicit, :double, value), do: value == 0.0 and <<value::float>> == <<0::64>>
  defp default?(:implicit, {:enum, module}, value), do: module.value(value) == 0
  defp default?(:implicit, _type, value), do: value in [0, "", false]

  defp value_to_plain(type, {:set, list}) when is_list(list) and type != :bytes,
    do: Enum.map(list, &element_to_plain(type, &1))

  defp value_to_plain(type, {:set, value}), do: element_to_plain(type, value)

  defp element_to_plain({:message, _module}, value), do: to_plain(value)
  defp element_to_plain({:enum, _module}, value) when is_atom(value), do: Atom.to_string(value)
  defp element_to_plain(:bytes, value), do: %{"b64" => Base.encode64(value)}
  defp element_to_plain(:double, value), do: float_to_plain(value)
  defp element_to_plain(_type, value), do: value

  @doc "A float as a plain term; every NaN is the same one."
  @spec float_to_plain(RankBridge.Protobuf.float_value()) :: plain()
  def float_to_plain(:nan), do: %{"f64" => @nan}
  def float_to_plain(:infinity), do: %{"f64" => @infinity}
  def float_to_plain(:negative_infinity), do: %{"f64" => @negative_infinity}
  def float_to_plain(value), do: %{"f64" => Base.encode16(<<value::float>>, case: :lower)}

  @doc "The message of plain terms."
  @spec from_plain(module(), plain()) :: struct()
  def from_plain(module, plain) do
    Enum.reduce(plain, struct!(module), fn {text, value}, message ->
      {_number, name, type, presence} =
        Enum.find(module.__fields__(), &(Atom.to_string(elem(&1, 1)) == text))

      value = value_from_plain(type, presence, value)

      case presence do
        {:oneof, oneof} -> Map.replace!(message, oneof, {name, value})
        _other -> Map.replace!(message, name, value)
      end
    end)
  end

  defp value_from_plain(type, :repeated, list), do: Enum.map(list, &element_from_plain(type, &1))
  defp value_from_plain(type, _presence, value), do: element_from_plain(type, value)

  defp element_from_plain({:message, module}, value), do: from_plain(module, value)

  defp element_from_plain({:enum, module}, value) when is_binary(value),
    do: Enum.find(Map.keys(module.mapping()), &(Atom.to_string(&1) == value))

  defp element_from_plain(:bytes, %{"b64" => text}), do: Base.decode64!(text)
  defp element_from_plain(:double, %{"f64" => @nan}), do: :nan
  defp element_from_plain(:double, %{"f64" => @infinity}), do: :infinity
  defp element_from_plain(:double, %{"f64" => @negative_infinity}), do: :negative_infinity

  defp element_from_plain(:double, %{"f64" => hex}) do
    <<value::float>> = Base.decode16!(hex, case: :lower)
    value
  end

  defp element_from_plain(_type, value), do: value
end
