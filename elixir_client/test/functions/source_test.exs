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
    [{typed, beam}] = Code.compile_string(source)
    {:ok, specs} = Code.Typespec.fetch_specs(beam)

    shown = fn name, arity ->
      [spec] = :proplists.get_value({name, arity}, specs)
      name |> Code.Typespec.spec_to_quoted(spec) |> Macro.to_string()
    end

    assert shown.(:plain, 2) =~ ":: {:ok, [nil]} | {:error, RankBridge.Error.t()}"
    assert shown.(:send!, 2) =~ ":: [%{required(String.t()) => RankBridge.Value.t()}]"
    assert shown.(:pkg_do, 3) =~ "each(integer() | nil)"
    assert shown.(:mixed, 6) =~ "[lr: each(real()), bytes: each(binary() | {:bytes, binary()})]"
    assert shown.(:rest, 5) =~ "[each(String.t())]"
    assert typed.__info__(:functions)[:mixed!] != nil
    assert source =~ "mixed(a, /, b: int, *, end: str, lr: float = 0.1)"
    {:ok, {_module, [{~c"Docs", docs}]}} = :beam_lib.chunks(beam, [~c"Docs"])
    {:docs_v1, _, _, _, _, _, entries} = :erlang.binary_to_term(docs)

    assert [text] = for({{:function, :mixed, 6}, _, _, %{"en" => text}, _} <- entries, do: text)
    assert String.starts_with?(text, @odd)
  end

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
