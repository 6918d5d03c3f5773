defmodule RankBridge.Operations.Given do
  @moduledoc false
  # The result of an operation, made of the results of its ranks.

  alias RankBridge.{Calls, Error}
  alias RankBridge.Operations.Declaration

  @typedoc """
  `:each`: a list of what each member got; `:nothing`: nil; `{:calls, given}`: a list of what each of several calls,
  or of several results that are kept, gave; `:recorded`: the same of collectives that the members know, but not this client; `:one`: what the one rank got
  that was called.
  """
  @type t :: :each | :nothing | {:calls, [t()]} | :recorded | :one

  @doc "The kind of result that an operation gives its caller. `input` and `opts` are read already."
  @spec by(Declaration.t(), :of_gang | :of_rank, term(), map()) :: t()
  def by(_declaration, :of_rank, _input, _opts), do: :one

  def by(%Declaration{gives: :calls}, :of_gang, calls, _opts),
    do: {:calls, for(call <- calls, do: Declaration.of(elem(call, 0)).gives)}

  def by(%Declaration{gives: :kept}, :of_gang, _program, opts),
    do: {:calls, for(_name <- opts.keep, do: :each)}

  def by(%Declaration{gives: gives}, :of_gang, _input, _opts), do: gives

  @doc """
  All values in the order of the ranks, or one error: of all ranks, or the own one of a rank that was called for itself.
  `changes?` as in `t:RankBridge.Error.context/0`.
  """
  @spec gathered(t() | nil, [{non_neg_integer(), Calls.result()}], boolean()) ::
          {:ok, list()} | {:error, Error.t()}
  def gathered(:one, [{_rank, {:error, error}}], _changes?), do: {:error, error}
  def gathered(_gives, results, changes?), do: Calls.gathered(results, changes?)

  @doc "The operation's result, made of its ranks' values in their order. `call` is for the error."
  @spec tell(t(), [term(), ...], Calls.t()) :: {:ok, term()} | {:error, Error.t()}
  def tell(:one, [value], _call), do: {:ok, value}
  def tell(:nothing, _values, _call), do: {:ok, nil}
  def tell(:each, values, _call), do: {:ok, values}

  def tell({:calls, gives}, values, call) do
    if Enum.all?(values, &(is_list(&1) and length(&1) == length(gives))) do
      {:ok,
       for(
         {give, of_members} <- Enum.zip(gives, Enum.zip_with(values, & &1)),
         do: combined(give, of_members)
       )}
    else
      protocol("not #{length(gives)} values from each member", call)
    end
  end

  def tell(:recorded, values, call) do
    with true <- Enum.all?(values, &is_list/1),
         [_one_length] <- values |> Enum.map(&length/1) |> Enum.uniq() do
      {:ok, for(of_members <- Enum.zip_with(values, & &1), do: combined(:recorded, of_members))}
    else
      _other -> protocol("not one value for each collective from each member", call)
    end
  end

  defp combined(:nothing, _values), do: nil
  defp combined(:each, values), do: values
  # A collective without any result is a barrier.
  defp combined(:recorded, values), do: if(Enum.all?(values, &is_nil/1), do: nil, else: values)

  defp protocol(message, call),
    do: {:error, Error.protocol(message, 0 |> Calls.context(call) |> Keyword.delete(:rank))}
end
