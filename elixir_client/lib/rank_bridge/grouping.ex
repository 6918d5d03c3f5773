defmodule RankBridge.Grouping do
  @moduledoc "Groups of ranks: making, describing and ending them. `RankBridge.Group` describes a group."

  use RankBridge.Facade

  alias RankBridge.{Gang, Group, Groups, ManyGroups}

  @doc """
  Makes a group of some ranks of the gang, in group order. All members of the group `:group` (default "world") take
  part, those who will not be in the new one included.
  """
  defcall new_group(
            gang :: Gang.gang(),
            name :: String.t(),
            ranks :: [non_neg_integer()],
            opts :: keyword() \\ []
          ) :: Group.t(),
          do: Groups.create(view, name, ranks, opts)

  @doc "Ends a group. Calls that are queued on it run first. Gives the group as it was."
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

  They are made one after the other, each on every rank before the next begins. If one fails, those before it are ended
  again; the message of an error after which some may be left names them. `:group_exists` and malformed descriptions
  are found before any is made. What a process has made is left if it dies meanwhile.

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
