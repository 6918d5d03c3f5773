defmodule RankBridge.Protobuf.DecodeError do
  @moduledoc false
  # Bytes that are not the message they should be.

  @type t :: %__MODULE__{message: String.t()}

  defexception [:message]

  @impl true
  def exception(what), do: %__MODULE__{message: "malformed protobuf: #{what}"}
end

defmodule RankBridge.Protobuf.EncodeError do
  @moduledoc false
  # A struct whose field holds what its type does not allow.

  @type t :: %__MODULE__{message: String.t()}

  defexception [:message]

  @impl true
  def exception({type, value}) do
    shown = inspect(value, limit: 5, printable_limit: 40)
    %__MODULE__{message: "not a protobuf #{inspect(type)}: #{shown}"}
  end
end
