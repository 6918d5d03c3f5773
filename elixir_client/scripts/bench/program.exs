# 1,000 operations that the ranks run by themselves, as one gang call. In place, as the native loop's are.
alias RankBridge.Program

fn gang ->
  small = RankBridge.create!(gang, :float32, [1])

  loops = %{
    "loop_barrier" => &Program.barrier/1,
    "loop_all_reduce_4B" => &Program.all_reduce(&1, small, in_place: true)
  }

  for {name, step} <- loops, into: %{} do
    program = Program.loop(Program.new(), 1_000, step)
    run = fn -> RankBridge.Programs.run_program!(gang, program, calls: :gang) end
    {name, {run, &Function.identity/1}}
  end
end
