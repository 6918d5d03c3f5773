defmodule RankBridge.PointToPoint do
  @moduledoc """
  Sends and receives between two members of a group: tensors, values, maps of tensors.

      {:ok, sending} = RankBridge.PointToPoint.isend(gang, 0, ref, 1)
      {:ok, {received, 0}} = RankBridge.recv(gang, 1)
      {:ok, nil} = RankBridge.Operations.wait(gang, sending)

  `rank` is the rank in the gang that sends or receives; `dst_rank_in_group` and `:src_rank_in_group` are ranks in the group.

  A send waits for its receive and a receive for its send, each for its own timeout. They meet by source, destination and
  tag, in the order in which they came, and wait for nothing else on the group. Each kind of send has its kind of receive:
  if the kinds differ, or the receive expects something else, both fail with `:mismatch`.

  Each has a form that begins with i, which returns once the rank has it and gives an operation: for
  `RankBridge.Operations.is_complete/3`, `RankBridge.Operations.wait/3` and `RankBridge.cancel/3`.

  ## Options

    * `:tag` - separates messages between the same two ranks (default 0)
    * `:src_rank_in_group` - of receives: the sender (default nil: any)
    * `:group`, `:timeout`, `:operation_id` - as of collectives
  """

  use RankBridge.Bangs

  alias RankBridge.{Entry, Gang, Operation, Operations, Options, Ref, Value}

  @doc "Sends the tensor of `rank`'s ref. Options: see `RankBridge.PointToPoint`."
  spec_with_bang send(Gang.gang(), non_neg_integer(), Ref.t(), non_neg_integer(), keyword()) ::
                   :ok

  def send(gang, rank, ref, dst_rank_in_group, opts \\ []) do
    Entry.call_without_value(gang, :send, opts, fn view ->
      call(view, rank, :send, ref, to(dst_rank_in_group, opts))
    end)
  end

  @doc "Sends a value, as vLLM's `send_object`. Options: see `RankBridge.PointToPoint`."
  spec_with_bang send_object(
                   Gang.gang(),
                   non_neg_integer(),
                   Value.t(),
                   non_neg_integer(),
                   keyword()
                 ) :: :ok

  def send_object(gang, rank, value, dst_rank_in_group, opts \\ []) do
    Entry.call_without_value(gang, :send_object, opts, fn view ->
      call(view, rank, :send_object, value, to(dst_rank_in_group, opts))
    end)
  end

  @doc """
  Sends a map of values, maps in it included, whose refs are `rank`'s tensors, as vLLM's `send_tensor_dict`. Options: see
  `RankBridge.PointToPoint`.
  """
  spec_with_bang send_tensor_dict(
                   Gang.gang(),
                   non_neg_integer(),
                   %{Value.t() => Value.t()},
                   non_neg_integer(),
                   keyword()
                 ) :: :ok

  def send_tensor_dict(gang, rank, dict, dst_rank_in_group, opts \\ []) do
    Entry.call_without_value(gang, :send_tensor_dict, opts, fn view ->
      call(view, rank, :send_tensor_dict, dict, to(dst_rank_in_group, opts))
    end)
  end

  @doc """
  Receives a tensor: gives a ref, and the rank in group that it came from.

  Options: `:expected` - a ref of `rank`: a tensor of its dtype and shape must come, and takes its place under the same
  ref; or `{dtype, shape}`, which must come (default: whatever comes gets a new ref). The others: see
  `RankBridge.PointToPoint`.
  """
  spec_with_bang recv(Gang.gang(), non_neg_integer(), keyword()) :: {Ref.t(), non_neg_integer()}

  def recv(gang, rank, opts \\ []) do
    Entry.call(gang, :recv, opts, fn view ->
      {expected, opts} = Options.pop(opts, :expected)
      call(view, rank, :recv, expected, opts)
    end)
  end

  @doc """
  Receives a value: gives it, and the rank in group that it came from. Options: see `RankBridge.PointToPoint`.
  """
  spec_with_bang recv_object(Gang.gang(), non_neg_integer(), keyword()) ::
                   {Value.t(), non_neg_integer()}

  def recv_object(gang, rank, opts \\ []) do
    Entry.call(gang, :recv_object, opts, fn view -> call(view, rank, :recv_object, nil, opts) end)
  end

  @doc """
  Receives a map of tensors: gives it, with refs on new tensors of `rank`, and the rank in group that it came from.
  Options: see `RankBridge.PointToPoint`.
  """
  spec_with_bang recv_tensor_dict(Gang.gang(), non_neg_integer(), keyword()) ::
                   {%{Value.t() => Value.t()}, non_neg_integer()}

  def recv_tensor_dict(gang, rank, opts \\ []) do
    Entry.call(gang, :recv_tensor_dict, opts, fn view ->
      call(view, rank, :recv_tensor_dict, nil, opts)
    end)
  end

  @doc "Begins `send/5`; nothing waits for it."
  spec_with_bang isend(Gang.gang(), non_neg_integer(), Ref.t(), non_neg_integer(), keyword()) ::
                   Operation.t()

  def isend(gang, rank, ref, dst_rank_in_group, opts \\ []) do
    Entry.call(gang, :isend, opts, fn view ->
      begin(view, rank, :send, ref, to(dst_rank_in_group, opts))
    end)
  end

  @doc "Begins `send_object/5`; nothing waits for it."
  spec_with_bang isend_object(
                   Gang.gang(),
                   non_neg_integer(),
                   Value.t(),
                   non_neg_integer(),
                   keyword()
                 ) :: Operation.t()

  def isend_object(gang, rank, value, dst_rank_in_group, opts \\ []) do
    Entry.call(gang, :isend_object, opts, fn view ->
      begin(view, rank, :send_object, value, to(dst_rank_in_group, opts))
    end)
  end

  @doc "Begins `send_tensor_dict/5`; nothing waits for it."
  spec_with_bang isend_tensor_dict(
                   Gang.gang(),
                   non_neg_integer(),
                   %{Value.t() => Value.t()},
                   non_neg_integer(),
                   keyword()
                 ) :: Operation.t()

  def isend_tensor_dict(gang, rank, dict, dst_rank_in_group, opts \\ []) do
    Entry.call(gang, :isend_tensor_dict, opts, fn view ->
      begin(view, rank, :send_tensor_dict, dict, to(dst_rank_in_group, opts))
    end)
  end

  @doc "Begins `recv/3`; nothing waits for it."
  spec_with_bang irecv(Gang.gang(), non_neg_integer(), keyword()) :: Operation.t()

  def irecv(gang, rank, opts \\ []) do
    Entry.call(gang, :irecv, opts, fn view ->
      {expected, opts} = Options.pop(opts, :expected)
      begin(view, rank, :recv, expected, opts)
    end)
  end

  @doc "Begins `recv_object/3`; nothing waits for it."
  spec_with_bang irecv_object(Gang.gang(), non_neg_integer(), keyword()) :: Operation.t()

  def irecv_object(gang, rank, opts \\ []) do
    Entry.call(gang, :irecv_object, opts, fn view ->
      begin(view, rank, :recv_object, nil, opts)
    end)
  end

  @doc "Begins `recv_tensor_dict/3`; nothing waits for it."
  spec_with_bang irecv_tensor_dict(Gang.gang(), non_neg_integer(), keyword()) :: Operation.t()

  def irecv_tensor_dict(gang, rank, opts \\ []) do
    Entry.call(gang, :irecv_tensor_dict, opts, fn view ->
      begin(view, rank, :recv_tensor_dict, nil, opts)
    end)
  end

  defp call(view, rank, name, input, opts),
    do: Operations.run_rank(view, rank, name, input, opts)

  defp begin(view, rank, name, input, opts),
    do: Operations.begin_rank(view, rank, name, input, opts)

  defp to(dst_rank_in_group, opts),
    do: Options.put(opts, :dst_rank_in_group, dst_rank_in_group)
end
