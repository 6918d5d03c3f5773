defmodule RankBridge.Devices do
  @moduledoc "Where tensors are on the ranks, and on which devices a group's backend works."

  use RankBridge.Facade

  alias RankBridge.{Gang, Group, ManyGroups, Options, Ranks}

  # By torch's names, of which a backend for several devices has a list: "cpu:gloo,cuda:nccl".
  @of_cpu ["fake", "gloo", "mpi"]
  @of_cuda ["nccl"]

  @doc """
  The device on which a rank makes tensors of which nothing else is said: "cpu", "cuda:0". As `default_device` of
  optimus-dl's `MeshCollective`. Option `:timeout`.
  """
  defcall default_device(gang :: Gang.gang(), rank :: non_neg_integer(), opts :: keyword() \\ []) ::
            String.t() do
    with {:ok, status} <- Ranks.status_of(view, rank, opts), do: {:ok, status.device}
  end

  @doc "Whether a group's backend works on tensors on the CPU, as OLMo-core's. Options: `:group`, `:timeout`."
  defcall backend_supports_cpu(gang :: Gang.gang(), opts :: keyword() \\ []) :: boolean(),
    do: supports(view, opts, @of_cpu)

  @doc "Whether a group's backend works on tensors on CUDA devices, as OLMo-core's. Options: `:group`, `:timeout`."
  defcall backend_supports_cuda(gang :: Gang.gang(), opts :: keyword() \\ []) :: boolean(),
    do: supports(view, opts, @of_cuda)

  defp supports(view, opts, names) do
    {group, opts} = Options.pop(opts, :group, "world")

    with {:ok, group} <- ManyGroups.describe(view, Group.name(group), opts),
         do: {:ok, String.contains?(group.backend, names)}
  end
end
