defmodule RankBridge.TLSGangTest do
  @moduledoc "A gang that speaks TLS on TCP and demands a certificate, driven over it."

  use ExUnit.Case, async: true

  alias RankBridge.{Error, Gang, Tensor}
  alias RankBridge.Test.{Certificates, LiveRanks}

  setup do
    files = Certificates.make()

    options =
      ["--tls-cert", files.server_cert, "--tls-key", files.server_key] ++
        ["--tls-ca", files.ca_cert, "--tls-client-ca", files.ca_cert]

    ranks = LiveRanks.start(3, "gloo", options)
    on_exit(fn -> LiveRanks.stop(ranks) end)
    %{files: files, ranks: ranks}
  end

  test "a gang is driven and formed over TLS, and refuses who shows no certificate", context do
    %{files: files, ranks: ranks} = context
    tls = [cacertfile: files.ca_cert, certfile: files.client_cert, keyfile: files.client_key]
    gang = start_supervised!({Gang, endpoints_file: ranks.file, tls: tls, timeout: 20_000})

    refs = RankBridge.put!(gang, [[1.0], [2.0], [3.0]])
    assert sums(gang, refs) == [[6.0], [6.0], [6.0]]

    # The rank that forms connects to the others with TLS as well.
    assert {:ok, %{generation: 2}} = RankBridge.form(gang)
    assert sums(gang, refs) == [[6.0], [6.0], [6.0]]

    targets =
      for status <- RankBridge.status!(gang),
          do: Enum.find(status.endpoints, &(not String.starts_with?(&1, "unix:")))

    Process.flag(:trap_exit, true)

    for refused <- [nil, [cacertfile: files.ca_cert], [cacertfile: files.stranger_cert]] do
      {:ok, gang} =
        Gang.start_link(endpoints: targets, tls: refused, timeout: 20_000, unready: :fail)

      assert %Error{reason: :unavailable, indefinite: false} = error = first_failure(gang)
      assert error.message =~ ~r/TLS|certificate/i
      :ok = Gang.stop(gang)
    end
  end

  # The error of calls once the gang has tried to join.
  defp first_failure(gang) do
    {:error, error} = RankBridge.barrier(gang)
    if error.rank == nil, do: first_failure(gang), else: error
  end

  defp sums(gang, refs) do
    gang |> RankBridge.get!(RankBridge.all_reduce!(gang, refs)) |> Enum.map(&Tensor.to_list/1)
  end
end
