defmodule RankBridge.Grouping do
  @moduledoc "Groups of ranks: making, describing and ending them. `RankBridge.Group` describes a group."

  use RankBridge.Facade

  alias RankBridge.{Gang, Group, Groups, ManyGroups}

  @doc """
  Makes a group of some ranks of the gang, in group order. All members of the group `:group` (default "world") take
  part, also those that the new group does not include.
  """
  defcall new_group(
            gang :: Gang.gang(),
            name :: String.t(),
            ranks :: [non_neg_integer()],
            opts :: keyword() \\ []
          ) :: Group.t(),
          do: Groups.create(view, name, ranks, opts)

  @doc "Ends a group, after the calls that are queued on it. Gives the group as it was."
  defcall destroy_group(gang :: Gang.gang(), name :: String.t(), opts :: keyword() \\ []) ::
            Group.t(),
          do: Groups.destroy(view, name, opts)

  @doc "Every group of the gang, by name."
  defcall groups(gang :: Gang.gang(), opts :: keyword() \\ []) :: [Group.t()],
    do: Groups.list(view, opts)

  @doc """
  One group, by its name, with the `places` of its members, as far as ranks answer. `RankBridge.Group` says what each
  member is in it: `RankBridge.Group.next_rank(group, rank)`.
  """
  defcall group(gang :: Gang.gang(), name :: String.t(), opts :: keyword() \\ []) :: Group.t(),
    do: ManyGroups.describe(view, name, opts)

  @doc """
  Makes several groups: all of them, or none. `groups` are `{name, ranks}`, or groups. Call it from one process at a
  time, as anything on "world".

  The ranks make one group after the other. If one fails, the groups before it are ended again; if some groups may be
  left, the error's message names them. `:group_exists` and malformed descriptions are found before any group is made. If
  the calling process dies meanwhile, the groups that it has made stay.

  Option `:timeout`: for each of them, in milliseconds.
  """
  defcall new_groups(
            gang :: Gang.gang(),
            groups :: [ManyGroups.group()],
            opts :: keyword() \\ []
          ) :: [Group.t()],
          do: ManyGroups.create(view, groups, opts)

  @doc """
  Ends those of the groups that exist, each after the calls queued on it, and gives them as they were. `groups` are
  names or groups: `RankBridge.Mesh.groups(mesh)`. All are tried; the message of an error names those that were not
  ended.

  Option `:timeout`: for each of them, in milliseconds.
  """
  defcall destroy_groups(
            gang :: Gang.gang(),
            groups :: [Group.t() | String.t()],
            opts :: keyword() \\ []
          ) :: [Group.t()],
          do: ManyGroups.destroy(view, groups, opts)
end
