defmodule RankBridge.Containers do
  @moduledoc false
  # `RankBridge.Container`s to the ranks and back.

  use RankBridge.Bangs

  alias RankBridge.{
    AtOnce,
    Calls,
    Container,
    Entry,
    Error,
    Gang,
    Groups,
    Options,
    Ref,
    Refs,
    Tensor
  }

  alias RankBridge.Gang.View

  # Transfers of one rank at a time. More do not bring anything sooner.
  @lanes 8
  # Milliseconds for taking back what was made of a container that is not whole.
  @undoing 2_000

  @doc """
  Brings the tensors of a container to every member of a group, or to one rank, and gives containers of the same shape with
  refs in place of the tensors: a list with one for each member, or the one.

  All of them are brought, or none. Options: `:rank` (gives one container instead of a list), `:group`, `:device`.
  `:invalid_argument` names the leaf that is no tensor by its path, as any failure does.
  """
  spec_with_bang put_container(Gang.gang(), Container.t(), keyword()) ::
                   [Container.t()] | Container.t()

  def put_container(gang, container, opts \\ []) do
    Entry.call(gang, :put_container, opts, fn view -> bring(view, container, opts) end)
  end

  @doc """
  Fetches the tensors of a container of refs, of any ranks, and gives a container of the same shape with tensors in place of
  the refs. A list of containers is one, too: what `put_container/3` gives can be fetched whole.
  """
  spec_with_bang get_container(Gang.gang(), Container.t(), keyword()) :: Container.t()

  def get_container(gang, container, opts \\ []) do
    Entry.call(gang, :get_container, opts, fn view -> fetch(view, container, opts) end)
  end

  defp bring(view, container, opts) do
    defaults = [rank: nil, group: view.group, device: ""]

    with {:ok, opts} <- Options.read(opts, defaults, "put_container"),
         {:ok, ranks} <- ranks(view, opts),
         {:ok, leaves} <- tensors(Container.leaves(container)) do
      of_put = [device: opts.device] ++ timeout(opts)

      results =
        in_lanes(for(rank <- ranks, do: {rank, leaves}), fn rank, tensor ->
          Refs.put(view, rank, tensor, of_put)
        end)

      with {:ok, refs} <- all_or_none(results, view) do
        filled =
          if leaves == [],
            do: for(_rank <- ranks, do: Container.fill(container, [])),
            else:
              refs |> Enum.chunk_every(length(leaves)) |> Enum.map(&Container.fill(container, &1))

        {:ok, if(opts.rank, do: hd(filled), else: filled)}
      end
    end
  end

  defp ranks(view, %{rank: nil} = opts),
    do: Groups.members(view, opts.group, opts.timeout || view.timeout, "put_container")

  defp ranks(view, %{rank: rank}),
    do: with(:ok <- View.check_rank(view, rank, "put_container"), do: {:ok, [rank]})

  defp tensors(leaves) do
    each(leaves, fn path, leaf ->
      with {:error, error} <- Tensor.coerce(leaf),
           do: {:error, Container.at(%{error | operation: "put_container"}, path)}
    end)
  end

  defp all_or_none(results, view) do
    with {:error, error} <- Calls.gathered(results, true) do
      made = for {_rank, {:ok, ref}} <- results, do: ref
      # Whatever comes of it: what is left ends with the session.
      _ = made == [] || Refs.release(view, made, timeout: @undoing)
      {:error, error}
    end
  end

  defp fetch(view, container, opts) do
    leaves = Container.leaves(container)

    with {:ok, opts} <- Options.read(opts, [], "get_container"),
         {:ok, refs} <- refs(leaves) do
      by_rank = refs |> Enum.with_index() |> Enum.group_by(fn {{_path, ref}, _at} -> ref.rank end)

      placed =
        for {rank, indexed} <- by_rank,
            do: {rank, for({{path, ref}, at} <- indexed, do: {path, {ref, at}})}

      results =
        in_lanes(placed, fn _rank, {ref, at} ->
          with {:ok, tensor} <- Refs.get(view, ref, timeout(opts)), do: {:ok, {at, tensor}}
        end)

      with {:ok, tensors} <- Calls.gathered(results, false) do
        {:ok,
         Container.fill(
           container,
           tensors |> Enum.sort_by(&elem(&1, 0)) |> Enum.map(&elem(&1, 1))
         )}
      end
    end
  end

  defp refs(leaves) do
    each(leaves, fn
      _path, %Ref{} = ref ->
        {:ok, ref}

      path, other ->
        message = "not a ref: #{inspect(other, limit: 3, printable_limit: 40)}"
        error = Error.refusal(:invalid_argument, message, operation: "get_container")
        {:error, Container.at(error, path)}
    end)
  end

  # Nothing is sent before every leaf is known to be fine.
  defp each(leaves, fun) do
    Enum.reduce_while(leaves, {:ok, []}, fn {path, leaf}, {:ok, done} ->
      case fun.(path, leaf) do
        {:ok, fine} -> {:cont, {:ok, [{path, fine} | done]}}
        {:error, error} -> {:halt, {:error, error}}
      end
    end)
    |> case do
      {:ok, reversed} -> {:ok, Enum.reverse(reversed)}
      error -> error
    end
  end

  # All ranks at once, and of each rank so many: `{rank, result}` in the order that was given.
  defp in_lanes(placed, fun) do
    lanes =
      for {rank, leaves} <- placed,
          lane <- Enum.chunk_every(leaves, max(1, div(length(leaves) + @lanes - 1, @lanes))),
          do: {rank, lane}

    lanes
    |> AtOnce.map(fn {rank, lane} ->
      for {path, leaf} <- lane do
        case fun.(rank, leaf) do
          {:error, error} -> {rank, {:error, Container.at(error, path)}}
          fine -> {rank, fine}
        end
      end
    end)
    |> Enum.concat()
  end

  defp timeout(%{timeout: nil}), do: []
  defp timeout(%{timeout: timeout}), do: [timeout: timeout]
end
