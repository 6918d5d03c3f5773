defmodule RankBridge.Case do
  @moduledoc """
  Real ranks for ExUnit: each test gets a gang.

      defmodule MyApp.SumTest do
        use RankBridge.Case, size: 4

        test "everybody has the sum", %{gang: gang} do
          refs = RankBridge.put!(gang, [[0.0], [1.0], [2.0], [3.0]])
          sums = RankBridge.all_reduce!(gang, refs)
          assert gang |> RankBridge.get!(hd(sums)) |> RankBridge.Tensor.to_list() == [6.0]
        end

        @tag gang: [size: 2, backend: :gloo]
        test "on other ranks", %{gang: gang} do
          assert RankBridge.Gang.size(gang) == {:ok, 2}
        end
      end

  The ranks are started once for each size and backend, by the first test that wants them, and end with the VM. One test after
  another has them: tests of `async: true` modules wait for each other where they want the same ranks. `gang` has a session of its
  own, and a group of its own of all ranks in order, which is meant where a call names no group; `%{group: name}` is its name.

  After a test that failed, or that lost a rank, the ranks are formed again. Groups, and refs in the ranks' shared sessions, that a
  test leaves behind are its error. The report of a test that failed has a verdict, as `RankBridge.Doctor` gives it: which rank
  keeps which others waiting, or what has failed last. It says of every rank its process and generation, what it has not answered yet,
  which ranks groups wait for, and its last operations in the test's group: each one's line of code, how it ended or how far it has
  come, and when the rank accepted it.

  ## Options

  Of `use RankBridge.Case`, and of a test's `@tag gang: [...]`, which go before:

    * `:size` - number of ranks; 4
    * `:backend` - `:fake`, which has the results of Gloo and all ranks in one process; or `:gloo`, `:nccl`, `:mpi`
    * `:timeout` - of each call, in milliseconds; 10,000
    * `:load`, `:arguments`, `:command` - as of `RankBridge.Gang`

  All other options of `use` are those of `ExUnit.Case`.
  """

  alias RankBridge.Case.{Lender, Lent, Report, Wanted}

  @doc false
  defmacro __using__(opts) do
    quote do
      {wanted, others} = Keyword.split(unquote(opts), Wanted.names())
      @rank_bridge_case wanted
      use ExUnit.Case, others
      @before_compile RankBridge.Case

      setup context do
        wanted = Wanted.read(@rank_bridge_case, context[:gang])
        test = self()
        # Before anything is lent: a test whose setup fails ends so, too.
        on_exit(fn -> RankBridge.Case.end_test(test) end)
        RankBridge.Case.begin_test(test, wanted)
      end
    end
  end

  # ExUnit tells nobody in the test's process how a test has ended.
  @doc false
  defmacro __before_compile__(env) do
    for {name, 1} = test <- Module.definitions_in(env.module, :def),
        String.starts_with?("#{name}", ["test ", "doctest ", "property "]) do
      quote do
        defoverridable [unquote(test)]

        def unquote(name)(context) do
          test = {__MODULE__, unquote(name)}

          with {:failed, errors} <- RankBridge.Case.run_test(test, fn -> super(context) end),
               do: raise(ExUnit.MultiError, errors: errors)
        end
      end
    end
  end

  @doc false
  @spec begin_test(pid(), Wanted.t()) :: %{gang: pid(), group: String.t()}
  def begin_test(test, wanted) do
    lent = test |> Lender.lend(wanted) |> Lent.begin()
    :ok = Lender.note(test, lent)
    %{gang: lent.gang, group: lent.group}
  end

  @doc false
  @spec run_test({module(), atom()}, (() -> term())) ::
          :ok | {:failed, [{atom(), term(), Exception.stacktrace()}]}
  def run_test(test, fun) do
    _given = fun.()
    ended(:passed)
  catch
    kind, reason ->
      failure = {kind, reason, within(__STACKTRACE__, test)}
      report = self() |> Lender.lent() |> Report.of()
      :ok = ended(:failed)
      {:failed, [failure, {:error, report, []}]}
  end

  # The stack down to the test, which has its own name again: by that ExUnit finds the line to show.
  defp within(stack, {module, name}) do
    {inner, outer} =
      Enum.split_while(stack, &(not match?({^module, _, 1, _}, &1) or not named?(&1, name)))

    case outer do
      [{_module, _name, arity, place} | _others] -> inner ++ [{module, name, arity, place}]
      [] -> stack
    end
  end

  defp named?({_module, function, _arity, _place}, name),
    do: String.starts_with?("#{function}", "#{name} (overridable ")

  defp ended(how) do
    lent = Lender.lent(self())
    Lender.note(self(), %{lent | ended: how})
  end

  @doc false
  @spec end_test(pid()) :: :ok
  def end_test(test) do
    lent = Lender.lent(test)
    # Its process was killed, as when its time was over: nobody else will say it.
    if lent && lent.ended == nil, do: IO.puts(:stderr, Exception.message(Report.of(lent)))

    case lent && Lent.finish(lent) do
      {:ok, left} ->
        Lender.take_back(test, :keep)
        if left != [] and lent.ended == :passed, do: raise(RankBridge.Case.Left, left: left)
        :ok

      _no_gang ->
        Lender.take_back(test, :drop)
    end
  end
end
