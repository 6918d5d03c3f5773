defmodule RankBridge.Programs do
  @moduledoc "Running programs: see `RankBridge.Program`."

  use RankBridge.Bangs

  alias RankBridge.{Collectives, Entry, Gang, Program, Ref}

  @doc """
  Runs a program on all members of a group, as one operation, and gives a list: for each name in `:keep` what the collective
  gives that gave it last, with a ref for each member, in group order.

      program = Program.new() |> Program.all_reduce(refs, as: :sums) |> Program.broadcast(:sums, in_place: true)
      {:ok, [sums]} = RankBridge.Programs.run_program(gang, program, keep: [:sums])

  Options: `:keep` (default []), and those of collectives. All members must be admitted within `:timeout`, and the call
  waits that long, for all steps together. A program that takes longer goes on, and the error is an indefinite
  `:deadline_exceeded`: give it the time that it needs, or begin it by `RankBridge.submit(gang, :run_program, program, keep:
  [...])`, and wait for it with another timeout. `RankBridge.Operations.call_rank(gang, rank, :run_program, program, keep: [...])`, of a
  program that takes refs of one rank, is that rank's part.

  Errors: if a step cannot be done, or differs among members, that of a collective, whose message names the step; then
  nothing is done. `:invalid_argument`: it is empty, names what is not given, or has more than ranks take.
  """
  spec_with_bang run_program(Gang.gang(), Program.t(), keyword()) :: [[Ref.t() | [Ref.t()] | nil]]

  def run_program(gang, program, opts \\ []) do
    Entry.call(gang, :run_program, opts, fn view ->
      Collectives.run(view, :run_program, program, opts)
    end)
  end
end
