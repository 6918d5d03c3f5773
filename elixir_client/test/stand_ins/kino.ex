# A stand-in for Kino, as far as the library and its notebook use it. Written from the documentation of Kino 0.19:
# `Kino.Frame.new/1` makes a placeholder, `Kino.Frame.render/3` replaces what it shows, `Kino.Markdown.new/1` is text,
# `Kino.render/1` shows what it is given before the cell has ended, and gives it back, and `Kino.start_child/1` starts
# a process that Livebook ends when the cell is evaluated again. A frame shows to who made it: that process gets
# `{:shown, frame, term}`.
defmodule Kino.Frame do
  @moduledoc "A stand-in: a placeholder."
  defstruct [:ref, :owner]
  def new(_opts \\ []), do: %__MODULE__{ref: make_ref(), owner: self()}

  def render(%__MODULE__{} = frame, term, _opts \\ []) do
    send(frame.owner, {:shown, frame, term})
    :ok
  end
end

defmodule Kino.Markdown do
  @moduledoc "A stand-in: text."
  defstruct [:text]
  def new(text, _opts \\ []) when is_binary(text), do: %__MODULE__{text: text}
end

defmodule Kino do
  @moduledoc "A stand-in: what a cell shows, and its processes, under a supervisor of the process that evaluates it."
  def render(%Kino.Frame{} = frame), do: frame

  def start_child(child) do
    supervisor =
      with nil <- Process.get(__MODULE__) do
        {:ok, supervisor} = DynamicSupervisor.start_link(strategy: :one_for_one, max_restarts: 0)
        Process.put(__MODULE__, supervisor)
        supervisor
      end

    DynamicSupervisor.start_child(supervisor, Supervisor.child_spec(child, restart: :temporary))
  end
end
