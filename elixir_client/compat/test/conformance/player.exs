defmodule RankBridge.Test.Conformance.Forms do
  @moduledoc "Values, refs and errors as the lines between `make conformance` and its Elixir player have them."

  alias RankBridge.{Error, Group, Ref, Tensor}
  alias RankBridge.Test.Chaos

  @type json :: %{String.t() => term()}

  @doc "The term of what a line has."
  @spec to_term(term()) :: term()
  def to_term(list) when is_list(list), do: Enum.map(list, &to_term/1)
  def to_term(%{"$tuple" => items}), do: items |> to_term() |> List.to_tuple()

  def to_term(%{"$map" => pairs}),
    do: Map.new(pairs, fn [key, value] -> {to_term(key), to_term(value)} end)

  def to_term(%{"$bytes" => text}), do: {:bytes, Base.decode64!(text)}
  def to_term(%{"$atom" => name}), do: String.to_atom(name)
  def to_term(%{"$ref" => form}), do: Chaos.Forms.to_ref(form)

  def to_term(%{"$tensor" => form}),
    do: Tensor.new!(String.to_atom(form["dtype"]), form["shape"], Base.decode64!(form["data"]))

  def to_term(plain), do: plain

  @doc "What a line has of a term."
  @spec value(term()) :: term()
  def value(%Ref{} = ref), do: %{"$ref" => Chaos.Forms.ref(ref)}

  # Who wants to know more of a group asks for it.
  def value(%Group{} = group), do: group.name

  def value(%Tensor{} = tensor) do
    data = Base.encode64(tensor.data)
    %{"$tensor" => %{"dtype" => "#{tensor.dtype}", "shape" => tensor.shape, "data" => data}}
  end

  def value(term) when is_nil(term) or is_boolean(term) or is_integer(term), do: term
  def value(term) when is_float(term), do: %{"$float" => Float.to_string(term)}
  def value(:nan), do: %{"$float" => "nan"}
  def value(:infinity), do: %{"$float" => "inf"}
  def value(:negative_infinity), do: %{"$float" => "-inf"}
  def value({:bytes, bytes}) when is_binary(bytes), do: %{"$bytes" => Base.encode64(bytes)}
  def value(list) when is_list(list), do: Enum.map(list, &value/1)
  def value(tuple) when is_tuple(tuple), do: %{"$tuple" => tuple |> Tuple.to_list() |> value()}

  def value(%{} = map),
    do: %{"$map" => Enum.map(map, fn {key, value} -> [value(key), value(value)] end)}

  def value(binary) when is_binary(binary),
    do: if(String.valid?(binary), do: binary, else: %{"$bytes" => Base.encode64(binary)})

  @doc "An error, and how each rank's part ended."
  @spec error(Error.t()) :: json()
  def error(%Error{} = error) do
    outcomes = for {rank, outcome} <- error.outcomes, do: [rank, outcome(outcome)]
    error |> Chaos.Forms.error() |> Map.put("outcomes", outcomes)
  end

  defp outcome(:ok), do: nil
  defp outcome(%Error{} = error), do: Chaos.Forms.error(error)
end

defmodule RankBridge.Test.Conformance.Player do
  @moduledoc """
  The Elixir client as one that recorded cases are replayed with (`make conformance CLIENT=elixir`).

      mix run --no-compile --no-deps-check test/conformance/player.exs

  Says "ready", then does what each line of standard input asks for, all at the same time, and answers on a line.

  | do | with | gives |
  | --- | --- | --- |
  | connect | gang, targets, timeout | null |
  | close | gang | null |
  | put | gang, rank, tensor | a ref |
  | get | gang, ref | a tensor |
  | call | gang, function, arguments, options | what the function of `RankBridge`, or of its own module, gives; null for `:ok` |
  """

  alias RankBridge.{Error, Gang}
  alias RankBridge.Test.Conformance.Forms
  alias RankBridge.Test.{Functions, JSON, Logs}

  @doc "Runs until standard input is closed, then ends the whole program."
  @spec main() :: no_return()
  def main do
    :ok = Logs.to_stderr()

    for app <- [:rank_bridge, :rank_bridge_compat],
        do: :ok = app |> Application.spec(:modules) |> :code.ensure_modules_loaded()

    {:ok, _supervisor} = DynamicSupervisor.start_link(strategy: :one_for_one, name: __MODULE__)
    IO.write(:stdio, "ready\n")
    read()
  end

  defp read do
    case IO.binread(:stdio, :line) do
      line when is_binary(line) ->
        request = JSON.decode!(line)
        _pid = spawn(fn -> answer(request) end)
        read()

      _eof_or_error ->
        System.halt(0)
    end
  end

  defp answer(%{"id" => id} = request) do
    line = request |> answer_of() |> Map.put("id", id) |> JSON.encode()
    IO.write(:stdio, [line, ?\n])
  end

  defp answer_of(request) do
    case perform(request["do"], String.to_atom(request["gang"]), request) do
      :ok -> %{"ok" => nil}
      {:ok, value} -> %{"ok" => Forms.value(value)}
      {:error, %Error{} = error} -> %{"error" => Forms.error(error)}
    end
  rescue
    raised -> %{"crash" => Exception.format(:error, raised, __STACKTRACE__)}
  end

  defp perform("connect", gang, request) do
    opts = [name: gang, endpoints: request["targets"], timeout: request["timeout"]]
    spec = Supervisor.child_spec({Gang, opts}, restart: :temporary)
    with {:ok, _pid} <- DynamicSupervisor.start_child(__MODULE__, spec), do: {:ok, nil}
  end

  defp perform("close", gang, _request) do
    :ok = Gang.stop(gang)
    {:ok, nil}
  end

  defp perform("put", gang, request),
    do: RankBridge.put_rank(gang, request["rank"], Forms.to_term(request["tensor"]))

  defp perform("get", gang, request), do: RankBridge.get(gang, Forms.to_term(request["ref"]))

  defp perform("call", gang, request) do
    options =
      for {name, value} <- request["options"], do: {String.to_atom(name), Forms.to_term(value)}

    arguments = [gang | Forms.to_term(request["arguments"])] ++ [options]
    function = String.to_existing_atom(request["function"])
    modules = [RankBridge, RankBridge.Compat | Functions.modules()]
    apply(Enum.find(modules, &has?(&1, function, length(arguments))), function, arguments)
  end

  # A deprecated function is somewhere else, too.
  defp has?(module, function, arity) do
    function_exported?(module, function, arity) and
      not List.keymember?(module.__info__(:deprecated), {function, arity}, 0)
  end
end

RankBridge.Test.Conformance.Player.main()
