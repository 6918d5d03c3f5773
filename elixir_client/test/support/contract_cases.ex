defmodule RankBridge.Test.ContractCases do
  @moduledoc "The cases that all clients' tests share, in `tests/contract/cases`, as Elixir sees them."

  alias RankBridge.Proto.V1
  alias RankBridge.{Error, Tensor}
  alias RankBridge.Test.{JSON, Sampled}

  @folder Path.expand("../../../tests/contract/cases", __DIR__)

  @type json :: %{String.t() => term()}

  @doc "All cases of all files."
  @spec all() :: [json()]
  def all do
    for path <- @folder |> Path.join("*.json") |> Path.wildcard() |> Enum.sort(),
        case <- path |> File.read!() |> JSON.decode!(),
        do: case
  end

  @doc """
  One case of each kind, and `count` of the others, in their order: others with each commit. All cases, if the environment has
  `RANK_BRIDGE_WHOLE`.
  """
  @spec drawn(non_neg_integer()) :: [json()]
  def drawn(count) do
    cases = all()

    if Sampled.whole?() do
      cases
    else
      one_of_each = Enum.uniq_by(cases, &{&1["operation"], &1["error"], &1["group"] != nil})

      some =
        cases
        |> shuffled(:rand.seed_s(:exsss, :erlang.phash2(Sampled.commit())))
        |> Enum.take(count)

      drawn = MapSet.new(one_of_each ++ some, & &1["case"])
      Enum.filter(cases, &(&1["case"] in drawn))
    end
  end

  defp shuffled(cases, seed) do
    {keyed, _seed} =
      Enum.map_reduce(cases, seed, fn case, seed ->
        {key, seed} = :rand.uniform_s(seed)
        {{key, case}, seed}
      end)

    keyed |> Enum.sort_by(&elem(&1, 0)) |> Enum.map(&elem(&1, 1))
  end

  @doc "The case of a name."
  @spec named(String.t()) :: json()
  def named(name) do
    cases = :persistent_term.get(__MODULE__, nil) || remember(Map.new(all(), &{&1["case"], &1}))
    Map.fetch!(cases, name)
  end

  defp remember(cases) do
    :persistent_term.put(__MODULE__, cases)
    cases
  end

  @doc "A tensor of a case."
  @spec tensor(json()) :: Tensor.t()
  def tensor(%{"dtype" => dtype, "shape" => shape, "data" => data}),
    do: Tensor.new!(String.to_atom(dtype), shape, Base.decode64!(data))

  @doc "A tensor as cases have it."
  @spec tensor_form(Tensor.t()) :: json()
  def tensor_form(tensor) do
    data = tensor |> Tensor.to_binary() |> Base.encode64()
    %{"dtype" => "#{tensor.dtype}", "shape" => tensor.shape, "data" => data}
  end

  @doc "The function of `RankBridge` that a case calls."
  @spec operation(json()) :: atom()
  def operation(case), do: String.to_atom(case["operation"])

  @doc "A case's arguments as options."
  @spec options(json()) :: keyword()
  def options(arguments) do
    for {name, value} <- arguments do
      {String.to_atom(name), if(name in ["op", "layout"], do: String.to_atom(value), else: value)}
    end
  end

  @doc "How long a case's call may take, in milliseconds."
  @spec timeout(json()) :: pos_integer()
  def timeout(case), do: round(Map.get(case, "timeout", 10) * 1000)

  @doc "The reason of the error that a case expects."
  @spec reason(json()) :: Error.reason()
  def reason(case) do
    code = String.to_atom("ERROR_CODE_" <> case["error"])
    Error.from_proto(%V1.Error{code: code}).reason
  end
end
