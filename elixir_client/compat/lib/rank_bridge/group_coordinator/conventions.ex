defmodule RankBridge.GroupCoordinator.Conventions do
  @moduledoc """
  How SnakeBridge's generated functions are called, and what that means: positional and named arguments, reserved options.

  What may be left out is given in `args`, by position, or by name in the options: `[0]` or `[dim: 0]`. A keyword list as
  `args` counts as options. Reserved are `:__args__` (more positional arguments), `:__runtime__` (see `t:runtime/0`) and
  `:idempotent`, which is taken and not looked at: nothing is done twice on its own.
  """

  alias RankBridge.{Error, Gang}
  alias RankBridge.GroupCoordinator.Signatures

  # SnakeBridge's own profiles, in milliseconds.
  @profiles %{default: 120_000, ml_inference: 600_000, batch_job: :infinity, streaming: 120_000}
  # No timeout becomes 24 days, the longest that a rank accepts.
  @endless 0x7FFF_FFFF

  @typedoc """
  * `timeout` - in milliseconds; nil: the gang's. A `:timeout_profile` is one of SnakeBridge's
  * `gang`, `rank` - where to run, if given: directly, or by the pool of a rank
  """
  @type runtime :: %{
          timeout: pos_integer() | nil,
          gang: Gang.gang() | nil,
          rank: non_neg_integer() | nil
        }

  @type result(value) :: {:ok, value} | {:error, Error.t()}

  @doc """
  Positional and named arguments, and the runtime's options.

      iex> RankBridge.GroupCoordinator.Conventions.split([dim: 0], __runtime__: [timeout: 500])
      {[], [dim: 0], [timeout: 500]}
      iex> RankBridge.GroupCoordinator.Conventions.split([0], idempotent: true, __args__: [[1, 2]])
      {[0, [1, 2]], [], []}
  """
  @spec split(term(), keyword()) :: {[term()], keyword(), term()}
  def split(args, opts) do
    {args, opts} = if Keyword.keyword?(args), do: {[], args ++ opts}, else: {args, opts}
    {more, opts} = Keyword.pop(opts, :__args__, [])
    {runtime, opts} = Keyword.pop(opts, :__runtime__, [])
    {List.wrap(args) ++ List.wrap(more), Keyword.delete(opts, :idempotent), runtime}
  end

  @doc "Each parameter's argument. Names may be texts."
  @spec bind(Signatures.t(), [term()], [{atom() | String.t(), term()}]) :: result(map())
  def bind(signature, positional, named) do
    places = signature.needed ++ Keyword.keys(signature.optional)
    by_place = Enum.zip(places, positional)

    with :ok <- check_count(signature, places, positional),
         {:ok, by_name} <- named(signature, places, by_place, named),
         given = Map.new(by_place ++ by_name),
         :ok <- check_needed(signature, given) do
      {:ok, (signature.optional ++ signature.named) |> Map.new() |> Map.merge(given)}
    end
  end

  defp check_count(signature, places, positional) do
    if length(positional) <= length(places),
      do: :ok,
      else:
        refuse(
          signature,
          "too many arguments",
          "#{length(places)} at most",
          "#{length(positional)}"
        )
  end

  defp named(signature, places, by_place, named) do
    known = places ++ Keyword.keys(signature.named)

    Enum.reduce_while(named, {:ok, []}, fn {name, value}, {:ok, done} ->
      parameter = Enum.find(known, &("#{&1}" == "#{name}"))

      cond do
        parameter == nil ->
          {:halt, refuse(signature, "no such argument", one_of(known), "#{name}")}

        Keyword.has_key?(by_place ++ done, parameter) ->
          {:halt, refuse(signature, "an argument was given twice", "once", "#{name}")}

        true ->
          {:cont, {:ok, [{parameter, value} | done]}}
      end
    end)
  end

  defp check_needed(signature, given) do
    case Enum.reject(signature.needed, &is_map_key(given, &1)) do
      [] -> :ok
      missing -> refuse(signature, "arguments are missing", one_of(missing), "none")
    end
  end

  defp one_of([]), do: "none"
  defp one_of(names), do: Enum.map_join(names, ", ", &"#{&1}")

  @doc "What the runtime's options say; `operation` is for the error. Options that mean nothing here are left out."
  @spec runtime(term(), String.t()) :: result(runtime())
  def runtime(opts, operation) do
    with true <- Keyword.keyword?(opts),
         {:ok, timeout} <- timeout(opts),
         {:ok, gang, rank} <- place(opts) do
      {:ok, %{timeout: timeout, gang: gang, rank: rank}}
    else
      _wrong -> refuse_runtime(opts, operation)
    end
  end

  defp timeout(opts) do
    profile = opts[:timeout_profile] && Map.get(@profiles, opts[:timeout_profile])

    case Keyword.get(opts, :timeout) || profile do
      nil -> {:ok, nil}
      :infinity -> {:ok, @endless}
      timeout when is_integer(timeout) and timeout > 0 -> {:ok, min(timeout, @endless)}
      _other -> :error
    end
  end

  defp place(opts) do
    {gang, rank} = pool(opts[:pool_name]) || {nil, nil}
    gang = Keyword.get(opts, :gang) || gang
    rank = Keyword.get(opts, :rank, rank)
    if rank == nil or is_integer(rank), do: {:ok, gang, rank}, else: :error
  end

  @doc """
  Gang and rank that a pool stands for; nil: it is none of ours.

      config :rank_bridge, gang: MyGang, pools: [rank_0: 0, rank_1: 1, of_another: {OtherGang, 0}]
  """
  @spec pool(term()) :: {Gang.gang(), non_neg_integer()} | nil
  def pool(nil), do: nil

  def pool(name) do
    case List.keyfind(Enum.to_list(Application.get_env(:rank_bridge, :pools, [])), name, 0) do
      {^name, {gang, rank}} -> {gang, rank}
      {^name, rank} when is_integer(rank) -> {default_gang(), rank}
      _other -> nil
    end
  end

  @doc "The default gang: `config :rank_bridge, gang: MyGang`. nil: there is none."
  @spec default_gang() :: Gang.gang() | nil
  def default_gang, do: Application.get_env(:rank_bridge, :gang)

  defp refuse_runtime(opts, operation) do
    {:error,
     Error.refusal(:invalid_argument, "__runtime__ is wrong",
       operation: operation,
       expected: "timeout in milliseconds or :infinity, pool_name, gang, rank",
       got: inspect(opts, limit: 10)
     )}
  end

  defp refuse(signature, message, expected, got) do
    fields = [operation: "#{signature.name}", expected: expected, got: got]
    {:error, Error.refusal(:invalid_argument, message, fields)}
  end
end
