defmodule RankBridge.Objects do
  @moduledoc """
  Collectives on values that have no dtype and shape of their own: any `t:RankBridge.Value.t/0`, and maps of tensors.

  Receivers need not know the type of a value beforehand. A ref in a value travels as a handle; only in a tensor dict do refs
  stand for their tensors.
  """

  use RankBridge.Bangs

  alias RankBridge.{Collectives, Entry, Error, Gang, Group, Groups, Options, Value}
  alias RankBridge.Gang.View

  @doc """
  Gives every member the source's value, as a list with one entry for each member. As vLLM's and OLMo-core's `broadcast_object`.

      RankBridge.broadcast_object(gang, %{"step" => 7, "names" => ["a", "b"]})

  Option `:src_rank_in_group`: whose value `value` is (default 0).
  """
  spec_with_bang broadcast_object(Gang.gang(), Value.t(), keyword()) :: [Value.t()]

  def broadcast_object(gang, value, opts \\ []) do
    Entry.call(gang, :broadcast_object, opts, fn view ->
      Collectives.run(view, :broadcast_object, value, opts)
    end)
  end

  @doc "As `broadcast_object/3`, for a list. Anything else is refused before any rank is called."
  spec_with_bang broadcast_object_list(Gang.gang(), [Value.t()], keyword()) :: [[Value.t()]]

  def broadcast_object_list(gang, values, opts \\ []) do
    Entry.call(gang, :broadcast_object_list, opts, fn view ->
      broadcast_list(view, values, opts)
    end)
  end

  @doc "On the view of a gang: `broadcast_object_list/3`."
  @spec broadcast_list(View.t(), [Value.t()], keyword()) ::
          {:ok, [[Value.t()]]} | {:error, Error.t()}
  def broadcast_list(view, values, opts) do
    if is_list(values),
      do: Collectives.run(view, :broadcast_object, values, opts),
      else: refuse("broadcast_object_list", "this is no list of values", "a list", values)
  end

  @doc """
  Gives each member one of the source's `values`. There is one for each member, in group order.

  Option `:src_rank_in_group`: the member that has the values (default 0).
  """
  spec_with_bang scatter_object(Gang.gang(), [Value.t()], keyword()) :: [Value.t()]

  def scatter_object(gang, values, opts \\ []) do
    Entry.call(gang, :scatter_object, opts, fn view ->
      Collectives.run(view, :scatter_object, values, opts)
    end)
  end

  @doc """
  Gives the destination the list of all members' values; nil stands for the others. `values` has one for each member, in
  group order.

  Option `:dst_rank_in_group` (default 0).
  """
  spec_with_bang gather_object(Gang.gang(), [Value.t()], keyword()) :: [[Value.t()] | nil]

  def gather_object(gang, values, opts \\ []) do
    Entry.call(gang, :gather_object, opts, fn view ->
      Collectives.run(view, :gather_object, values, opts)
    end)
  end

  @doc "Gives every member the list of all members' values. `values` has one for each member, in group order."
  spec_with_bang all_gather_object(Gang.gang(), [Value.t()], keyword()) :: [[Value.t()]]

  def all_gather_object(gang, values, opts \\ []) do
    Entry.call(gang, :all_gather_object, opts, fn view ->
      Collectives.run(view, :all_gather_object, values, opts)
    end)
  end

  @doc """
  Gives every member the reduction of all members' numbers. `numbers` has one for each member, in group order: integers,
  floats, or booleans, all of one kind.

  The result is of that kind: of integers it is exact, of floats computed in float64; but `:avg` of integers is a float.
  Option `:op`, as of `RankBridge.all_reduce/3` (default `:sum`): booleans have no `:avg`, and their `:sum` is or, their
  `:product` and; floats have no bits.
  """
  spec_with_bang all_reduce_value(
                   Gang.gang(),
                   [number() | boolean() | :nan | :infinity | :negative_infinity],
                   keyword()
                 ) :: [number() | boolean() | :nan | :infinity | :negative_infinity]

  def all_reduce_value(gang, numbers, opts \\ []) do
    Entry.call(gang, :all_reduce_value, opts, fn view ->
      Collectives.run(view, :all_reduce_value, numbers, opts)
    end)
  end

  @doc """
  Gives every member the source's map, with a ref on a tensor of its own for each of the source's refs. As vLLM's
  `broadcast_tensor_dict`.

  `dict` is a map of values, maps in it included; its refs are the source's. Options: `:src_rank_in_group` (default 0),
  `:metadata_group`: a group with the same members, which makes no difference.
  """
  spec_with_bang broadcast_tensor_dict(Gang.gang(), %{Value.t() => Value.t()}, keyword()) :: [
                   %{Value.t() => Value.t()}
                 ]

  def broadcast_tensor_dict(gang, dict, opts \\ []) do
    Entry.call(gang, :broadcast_tensor_dict, opts, fn view ->
      # Metadata goes where the data goes.
      {metadata_group, opts} = Options.pop(opts, :metadata_group)

      with :ok <- check_metadata_group(view, metadata_group, opts),
           do: Collectives.run(view, :broadcast_tensor_dict, dict, opts)
    end)
  end

  defp check_metadata_group(_view, nil, _opts), do: :ok

  defp check_metadata_group(view, metadata_group, opts) do
    {group, _others} = Options.pop(opts, :group, view.group)

    with {:ok, members} <- members(view, group),
         {:ok, others} <- members(view, metadata_group),
         do: check_same(group, members, others)
  end

  defp members(view, group),
    do: Groups.members(view, Group.name(group), view.timeout, "broadcast_tensor_dict")

  defp check_same(group, members, others) do
    if Enum.sort(members) == Enum.sort(others) do
      :ok
    else
      {:error,
       Error.refusal(:invalid_argument, "metadata_group has other members than the group",
         operation: "broadcast_tensor_dict",
         group: Group.name(group),
         expected: "ranks #{Group.listed(members)}",
         got: "ranks #{Group.listed(others)}"
       )}
    end
  end

  defp refuse(operation, message, expected, got) do
    fields = [operation: operation, expected: expected, got: inspect(got, limit: 3)]
    {:error, Error.refusal(:invalid_argument, message, fields)}
  end
end
