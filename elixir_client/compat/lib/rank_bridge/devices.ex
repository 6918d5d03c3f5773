defmodule RankBridge.Devices do
  @moduledoc "Where tensors are on the ranks, and on which devices a group's backend works."

  use RankBridge.Bangs

  alias RankBridge.{Entry, Gang, Group, ManyGroups, Options, Ranks}

  # By torch's names, of which a backend for several devices has a list: "cpu:gloo,cuda:nccl".
  @of_cpu ["fake", "gloo", "mpi"]
  @of_cuda ["nccl"]

  @doc """
  The device on which a rank makes tensors of which nothing else is said: "cpu", "cuda:0". As `default_device` of
  optimus-dl's `MeshCollective`. Option `:timeout`.
  """
  spec_with_bang default_device(Gang.gang(), non_neg_integer(), keyword()) :: String.t()

  def default_device(gang, rank, opts \\ []) do
    Entry.call(gang, :default_device, opts, fn view ->
      with {:ok, status} <- Ranks.status_of(view, rank, opts), do: {:ok, status.device}
    end)
  end

  @doc "Whether a group's backend works on tensors on the CPU, as OLMo-core's. Options: `:group`, `:timeout`."
  spec_with_bang backend_supports_cpu(Gang.gang(), keyword()) :: boolean()

  def backend_supports_cpu(gang, opts \\ []) do
    Entry.call(gang, :backend_supports_cpu, opts, fn view -> supports(view, opts, @of_cpu) end)
  end

  @doc "Whether a group's backend works on tensors on CUDA devices, as OLMo-core's. Options: `:group`, `:timeout`."
  spec_with_bang backend_supports_cuda(Gang.gang(), keyword()) :: boolean()

  def backend_supports_cuda(gang, opts \\ []) do
    Entry.call(gang, :backend_supports_cuda, opts, fn view -> supports(view, opts, @of_cuda) end)
  end

  defp supports(view, opts, names) do
    {group, opts} = Options.pop(opts, :group, "world")

    with {:ok, group} <- ManyGroups.describe(view, Group.name(group), opts),
         do: {:ok, String.contains?(group.backend, names)}
  end
end
