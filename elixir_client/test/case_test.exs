defmodule RankBridge.CaseTest do
  @moduledoc "Tests that get real ranks by `RankBridge.Case`."

  use RankBridge.Case, size: 3, command: RankBridge.Test.OsProcess.rankbridge(), async: true

  alias RankBridge.{Error, Gang, Tensor}
  alias RankBridge.Test.OsProcess

  # Each module's tests are here twice: ranks that another test had are as if they were new.
  for time <- 1..2 do
    test "calls mean the test's own group, whatever makes them, #{time}", context do
      %{gang: gang, group: group} = context
      assert "test-" <> _number = group
      ranks = fn it -> for ref <- it, do: {ref.rank, ref.shape} end
      every = [{0, [1]}, {1, [1]}, {2, [1]}]

      refs = RankBridge.put!(gang, [[0.0], [1.0], [2.0]])
      assert ranks.(refs) == every
      assert ranks.(RankBridge.create!(gang, :float32, [1])) == every
      [sum | _others] = RankBridge.all_reduce!(gang, refs)
      assert gang |> RankBridge.get!(sum) |> Tensor.to_list() == [3.0]
      assert RankBridge.submit!(gang, :barrier, nil).group == group
      stream = RankBridge.CallStream.open!(gang)
      assert stream.group == group
      RankBridge.CallStream.close(stream)
      queue = RankBridge.Queues.new_queue!(gang, "queue")
      assert queue.group == group
      assert RankBridge.Queues.queue!(gang, "queue").group == group

      assert {:error, %Error{reason: :peer_missing, group: ^group} = error} =
               RankBridge.Operations.call_rank(gang, 0, :barrier, nil, timeout: 100)

      assert error.ranks |> Enum.filter(&(&1.state == :missing)) |> Enum.map(& &1.rank) == [1, 2]

      # The same in a run, whose members agree on ids of the group's calls.
      assert {:ok, [_, _, _]} =
               RankBridge.run(
                 gang,
                 &RankBridge.Operations.call_rank(gang, &1, :all_reduce, Enum.at(refs, &1))
               )

      # World is there, too, and so are groups of the test's own making.
      assert RankBridge.barrier(gang, group: "world") == :ok
      assert RankBridge.destroy_group!(gang, RankBridge.new_group!(gang, "pair", [2, 0]).name)
    end
  end

  @tag gang: [size: 2, timeout: 200]
  @tag sampled: RankBridge.Test.Sampled.part(__ENV__)
  test "a test says what it wants", %{gang: gang} do
    assert Gang.size(gang) == {:ok, 2}
    began = System.monotonic_time(:millisecond)

    assert {:error, %Error{reason: :peer_missing}} =
             RankBridge.Operations.call_rank(gang, 1, :barrier, nil)

    assert System.monotonic_time(:millisecond) - began < 10_000
  end

  @tag sampled: RankBridge.Test.Sampled.part(__ENV__)
  test "an option of another name is refused" do
    assert_raise ArgumentError, ~r/:sise/, fn ->
      RankBridge.Case.Wanted.read([sise: 3], nil)
    end
  end

  # Of another VM, because these tests fail.
  @failing Path.expand("support/case/failing.exs", __DIR__)

  @page Path.expand("../../docs/harness.md", __DIR__)

  defp page_program(folder) do
    [[_all, program]] = Regex.scan(~r/```elixir\n(.*?)```/s, File.read!(@page))
    file = Path.join(folder, "page.exs")
    File.write!(file, program)
    file
  end

  @tag :tmp_dir
  @tag sampled: RankBridge.Test.Sampled.part(__ENV__)
  test "a failure says how the ranks are, and the next test has them as new", %{tmp_dir: folder} do
    ebin = Path.join(Mix.Project.build_path(), "lib/*/ebin")

    {printed, 2} =
      System.cmd("elixir", ["-pa", ebin, @failing, page_program(folder)],
        env: [{"RANKBRIDGE_COMMAND", OsProcess.rankbridge()}],
        stderr_to_stdout: true
      )

    assert printed =~ "8 tests, 4 failures"
    # The test's own failure, and then the ranks.
    assert printed =~ "Assertion with == failed"
    assert printed =~ "code: raise error\n"
    assert printed =~ ~r/failing.exs:\d+: \(test\)/

    # Why, in the first test and in the second.
    assert printed =~
             ~r/3 ranks on gloo, group test-\d+\n +verdict:\n +NEVER_CALLED: ranks 1-2 have not called barrier test-\d+, are idle for/

    assert printed =~ ~r/ +verdict:\n +[A-Z_]+: rank 2 was lost: its link was closed\n/
    assert printed =~ ~r/\n +rank 0: pid \d+, generation \d formed\n/
    assert printed =~ ~r/  pending: barrier on test-\d+, admission, for \d+ ms\n/
    assert printed =~ ~r/test-\d+ waits for ranks 1, 2 in barrier/
    # What each did last, in the first test and in the second.
    assert printed =~
             ~r/ +last operations in group test-\d+:\n +rank 0:\n +barrier(, \S+)?: in admission, called \d+ ms ago\n +rank 1: none\n/

    assert printed =~
             ~r/all_reduce dtype=float32 shape=\[1\] op=sum, \S*failing.exs:\d+: done in \d+ ms, called \d+ ms ago\n +barrier.*: peer_lost after \d+ ms/

    assert printed =~ ~r/rank 0: pid \d+, generation \d over: .*rank 2 is lost/

    assert printed =~
             ~s(the test has left behind: group "left", 1 refs in the shared session of rank 0)

    # One that was killed, which nothing else reports.
    assert printed =~ ~r/\n3 ranks on gloo, group test-\d+\n/
  end
end
