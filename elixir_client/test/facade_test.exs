defmodule RankBridge.FacadeTest do
  @moduledoc "Functions on a gang are declared once, and are in `RankBridge` with all that belongs to them."

  use ExUnit.Case, async: true

  alias RankBridge.Error
  alias RankBridge.Test.Functions

  defmodule Counted do
    use RankBridge.Bangs

    alias RankBridge.Error, as: Failure

    @doc "Twice a number."
    spec_with_bang twice(integer(), keyword()) :: integer()

    def twice(number, opts \\ []) do
      if opts[:fail],
        do: {:error, Failure.refusal(:invalid_argument, "told to fail")},
        else: {:ok, 2 * number}
    end

    @doc "Gives an error as a value."
    spec_with_bang failure(String.t()) :: Failure.t()

    def failure(message), do: {:ok, Failure.refusal(:internal, message)}

    @doc "Succeeds, or not."
    spec_with_bang even(integer()) :: :ok

    def even(number) when rem(number, 2) == 0, do: :ok
    def even(_odd), do: {:error, Failure.refusal(:invalid_argument, "odd")}
  end

  defmodule Both do
    use RankBridge.Facade, of: [RankBridge.FacadeTest.Counted]
  end

  # What needs no gang, and what is made of the view of one.
  @others %{
    RankBridge.Averaging => [:run],
    RankBridge.Collectives => [:run],
    RankBridge.Functions => [:reports],
    RankBridge.Objects => [:broadcast_list],
    RankBridge.Operations => [:run_rank, :begin_gang, :begin_rank, :find],
    RankBridge.Queues => [:make, :shut_down]
  }

  test "a function gives a value or an error; with a ! it gives the value or raises the error" do
    for module <- [Counted, Both] do
      assert module.twice(4) == {:ok, 8}
      assert module.twice!(4) == 8
      assert {:error, %Error{message: "told to fail"}} = module.twice(4, fail: true)
      assert_raise Error, ~r/told to fail/, fn -> module.twice!(4, fail: true) end
      assert %Error{message: "m"} = module.failure!("m")
      assert module.even!(2) == :ok
      assert_raise Error, ~r/odd/, fn -> module.even!(3) end
    end
  end

  test "RankBridge has every function on a gang, some of them deprecated" do
    own = functions(RankBridge)

    for noun <- Functions.modules(), {name, arity} <- functions(noun) do
      assert {name, arity} in own or name in Map.get(@others, noun, [])
    end

    current = for {{:function, name, _arity}, _, _, %{}, _} <- docs(RankBridge), do: name
    names = Enum.reject(current, &String.ends_with?("#{&1}", "!"))
    assert length(Enum.uniq(names)) in 30..52

    # Of `put` a way to call it is deprecated.
    deprecated =
      for {{name, _arity}, _why} <- RankBridge.__info__(:deprecated), name != :put, do: name

    assert Enum.uniq(names) -- deprecated == Enum.uniq(names)
    assert :new_queue in deprecated and :new_queue! in deprecated
  end

  defp functions(module) do
    for {name, arity} <- module.module_info(:exports),
        name not in [:module_info, :__info__, :__with_bang__],
        do: {name, arity}
  end

  test "every public function is documented and has a type, in all of the library's modules" do
    {:ok, modules} = :application.get_key(:rank_bridge, :modules)
    ours = for module <- modules, ours?(module), do: module
    assert length(ours) > 30

    for module <- ours,
        {{:function, name, arity}, _line, _signature, doc, _meta} <- docs(module) do
      assert {module, name, arity, doc} != {module, name, arity, :none}
    end

    for module <- [RankBridge | Functions.modules()] do
      {:ok, specs} = Code.Typespec.fetch_specs(module)
      typed = for {function, _types} <- specs, do: function
      documented = for {{:function, n, a}, _, _, %{}, _} <- docs(module), do: {n, a}
      assert {module, documented -- typed} == {module, []}
    end
  end

  defp ours?(module) do
    name = inspect(module)

    String.starts_with?(name, "RankBridge") and
      not String.starts_with?(name, [
        "RankBridge.Proto",
        "RankBridge.Test",
        "RankBridge.Transport"
      ])
  end

  defp docs(module) do
    {:docs_v1, _, _, _, _, _, docs} = Code.fetch_docs(module)
    docs
  end

  test "an editor finds a function of RankBridge where it is declared" do
    for name <- [:all_reduce, :all_reduce!] do
      {file, line} = place(RankBridge, name)
      assert Path.basename(file) == "collectives.ex"
      declared = "../lib/rank_bridge/collectives.ex" |> Path.expand(__DIR__) |> File.stream!()
      assert Enum.at(declared, line - 1) =~ "all_reduce("
    end
  end

  # As the debugger's information has it, where editors look.
  defp place(module, name) do
    {^module, beam, _file} = :code.get_object_code(module)

    {:ok, {^module, [abstract_code: {:raw_abstract_v1, forms}]}} =
      :beam_lib.chunks(beam, [:abstract_code])

    forms
    |> Enum.chunk_every(2, 1, :discard)
    |> Enum.find_value(fn
      [{:attribute, _, :file, {file, line}}, {:function, _, ^name, _, _}] -> {"#{file}", line}
      _others -> nil
    end)
  end

  test "the documentation of a function comes along" do
    for {noun, name} <- [
          {RankBridge.Collectives, :all_reduce},
          {RankBridge.Objects, :broadcast_object},
          {RankBridge.PointToPoint, :recv},
          {RankBridge.Operations, :submit},
          {RankBridge.Run, :run}
        ] do
      here = text(RankBridge, name)
      assert is_binary(here) and here == text(noun, name)
    end
  end

  defp text(module, name) do
    Enum.find_value(docs(module), fn
      {{:function, ^name, _arity}, _line, _signature, %{"en" => text}, _meta} -> text
      _other -> nil
    end)
  end
end
