defmodule RankBridge.Generations do
  @moduledoc "The ranks of a gang: what they are doing, where they run, and forming their generations."

  use RankBridge.Facade

  alias RankBridge.{Collectives, Gang, ManyGroups, Ranks, RankStatus}

  @doc "The status of each rank. A rank that cannot be reached is in the list, with an `error`."
  defcall status(gang :: Gang.gang(), opts :: keyword() \\ []) :: [RankStatus.t()],
    do: Ranks.status(view, opts)

  @doc """
  Asks all members of a group whether they are there, in the order of the group's other operations.

  The ranks admit it like a collective, but do not use the backend. It is always a gang call (`RankBridge.Operations.GangCall`).
  """
  defcall ping(gang :: Gang.gang(), opts :: keyword() \\ []) :: :ok,
    do: Collectives.run(view, :ping, nil, opts)

  @doc "The name of each rank's host, by rank."
  defcall hosts(gang :: Gang.gang(), opts :: keyword() \\ []) :: [String.t()],
    do: ManyGroups.hosts(view, opts)

  @doc """
  Forms the next generation of all ranks: either every rank has it, or none. Opens the gang's session on new ranks.
  Waits for ranks that cannot be reached yet, such as those that are being replaced.

  Options: `:groups` (a list of `{name, ranks}`, or of groups, beside "world"), `:endpoints` (a target for each rank as the
  sidecars can reach each other; default: those that this gang uses). The default timeout is 10,000.
  """
  defcall form(gang :: Gang.gang(), opts :: keyword() \\ []) :: Ranks.formed(),
    do: Ranks.form(view, opts)
end
