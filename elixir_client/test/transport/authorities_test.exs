defmodule RankBridge.Transport.AuthoritiesTest do
  @moduledoc "TLS where the machine has no certificates of authorities: a VM of its own, in whose namespace there are none."

  use ExUnit.Case, async: true

  @connecting ~S"""
  {:ok, _started} = Application.ensure_all_started(:rank_bridge)
  {:ok, listener} = :gen_tcp.listen(0, ip: {127, 0, 0, 1})
  {:ok, port} = :inet.port(listener)

  for tls <- [true, [verify: :verify_none]] do
    opts = [tls: tls, connect_timeout: 500]
    {:error, status} = RankBridge.Transport.connect("127.0.0.1:#{port}", opts)
    IO.puts("#{status.code}, sent #{status.sent?}: #{status.message}")
  end
  """

  @tag timeout: 120_000
  test "a channel says that it has none; one that verifies nobody needs none" do
    elixir = System.find_executable("elixir")
    beams = :rank_bridge |> :code.lib_dir() |> Path.join("ebin")
    hidden = ["sh", "-c", ~s(mount -t tmpfs none /etc/ssl && exec "$@"), "sh"]
    vm = [elixir, "-pa", beams, "-e", @connecting]

    {user, 0} = System.cmd("id", ["-u"])
    # Others than root may mount in a namespace where they are root.
    own = if user == "0\n", do: [], else: ["--map-root-user"]
    arguments = own ++ ["--mount"] ++ hidden ++ vm
    assert {output, 0} = System.cmd("unshare", arguments, stderr_to_stdout: true)
    assert [none, unverified] = String.split(output, "\n", trim: true)

    assert none ==
             "unavailable, sent false: TLS: this machine has no certificates of authorities; name some as :cacertfile"

    assert unverified =~ ~r/^unavailable, sent false: .*(time|closed)/
  end
end
