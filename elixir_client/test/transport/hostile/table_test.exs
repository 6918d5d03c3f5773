defmodule RankBridge.Transport.Hostile.TableTest do
  @moduledoc "A server that is wrong in every way of the table: what the call and the server get, and that all else is unharmed."

  # Processes, ports and the log are compared before and after.
  use ExUnit.Case, async: false

  alias RankBridge.Test.Hostile.{Bystander, Cases, Run, VM}

  setup_all do
    bystander = start_supervised!(Bystander)
    # Its connection is there from now on.
    assert {_well, []} = Bystander.calls(bystander)
    %{bystander: bystander}
  end

  for {kase, number} <- Enum.with_index(Cases.all()) do
    @tag number: number
    test "#{kase.section}: #{kase.name}", %{bystander: bystander, number: number} do
      VM.unharmed(fn -> Run.check(Enum.at(Cases.all(), number)) end)
      assert {_well, []} = Bystander.calls(bystander)
    end
  end

  test "the table is large, and says everything once" do
    names = for kase <- Cases.all(), do: kase.name
    assert length(names) >= 200
    assert names -- Enum.uniq(names) == []
  end
end
