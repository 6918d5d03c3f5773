defmodule RankBridge.Test.Certificates do
  @moduledoc "Certificates for tests: an authority, a server and a client that it vouches for, and a stranger."

  @doc "Makes the files with `openssl`, in a directory that the calling test leaves with its end: a map of paths."
  @spec make() :: %{atom() => Path.t()}
  def make do
    dir =
      Path.join(
        System.tmp_dir!(),
        "rankbridge-#{System.pid()}-#{System.unique_integer([:positive])}"
      )

    File.mkdir_p!(dir)
    ExUnit.Callbacks.on_exit(fn -> File.rm_rf!(dir) end)
    authority(dir, "ca")
    authority(dir, "stranger")
    signed(dir, "server", "subjectAltName=DNS:localhost,IP:127.0.0.1")
    signed(dir, "client", "subjectAltName=DNS:client")

    for name <- ~w(ca stranger server client), kind <- ~w(cert key), into: %{} do
      {String.to_atom("#{name}_#{kind}"), Path.join(dir, "#{name}.#{kind}.pem")}
    end
  end

  defp authority(dir, name) do
    openssl(
      dir,
      ~w(req -x509 -days 2 -subj /CN=#{name}) ++ new_key(name) ++ ~w(-out #{name}.cert.pem)
    )
  end

  defp signed(dir, name, extension) do
    File.write!(Path.join(dir, "#{name}.ext"), extension)
    openssl(dir, ~w(req -subj /CN=#{name}) ++ new_key(name) ++ ~w(-out #{name}.csr))

    openssl(
      dir,
      ~w(x509 -req -days 2 -in #{name}.csr -CA ca.cert.pem -CAkey ca.key.pem -CAcreateserial) ++
        ~w(-extfile #{name}.ext -out #{name}.cert.pem)
    )
  end

  defp new_key(name),
    do: ~w(-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout #{name}.key.pem)

  defp openssl(dir, args) do
    {output, status} = System.cmd("openssl", args, cd: dir, stderr_to_stdout: true)
    if status != 0, do: raise("openssl #{Enum.join(args, " ")}: #{output}")
  end
end
