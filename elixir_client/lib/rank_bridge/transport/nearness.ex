defmodule RankBridge.Transport.Nearness do
  @moduledoc false
  # Who can be at the other end of a connection: a unix socket of this user, or an address that nobody beyond this host hears.

  @insecure "RANKBRIDGE_INSECURE_TOKEN"

  @doc """
  Whether the unix socket at a path is this user's, or root's: another user may have taken the place of a gang that has ended.

  What is not there is nobody's, and connecting to it fails by itself.
  """
  @spec check_owner(binary(), non_neg_integer()) :: :ok | {:error, String.t()}
  def check_owner(path, user \\ user())
  def check_owner(<<0, _abstract::binary>>, _user), do: :ok

  def check_owner(path, user) do
    with {:ok, %File.Stat{uid: owner}} <- File.stat(path),
         true <- user != 0 and owner not in [0, user] do
      {:error, "unix:#{path} belongs to another user, of number #{owner}"}
    else
      _ours_or_not_there -> :ok
    end
  end

  @doc "Checks that nobody beyond this host hears a token that is shown at an address in plain text."
  @spec check_hearers(String.t()) :: :ok | {:error, String.t()}
  def check_hearers(host) do
    if System.get_env(@insecure) == "1" or Enum.all?(addresses(host), &loopback?/1),
      do: :ok,
      else:
        {:error,
         "the token would go to #{host} in plain text: give tls:, or insecure_token: true (or #{@insecure}=1) if " <>
           "you trust everybody on that network"}
  end

  # Of a name that stands for nothing there is nobody to hear.
  @doc "The addresses of a host, which may be one itself."
  @spec addresses(String.t()) :: [:inet.ip_address()]
  def addresses(host) do
    name = String.to_charlist(host)

    case :inet.parse_address(name) do
      {:ok, address} ->
        [address]

      {:error, _} ->
        for family <- [:inet, :inet6],
            {:ok, found} <- [:inet.getaddrs(name, family)],
            address <- found,
            do: address
    end
  end

  # Where the kernel does not say who this is, nobody can be told from it.
  defp user do
    case File.stat("/proc/self") do
      {:ok, %File.Stat{uid: user}} -> user
      {:error, _none} -> 0
    end
  end

  defp loopback?({127, _, _, _}), do: true
  defp loopback?({0, 0, 0, 0, 0, 0, 0, 1}), do: true
  defp loopback?({0, 0, 0, 0, 0, 0xFFFF, high, _low}), do: div(high, 256) == 127
  defp loopback?(_address), do: false
end
