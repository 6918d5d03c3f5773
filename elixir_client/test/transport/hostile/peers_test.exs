defmodule RankBridge.Transport.Hostile.PeersTest do
  @moduledoc """
  grpcio and grpc-js against the servers of the table: they end as was recorded, and this client as they do, or there is a reason.
  `TableTest` checks that this client's calls end as the table says.
  """

  # The machine is the peers' alone.
  use ExUnit.Case, async: false

  alias RankBridge.Test.Hostile.{Cases, Peers, Recorded}

  defp cases(names) do
    cases = Map.new(Cases.all(), &{&1.name, &1})
    Enum.map(names, &Map.fetch!(cases, &1))
  end

  defp ours(%{call: {:ok, _message}}), do: "ok"
  defp ours(%{call: {:error, code, _sent?}}), do: Atom.to_string(code)

  test "grpcio ends as this client does, but where there is a reason" do
    same = for {name, _grpc_js?} <- Recorded.same(), do: name
    other = for {name, _code, why} <- Recorded.other(), why != "", do: name
    assert length(same) + length(other) >= 200
    {codes, version} = Peers.grpcio(cases(same ++ other))

    expected =
      Map.merge(
        Map.new(cases(same), &{&1.name, ours(&1)}),
        Map.new(Recorded.other(), fn {name, code, _why} -> {name, code} end)
      )

    assert {changed(codes, expected), version} == {[], version}

    # No reason outlives its difference.
    for kase <- cases(other), do: refute(ours(kase) == codes[kase.name], kase.name)
  end

  test "grpc-js ends as this client does" do
    case Peers.node_modules() do
      {:ok, modules} ->
        cases = cases(for {name, true} <- Recorded.same(), do: name)
        {codes, version} = Peers.grpc_js(cases, modules)
        expected = Map.new(cases, &{&1.name, ours(&1)})
        assert {changed(codes, expected), version} == {[], version}

      {:error, why} ->
        IO.puts("\n#{inspect(__MODULE__)} does not compare with grpc-js: #{why}")
    end
  end

  defp changed(codes, expected),
    do: for({name, code} <- codes, code != expected[name], do: {name, code, expected[name]})
end
