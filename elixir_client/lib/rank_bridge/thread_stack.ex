defmodule RankBridge.ThreadStack do
  @moduledoc """
  The stack of a thread of a rank's process, see `RankBridge.Generations.stacks/2`.

  * `name` - name of the thread: "MainThread"
  * `native_id` - the kernel's number of the thread
  * `frames` - its calls, the innermost first: the `function`, with its class ("Lane._run"), the `file` of its code, and the
    `line` at which it is
  """

  alias RankBridge.Proto.V1

  @type frame :: %{function: String.t(), file: String.t(), line: non_neg_integer()}

  @type t :: %__MODULE__{name: String.t(), native_id: non_neg_integer(), frames: [frame()]}

  @enforce_keys [:name, :native_id, :frames]
  defstruct [:name, :native_id, :frames]

  @doc "The stack that a rank sent."
  @spec from_proto(V1.ThreadStack.t()) :: t()
  def from_proto(%V1.ThreadStack{} = it) do
    %__MODULE__{name: it.name, native_id: it.native_id, frames: Enum.map(it.frames, &frame/1)}
  end

  @doc "The call that a rank sent."
  @spec frame(V1.StackFrame.t()) :: frame()
  def frame(%V1.StackFrame{} = it), do: Map.take(it, [:function, :file, :line])
end
