defmodule RankBridge.CoordinatorNames do
  @moduledoc """
  Operations by the names that they have on vLLM's `GroupCoordinator`, with its arguments and defaults.

  Where vLLM has none on CPU, these do what it does on CUDA; dimensions are right everywhere.
  """

  use RankBridge.Bangs

  alias RankBridge.{
    Collectives,
    Entry,
    Error,
    Gang,
    Group,
    Groups,
    Id,
    Options,
    Queue,
    Queues,
    Ref
  }

  @doc """
  Gives every member the members' tensors, concatenated in group order: vLLM's `all_gatherv`, along any dimension.

  `refs` has one for each member; or it is a list of such lists, which go as one operation and give such a list. Options:
  `:dim` (default 0, the first), `:sizes` (of each member's tensor along it; default: all are alike), and those of
  collectives.
  """
  spec_with_bang all_gatherv(Gang.gang(), [Ref.t()] | [[Ref.t()]], keyword()) ::
                   [Ref.t()] | [[Ref.t()]]

  def all_gatherv(gang, refs, opts \\ []) do
    Entry.call(gang, :all_gatherv, opts, fn view ->
      opts = Options.put_new(opts, :dim, 0)

      case refs do
        [list | _others] when is_list(list) ->
          {own, common} = Options.split(opts, [:dim, :sizes])
          calls = for list <- refs, do: {:all_gather, list, own}
          Collectives.run(view, :coalesce, calls, common)

        refs ->
          Collectives.run(view, :all_gather, refs, opts)
      end
    end)
  end

  @doc """
  Gives every member its part of the sum of all members' tensors: vLLM's `reduce_scatterv`.

  Options: `:dim` (default -1, the last), `:sizes` (of each member's part along it; default: equal parts), and those of
  collectives.
  """
  spec_with_bang reduce_scatterv(Gang.gang(), [Ref.t()], keyword()) :: [Ref.t()]

  def reduce_scatterv(gang, refs, opts \\ []) do
    Entry.call(gang, :reduce_scatterv, opts, fn view ->
      Collectives.run(view, :reduce_scatter, refs, opts)
    end)
  end

  @doc "`RankBridge.all_reduce/3` as a sum. vLLM's of this name gives its argument; this gives new refs."
  spec_with_bang _all_reduce_out_place(Gang.gang(), [Ref.t()], keyword()) :: [Ref.t()]

  def _all_reduce_out_place(gang, refs, opts \\ []) do
    Entry.call(gang, :_all_reduce_out_place, opts, fn view ->
      Collectives.run(view, :all_reduce, refs, opts)
    end)
  end

  @doc "`RankBridge.all_gather/3` along `dim`."
  spec_with_bang _all_gather_out_place(Gang.gang(), [Ref.t()], integer(), keyword()) :: [Ref.t()]

  def _all_gather_out_place(gang, refs, dim, opts \\ []) do
    Entry.call(gang, :_all_gather_out_place, opts, fn view ->
      Collectives.run(view, :all_gather, refs, Options.put(opts, :dim, dim))
    end)
  end

  @doc "`RankBridge.reduce_scatter/3` along `dim`."
  spec_with_bang _reduce_scatter_out_place(Gang.gang(), [Ref.t()], integer(), keyword()) :: [
                   Ref.t()
                 ]

  def _reduce_scatter_out_place(gang, refs, dim, opts \\ []) do
    Entry.call(gang, :_reduce_scatter_out_place, opts, fn view ->
      Collectives.run(view, :reduce_scatter, refs, Options.put(opts, :dim, dim))
    end)
  end

  @doc """
  Makes a queue from one member to all others: `RankBridge.Queues.new_queue/3` under vLLM's name.

  Options: `:writer_rank` - rank in the group that writes (default 0), `:name` (default: one that nothing else has),
  `:max_chunk_bytes`, `:max_chunks`, and those of collectives.
  """
  spec_with_bang create_mq_broadcaster(Gang.gang(), keyword()) :: Queue.t()

  def create_mq_broadcaster(gang, opts \\ []) do
    Entry.call(gang, :create_mq_broadcaster, opts, fn view ->
      {writer, opts} = Options.pop(opts, :writer_rank, 0)
      {name, opts} = queue_name(opts)
      Queues.make(view, name, Options.put(opts, :writer_rank_in_group, writer))
    end)
  end

  @doc """
  Makes a queue from each other member to one reader, under vLLM's name: all of them, or none. Gives by rank in group the
  queue that the member writes, nil at the reader's place.

  Options: `:reader_rank_in_group` - who reads all of them (default 0), `:name` - what their names begin with, before a
  slash and the writer's rank in group (default: what nothing else has), `:max_chunk_bytes`, `:max_chunks`, `:group`,
  `:timeout`, of each.
  """
  spec_with_bang create_single_reader_mq_broadcasters(Gang.gang(), keyword()) :: [Queue.t() | nil]

  def create_single_reader_mq_broadcasters(gang, opts \\ []) do
    Entry.call(gang, :create_single_reader_mq_broadcasters, opts, fn view ->
      operation = "create_single_reader_mq_broadcasters"
      {name, opts} = queue_name(opts)

      defaults =
        [group: "world", reader_rank_in_group: 0] ++ [max_chunk_bytes: nil, max_chunks: nil]

      with {:ok, opts} <- Options.read(opts, defaults, operation),
           {reader, opts} = Map.pop!(opts, :reader_rank_in_group),
           timeout = opts.timeout || view.timeout,
           {:ok, members} <- Groups.members(view, opts.group, timeout, operation),
           places = Enum.to_list(0..(length(members) - 1)),
           :ok <- check_reader(reader, places, opts.group, operation),
           do: make_queues(view, places, reader, name, Map.to_list(opts))
    end)
  end

  defp queue_name(opts) do
    {name, opts} = Options.pop(opts, :name)
    {if(name == nil, do: "mq-" <> Id.uuid(), else: name), opts}
  end

  defp check_reader(reader, places, group, operation) do
    if reader in places do
      :ok
    else
      {:error,
       Error.refusal(:rank_out_of_range, "reader_rank_in_group is not in the group",
         operation: operation,
         group: group,
         expected: "0 to #{List.last(places)}",
         got: inspect(reader, limit: 3)
       )}
    end
  end

  defp make_queues(view, places, reader, name, opts) do
    Enum.reduce_while(places, {:ok, []}, fn
      ^reader, {:ok, made} ->
        {:cont, {:ok, [nil | made]}}

      place, {:ok, made} ->
        own = [writer_rank_in_group: place, reader_ranks_in_group: [reader]] ++ opts

        case Queues.make(view, part_name(name, place), own) do
          {:ok, queue} ->
            {:cont, {:ok, [queue | made]}}

          {:error, error} ->
            for %Queue{} = queue <- made, do: _ = Queues.shut_down(view, queue, [])
            {:halt, {:error, error}}
        end
    end)
    |> case do
      {:ok, reversed} -> {:ok, Enum.reverse(reversed)}
      error -> error
    end
  end

  # What is no name is refused as it is.
  defp part_name(name, place), do: if(is_binary(name), do: "#{name}/#{place}", else: name)

  @doc "`RankBridge.destroy_group/3`, of a group or its name."
  spec_with_bang destroy(Gang.gang(), Group.t() | String.t(), keyword()) :: Group.t()

  def destroy(gang, group, opts \\ []) do
    Entry.call(gang, :destroy, opts, fn view -> Groups.destroy(view, Group.name(group), opts) end)
  end
end
