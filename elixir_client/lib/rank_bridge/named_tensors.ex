defmodule RankBridge.NamedTensors do
  @moduledoc """
  Tensors that the ranks' processes show under names, as `rankbridge_server.expose(model=model)` does in Python: finding them,
  looking at them, comparing them, and taking copies.

      {:ok, names} = RankBridge.named(gang, "model.*.weight")
      {:ok, differing} = RankBridge.compare(gang, "model.*")
      for it <- differing, do: {it.name, Map.keys(it.differing)}

  A pattern is a shell's: `*` is any text, dots too, `?` a character, `[ab]` one of these; `"*"` is every name.

  Every rank is asked alone, beside what its groups do: a training goes on meanwhile. What a rank says of a tensor is so in that
  moment, which may be another one on each rank. Replicas that are trained differ between two moments; compare those that stand still.

  Options of every function: `:group` (default "world"), the group whose members are asked; `:timeout`, of each step, in milliseconds.
  """

  use RankBridge.Bangs

  alias RankBridge.{Collectives, Entry, Error, Gang, Groups, Options, Ref, Refs}
  alias RankBridge.NamedTensors.{Comparison, Difference, NamedTensor, Summary}
  alias RankBridge.Operations.Plan

  @doc """
  Finds the tensors whose names match a pattern (`RankBridge.NamedTensors`).

  Gives, by name, a list of what each member of the group has, in group order; nil: the member has no tensor of that name.
  """
  spec_with_bang named(Gang.gang(), String.t(), keyword()) :: %{
                   String.t() => [NamedTensor.t() | nil]
                 }

  def named(gang, pattern, opts \\ []),
    do: enter(gang, :named, pattern, opts, &ask(&1, :named, pattern, NamedTensor))

  @doc """
  Summarises tensors on their ranks: norm, extremes, NaNs, a hash. Arguments and result as of `named/3`.
  """
  spec_with_bang summary(Gang.gang(), String.t(), keyword()) :: %{
                   String.t() => [Summary.t() | nil]
                 }

  def summary(gang, pattern, opts \\ []),
    do: enter(gang, :summary, pattern, opts, &ask(&1, :summary, pattern, Summary))

  @doc """
  Copies tensors, as they are now, into new refs. Arguments and result as of `named/3`.
  """
  spec_with_bang take(Gang.gang(), String.t(), keyword()) :: %{String.t() => [Ref.t() | nil]}

  def take(gang, pattern, opts \\ []),
    do: enter(gang, :take, pattern, opts, &ask(&1, :take, pattern, nil))

  @doc """
  Finds the tensors whose replicas differ, on which ranks, and by how much. Arguments as of `named/3`.

  Hashes are compared. Of the tensors that differ, that of the reference goes to the other members by the backend, and nothing to the
  caller. Gives those that differ, by name; `[]`: all replicas are alike.
  """
  spec_with_bang compare(Gang.gang(), String.t(), keyword()) :: [Comparison.t()]

  def compare(gang, pattern, opts \\ []) do
    enter(gang, :compare, pattern, opts, fn asked ->
      with {:ok, summaries} <- ask(asked, :summary, pattern, Summary) do
        summaries
        |> Enum.sort()
        |> Enum.reject(fn {_name, each} -> Comparison.alike?(each) end)
        |> compared(asked, [])
      end
    end)
  end

  defp compared([], _asked, comparisons), do: {:ok, Enum.reverse(comparisons)}

  defp compared([{name, summaries} | others], asked, comparisons) do
    with {:ok, differences} <- differences(asked, name, summaries) do
      comparison = Comparison.new(name, asked.members, summaries, differences)
      compared(others, asked, [comparison | comparisons])
    end
  end

  defp differences(asked, name, summaries) do
    if Comparison.comparable?(summaries) do
      with {:ok, taken} <- ask(asked, :take, literal(name), nil) do
        own = Map.get(taken, name, [nil])
        freed(asked, own, measured(asked, own, Comparison.reference(summaries)))
      end
    else
      unknown(asked)
    end
  end

  # Brings the reference's tensor to every member, by the backend, and lets each compare its own with it.
  defp measured(asked, own, place) do
    # A process may have taken the name from its tensor meanwhile.
    if nil in own do
      unknown(asked)
    else
      opts = [src_rank_in_group: place] ++ asked.opts

      with {:ok, reference} <- Collectives.run(asked.view, :broadcast, own, opts) do
        pairs = Enum.zip_with(own, reference, &[&1, &2])
        freed(asked, reference, alone(asked, :difference, pairs, Difference))
      end
    end
  end

  defp unknown(asked), do: {:ok, Enum.map(asked.members, fn _rank -> nil end)}

  # Frees what was copied, whatever came of it. The error that came first is the one to know.
  defp freed(asked, refs, result) do
    refs = Enum.reject(refs, &is_nil/1)

    case {result, Refs.release(asked.view, refs, Keyword.take(asked.opts, [:timeout]))} do
      {{:ok, _value}, {:error, error}} -> {:error, error}
      {result, _released} -> result
    end
  end

  # By name, what each member says of its tensor.
  defp ask(asked, function, pattern, kind) do
    arguments = Enum.map(asked.members, fn _rank -> [pattern] end)

    with {:ok, said} <- alone(asked, function, arguments, nil) do
      names = said |> Enum.flat_map(&Map.keys/1) |> Enum.uniq()
      {:ok, Map.new(names, fn name -> {name, Enum.map(said, &read(&1[name], kind))} end)}
    end
  end

  # Calls one of the ranks' own functions on every member, none of which waits for another.
  defp alone(asked, function, arguments, kind) do
    opts = [function: "rankbridge.#{function}", alone: true] ++ asked.opts
    inputs = Enum.zip(asked.members, arguments)

    with {:ok, plan} <- Plan.of_each(asked.view, :call_function, inputs, opts),
         {:ok, values} <- Plan.perform(asked.view, plan),
         do: {:ok, Enum.map(values, &read(&1, kind))}
  end

  defp read(value, kind) when value == nil or kind == nil, do: value
  defp read(value, kind), do: kind.from_value(value)

  # `fun` is called with the gang's view, the members of the group, and the options of each call.
  defp enter(gang, function, pattern, opts, fun) do
    Entry.call(gang, function, opts, fn view ->
      with {:ok, opts} <- Options.read(opts, [group: view.group], "#{function}"),
           :ok <- check_pattern(pattern, function),
           timeout = opts.timeout || view.timeout,
           {:ok, members} <- Groups.members(view, opts.group, timeout, "#{function}"),
           do: fun.(%{view: view, members: members, opts: Map.to_list(opts)})
    end)
  end

  defp check_pattern(pattern, _function) when is_binary(pattern), do: :ok

  defp check_pattern(other, function) do
    {:error,
     Error.refusal(:invalid_argument, "this is no pattern of names",
       operation: "#{function}",
       expected: "a text, as in \"model.*\"",
       got: inspect(other, limit: 3, printable_limit: 40)
     )}
  end

  # A pattern that this name alone matches.
  defp literal(name), do: String.replace(name, ["*", "?", "["], &"[#{&1}]")
end
