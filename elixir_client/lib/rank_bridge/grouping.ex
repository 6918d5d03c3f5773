defmodule RankBridge.Grouping do
  @moduledoc "Groups of ranks: making, describing and ending them. `RankBridge.Group` describes a group."

  use RankBridge.Bangs

  alias RankBridge.{Entry, Error, Gang, Group, Groups, ManyGroups, Options}

  @doc """
  Makes a group of some ranks of the gang, in group order. All members of the group `:group` (default "world") take
  part, also those that the new group does not include.

  `:group_exists`: there is a group of that name. With the option `exist_ok: true`, gives that group, if it has these ranks.
  """
  spec_with_bang new_group(Gang.gang(), String.t(), [non_neg_integer()], keyword()) :: Group.t()

  def new_group(gang, name, ranks, opts \\ []) do
    Entry.call(gang, :new_group, opts, fn view ->
      {exist_ok, opts} = Options.pop(opts, :exist_ok, false)

      with {:error, %Error{reason: :group_exists}} = taken <-
             Groups.create(view, name, ranks, opts),
           do: if(exist_ok == true, do: there(view, name, ranks, taken), else: taken)
    end)
  end

  defp there(view, name, ranks, taken) do
    with {:ok, %Group{ranks: others}} when others != ranks <- ManyGroups.describe(view, name, []),
         do: taken
  end

  @doc "Ends a group, after the calls that are queued on it. Gives the group as it was."
  spec_with_bang destroy_group(Gang.gang(), String.t(), keyword()) :: Group.t()

  def destroy_group(gang, name, opts \\ []) do
    Entry.call(gang, :destroy_group, opts, fn view -> Groups.destroy(view, name, opts) end)
  end

  @doc "Every group of the gang, by name."
  spec_with_bang groups(Gang.gang(), keyword()) :: [Group.t()]

  def groups(gang, opts \\ []) do
    Entry.call(gang, :groups, opts, fn view -> Groups.list(view, opts) end)
  end

  @doc """
  One group, by its name, with the `places` of its members, as far as ranks answer. `RankBridge.Group` says what each
  member is in it: `RankBridge.Group.next_rank(group, rank)`.
  """
  spec_with_bang group(Gang.gang(), String.t(), keyword()) :: Group.t()

  def group(gang, name, opts \\ []) do
    Entry.call(gang, :group, opts, fn view -> ManyGroups.describe(view, name, opts) end)
  end

  @doc """
  Makes several groups: all of them, or none. `groups` are `{name, ranks}`, or groups. Call it from one process at a
  time, as anything on "world".

  The ranks make one group after the other. If one fails, the groups before it are ended again; if some groups may be
  left, the error's message names them. `:group_exists` and malformed descriptions are found before any group is made. If
  the calling process dies meanwhile, the groups that it has made stay.

  Option `:timeout`: for each of them, in milliseconds.
  """
  spec_with_bang new_groups(Gang.gang(), [ManyGroups.group()], keyword()) :: [Group.t()]

  def new_groups(gang, groups, opts \\ []) do
    Entry.call(gang, :new_groups, opts, fn view -> ManyGroups.create(view, groups, opts) end)
  end

  @doc """
  Ends those of the groups that exist, each after the calls queued on it, and gives them as they were. `groups` are
  names or groups: `RankBridge.Mesh.groups(mesh)`. All are tried; the message of an error names those that were not
  ended.

  Option `:timeout`: for each of them, in milliseconds.
  """
  spec_with_bang destroy_groups(Gang.gang(), [Group.t() | String.t()], keyword()) :: [Group.t()]

  def destroy_groups(gang, groups, opts \\ []) do
    Entry.call(gang, :destroy_groups, opts, fn view -> ManyGroups.destroy(view, groups, opts) end)
  end
end
