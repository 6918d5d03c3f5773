defmodule RankBridge.Functions.SourceTest do
  @moduledoc "The source of a module of functions: it compiles, calls what it says, and is the same each time."

  use ExUnit.Case, async: true

  alias RankBridge.{Function, Gang}
  alias RankBridge.Function.Parameter
  alias RankBridge.Functions.{Source, Types}
  alias RankBridge.Proto.V1
  alias RankBridge.Test.RecordingRanks

  doctest Types

  defp parameter(name, kind, type, optional? \\ false),
    do: %Parameter{name: name, kind: kind, type: type, optional?: optional?}

  @odd ~S(Says "#{this}", \n and """that""".)

  defp functions do
    [
      %Function{name: "plain", returns: "None"},
      %Function{
        name: "mixed",
        doc: @odd,
        signature: "(a, /, b: int, *, end: str, lr: float = 0.1)",
        parameters: [
          parameter("a", :positional, ""),
          parameter("b", :plain, "int"),
          parameter("end", :named, "str"),
          parameter("lr", :named, "float", true),
          parameter("bytes", :plain, "bytes", true)
        ]
      },
      %Function{
        name: "rest",
        parameters: [
          parameter("gang", :plain, "list[torch.Tensor]", true),
          parameter("_opts", :rest, "str"),
          parameter("More", :named_rest, "int")
        ]
      },
      %Function{name: "send", yields?: true, returns: "Generator[int, None, dict[str, Any]]"},
      %Function{name: "pkg.do", parameters: [parameter("value", :plain, "int | None")]}
    ]
  end

  # What ranks are asked for, of a call.
  defp asked(ranks, call) do
    call.()

    for {0, [%V1.CallRequest{operations: [%{kind: {:call_function, request}} | _others]}]} <-
          RecordingRanks.asked(ranks),
        do:
          {request.function, for(it <- request.arguments, do: {it.name, elem(it.value.kind, 1)})}
  end

  test "functions call what they are named after, with what they are given" do
    ranks = start_supervised!(RecordingRanks)
    gang = start_supervised!({Gang, RecordingRanks.gang(ranks)})
    source = Source.of(functions(), "RankBridge.Test.Written", ["app.py"])
    assert [{written, _beam}] = Code.compile_string(source)

    for {call, expected} <- [
          {fn -> written.plain(gang) end, {"plain", []}},
          {fn -> written.mixed(gang, 1, 2, "x") end, {"mixed", [{"", 1}, {"", 2}, {"end", "x"}]}},
          {fn -> written.mixed!(gang, 1, 2, "x", [bytes: "abc", lr: 0.5], timeout: 9_000) end,
           {"mixed", [{"", 1}, {"", 2}, {"bytes", "abc"}, {"end", "x"}, {"lr", 0.5}]}},
          {fn -> written.rest(gang, 7, ["a", "b"], z: 1) end,
           {"rest", [{"", 7}, {"", "a"}, {"", "b"}, {"z", 1}]}},
          {fn -> written.send!(gang, timeout: 1_000) end, {"send", []}},
          {fn -> written.pkg_do(gang, 5) end, {"pkg.do", [{"", 5}]}}
        ] do
      assert asked(ranks, call) == [expected]
    end
  end

  test "types and documentation are those of Python" do
    source = Source.of(functions(), "RankBridge.Test.Typed", ["app.py"])
    {_source, found} = source |> Code.string_to_quoted!() |> Macro.prewalk([], &attribute/2)
    found = Enum.reverse(found)

    for spec <- [
          "plain(Gang.gang(), keyword()) :: {:ok, [nil]} | {:error, Error.t()}",
          "send!(Gang.gang(), keyword()) :: [%{String.t() => Value.t()}]",
          "pkg_do!(Gang.gang(), each(integer() | nil), keyword()) :: [Value.t()]",
          "mixed!(Gang.gang(), each(Value.t()), each(integer()), each(String.t()), " <>
            "[{:lr, each(real())} | {:bytes, each(binary() | {:bytes, binary()})}], keyword()) :: " <>
            "[Value.t()]",
          "rest!(Gang.gang(), each([Ref.t() | [Ref.t()] | Tensor.t()]), [each(String.t())], " <>
            "keyword(), keyword()) :: [Value.t()]"
        ] do
      shown = spec |> Code.string_to_quoted!() |> Macro.to_string()
      assert shown in for({:spec, it} <- found, do: it)
    end

    assert [text] = for({:doc, text} <- found, String.starts_with?(text, @odd), do: text)
    assert text =~ "    mixed(a, /, b: int, *, end: str, lr: float = 0.1)"
  end

  defp attribute({:@, _, [{:spec, _, [spec]}]} = node, found),
    do: {node, [{:spec, Macro.to_string(spec)} | found]}

  defp attribute({:@, _, [{:doc, _, [text]}]} = node, found), do: {node, [{:doc, text} | found]}
  defp attribute(node, found), do: {node, found}

  test "the source is formatted, and the same for the same functions" do
    source = Source.of(functions(), "My.App", ["app.py", "pkg.more"])
    assert source == Source.of(functions(), "My.App", ["app.py", "pkg.more"])
    assert source == IO.iodata_to_binary([Code.format_string!(source), "\n"])
    assert source =~ ~S(load: ["app.py", "pkg.more"])
  end

  test "two functions of one name in Elixir are refused" do
    assert_raise ArgumentError, ~r/a_b: "a.b", "a-b"/, fn ->
      Source.of([%Function{name: "a.b"}, %Function{name: "a-b"}], "My.App", ["app.py"])
    end
  end
end
