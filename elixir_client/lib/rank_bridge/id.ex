defmodule RankBridge.Id do
  @moduledoc false
  # Ids of operations and sessions.

  @doc "A random UUID, version 4."
  @spec uuid() :: String.t()
  def uuid do
    <<a::32, b::16, _version::4, c::12, _variant::2, d::14, e::48>> =
      :crypto.strong_rand_bytes(16)

    [<<a::32>>, <<b::16>>, <<4::4, c::12>>, <<2::2, d::14>>, <<e::48>>]
    |> Enum.map_join("-", &Base.encode16(&1, case: :lower))
  end
end
